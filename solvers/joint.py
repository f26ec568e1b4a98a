"""Solve the joint program with whole replicas: relax them to divisible ones, make the answer whole, and search where that is not enough.

    divisible   the relaxation, by whatever method suits its size; its bound holds for whole replicas
    restricted  the program with whole replicas over the points that the relaxation uses, and smaller replicas of each pool: rounded
                slot by slot (`solvers.slot_rounding`), then searched
    full        the program with whole replicas over all points, from the restricted solution on, where the gap is still too wide

Small programs skip the restricted search.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.direct import solve_direct
from solvers.interface import Options
from solvers.mip import relative_gap, solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import COST, PlanData
from solvers.model.residency import is_whole
from solvers.slot_rounding import round_replicas
from solvers.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeReplicaSettings:
    """Sizes and shares of time of the steps to whole replicas."""

    small: int = 2_000
    """Activities of serving points in slots up to which the full program is searched right after rounding, to the end."""
    most_restricted: int = 4_000
    """The same in the restricted program, up to which it is searched after rounding, or where rounding found nothing."""
    most_full: int = 12_000
    """Activities up to which the full program is searched after the restricted one."""
    nodes: int = 300
    """Most nodes of the searches after rounding, so that they end where they ended before; of small programs any number."""
    most_priced: int = 60_000
    """Activities up to which the rows are priced with the fleet held."""
    most_slots_apart: int = 200
    """Slots up to which each has residents of its own; with more, slots of one hour of the day and window share them."""
    hours_per_day: int = 24
    """Slots of a day, for that."""
    divisible_share: float = 0.4
    """Of the time limit, for the relaxation."""
    rounding_share: float = 0.7
    """Of the time left then, for rounding replicas slot by slot."""
    restricted_share: float = 0.6
    """Of the time left then, for the search over the points in use."""
    least_time_s: float = 1.0
    """Least time of a step when the time is nearly up [s]."""
    saves: float = 0.05
    """Relative saving per request from which a replica is worth its larger price."""
    used: float = 1e-7
    """Replicas, or share of a job's time, above which the relaxation uses a point."""


SETTINGS = WholeReplicaSettings()


def solve(data: PlanData, options: Options = Options()) -> Solution:
    """Solve the joint program; value and plan are those of whole replicas, and the bound holds for them."""
    if not is_whole(data).any():
        return solve_direct(data, options)
    begin = time.perf_counter()
    limit_s = options.time_limit_s * SETTINGS.divisible_share
    first = solve_direct(data.divisible(), replace(options, time_limit_s=limit_s))
    return with_whole_replicas(data, first, options, begin)


def with_whole_replicas(data: PlanData, divisible: Solution, options: Options, begin: float) -> Solution:
    """Make the solution of the relaxation whole; `begin`: when solving started, on the performance counter.

    Returns the relaxation's own status where it is infeasible or has no solution.
    """

    small = _activities(data) <= SETTINGS.small

    def limits(share: float) -> Options:
        left = max(options.time_limit_s - (time.perf_counter() - begin), 0.0)
        nodes = options.node_limit
        if not small:
            nodes = SETTINGS.nodes if nodes is None else min(nodes, SETTINGS.nodes)
        return replace(
            options, time_limit_s=max(share * left, SETTINGS.least_time_s), node_limit=nodes, method=_method(options)
        )

    if not divisible.values:
        return divisible
    _say(options, "whole replicas over the operating points in use")
    part = replace(_restricted(data, _kept(data, divisible)), resident_group=_groups(data))
    rounded = round_replicas(part, divisible.values, limits(SETTINGS.rounding_share))
    best = _unknown(divisible)
    if rounded is not None:
        best = _rated(_valued(data, part, rounded, divisible), options)
    searched = _is_wide(best, options) and _activities(part) <= SETTINGS.most_restricted and not small
    if searched or (rounded is None and not small):
        found = solve_direct(part, limits(SETTINGS.restricted_share), start=rounded)
        best = _bounded(found, divisible, options)
    if _is_wide(best, options) and _activities(data) <= SETTINGS.most_full:
        _say(options, "whole replicas over all operating points")
        full = solve_direct(data, limits(1.0), start=best.values or None)
        best = _better(data, best, full, divisible, options)
    return replace(_with_duals(data, best, divisible, options), seconds=time.perf_counter() - begin)


def _is_wide(solution: Solution, options: Options) -> bool:
    """Tell whether there is no plan, or a gap wider than asked."""
    return (
        solution.value is None
        or solution.gap is None
        or solution.gap > max(options.gap, OPTIMAL_GAP) * (1 + OPTIMAL_GAP)
    )


def _valued(data: PlanData, part: PlanData, values: dict[str, Floats], divisible: Solution) -> Solution:
    """Shape a rounded plan as a solution with the bound of the relaxation."""
    program = build(part)
    x = program.vector(values)
    return replace(
        divisible,
        value=float(objective_vector(program, data) @ x),
        values=values,
        functionals={name: float(program.functional(name) @ x) for name in program.functionals},
        rows=program.row_count,
        columns=program.column_count,
        integers=int(program.arrays().integer.sum()),
        polished=True,
        built=None,
    )


def _say(options: Options, line: str) -> None:
    if options.progress is not None:
        options.progress(line)


def _method(options: Options) -> str:
    """Return the method for programs with whole replicas, which the decomposition does not cover."""
    return "auto" if options.method == "decomposed" else options.method


