"""The joint program: puts the blocks together, solves it for the asked objective, and breaks ties by cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from solvers import mip as backends
from solvers.decomposition import solve as decomposed
from solvers.line_units import with_fewest_units
from solvers.mip import Options, RawSolution
from solvers.model.choice import add_choice
from solvers.model.data import COST, THROUGHPUT, Floats, Ints, Objective, PlanData
from solvers.model.electricity import add_electricity
from solvers.model.fabric import add_fabric
from solvers.model.fleet import add_holdings, add_installed, add_power
from solvers.model.lines import add_lines
from solvers.model.porting import add_porting
from solvers.model.routing import add_routing, unserved
from solvers.model.scenarios import add_worlds
from solvers.model.schedule import add_schedule, unfinished
from solvers.model.spread import add_spread
from solvers.model.storage import add_storage
from solvers.program import Program

TIE_SLACK = 1e-9      # how far the objective may move, relatively, while the cost is made least
HINT = 0.5            # of the time left, for a plan found slot by slot where the search is hard


@dataclass(frozen=True, slots=True)
class Solution:
    """`values`: each block of variables shaped as its index sets, in SI. `functionals`: recomputed from those.
    `row_duals`: block -> (index tuples, change of the objective per unit of the row's side), integers fixed.
    `relaxed_duals`: the same of the program with no integer held, which `bound` is made of; of plans found slot by slot only, whose
    `row_duals` say nothing of slots where there are jobs.
    `structural`: rows that fail before any solving, as (block, index) prefixes.
    `built`: the input and its program, where that was solved as a whole. `bases`: of linear programs around programs alike; whoever solves
    one around this answer starts there and leaves its own in their place."""

    status: str
    objective: Objective
    value: float | None
    bound: float | None
    gap: float | None
    seconds: float
    rows: int
    columns: int
    integers: int
    seed: int
    values: Mapping[str, Floats] = field(default_factory=dict)
    functionals: Mapping[str, float] = field(default_factory=dict)
    row_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    structural: tuple[tuple[str, tuple[int, ...]], ...] = ()
    polished: bool = False
    relaxed_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    relaxed_bound: float | None = None
    built: tuple[PlanData, Program] | None = field(default=None, repr=False)
    bases: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def sense(self) -> str:
        return "max" if self.objective.maximises else "min"

    def program_of(self, data: PlanData) -> Program | None:
        """None where another program was solved than that of this very input."""
        return self.built[1] if self.built is not None and self.built[0] is data else None


def build(data: PlanData) -> Program:
    program = Program()
    add_holdings(program, data)
    add_fabric(program, data)
    most = add_routing(program, data)
    add_choice(program, data, most)
    add_lines(program, data, most)
    add_schedule(program, data)
    add_installed(program, data)
    add_power(program, data)
    add_storage(program, data)
    add_electricity(program, data)
    add_spread(program, data, most)
    if data.ports is not None:
        add_porting(program, data, data.ports)
    if data.worlds is not None:
        add_worlds(program, data, data.worlds)
    slot = slot_of_columns(program)
    for position, limit in enumerate(data.limits):
        if math.isfinite(limit.upper):
            program.add_functional_row("limit", limit.functional, -np.inf, limit.upper, slot, position)
            slot = np.append(slot, np.full(program.column_count - len(slot), -1))
    return program


def slot_of_columns(program: Program) -> Ints:
    """[columns]: the slot a column belongs to, -1 for those of no slot."""
    slot = np.full(program.column_count, -1)
    for block in ("f", "x", "v", "grid", "taken", "charge", "discharge", "stored"):
        columns = program.columns.get(block, np.zeros((0, 0), dtype=np.int64))
        where = np.nonzero(columns >= 0)
        slot[columns[where]] = where[1]
    return slot


def solve(data: PlanData, options: Options = Options()) -> Solution:
    begin = time.perf_counter()
    carried, tried = decomposed.carries(data), False
    if carried and (options.method == "decomposed" or (options.method == "auto" and options.solver == "highs" and decomposed.pays(data))):
        found = _decomposed(data, options)
        if found is not None:
            return found
        tried, options = True, replace(options, method="auto", time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin)))
    program = build(data)
    structural = tuple(unserved(data) if not data.objective.maximises else ()) + tuple(unfinished(data))
    if structural:
        return _solution(data, program, RawSolution("infeasible"), options, begin, structural)
    objective = objective_vector(program, data)
    sense = "max" if data.objective.maximises else "min"
    hint = partial(_hint, data, program, options, begin) if carried and not tried and options.method == "auto" else None
    compete = len(data.job_work) > 1  # for scarce kinds of systems, which linear programs give them in fractions
    raw = with_fewest_units(program, objective, sense, backends.solve(program, objective, sense, options, hint=hint, at_once=compete), options)
    if raw.x is not None and data.objective.functional != COST and COST in program.functionals:
        raw = _cheapest_of_the_best(data, program, objective, sense, raw, options, begin)
    return _solution(data, program, raw, options, begin)


def _hint(data: PlanData, program: Program, options: Options, begin: float) -> tuple[Floats | None, float]:
    """A solution of the whole program found slot by slot, or none; and the bound that was found so."""
    left = options.time_limit_s - (time.perf_counter() - begin)
    found = decomposed.solve(data, replace(options, time_limit_s=max(HINT * left, 0.0), progress=None), build)
    return None if found.value is None else program.vector(found.values), -math.inf if found.bound is None else found.bound


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
    gap = backends.relative_gap(found.value, found.bound)
    status = "optimal" if gap <= backends.OPTIMAL_GAP else "within_gap" if gap <= options.gap * (1 + backends.OPTIMAL_GAP) else "limit"
    return Solution(status, data.objective, found.value, found.bound, gap, time.perf_counter() - begin, found.rows, found.columns,
                    found.integers, options.seed, found.values, found.functionals, found.row_duals, polished=True,
                    relaxed_duals=found.relaxed_duals, relaxed_bound=found.relaxed_bound)  # fmt: skip


def objective_vector(program: Program, data: PlanData) -> Floats:
    if data.objective.functional == THROUGHPUT:
        vector = np.zeros(program.column_count)
        vector[program.columns["lambda"]] = 1.0
        return vector
    return program.functional(data.objective.functional)


def _cheapest_of_the_best(data: PlanData, program: Program, objective: Floats, sense: str, first: RawSolution,
                          options: Options, begin: float) -> RawSolution:
    """Hold the objective at the value found and minimise cost. Bound and status stay those of the objective; the
    duals are those of the objective for the new fleet."""
    slack = TIE_SLACK * abs(first.objective)
    low, high = (-np.inf, first.objective + slack) if sense == "min" else (first.objective - slack, np.inf)
    held = build(data)
    if data.objective.maximises:
        held.add_rows("objective held", low, high, np.zeros(1, dtype=np.int64), held.columns["lambda"].reshape(1), 1.0, count=1)
    else:
        held.add_functional_row("objective held", data.objective.functional, low, high, slot_of_columns(held))
    left = replace(options, time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin)))
    cost = program.functional(COST)
    second = backends.solve(held, held.functional(COST), "min", left, start=_with_totals(held, first.x))
    if second.x is None or not second.polished:
        return first
    x = second.x[:len(cost)]  # the columns that hold the objective come last
    if cost @ x > cost @ first.x:
        return first  # the time was up before anything cheaper was found
    value = float(objective @ x)
    _, duals = backends.priced(program, objective, sense, x, options)
    return replace(first, x=x, objective=value, row_duals=duals,
                   gap=None if first.bound is None else backends.relative_gap(value, first.bound))


def _with_totals(program: Program, x: Floats) -> Floats:
    """x with the sub-totals that were added after it was found."""
    arrays = program.arrays()
    full = np.append(x, np.zeros(program.column_count - len(x)))
    for part in program.row_blocks.get("objective held sub-total", ()):
        full[len(x):] = (arrays.matrix @ full)[part.rows]
    return full


def _solution(data: PlanData, program: Program, raw: RawSolution, options: Options, begin: float,
              structural: tuple = ()) -> Solution:
    arrays = program.arrays()
    values, functionals, duals = {}, {}, {}
    if raw.x is not None:
        values = program.values(raw.x)
        functionals = {name: float(program.functional(name) @ raw.x) for name in program.functionals}
        duals = program.by_block(raw.row_duals) if raw.row_duals is not None else {}
    return Solution(raw.status, data.objective, raw.objective, raw.bound, raw.gap, time.perf_counter() - begin,
                    program.row_count, program.column_count, int(arrays.integer.sum()), options.seed, values, functionals,
                    duals, structural, raw.polished, built=(data, program))
