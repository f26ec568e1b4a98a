"""Power by site and slot, recomputed from a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.problem.facts import Problem, SiteFacts
from planner.verify.terms import SECOND

if TYPE_CHECKING:
    from planner.verify.amounts import Amounts


def power_at(problem: Problem, site: SiteFacts, window: int) -> tuple[str, str, float]:
    """(place in the spec, name, watts) of the limit on power that holds in a window; infinite where there is none."""
    begins, found = (
        float(problem.calendar.edges_s[window]),
        (
            f"{site.path}.power",
            f"power in {site.region}",
            site.first_power_w if site.phase_power_w else site.power_limit_w,
        ),
    )
    for phase, watts in zip(problem.phases, site.phase_power_w):
        if watts is not None and phase.start_s <= begins + SECOND:
            found = f"{site.path}.power_by_phase.{phase.name}", f"power in {site.region} from {phase.name} on", watts
    return found


def power_values(check: Amounts) -> Iterator[tuple[str, str, float, float]]:
    """(place, name, most that is drawn while it holds, limit) of every limit on power."""
    for site in check.problem.sites:
        most: dict[tuple[str, str, float], float] = {}
        for t in range(check.problem.calendar.slots):
            limit = power_at(check.problem, site, int(check.problem.calendar.window[t]))
            most[limit] = max(most.get(limit, 0.0), check.hours[site.region, t]["own_power_w"])
        for (path, name, watts), used in most.items():
            if math.isfinite(watts):
                yield path, name, used, watts
