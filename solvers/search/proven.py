"""Raise what a solution with whole replicas proves: its bound, gap and status."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.bound.every_slot import bound_of_every_slot
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.model.data import PlanData
from solvers.search.consolidation import restricted
from solvers.search.direct import solve_direct
from solvers.solution import Solution

BOUNDING = "bound of whole replicas"


def rated(solution: Solution, options: Options) -> Solution:
    """Set gap and status by value and bound."""
    if solution.value is None or solution.bound is None:
        return replace(solution, status="limit", gap=None)
    gap = relative_gap(solution.value, solution.bound)
    status = "limit"
    if gap <= options.enough * (1 + OPTIMAL_GAP):
        status = "within_gap"
    if gap <= OPTIMAL_GAP:
        status = "optimal"
    return replace(solution, gap=gap, status=status)


def raised(best: Solution, bound: float | None, options: Options) -> Solution:
    """Return a plan with another bound if that proves more; beyond the plan's value it is so by rounding alone."""
    sign = -1.0 if best.objective.maximises else 1.0
    if bound is None or not np.isfinite(bound) or (best.bound is not None and sign * bound <= sign * best.bound):
        return best
    if best.value is not None:
        bound = sign * min(sign * bound, sign * best.value)
    better = rated(replace(best, bound=bound), options)
    if best.before is None or better.status != "limit":
        return better
    first = rated(
        replace(better, value=best.before[0]), options
    )  # the gap asked is that of the best plan, not of the simpler one
    return better if first.status == "limit" else replace(better, status="within_gap")


def is_wide(solution: Solution, options: Options) -> bool:
    """Tell whether there is no plan, or a gap wider than asked."""
    return (
        solution.value is None
        or solution.gap is None
        or solution.gap > max(options.enough, OPTIMAL_GAP) * (1 + OPTIMAL_GAP)
    )


def with_whole_hours(data: PlanData, best: Solution, options: Options) -> Solution:
    """Raise the bound by divisible replicas on whole hourly systems, which the relaxation takes in fractions."""
    if data.hourly is None or best.value is None:
        return best
    _say(options)
    return raised(best, solve_direct(data.relaxation(hourly=True), replace(options, progress=None)).bound, options)


def with_every_slot(
    data: PlanData, best: Solution, divisible: Solution, options: Options
) -> tuple[Solution, Solution | None]:
    """Raise the bound by whole systems and replicas in every slot; return a plan over the points that work there, too, None without one."""
    _say(options)
    found = bound_of_every_slot(data, divisible, options)
    if found is None:
        return best, None
    best = raised(best, found.bound, options)
    if not found.points.any():
        return best, None
    plan = solve_direct(restricted(data, found.points), replace(options, progress=None, method="direct"))
    return best, replace(plan, bound=best.bound) if plan.values else None


def unknown(divisible: Solution) -> Solution:
    """Return a solution without values, with what the relaxation proved."""
    return replace(divisible, status="limit", value=None, gap=None, values={}, functionals={}, row_duals={}, built=None)


def _say(options: Options) -> None:
    if options.progress is not None:
        options.progress(BOUNDING)
