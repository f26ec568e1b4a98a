"""The joint program: puts the blocks together, solves it for the asked objective, and breaks ties by cost."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np

from solvers import mip
from solvers.arrays import Floats
from solvers.backends import highs_run
from solvers.decomposition import solve as decomposed
from solvers.interface import Options
from solvers.line_units import polish_line_units
from solvers.mip import RawSolution
from solvers.model.build import build, objective_vector, slot_of_columns
from solvers.model.data import COST, PlanData
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.program import Program
from solvers.solution import Solution

TIE_SLACK = 1e-9  # how far the objective may move, relatively, while the cost is made least
MIP_START_SHARE = 0.5  # of the time left, for a plan found slot by slot where the search is hard


def solve(data: PlanData, options: Options = Options()) -> Solution:
    begin = time.perf_counter()
    carried, tried = decomposed.carries(data), False
    if carried and (
        options.method == "decomposed"
        or (options.method == "auto" and options.solver == "highs" and decomposed.pays(data))
    ):
        found = _decomposed(data, options)
        if found is not None:
            return found
        tried, options = (
            True,
            replace(
                options, method="auto", time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin))
            ),
        )
    program = build(data)
    structural = tuple(unserved(data) if not data.objective.maximises else ()) + tuple(unfinished(data))
    if structural:
        return _solution(data, program, RawSolution("infeasible"), options, begin, structural)
    objective = objective_vector(program, data)
    sense = "max" if data.objective.maximises else "min"
    mip_start = (
        partial(_decomposed_start, data, program, options, begin)
        if carried and not tried and options.method == "auto"
        else None
    )
    compete = len(data.job_work) > 1  # for scarce kinds of systems, which linear programs give them in fractions
    raw = polish_line_units(
        program,
        objective,
        sense,
        mip.solve(program, objective, sense, options, mip_start=mip_start, mip_start_first=compete),
        options,
    )
    if raw.x is not None and data.objective.functional != COST and COST in program.functionals:
        raw = _cheapest_of_the_best(data, program, objective, sense, raw, options, begin)
    return _solution(data, program, raw, options, begin)


def _decomposed_start(data: PlanData, program: Program, options: Options, begin: float) -> tuple[Floats | None, float]:
    """A solution of the whole program found slot by slot, or none; and the bound that was found so."""
    left = options.time_limit_s - (time.perf_counter() - begin)
    found = decomposed.solve(
        data, replace(options, time_limit_s=max(MIP_START_SHARE * left, 0.0), progress=None), build
    )
    return None if found.value is None else program.vector(
        found.values
    ), -math.inf if found.bound is None else found.bound


def _decomposed(data: PlanData, options: Options) -> Solution | None:
    """The answer found slot by slot; None where there is none, so that the whole program has to tell why."""
    if unserved(data) or unfinished(data):
        return None
    begin = time.perf_counter()
    found = decomposed.solve(data, options, build)
    if found.value is None:
        if not decomposed.pays(data):
            return None
        return Solution("limit", data.objective, None, found.bound, None, time.perf_counter() - begin, found.rows, found.columns,
                        found.integers, options.seed)  # fmt: skip
    gap = mip.relative_gap(found.value, found.bound)
    status = (
        "optimal"
        if gap <= highs_run.OPTIMAL_GAP
        else "within_gap"
        if gap <= options.gap * (1 + highs_run.OPTIMAL_GAP)
        else "limit"
    )
    return Solution(status, data.objective, found.value, found.bound, gap, time.perf_counter() - begin, found.rows, found.columns,
                    found.integers, options.seed, found.values, found.functionals, found.row_duals, polished=True,
                    relaxed_duals=found.relaxed_duals, relaxed_bound=found.relaxed_bound)  # fmt: skip


def _cheapest_of_the_best(
    data: PlanData, program: Program, objective: Floats, sense: str, first: RawSolution, options: Options, begin: float
) -> RawSolution:
    """Hold the objective at the value found and minimise cost. Bound and status stay those of the objective; the
    duals are those of the objective for the new fleet."""
    slack = TIE_SLACK * abs(first.objective)
    low, high = (-np.inf, first.objective + slack) if sense == "min" else (first.objective - slack, np.inf)
    held = build(data)
    if data.objective.maximises:
        held.add_rows(
            "objective held", low, high, np.zeros(1, dtype=np.int64), held.columns["lambda"].reshape(1), 1.0, count=1
        )
    else:
        held.add_functional_row("objective held", data.objective.functional, low, high, slot_of_columns(held))
    left = replace(options, time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin)))
    cost = program.functional(COST)
    second = mip.solve(held, held.functional(COST), "min", left, start=_with_totals(held, first.x))
    if second.x is None or not second.polished:
        return first
    x = second.x[: len(cost)]  # the columns that hold the objective come last
    if cost @ x > cost @ first.x:
        return first  # the time was up before anything cheaper was found
    value = float(objective @ x)
    _, duals = mip.solve_with_fixed_integers(program, objective, sense, x, options)
    return replace(
        first,
        x=x,
        objective=value,
        row_duals=duals,
        gap=None if first.bound is None else mip.relative_gap(value, first.bound),
    )


def _with_totals(program: Program, x: Floats) -> Floats:
    """x with the sub-totals that were added after it was found."""
    arrays = program.arrays()
    full = np.append(x, np.zeros(program.column_count - len(x)))
    for part in program.row_blocks.get("objective held sub-total", ()):
        full[len(x) :] = (arrays.matrix @ full)[part.rows]
    return full


def _solution(
    data: PlanData, program: Program, raw: RawSolution, options: Options, begin: float, structural: tuple = ()
) -> Solution:
    arrays = program.arrays()
    values, functionals, duals = {}, {}, {}
    if raw.x is not None:
        values = program.values(raw.x)
        functionals = {name: float(program.functional(name) @ raw.x) for name in program.functionals}
        duals = program.by_block(raw.row_duals) if raw.row_duals is not None else {}
    return Solution(
        raw.status,
        data.objective,
        raw.objective,
        raw.bound,
        raw.gap,
        time.perf_counter() - begin,
        program.row_count,
        program.column_count,
        int(arrays.integer.sum()),
        options.seed,
        values,
        functionals,
        duals,
        structural,
        raw.polished,
        built=(data, program),
    )
