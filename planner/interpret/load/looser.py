"""State in a plan which latency limits, slightly looser, would let its chips serve at least twice as much, and what that is worth."""

from __future__ import annotations

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.candidates.looser import LooserLimit, looser_limits
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation
from planner.plan import Plan
from planner.plan.rows.quality import Looser, LooserStep
from planner.problem.facts import ResolvedSpec
from solvers.search.parts import points_in_use
from solvers.solution import Solution


def with_looser_limits(
    plan: Plan, problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution
) -> Plan:
    """Add the section `looser`: for each workload and system at work, the limits of which a little more is worth much; nothing without any.

    `worth`: the part of the workload's cost, in proportion to its work on the system, that the chips saved would take; a plan under the
    looser limit may save less where whole systems, or another limit, leave no room.
    """
    costs = {row["name"]: row["cost"] for row in plan.document["workloads"]}
    rows = [
        _row(found, share, costs.get(workload.name, 0.0))
        for workload in problem.serving
        for share, option in _work_by_system(problem, form, solution, workload.name)
        for found in looser_limits(problem, candidates, workload, option)
    ]
    return Plan({**plan.document, "looser": rows}) if rows else plan


def _row(found: LooserLimit, share: float, cost: float) -> Looser:
    """Build the row of a limit; `share`: of the workload's work, on this system; `cost`: of the workload."""
    steps: list[LooserStep] = [{"limit_s": limit_s, "times": rate / found.rate} for limit_s, rate in found.steps]
    return {
        "workload": found.workload.name,
        "metric": found.limit.metric,
        "percentile": found.limit.percentile,
        "limit_s": found.limit.seconds,
        "system": found.system,
        "share": share,
        "rate_per_chip": found.rate,
        "steps": steps,
        "worth": cost * share * (1.0 - 1.0 / steps[-1]["times"]),
    }


def _work_by_system(
    problem: ResolvedSpec, form: Formulation, solution: Solution, workload: str
) -> list[tuple[float, FleetOption]]:
    """Return the share of a workload's work that is done on each system alone, with a fleet option of it."""
    done: dict[str, tuple[float, FleetOption]] = {}
    total = 0.0
    for p in np.flatnonzero(points_in_use(solution.values)):
        point = form.points[p]
        if point.workload.name != workload:
            continue
        amount = float(solution.values["x"][p] @ problem.calendar.seconds) * point.capacity
        total += amount
        option = point.uses[0].option
        if option.site.api is None and {use.option.system.name for use in point.uses} == {option.system.name}:
            done[option.system.name] = done.get(option.system.name, (0.0, option))[0] + amount, option
    return [(amount / total, option) for amount, option in done.values() if amount > 0]
