"""Choose the currency and the units in which figures are shown. Stored figures never change, only what a reader sees.

Not here: how numbers are written (`planner.dashboard.figures`), and which choices a page offers (`planner.dashboard.units`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from catalog.units import is_money, show, si_unit

QUANTITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "power": ("W", ("kW", "MW", "GW")),
    "energy": ("J", ("kWh", "MWh", "GWh", "GJ", "TJ")),
    "time": ("s", ("ms", "s")),
    "memory": ("byte", ("GB", "GiB", "TB")),
    "carbon": ("kg", ("kg", "t", "kt")),
}
"""Quantities with a choice of units: SI unit, and the symbols on offer. Without a choice, the size of a figure decides."""
TOKENS = {"1k": 1e3, "1M": 1e6, "1B": 1e9}
"""Numbers of tokens for which a price is stated."""
MILLION = "1M"
LONGEST_S = 120.0
"""Longest time that a choice of units holds for: runs and horizons keep hours, days and years."""


class Scale(NamedTuple):
    """A unit for figures of one size: its symbol, and its size in SI."""

    symbol: str
    factor: float


@dataclass(frozen=True, slots=True)
class Display:
    """Currency and units of a reader. Every empty choice leaves figures as they are."""

    currency: str = ""
    rates: tuple[tuple[str, float], ...] = ()
    """(currency, units of it for one US dollar)."""
    units: tuple[tuple[str, str], ...] = ()
    """(quantity, symbol)."""
    tokens: str = MILLION

    def shown(self, currency: str) -> str:
        """Return the currency in which amounts of a currency are shown: the one chosen, where both rates are known."""
        known = dict(self.rates)
        return self.currency if self.currency in known and currency in known else currency

    def money(self, amount: float, currency: str) -> float:
        """Convert an amount, or an amount per something.

        >>> Display("CNY", (("USD", 1.0), ("CNY", 7.0))).money(3.0, "USD"), Display("CNY").money(3.0, "USD")
        (21.0, 3.0)
        """
        shown, known = self.shown(currency), dict(self.rates)
        return amount if shown == currency else amount / known[currency] * known[shown]

    def per_tokens(self, per_million: float, currency: str) -> float:
        """Convert a price per million tokens into one for the number of tokens that is chosen."""
        return self.money(per_million, currency) * TOKENS[self.tokens] / TOKENS[MILLION]

    def unit_of(self, unit: str, size: float) -> Scale | None:
        """Return the unit chosen for figures in an SI unit of about this size; None without a choice."""
        symbol = next((name for quantity, name in self.units if QUANTITIES[quantity][0] == unit), "")
        if not symbol or (unit == "s" and abs(size) > LONGEST_S):
            return None
        return Scale(symbol, si_unit(symbol)[1])

    def scale(self, unit: str, size: float) -> Scale:
        """Choose the unit of an axis or a column by its largest figure, unless the reader has chosen one.

        >>> Display().scale("W", 32380.0), Display(units=(("power", "MW"),)).scale("W", 32380.0)
        (Scale(symbol='kW', factor=1000.0), Scale(symbol='MW', factor=1000000.0))
        """
        chosen = self.unit_of(unit, size)
        if chosen is not None:
            return chosen
        symbol = show(size or 1.0, unit).rpartition(" ")[2]
        return Scale(symbol, si_unit(symbol)[1])

    def quantity(self, value: float, unit: str) -> tuple[float, str]:
        """Convert a quantity whose SI unit may be money: (value, unit) for `show`."""
        if not is_money(unit):
            return value, unit
        currency, _, per = unit.partition("/")
        return self.money(value, currency), self.shown(currency) + (f"/{per}" if per else "")


PLAIN = Display()
