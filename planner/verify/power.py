"""Read the power limits of the sites, and compute the power that a plan draws under each."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.messages import Message
from planner.problem.facts import ResolvedSpec, SiteFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.timing import TIME_TOL_S


def power_at(problem: ResolvedSpec, site: SiteFacts, window: int) -> tuple[str, str, float]:
    """Return (place in the spec, name, watts) of the power limit that holds in a window; infinite where there is none."""
    begins = float(problem.calendar.edges_s[window])
    first_w = site.first_power_w if site.phase_power_w else site.power_limit_w
    found = (f"{site.path}.power", Message.of("limit.power", site=site.region).text(), first_w)
    for phase, watts in zip(problem.phases, site.phase_power_w, strict=False):  # no entries where nothing changes
        if watts is not None and phase.start_s <= begins + TIME_TOL_S:
            found = (
                f"{site.path}.power_by_phase.{phase.name}",
                Message.of("limit.power_from", site=site.region, phase=phase.name).text(),
                watts,
            )
    return found


def power_values(plan: CheckedPlan) -> Iterator[tuple[str, str, float, float]]:
    """Yield (place, name, largest power while the limit applies, limit) of every power limit [W]."""
    calendar = plan.problem.calendar
    for site in plan.problem.sites:
        most: dict[tuple[str, str, float], float] = {}
        for t in range(calendar.slots):
            limit = power_at(plan.problem, site, int(calendar.window[t]))
            most[limit] = max(most.get(limit, 0.0), plan.hours[site.region, t]["own_power_w"])
        for (path, name, watts), used in most.items():
            if math.isfinite(watts):
                yield path, name, used, watts
