"""Keep the units and the currency that a visitor chose: in the address, and for the texts of a page. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.dashboard.sources import Rate
from planner.report.locale.display import MILLION, QUANTITIES, TOKENS, Display

CURRENCY, PRICE_OF = "currency", "tokens"
Choices = Mapping[str, str]
"""What was chosen, by name: `currency`, `tokens`, or a quantity."""


def options(rates: Mapping[str, Rate]) -> dict[str, tuple[str, ...]]:
    """List what can be chosen; an empty text stands for no choice."""
    return {
        CURRENCY: ("", *sorted(rates)),
        **{quantity: ("", *symbols) for quantity, (_, symbols) in QUANTITIES.items()},
        PRICE_OF: ("", *(number for number in TOKENS if number != MILLION)),
    }


def from_address(query: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Read the choices of an address; whatever is none is left out later, by `display`."""
    return {name: query[name][0] for name in (CURRENCY, *QUANTITIES, PRICE_OF) if query.get(name)}


def to_address(choices: Choices) -> dict[str, list[str]]:
    """Write the choices as parameters of an address."""
    return {name: [value] for name, value in choices.items() if value}


def display(choices: Choices, rates: Mapping[str, Rate]) -> Display:
    """Build the display of the choices; those that are not on offer do not count."""
    known = {name: value for name, value in choices.items() if value in options(rates).get(name, ())}
    return Display(
        currency=known.get(CURRENCY, ""),
        rates=tuple((currency, rate.per_usd) for currency, rate in rates.items()),
        units=tuple((name, value) for name, value in known.items() if name in QUANTITIES and value),
        tokens=known.get(PRICE_OF) or MILLION,
    )
