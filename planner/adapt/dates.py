"""The dates at which a plan is decided and adapted, and at which of them each holding is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Ints
from planner.problem.calendar import Calendar
from planner.problem.facts import OfferFacts
from planner.problem.phases import Term

BORDER_TOL_S = 1.0


@dataclass(frozen=True, slots=True)
class Dates:
    """Decision dates [s from the start], the knowledge at each, and how long an order takes."""

    at_s: tuple[float, ...]
    performance: tuple[bool, ...]  # known at each date
    demand: tuple[bool, ...]
    delivery_s: float  # from the order of a bought system to its delivery
    notice_s: float  # from the order of a reserved system, or the notice of its return, until it holds
    unfolds: bool = False  # demand follows a forecast, whose later path is never known; or systems may come late
    prices: tuple[bool, ...] = ()  # known at each date; empty: as performance

    def stage(self, offer: OfferFacts, term: Term, calendar: Calendar, is_return: bool) -> int:
        """Return the last date at which a holding can be decided, so that it is there in time."""
        if term.first == 0 and not is_return:
            return 0
        begins = float(calendar.edges_s[term.last + 1 if is_return else term.first])
        lead = self.lead_s(offer, is_return)
        before = [i for i, at in enumerate(self.at_s) if at <= begins - lead + BORDER_TOL_S]
        return before[-1] if before else 0

    def lead_s(self, offer: OfferFacts, is_return: bool = False) -> float:
        """Return the typical time from an order to its delivery: of the offer, else as the block says."""
        if offer.lead_s is not None and not is_return:
            return offer.lead_s[1]
        return self.delivery_s if offer.how == "buy" else self.notice_s

    def seen(self, calendar: Calendar) -> tuple[int, ...]:
        """Count the windows of the calendar that lie before each date, for dates that know demand; 0 for all others."""
        ends = np.asarray(calendar.edges_s)[1:]
        return tuple(
            int((ends <= at + BORDER_TOL_S).sum()) if known else 0
            for at, known in zip(self.at_s, self.demand, strict=True)
        )

    def knows_prices(self, date: int) -> bool:
        """Tell whether prices are known at a date."""
        return (self.prices or self.performance)[date]

    def nodes(self, performance: Ints, demand: Ints, prices: Ints | None = None, arrived: Ints | None = None) -> Ints:
        """Number the scenarios that are alike at each date, [date, scenario]: by their groups of performance and of prices, by their demand so far, and by
        what has arrived until then, both [date, scenario]."""
        rows = []
        for d, sees_performance in enumerate(self.performance):
            known = demand[d]
            for group in (
                performance if sees_performance else None,
                prices if self.knows_prices(d) else None,
                None if arrived is None else arrived[d],
            ):
                if group is not None:
                    joint = group * (int(known.max(initial=0)) + 1) + known
                    known = np.unique(joint, return_inverse=True)[1].ravel()
            rows.append(np.unique(known, return_inverse=True)[1].ravel())
        return np.array(rows)

    @property
    def all_known(self) -> int:
        """Return the first date at which everything is known; the number of dates where there is none."""
        if self.unfolds:
            return len(self.at_s)
        known = zip(self.performance, self.demand, self.prices or self.performance, strict=True)
        return next((i for i, each in enumerate(known) if all(each)), len(self.at_s))