def _activities(data: PlanData) -> int:
    """Count the activities of serving points in slots."""
    return int(((data.point_pool >= 0) & (data.point_capacity > 0)).sum()) * data.slots


def _groups(data: PlanData) -> Ints | None:
    """[T]: groups of slots that share their residents, those of the input if it has any; None where each slot has its own."""
    if data.resident_group is not None:
        return data.resident_group
    if data.slots <= SETTINGS.most_slots_apart:
        return None
    hour = np.arange(data.slots) % SETTINGS.hours_per_day
    return data.slot_window * SETTINGS.hours_per_day + hour


def _kept(data: PlanData, solution: Solution) -> Bools:
    """[P]: points that the solution uses, and smaller replicas for the same pools.

    Smaller ones: on the fleet options held, each point whose replica serves a request for less money than any cheaper replica; and in any
    case the cheapest replica of the pool.
    """
    kept: Bools = solution.values["x"].max(axis=1, initial=0.0) > SETTINGS.used
    kept |= solution.values["y"] > 0.5
    held = np.zeros(len(data.option_site), dtype=bool)
    np.logical_or.at(held, data.holding_option, solution.values["n"] > 0.5)
    point, option = data.point_uses.T
    here = np.ones(len(kept), dtype=bool)
    np.logical_and.at(here, point, held[option])
    price = np.zeros(len(kept))
    np.add.at(price, point, data.point_uses_systems * _system_prices(data)[option])
    able = (data.point_pool >= 0) & (data.point_capacity > 0)
    per_request = np.divide(price, data.point_capacity, out=np.full(len(price), np.inf), where=able)
    for q in range(data.pools):
        members = np.flatnonzero(able & (data.point_pool == q))
        members = members[np.argsort(price[members], kind="stable")]
        kept[members[:1]] = True
        members = members[here[members]]
        before = np.append(np.inf, np.minimum.accumulate(per_request[members])[:-1])
        kept[members[per_request[members] < before * (1 - SETTINGS.saves)]] = True
    return kept


def _system_prices(data: PlanData) -> Floats:
    """[K]: least money for a system of each fleet option, 1 for each where the program counts no money."""
    program = build(data.divisible())
    price = np.full(len(data.option_site), np.inf)
    if COST not in program.functionals:
        return np.ones_like(price)
    held = program.columns["n"]
    money = np.where(held >= 0, program.functional(COST)[held], np.inf)
    np.minimum.at(price, data.holding_option, money)
    return np.where(np.isfinite(price), price, 0.0)


def _restricted(data: PlanData, kept: Bools) -> PlanData:
    """Return the input in which only some points serve or work."""
    return replace(data, point_capacity=np.where(kept, data.point_capacity, 0.0))


def _bounded(found: Solution, divisible: Solution, options: Options) -> Solution:
    """Put the bound of the relaxation in place of that of the restricted program, which holds for its points only."""
    if found.value is None:
        return _unknown(divisible)
    return _rated(_with_relaxation(replace(found, bound=divisible.bound), divisible), options)


def _unknown(divisible: Solution) -> Solution:
    """Return a solution without values, with what the relaxation proved."""
    return replace(divisible, status="limit", value=None, gap=None, values={}, functionals={}, row_duals={}, built=None)


def _with_relaxation(solution: Solution, divisible: Solution) -> Solution:
    """Add what the relaxation proved."""
    return replace(
        solution,
        relaxed_duals=divisible.relaxed_duals,
        relaxed_bound=divisible.relaxed_bound,
        structural=(),
        built=None,
    )


def _rated(solution: Solution, options: Options) -> Solution:
    """Set gap and status by value and bound."""
    if solution.value is None or solution.bound is None:
        return replace(solution, status="limit", gap=None)
    gap = relative_gap(solution.value, solution.bound)
    status = "limit"
    if gap <= options.gap * (1 + OPTIMAL_GAP):
        status = "within_gap"
    if gap <= OPTIMAL_GAP:
        status = "optimal"
    return replace(solution, gap=gap, status=status)


def _better(data: PlanData, best: Solution, full: Solution, divisible: Solution, options: Options) -> Solution:
    """Combine the better value and the better bound of the restricted and the full program."""
    if full.status in ("infeasible", "unbounded"):
        return full
    sign = -1.0 if data.objective.maximises else 1.0
    bounds = [bound for bound in (divisible.bound, full.bound) if bound is not None]
    bound = max(bounds, key=lambda value: sign * value, default=None)
    plans = [plan for plan in (full, best) if plan.value is not None]
    plan = min(plans, key=lambda plan: sign * (plan.value or 0.0), default=full)
    counted = replace(plan, bound=bound, rows=full.rows, columns=full.columns, integers=full.integers)
    return _rated(_with_relaxation(counted, divisible), options)


def _with_duals(data: PlanData, solution: Solution, divisible: Solution, options: Options) -> Solution:
    """Price the rows with the fleet held and replicas divisible, since a whole replica too many makes every small change free.

    `divisible`: the relaxation, whose own prices stand in for those of a program that is too large.
    """
    if not solution.values:
        return replace(solution, row_duals={})
    if _activities(data) > SETTINGS.most_priced:
        return replace(solution, row_duals=divisible.row_duals)
    relaxed = data.divisible()
    program = build(relaxed)
    sense = "max" if data.objective.maximises else "min"
    x: Floats = program.vector(solution.values)
    _, duals = solve_with_fixed_integers(program, objective_vector(program, relaxed), sense, x, options)
    return replace(solution, row_duals={} if duals is None else program.by_block(duals), built=(relaxed, program))
