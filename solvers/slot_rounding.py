"""Find a first plan with whole replicas, by rounding the program with divisible ones.

    schedule   residents divisible: which jobs run beside them in which slot, the fleet, and how many workers a slot wants of each point
    slots      each slot in turn as a small program of its own with whole residents; the fleet of the schedule may grow, never shrink

If that ends at a slot for which nothing fits, a further attempt keeps more in reserve. A heuristic: the plan meets all rows, and nothing is
proven about its value.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, run_highs
from solvers.interface import Options
from solvers.mip import solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Arrays, Program


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingSettings:
    """Gaps and times of the steps."""

    slot_gap: float = 1e-4
    """Relative gap of the program of a slot."""
    slot_time_s: float = 2.0
    """Time limit of the program of a slot [s]."""
    reach: float = 8.0
    """Workers by which the residents of a slot may differ from the schedule at first; beyond that only where nothing fits."""
    backtrack: tuple[int, ...] = (1,)
    """Slots before one for which nothing fits that are decided again together with it."""
    reserves: tuple[float, ...] = (0.0, 0.01, 0.03)
    """Shares of the residents that the schedule keeps in reserve, one attempt after the other."""
    work_tol: float = 1e-6
    """Relative share of a job's work that may be missing when its slots are chosen."""
    schedule_gap: float = 5e-3
    """Least relative gap of the schedule."""
    schedule_share: float = 0.5
    """Of the time limit, for the schedule."""


SETTINGS = RoundingSettings()
DECIDED = ("open", "z", "host", "y", "run")  # blocks taken from the divisible plan
IN_SLOTS = ("f", "x", "arriving", "deployed", "grid")  # blocks decided slot by slot
GROWING = ("n", "peak")  # blocks that may grow from slot to slot
SUMMED_AFTERWARDS = "limit"  # rows over all slots, which the slots do not see


def round_replicas(data: PlanData, start: Mapping[str, Floats], options: Options) -> dict[str, Floats] | None:
    """Return a plan with whole replicas as blocks of values, None where none was found; `start`: a plan with divisible ones."""
    deadline = time.perf_counter() + options.time_limit_s
    program = build(data)
    if data.objective.maximises or "residents" not in program.columns:
        return None
    arrays, cost = program.arrays(), objective_vector(program, data)
    follows = _arriving_groups(program, data)
    for reserve in SETTINGS.reserves:
        left = deadline - time.perf_counter()
        if left <= 0:
            return None
        part = _with_reserve(program, arrays, reserve)
        schedule = _schedule(data, program, part, cost, start, _limited(options, SETTINGS.schedule_share * left))
        if schedule is None:
            return None
        x = _slot_by_slot(data, program, arrays, cost, schedule, follows, replace(options, progress=None), deadline)
        if x is None:
            continue
        polished, _ = solve_with_fixed_integers(program, cost, "min", x, options)
        if polished is not None:
            return program.values(polished)
    return None


def _with_reserve(program: Program, arrays: Arrays, reserve: float) -> Arrays:
    """Return the rows with a share of the residents of every slot in reserve:  workers x + ... <= (1 - reserve) resident."""
    rows = np.zeros(program.row_count, dtype=bool)
    for part in program.row_blocks["resident"]:
        rows[part.rows] = True
    matrix = arrays.matrix.tocoo()
    held = _columns_of(program, "residents")[matrix.col] & rows[matrix.row]
    matrix.data = np.where(held, matrix.data * (1.0 - reserve), matrix.data)
    return replace(arrays, matrix=matrix.tocsc())


def _limited(options: Options, seconds: float) -> Options:
    return replace(options, progress=None, time_limit_s=seconds)


def _columns_of(program: Program, *blocks: str) -> Bools:
    """[columns]: those of some blocks."""
    mask = np.zeros(program.column_count, dtype=bool)
    for block in blocks:
        columns = program.columns.get(block, np.zeros(0, dtype=np.int64))
        mask[columns[columns >= 0]] = True
    return mask


def _schedule(
    data: PlanData, program: Program, arrays: Arrays, cost: Floats, start: Mapping[str, Floats], options: Options
) -> Floats | None:
    """Return columns with divisible residents; sites, networks and the points of jobs as in `start`, jobs in their fullest slots."""
    decided = _columns_of(program, *DECIDED)
    known = np.round(program.vector(start))
    lower, upper = np.where(decided, known, arrays.lower), np.where(decided, known, arrays.upper)
    present = program.columns["present"]
    there = present >= 0
    lower[present[there]] = upper[present[there]] = _full_slots(data, start)[there]
    whole = arrays.integer & ~_columns_of(program, "residents", "deployed")
    scaled = replace(arrays, integer=whole, lower=lower, upper=upper).scaled(cost)
    outcome = run_highs(scaled, replace(options, gap=max(options.gap, SETTINGS.schedule_gap)), MIP_FEASIBILITY_TOL)
    if outcome.x is None:
        return None
    x: Floats = outcome.x * scaled.column
    return np.where(whole, np.round(x), x)


