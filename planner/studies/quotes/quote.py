"""A seller's quote: its parts, the sentence that states them, and the offer of a spec that they make.

Not here: how a sentence is read (`planner.studies.quotes.sentence`), and how a mapping is (`planner.studies.quotes.mapping`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from catalog.units import DAY_S, HOUR_S, MONTH_S, PERCENT, WEEK_S, YEAR_S

How = Literal["buy", "reserved", "on_demand", "spot"]
Unit = Literal["chip", "system"]
Time = Literal["", "h", "day", "month", "year"]
Moment = date | float
"""A day, or a time from the start of the horizon [s]."""

SECONDS: dict[str, float] = {"h": HOUR_S, "day": DAY_S, "week": WEEK_S, "month": MONTH_S, "year": YEAR_S}
WAYS: dict[How, str] = {"buy": "to buy", "reserved": "reserved", "on_demand": "on demand", "spot": "spot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a seller offers. `amount`: price in `currency`, of one `per`, for each `time`, or once where that is empty.

    `least`, `most`: how many may be taken, in `counted`; None: as few or as many as wanted. Equal: all or none.
    """

    system: str
    how: How
    amount: float
    currency: str
    per: Unit = "system"
    time: Time = ""
    term_s: float | None = None
    regions: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    counted: Unit = "system"
    notice_s: float | None = None
    exit_fee: float | None = None
    delivery: Moment | None = None
    until: Moment | None = None
    interruption_s: float | None = None

    @property
    def is_all_or_nothing(self) -> bool:
        """Tell whether one count alone can be taken."""
        return self.least is not None and self.least == self.most

    @property
    def price(self) -> str:
        """Write the price as specs take it."""
        return price_text(self.amount, self)

    def at_price(self, amount: float) -> Quote:
        """Return the same quote at another price, in the same unit."""
        return replace(self, amount=amount)

    def systems(self, chips: float) -> tuple[int | None, int | None]:
        """Return (least, most) in whole systems of `chips` each: the least rounded up, the most down."""
        one = 1.0 if self.counted == "system" else chips
        least = None if self.least is None else max(math.ceil(self.least / one), 1)
        return least, None if self.most is None else int(self.most // one)

    def offer(self, chips: float) -> dict[str, Any]:
        """Write the quote as an offer of a spec; `chips`: of one system."""
        least, most = self.systems(chips)
        stated = {
            "system": self.system,
            "how": self.how,
            "price": self.price,
            "supply": most,
            "least": least,
            "regions": list(self.regions) or None,
            "term": None if self.least_time_s is None else f"{written(self.least_time_s)} s",
            "exit_fee": self.exit_fee,
            "available_from": _moment(self.delivery),
            "available_until": _moment(self.until),
            "interruption_interval": None if self.interruption_s is None else f"{written(self.interruption_s)} s",
        }
        return {key: value for key, value in stated.items() if value is not None}

    @property
    def least_time_s(self) -> float | None:
        """Return the least time for which it is rented [s]: its term, or its notice where that is longer."""
        times = [time for time in (self.term_s, self.notice_s) if time is not None]
        return max(times) if times else None

    def sentence(self) -> str:
        """State the quote in the words that `planner.studies.quotes.sentence` reads back.

        >>> Quote(system="DGX H100", how="reserved", amount=2.1, currency="USD", per="chip", time="h", term_s=YEAR_S, most=400, counted="chip").sentence()
        'DGX H100 reserved for 1 year at 2.1 USD/chip/h anywhere, at most 400 chips'
        """
        term = "" if self.term_s is None else f" for {duration(self.term_s)}"
        where = f"in {' or '.join(self.regions)}" if self.regions else "anywhere"
        price = f"{written(self.amount)} {self.currency}/{self.per}{'/' if self.time else ''}{self.time}"
        parts = [f"{self.system} {WAYS[self.how]}{term} at {price} {where}", self._count()]
        if self.notice_s is not None:
            parts.append(f"notice {duration(self.notice_s)}")
        if self.exit_fee is not None:
            parts.append(f"exit fee {written(round(self.exit_fee / PERCENT, 10))}%")
        if self.delivery is not None:
            parts.append(f"delivery {'on' if isinstance(self.delivery, date) else 'in'} {_when(self.delivery)}")
        if self.until is not None:
            parts.append(f"until {_when(self.until)}")
        if self.interruption_s is not None:
            parts.append(f"interrupted every {duration(self.interruption_s)}")
        return ", ".join(filter(None, parts))

    def _count(self) -> str:
        if self.least is None and self.most is None:
            return ""
        unit = f"{self.counted}s"
        if self.is_all_or_nothing:
            return f"exactly {self.most} {unit}"
        if self.least is None:
            return f"at most {self.most} {unit}"
        return f"at least {self.least} {unit}" if self.most is None else f"{self.least} to {self.most} {unit}"


def price_text(amount: float, quote: Quote) -> str:
    """Write an amount per unit of a quote as specs write prices: "2.1 USD/chip/h", "310000 USD"."""
    parts = [quote.currency, *(["chip"] if quote.per == "chip" else []), *([quote.time] if quote.time else [])]
    return f"{written(amount)} {'/'.join(parts)}"


def written(number: float) -> str:
    """Write a number so that it is read back as the same.

    >>> written(2.0), written(0.1), written(1e-7)
    ('2', '0.1', '1e-07')
    """
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def duration(seconds: float) -> str:
    """Write a time in the largest unit of which it is a whole number; in hours, where it is none.

    >>> duration(3 * YEAR_S), duration(18 * MONTH_S), duration(90 * DAY_S), duration(5400.0)
    ('3 years', '18 months', '90 days', '1.5 hours')
    """
    for unit in ("year", "month", "day"):
        if (count := seconds / SECONDS[unit]) >= 1 and count == int(count):
            return f"{int(count)} {unit}{'' if count == 1 else 's'}"
    return f"{written(seconds / HOUR_S)} hours"


def _when(moment: Moment) -> str:
    return moment.isoformat() if isinstance(moment, date) else duration(moment)


def _moment(moment: Moment | None) -> str | None:
    """Write a moment as specs do."""
    if moment is None or isinstance(moment, date):
        return None if moment is None else moment.isoformat()
    return f"{written(moment)} s"
