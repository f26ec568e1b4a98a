"""Solve a joint program as it stands, and break ties by cost; choose between the program in one piece and its decomposition.

Not here: how whole replicas follow from divisible ones (`solvers.search.joint`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.decomposition.coverage import pays_off, supports
from solvers.interface import Options, RawSolution
from solvers.mip import MipStart, relative_gap, solve_with_fixed_integers
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector, slot_of_columns
from solvers.model.data import COST, PlanData
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program
from solvers.search.line_units import polish_line_units
from solvers.solution import Solution

TIE_SLACK = 1e-9  # relative change of the objective permitted while cost is minimised among its optima
MIP_START_SHARE = 0.5  # share of the time left, for a MIP start from the decomposition
LEAST_COLUMNS_BY_PARTS = (
    100_000  # columns of a program that the decomposition does not cover, from which on it is taken apart
)
MOST_COLUMNS_IN_ONE_PIECE = 250_000  # up to which it is also searched in one piece, where its parts have no plan
IN_ONE_PIECE_SHARE = 0.6  # share of the further time for a first plan, before the program is taken apart for one
LEAST_TIME_LIMIT_S = 1.0  # limit of a later step when the time is nearly up


def solve_direct(data: PlanData, options: Options = Options(), start: Mapping[str, Floats] | None = None) -> Solution:
    """Solve the joint program; `start`: blocks of values of a known solution.

    Programs that the decomposition covers and that are large go to it; if it finds nothing, and for all others, the whole program is
    solved. Where branch and bound proves hard there, the decomposition provides a MIP start.
    """
    begin = time.perf_counter()
    covered, tried = supports(data), False
    if covered and _prefers_decomposition(data, options):
        found = _solve_decomposed(data, options)
        if found is not None:
            return found
        tried, options = True, replace(options, method="auto", time_limit_s=_time_left(options, begin))
    program = build(data)
    structural = tuple(unserved(data) if not data.objective.maximises else ()) + tuple(unfinished(data))
    if structural:
        return solution_of(data, program, RawSolution("infeasible"), options, begin, structural)
    objective = objective_vector(program, data)
    sense = "max" if data.objective.maximises else "min"
    mip_start = None
    if covered and not tried and options.method == "auto":
        # jobs compete for scarce systems, which an LP relaxation divides among them: do not wait for it
        compete = len(data.job_work) > 1
        mip_start = MipStart(lambda: _decomposed_start(data, program, options, begin), first=compete)
    known = None if start is None else program.vector(start)
    if _prefers_general(program, data, options, covered):
        raw = _by_parts(program, objective, sense, data.slots, options, begin)
    else:
        raw = solve_mip(program, objective, sense, _sooner(options, data), start=known, mip_start=mip_start)
        if raw.status == "limit" and raw.x is None and data.slots > 1 and options.method == "auto":
            raw = _first_plan_by_parts(program, objective, sense, data.slots, options, begin, raw)
    raw = polish_line_units(program, objective, sense, raw, options)
    if raw.x is not None and data.objective.functional != COST and COST in program.functionals:
        raw = _cheapest_optimum(data, program, objective, raw, raw.x, options, begin)
    return solution_of(data, program, raw, options, begin)


def _prefers_decomposition(data: PlanData, options: Options) -> bool:
    if options.method == "decomposed":
        return True
    return options.method == "auto" and options.solver == "highs" and pays_off(data)


def _prefers_general(program: Program, data: PlanData, options: Options, covered: bool) -> bool:
    """Tell whether a program is taken apart: one with slots that is too large for one search, and that the decomposition does not cover."""
    if data.slots < 2 or options.method == "general":
        return data.slots > 1
    large = program.column_count >= LEAST_COLUMNS_BY_PARTS and not covered
    return large and options.method == "auto" and options.solver == "highs"


def _by_parts(
    program: Program, objective: Floats, sense: str, slots: int, options: Options, begin: float
) -> RawSolution:
    """Take a large program apart; search it in one piece where no plan is found, or where the gap is wide, if it is not too large for that."""
    from solvers.general.solve import solve_general  # loaded where a program is so large

    limits = replace(options, time_limit_s=_time_left(options, begin))
    if options.longest_s is not None:
        limits = replace(limits, longest_s=_time_left(options.until_found(), begin))
    raw = solve_general(program, objective, sense, slots, limits)
    most = MOST_COLUMNS_IN_ONE_PIECE if raw.x is None else LEAST_COLUMNS_BY_PARTS
    if raw.status != "limit" or program.column_count > most or (raw.x is not None and options.left_s(begin) <= 0):
        return raw
    whole = replace(options, method="direct", time_limit_s=_time_left(options, begin))
    found = solve_mip(program, objective, sense, whole, start=raw.x)
    if found.x is None and raw.x is not None and found.status == "limit":
        return _with_better_bound(raw, found.bound, sense)
    return _with_better_bound(found, raw.bound, sense) if found.status == "limit" else found


def _sooner(options: Options, data: PlanData) -> Options:
    """Leave a part of the further time for a first plan to the search by parts, where there is one."""
    if options.longest_s is None or data.slots < 2 or options.method != "auto":
        return options
    further = max(options.longest_s - options.time_limit_s, 0.0)
    return replace(options, longest_s=options.time_limit_s + IN_ONE_PIECE_SHARE * further)


def _first_plan_by_parts(
    program: Program, objective: Floats, sense: str, slots: int, options: Options, begin: float, raw: RawSolution
) -> RawSolution:
    """Take apart a program whose search in one piece found no plan, in the time allowed until the first one."""
    left = options.until_found().left_s(begin)
    if options.solver != "highs" or left < LEAST_TIME_LIMIT_S:
        return raw
    from solvers.general.solve import solve_general

    found = solve_general(program, objective, sense, slots, replace(options, time_limit_s=left, longest_s=None))
    return _with_better_bound(found, raw.bound, sense)


def _with_better_bound(found: RawSolution, bound: float | None, sense: str) -> RawSolution:
    """Return a solution with the better one of its bound and another."""
    if found.status == "infeasible" or bound is None:
        return found
    sign = -1.0 if sense == "max" else 1.0
    best = bound if found.bound is None else sign * max(sign * bound, sign * found.bound)
    return replace(found, bound=best, gap=None if found.objective is None else relative_gap(found.objective, best))


def _time_left(options: Options, begin: float) -> float:
    return max(LEAST_TIME_LIMIT_S, options.left_s(begin))


def _decomposed_start(data: PlanData, program: Program, options: Options, begin: float) -> tuple[Floats | None, float]:
    """Return columns of a solution found by decomposition, or None, and its lower bound."""
    from solvers.decomposition import solve as decomposition

    left = options.left_s(begin)
    limits = replace(options, time_limit_s=max(MIP_START_SHARE * left, 0.0), progress=None)
    found = decomposition.solve(data, limits, build)
    bound = -math.inf if found.bound is None else found.bound
    return None if found.value is None else program.vector(found.values), bound


def _solve_decomposed(data: PlanData, options: Options) -> Solution | None:
    """Solve by decomposition; None where it finds nothing, so that the whole program has to show why."""
    if unserved(data) or unfinished(data):
        return None
    from solvers.decomposition import solve as decomposition  # loaded where it is used

    begin = time.perf_counter()
    found = decomposition.solve(data, options, build)
    if found.value is None:
        if not pays_off(data):
            return None
        return Solution(
            status="limit",
            objective=data.objective,
            value=None,
            bound=found.bound,
            gap=None,
            seconds=time.perf_counter() - begin,
            rows=found.rows,
            columns=found.columns,
            integers=found.integers,
            seed=options.seed,
        )
    gap = relative_gap(found.value, -math.inf if found.bound is None else found.bound)
    status = "limit"
    if gap <= options.gap * (1 + OPTIMAL_GAP):
        status = "within_gap"
    if gap <= OPTIMAL_GAP:
        status = "optimal"
    return Solution(
        status=status,
        objective=data.objective,
        value=found.value,
        bound=found.bound,
        gap=gap,
        seconds=time.perf_counter() - begin,
        rows=found.rows,
        columns=found.columns,
        integers=found.integers,
        seed=options.seed,
        values=found.values,
        functionals=found.functionals,
        row_duals=found.row_duals,
        polished=True,
        relaxed_duals=found.relaxed_duals,
        relaxed_bound=found.relaxed_bound,
    )


def _cheapest_optimum(
    data: PlanData, program: Program, objective: Floats, first: RawSolution, x: Floats, options: Options, begin: float
) -> RawSolution:
    """Fix the objective at its value for `x` and minimise cost.

    Bound and status still refer to the objective, and so do the duals, for the new fleet.
    """
    value = float(objective @ x) if first.objective is None else first.objective
    fixed = _with_objective_fixed(data, value)
    limits = replace(options, time_limit_s=_time_left(options, begin))
    cost = program.functional(COST)
    second = solve_mip(fixed, fixed.functional(COST), "min", limits, start=_with_subtotals(fixed, x))
    if second.x is None or not second.polished:
        return first
    cheapest = second.x[: len(cost)]  # the columns that hold the objective's sub-totals come last
    if cost @ cheapest > cost @ x:
        return first  # time was up before anything cheaper was found
    value = float(objective @ cheapest)
    _, duals = solve_with_fixed_integers(
        program, objective, "max" if data.objective.maximises else "min", cheapest, options
    )
    gap = None if first.bound is None else relative_gap(value, first.bound)
    return replace(first, x=cheapest, objective=value, row_duals=duals, gap=gap)


def _with_objective_fixed(data: PlanData, value: float) -> Program:
    """Build the program with a row `objective held` that keeps the objective at `value` or better."""
    slack = TIE_SLACK * abs(value)
    fixed = build(data)
    if data.objective.maximises:
        factor = fixed.columns["lambda"].reshape(1)
        fixed.add_rows("objective held", value - slack, np.inf, np.zeros(1, dtype=np.int64), factor, 1.0, count=1)
    else:
        fixed.add_functional_row(
            "objective held", data.objective.functional, -np.inf, value + slack, slot_of_columns(fixed)
        )
    return fixed


def _with_subtotals(program: Program, x: Floats) -> Floats:
    """Extend x by the sub-totals of the row `objective held`."""
    arrays = program.arrays()
    full = np.append(x, np.zeros(program.column_count - len(x)))
    for part in program.row_blocks.get("objective held sub-total", ()):
        full[len(x) :] = (arrays.matrix @ full)[part.rows]
    return full


def solution_of(
    data: PlanData,
    program: Program,
    raw: RawSolution,
    options: Options,
    begin: float,
    structural: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> Solution:
    """Shape the solution of a program by its blocks; `begin`: when solving started, on the performance counter."""
    arrays = program.arrays()
    values: dict[str, Floats] = {}
    functionals: dict[str, float] = {}
    duals: dict[str, tuple[Ints, Floats]] = {}
    if raw.x is not None:
        values = program.values(raw.x)
        functionals = {name: float(program.functional(name) @ raw.x) for name in program.functionals}
        duals = program.by_block(raw.row_duals) if raw.row_duals is not None else {}
    return Solution(
        status=raw.status,
        objective=data.objective,
        value=raw.objective,
        bound=raw.bound,
        gap=raw.gap,
        seconds=time.perf_counter() - begin,
        rows=program.row_count,
        columns=program.column_count,
        integers=int(arrays.integer.sum()),
        seed=options.seed,
        values=values,
        functionals=functionals,
        row_duals=duals,
        structural=structural,
        polished=raw.polished,
        built=(data, program),
    )