def _full_slots(data: PlanData, start: Mapping[str, Floats]) -> Floats:
    """[P, T]: 1 in the fewest slots in which a job's work fits, those first in which it runs for most of the time."""
    present = np.zeros((len(data.point_job), data.slots))
    for p in np.flatnonzero((data.point_job >= 0) & (start["y"] > 0.5)).tolist():
        share = start["v"][p]
        slots = np.flatnonzero(share > 0)
        slots = slots[np.argsort(-share[slots], kind="stable")]
        could = np.cumsum(data.slot_hours_s[slots])
        needed = float(share @ data.slot_hours_s) * (1 - SETTINGS.work_tol)
        present[p, slots[: int(np.searchsorted(could, needed)) + 1]] = 1.0
    return present


def _slot_by_slot(
    data: PlanData, program: Program, arrays: Arrays, cost: Floats, schedule: Floats, follows: Ints, options: Options,
    deadline: float,
) -> Floats | None:  # fmt: skip
    """Decide the residents of each group of slots in the order of time, from the one with the largest demand on.

    `follows` [rows]: the group of a row that ties a slot to the one before it, -1 for other rows.
    """
    matrix, x = arrays.matrix.tocsr(), schedule.copy()
    group = np.arange(data.slots) if data.resident_group is None else data.resident_group
    unit, grows, near = _units(program, group), _columns_of(program, *GROWING), _columns_of(program, "residents")
    known, skipped = unit < 0, _limit_rows(program)
    one, held = np.zeros(program.column_count), program.columns["residents"]
    one[held[held >= 0]] = np.broadcast_to(data.role_workers()[:, None], held.shape)[held >= 0]
    low, high = np.floor(x) - SETTINGS.reach, np.maximum(np.ceil(x) + SETTINGS.reach, one)
    asked = np.zeros(int(group.max(initial=-1)) + 1)
    np.maximum.at(asked, group, data.demand.sum(axis=(0, 1)))
    groups = np.unique(group)
    order = np.roll(groups, -int(np.argmax(asked[groups])))
    for position in range(len(order)):
        for back in (0, *SETTINGS.backtrack):  # with so many slots before it decided once more
            together = order[max(position - back, 0) : position + 1]
            here = np.isin(unit, together)
            left = deadline - time.perf_counter()
            if left <= 0:
                return None
            known &= ~here
            mine = np.flatnonzero(here | grows)
            part = _part(arrays, matrix, x, mine, known, skipped, np.isin(follows, together))
            part = replace(part, lower=np.where(grows[mine], x[mine], part.lower))
            close = replace(
                part,
                lower=np.where(near[mine], np.maximum(low[mine], part.lower), part.lower),
                upper=np.where(near[mine], np.minimum(high[mine], part.upper), part.upper),
            )
            limits = replace(options, time_limit_s=min(left, SETTINGS.slot_time_s * (1 + back)), gap=SETTINGS.slot_gap)
            found = _solved(close, cost[mine], limits)
            found = _solved(part, cost[mine], limits) if found is None else found
            if found is not None:
                break
        else:
            return None
        x[mine] = found
        known |= here
    return x


def _solved(part: Arrays, cost: Floats, options: Options) -> Floats | None:
    """Return the columns of the best solution of a part, None where it has none in time."""
    scaled = part.scaled(cost)
    outcome = run_highs(scaled, options, MIP_FEASIBILITY_TOL)
    if outcome.x is None:
        return None
    found: Floats = outcome.x * scaled.column
    return np.where(part.integer, np.round(found), found)


def _limit_rows(program: Program) -> Bools:
    """[rows]: limits on functionals, which are sums over all slots."""
    mask = np.zeros(program.row_count, dtype=bool)
    for block, parts in program.row_blocks.items():
        for part in parts if block.startswith(SUMMED_AFTERWARDS) else ():
            mask[part.rows] = True
    return mask


def _units(program: Program, group: Ints) -> Ints:
    """[columns]: the group of slots that decides a column, -1 for the others."""
    unit = np.full(program.column_count, -1)
    for block in IN_SLOTS:
        columns = program.columns.get(block, np.zeros((0, len(group)), dtype=np.int64))
        where = np.nonzero(columns >= 0)
        unit[columns[where]] = group[where[1]]
    held = program.columns["residents"]
    where = np.nonzero(held >= 0)
    unit[held[where]] = where[1]
    return unit


def _arriving_groups(program: Program, data: PlanData) -> Ints:
    """[rows]: the group of a row `arriving`, whose predecessor counts as the schedule has it until it is decided; -1 for others."""
    group = np.arange(data.slots) if data.resident_group is None else data.resident_group
    of_row = np.full(program.row_count, -1)
    for part in program.row_blocks.get("arriving", ()):
        of_row[part.rows] = group[part.index[:, 1]]
    return of_row


def _part(
    arrays: Arrays, matrix: sparse.csr_array, x: Floats, mine: Ints, known: Bools, skipped: Bools, linked: Bools
) -> Arrays:
    """Cut out the program of some columns, the others as in x; rows with undecided columns are left out unless `linked`."""
    inside = np.zeros(len(x), dtype=bool)
    inside[mine] = True
    touches: Bools = abs(matrix) @ inside.astype(float) > 0
    open_: Bools = abs(matrix) @ (~inside & ~known).astype(float) > 0
    rows = np.flatnonzero(touches & ~skipped & (~open_ | linked))
    offset = matrix[rows] @ np.where(inside, 0.0, x)
    return Arrays(
        matrix[rows][:, mine].tocsc(),
        arrays.row_lower[rows] - offset,
        arrays.row_upper[rows] - offset,
        arrays.lower[mine],
        arrays.upper[mine],
        arrays.integer[mine],
        arrays.unit[mine],
    )
