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
    unfolds: bool = False  # demand follows a forecast, whose later path is never known

    def stage(self, offer: OfferFacts, term: Term, calendar: Calendar, is_return: bool) -> int:
        """Return the last date at which a holding can be decided, so that it is there in time."""
        if term.first == 0 and not is_return:
            return 0
        begins = float(calendar.edges_s[term.last + 1 if is_return else term.first])
        lead = self.delivery_s if offer.how == "buy" else self.notice_s
        before = [i for i, at in enumerate(self.at_s) if at <= begins - lead + BORDER_TOL_S]
        return before[-1] if before else 0

    def seen(self, calendar: Calendar) -> tuple[int, ...]:
        """Count the windows of the calendar that lie before each date, for dates that know demand; 0 for all others."""
        ends = np.asarray(calendar.edges_s)[1:]
        return tuple(
            int((ends <= at + BORDER_TOL_S).sum()) if known else 0
            for at, known in zip(self.at_s, self.demand, strict=True)
        )

    def nodes(self, performance: Ints, demand: Ints) -> Ints:
        """Number the scenarios that are alike at each date: by their groups of performance, and by their demand so far [date, scenario]."""
        rows = []
        for d, sees_performance in enumerate(self.performance):
            known = demand[d]
            if sees_performance:
                known = performance * (int(known.max(initial=0)) + 1) + known
            rows.append(np.unique(known, return_inverse=True)[1].ravel())
        return np.array(rows)

    @property
    def all_known(self) -> int:
        """Return the first date at which everything is known; the number of dates where there is none."""
        if self.unfolds:
            return len(self.at_s)
        return next(
            (i for i, both in enumerate(zip(self.performance, self.demand, strict=True)) if all(both)), len(self.at_s)
        )
