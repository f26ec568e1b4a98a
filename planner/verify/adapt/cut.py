"""Resolve the spec of an adaptive plan with its horizon cut at the dates of decision, and count what each date knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from catalog.units import DAY_S, YEAR_S
from planner.plan.rows.adapt import DecisionDate
from planner.problem.facts import ResolvedSpec
from planner.spec.model import PlanSpec
from planner.verify.priority import resolved
from planner.verify.timing import TIME_TOL_S

BORDER_S = 1.0  # a window that ends so shortly after a date lies before it
FIRST_LATER_S = 42 * DAY_S  # first later date of a spec that states none


@dataclass(frozen=True, slots=True)
class Schedule:
    """Dates of decision [s from the start], what each knows, and how long orders take."""

    at_s: tuple[float, ...]
    performance: tuple[bool, ...]
    demand: tuple[bool, ...]
    delivery_s: float
    notice_s: float
    free_from: (
        int  # first date from which orders are decided with the scenario known; as many as there are dates if none
    )

    def last_in_time(self, how: str, moment_s: float, returns: bool) -> float:
        """Return the last date at which systems can be ordered so that they are there at a moment, or given back so that they cost nothing from then on."""
        if moment_s <= TIME_TOL_S and not returns:
            return 0.0
        lead = self.delivery_s if how == "buy" else self.notice_s
        return max((at for at in self.at_s if at <= moment_s - lead + BORDER_S), default=0.0)

    def seen(self, edges_s: Sequence[float]) -> list[int]:
        """Count the windows that have ended by each date; none where a date does not know demand."""
        ends = np.asarray(edges_s, dtype=float)[1:]
        return [
            int(np.count_nonzero(ends <= at + BORDER_S)) if knows else 0
            for at, knows in zip(self.at_s, self.demand, strict=True)
        ]


def schedule_of(spec: PlanSpec) -> Schedule:
    """Read the dates of a spec with a block `adapt`: its own, the starts of its phases, or six weeks after the start and every year."""
    asked = spec.adapt
    assert asked is not None
    later: list[tuple[float, bool, bool]]
    if asked.dates is not None:
        later = [
            (from_start(spec.horizon.start, each.at), "performance" in each.knows, "demand" in each.knows)
            for each in asked.dates
        ]
    elif spec.phases:
        later = [(from_start(spec.horizon.start, phase.start), True, True) for phase in spec.phases[1:]]
    else:
        moments = [FIRST_LATER_S, *(year * YEAR_S for year in range(1, spec.horizon.years))]
        later = [(at, True, True) for at in moments]
    forecast = any(
        getattr(getattr(workload, "demand", None), "forecast", None) is not None for workload in spec.workloads
    )
    knows_all = [i + 1 for i, (_, performance, demand) in enumerate(later) if performance and demand]
    return Schedule(
        (0.0, *(at for at, *_ in later)), (False, *(p for _, p, _ in later)), (False, *(d for *_, d in later)),
        asked.delivery, asked.notice, knows_all[0] if knows_all and not forecast else len(later) + 1,
    )  # fmt: skip


def from_start(start: date, moment: date | float) -> float:
    """Convert a day, or a time from the start, to seconds from the start."""
    return (moment - start).days * DAY_S if isinstance(moment, date) else float(moment)


def dates_of(schedule: Schedule) -> list[DecisionDate]:
    """Write the dates as a plan states them."""
    rows = zip(schedule.at_s, schedule.performance, schedule.demand, strict=True)
    return [{"at_s": at, "performance": performance, "demand": demand} for at, performance, demand in rows]


def cut_problem(document: Mapping[str, Any], overlays: Sequence[Path], schedule: Schedule) -> ResolvedSpec:
    """Resolve the spec of a plan with a window that begins at each date. Raises SpecError."""
    asked = {key: value for key, value in document["spec"].items() if key != "adapt"}
    if not asked.get("phases"):
        asked["phases"] = [{"name": f"from {i}", "start": f"{at / DAY_S:.10g} d"} for i, at in enumerate(schedule.at_s)]
    return resolved({**document, "spec": asked}, overlays, {})
