"""Find a first plan with whole replicas, by rounding the program with divisible ones.

    schedule   residents divisible: which jobs run beside them in which slot, and how many workers a slot wants of each point
    peak       whole residents in the fullest slot, together with the fleet; other slots as the schedule has them
    rest       each further slot in turn as a small program with whole residents; the fleet may grow, never shrink

If that ends at a slot for which nothing fits, a further attempt keeps more in reserve, unless its schedule is a program too large for one
search. A heuristic: the plan meets all rows, and nothing is proven about its value.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.highs_run import MIP_FEASIBILITY_TOL, run_highs
from solvers.interface import Options
from solvers.mip import solve_with_fixed_integers
from solvers.model.build import build, objective_vector
from solvers.model.data import COST, PlanData
from solvers.program import Arrays, Program
from solvers.search.direct import MOST_COLUMNS_IN_ONE_PIECE
from solvers.search.hourly import with_rented
from solvers.search.parts import points_in_use
from solvers.search.relaying import loading_groups, loads_after, without_loads


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingSettings:
    """Gaps and sizes of the steps."""

    peak_gap: float = 3e-3
    """Relative gap of the program of the peak."""
    peak_nodes: int = 300
    """Most nodes of the search for the peak and for a slot in which the fleet grows, so that it ends where it ended before."""
    slot_nodes: int = 50
    """The same, for a slot with the fleet as it is."""
    least_fleet: float = 0.9
    """Least share of each holding of the schedule that the peak keeps."""
    poor: float = 0.05
    """Share by which the fullest slot may cost more than in the schedule before another fleet is tried."""
    used: float = 1e-6
    """Systems above which the schedule has a holding."""
    slot_gaps: tuple[float, float] = (1e-3, 0.05)
    """Least and largest relative gap of the program of a slot with the fleet as it is."""
    backtrack: tuple[int, ...] = (1, 4)
    """Slots before one for which nothing fits that are decided again together with it."""
    reserves: tuple[float, ...] = (0.0, 0.01, 0.03)
    """Shares of the residents that the schedule keeps in reserve, one attempt after the other."""
    work_tol: float = 1e-6
    """Relative share of a job's work that may be missing when its slots are chosen."""


SETTINGS = RoundingSettings()
DECIDED = ("open", "z", "host", "y", "run", "joins")  # blocks taken from the divisible plan
IN_SLOTS = ("f", "x", "on", "loading", "grid")  # blocks decided slot by slot
BY_GROUP = ("residents", "deployments")  # blocks with a group of slots as their last index
GROWING = ("n", "peak")  # blocks that may grow from slot to slot


@dataclass(frozen=True, slots=True)
class Rounding:
    """A program that is to be rounded, minimised."""

    data: PlanData
    program: Program
    arrays: Arrays
    matrix: sparse.csr_array
    size: sparse.csr_array
    """The matrix without its signs."""
    cost: Floats
    """[columns]"""
    group: Ints
    """[T]: slots of one group have the same residents."""
    options: Options
    deadline: float

    @property
    def left_s(self) -> float:
        """Time left [s]."""
        return self.options.noted(self.deadline - time.perf_counter())


def round_replicas(
    data: PlanData, start: Mapping[str, Floats], options: Options
) -> tuple[Program, dict[str, Floats]] | None:
    """Return (program, a plan with whole replicas as blocks of values), None where none was found; `start`: a plan with divisible ones."""
    task = _task(data, options)
    if task is None:
        return None
    for reserve in SETTINGS.reserves:
        if task.left_s <= 0 or (reserve and task.program.column_count > MOST_COLUMNS_IN_ONE_PIECE):
            return None
        schedule = _schedule(task, start, reserve) if reserve else _as_divided(task, start)
        begun = None if schedule is None else _begun(task, schedule)
        found = None if begun is None else begun.finished()
        if found is not None:
            return found
    return None


def begin_rounding(data: PlanData, start: Mapping[str, Floats], options: Options) -> Begun | None:
    """Make the fullest slot whole; None where nothing fits. `start`: a plan with divisible replicas."""
    task = _task(data, options)
    return None if task is None or task.left_s <= 0 else _begun(task, _as_divided(task, start))


def _task(data: PlanData, options: Options) -> Rounding | None:
    """Set up the rounding of a program; None for one without residents."""
    deadline = time.perf_counter() + options.time_limit_s
    program = build(data)
    if "residents" not in program.columns or not program.column_count:
        return None
    arrays, cost = program.arrays(), objective_vector(program, data)
    if data.objective.maximises:
        cost = -cost
    group = np.arange(data.slots) if data.resident_group is None else data.resident_group
    matrix = arrays.matrix.tocsr()
    return Rounding(data, program, arrays, matrix, abs(matrix), cost, group, replace(options, progress=None), deadline)


def _polished(task: Rounding, x: Floats) -> tuple[Program, dict[str, Floats]] | None:
    """Return (program, the best plan with the integers of x as blocks of values), None where there is none."""
    program, data, sense = task.program, task.data, "max" if task.data.objective.maximises else "min"
    polished, _ = solve_with_fixed_integers(program, objective_vector(program, data), sense, x, task.options)
    return None if polished is None else (program, program.values(polished))


def _with_reserve(task: Rounding, reserve: float) -> Arrays:
    """Return the rows with a share of the residents of every slot in reserve:  workers x + ... <= (1 - reserve) resident."""
    rows = _rows_of(task.program, "resident")
    matrix = task.arrays.matrix.tocoo()
    held = _columns_of(task.program, "residents")[matrix.col] & rows[matrix.row]
    matrix.data = np.where(held, matrix.data * (1.0 - reserve), matrix.data)
    return replace(task.arrays, matrix=matrix.tocsc())


def _columns_of(program: Program, *blocks: str) -> Bools:
    """[columns]: the columns of some blocks."""
    mask = np.zeros(program.column_count, dtype=bool)
    for block in blocks:
        columns = program.columns.get(block, np.zeros(0, dtype=np.int64))
        mask[columns[columns >= 0]] = True
    return mask


def _rows_of(program: Program, *blocks: str) -> Bools:
    """[rows]: the rows of some blocks."""
    mask = np.zeros(program.row_count, dtype=bool)
    for block in blocks:
        for part in program.row_blocks.get(block, ()):
            mask[part.rows] = True
    return mask


def _as_divided(task: Rounding, start: Mapping[str, Floats]) -> Floats:
    """Return the columns of `start` with divisible residents for its replicas, jobs in their fullest slots."""
    program, data = task.program, task.data
    x: Floats = program.vector(start)
    held, present = program.columns["residents"], program.columns["present"]
    active = program.columns["x"][data.point_uses[:, 0]]
    asked = data.role_workers()[:, None] * np.where(active >= 0, x[active], 0.0)
    most = np.zeros(held.shape)
    np.maximum.at(most.T, task.group, asked.T)
    x[held[held >= 0]] = most[held >= 0]
    x[present[present >= 0]] = _full_slots(data, start)[present >= 0]
    return with_rented(program, data, x)


def _schedule(task: Rounding, start: Mapping[str, Floats], reserve: float) -> Floats | None:
    """Return columns with divisible residents; sites, networks and the points of jobs as in `start`, jobs in their fullest slots."""
    program, arrays = task.program, _with_reserve(task, reserve)
    decided = _columns_of(program, *DECIDED)
    known = np.round(program.vector(start))
    lower, upper = np.where(decided, known, arrays.lower), np.where(decided, known, arrays.upper)
    present = program.columns["present"]
    there = present >= 0
    lower[present[there]] = upper[present[there]] = _full_slots(task.data, start)[there]
    whole = arrays.integer & ~_columns_of(program, "residents", "deployments", "n")
    part = replace(arrays, integer=whole, lower=lower, upper=upper)
    found = _solved(task, part, task.cost, SETTINGS.slot_nodes)
    return None if found is None else without_loads(task.program, found)


def _full_slots(data: PlanData, start: Mapping[str, Floats]) -> Floats:
    """[P, T]: 1 in the fewest slots in which a job's work fits, those first in which it runs for most of the time."""
    present = np.zeros((len(data.point_job), data.slots))
    for p in np.flatnonzero((data.point_job >= 0) & (start["y"] > 0.5)).tolist():
        share = start["v"][p]
        slots = np.flatnonzero(share > 0)
        slots = slots[np.argsort(-share[slots], kind="stable")]
        could, needed = np.cumsum(data.slot_hours_s[slots]), float(share @ data.slot_hours_s) * (1 - SETTINGS.work_tol)
        present[p, slots[: int(np.searchsorted(could, needed)) + 1]] = 1.0
    return present


@dataclass(frozen=True, slots=True)
class SlotPrograms:
    """What the programs of all slots share."""

    schedule: Floats
    """[columns]"""
    unit: Ints
    """[columns]: the group of slots that decides a column, -1 for the others."""
    grows: Bools
    """[columns]"""
    follows: Ints
    """[rows]: the group of a row that ties a slot to the one before it, -1 for other rows."""
    leads: Ints
    """[columns]: the group before the slot of a load, which is decided with that group again; -1 for other columns."""
    limits: Bools
    """[rows]: limits on sums over all slots, for which undecided slots count as in the schedule."""
    gap: float
    """Relative gap of what slots cost at which their sum lies within half the gap asked for of the whole."""
    jobs: Bools
    """[rows]: those through which jobs in the schedule need their fleet."""


def _slot_programs(task: Rounding, schedule: Floats) -> SlotPrograms:
    """Collect what the programs of all slots share."""
    program, unit = task.program, _units(task.program, task.group)
    slots = abs(float(task.cost[unit >= 0] @ schedule[unit >= 0]))
    gap = 0.5 * task.options.gap * abs(float(task.cost @ schedule)) / max(slots, 1e-300)
    return SlotPrograms(
        schedule=schedule,
        unit=unit,
        gap=float(np.clip(gap, *SETTINGS.slot_gaps)),
        grows=_columns_of(program, *GROWING),
        follows=loading_groups(program, task.group),
        leads=loads_after(program, task.data, task.group),
        limits=_rows_of(program, "limit"),
        jobs=_job_rows(task, schedule),
    )


def _job_rows(task: Rounding, schedule: Floats) -> Bools:
    """[rows]: those on the systems that a job uses, in slots in which it runs."""
    runs = _columns_of(task.program, "v") & (schedule > 0)
    touched: Bools = task.size @ runs.astype(float) > 0
    return touched & _rows_of(task.program, "installed")


@dataclass(frozen=True, slots=True)
class Begun:
    """A plan of which the fullest slot is whole, and the others divisible with the fleet that it takes.

    Its value is near that of the plan in which all slots are whole: fewer than 0.1 % of cost away in all trials of the main example.
    """

    task: Rounding
    shared: SlotPrograms
    x: Floats
    """[columns]"""
    known: Bools
    """[columns]"""
    order: Ints

    @property
    def value(self) -> float:
        """Return the value of the objective."""
        return float(objective_vector(self.task.program, self.task.data) @ self.x)

    def points(self) -> Bools:
        """[P]: points in use, points of divisible slots among them."""
        return points_in_use(self.task.program.values(self.x))

    def ended(self) -> Floats | None:
        """Decide the other slots; None where nothing fits, or time is up."""
        x, known = self.x, self.known
        for position in range(1, len(self.order)):
            found = _next(self.task, self.shared, x, known, self.order, position)
            if found is None:
                return None
            x, known = found
        return x

    def finished(self) -> tuple[Program, dict[str, Floats]] | None:
        """Return (program, the plan as blocks of values), None where there is none."""
        x = self.ended()
        return None if x is None else _polished(self.task, x)


def _begun(task: Rounding, schedule: Floats) -> Begun | None:
    """Decide the fullest slot, and adapt the schedule of the others to it."""
    shared = _slot_programs(task, schedule)
    known, order = (shared.unit < 0) & ~shared.grows, _order(task, schedule)
    if not len(order):
        return Begun(task, shared, schedule, known, order)
    found = _next(task, shared, schedule, known, order, 0)
    if found is None:
        return None
    x, known = found
    adapted = _adapted(task, shared, x, order[0]) if len(order) > 1 else None
    if adapted is not None:
        shared, x = _slot_programs(task, adapted), adapted
    return Begun(task, shared, x, known, order)


def _next(
    task: Rounding, shared: SlotPrograms, x: Floats, known: Bools, order: Ints, position: int
) -> tuple[Floats, Bools] | None:
    """Return the columns with the group at a position whole, and those that are known then; None where nothing fits."""
    for back in (0, *SETTINGS.backtrack):  # with so many slots before it decided once more
        if task.left_s <= 0:
            return None
        together = order[max(position - back, 0) : position + 1]
        here = np.isin(shared.unit, together)
        found = _decided(task, shared, x, known & ~here, together, order[:position])
        if found is not None:
            return found, known | here | shared.grows
    return None


def _order(task: Rounding, schedule: Floats) -> Ints:
    """Groups of slots by window, slots of a window in the order of time from its fullest slot on; the fullest window first."""
    program = task.program
    held = _columns_of(program, "n", "on")
    in_use = task.matrix @ np.where(held, 0.0, schedule)  # systems, by row of `installed`
    value = np.where(held, np.abs(program.functional(COST)), 0.0) if COST in program.functionals else held.astype(float)
    price = (task.size @ value) / np.maximum(task.size @ held.astype(float), 1.0)
    asked = np.zeros(task.data.slots)
    for part in program.row_blocks["installed"]:
        np.add.at(asked, part.index[:, 1], (in_use * price)[part.rows])
    windows = [np.unique(task.group[task.data.slot_window == window]) for window in range(task.data.windows)]
    fullest = {int(group): float(asked[task.group == group].max()) for groups in windows for group in groups}
    rolled = [
        np.roll(groups, -int(np.argmax([fullest[int(group)] for group in groups]))) for groups in windows if groups.size
    ]
    return np.concatenate(sorted(rolled, key=lambda groups: -fullest[int(groups[0])]))


def _adapted(task: Rounding, shared: SlotPrograms, x: Floats, peak: int) -> Floats | None:
    """Return the schedule of the other slots for the residents and the fleet that the peak has taken; a fleet within the limits, which may grow."""
    fixed = (shared.unit == peak) | ((shared.unit < 0) & task.arrays.integer & ~shared.grows)
    lower, upper = np.where(fixed, x, task.arrays.lower), np.where(fixed, x, task.arrays.upper)
    grows = shared.grows & task.arrays.integer
    lower, upper = np.where(grows, x, lower), np.where(grows, task.arrays.upper, upper)
    part = replace(task.arrays, integer=np.zeros_like(fixed), lower=lower, upper=upper)
    adapted = _solved(task, part, task.cost, SETTINGS.slot_nodes)
    if adapted is None:
        return None
    held = _columns_of(task.program, "n")
    rounded = np.floor(adapted + SETTINGS.used) if shared.limits.any() else np.ceil(adapted - SETTINGS.used)
    return np.where(fixed, x, np.where(held, rounded, without_loads(task.program, adapted)))


def _decided(
    task: Rounding, shared: SlotPrograms, x: Floats, known: Bools, together: Ints, decided: Ints
) -> Floats | None:
    """Return the columns with whole residents in some groups of slots, None where nothing fits.

    `decided`: groups before them. Without any the fleet is open; it only grows afterwards, and the factor of a throughput question only
    shrinks.
    """
    first = not len(decided)
    linked = np.isin(shared.follows, together) | shared.limits | _rows_of(task.program, "relays")
    factor = _columns_of(task.program, "lambda")
    again = known & np.isin(shared.leads, together)
    mine = np.flatnonzero(np.isin(shared.unit, together) | shared.grows | factor | again)
    if first:
        linked = linked | shared.jobs
    none = np.zeros_like(shared.limits)
    for skipped in (none, shared.limits) if shared.limits.any() else (none,):
        part, best = _part(task, x, mine, known & ~factor, skipped, linked, factor), None
        worth = task.cost[mine] @ x[mine] + SETTINGS.poor * abs(task.cost[mine] @ x[mine])
        for lower, upper, cost, nodes, gap in _attempts(task, shared, x, together, decided):
            bounded = replace(part, lower=lower[mine], upper=upper[mine])
            found = _solved(task, bounded, cost[mine], nodes, gap, None if first else 1)
            if found is not None and (best is None or cost[mine] @ found < cost[mine] @ best):
                best = found
            if best is not None and (not first or cost[mine] @ best <= worth):
                break
        if best is not None:
            whole = x.copy()
            whole[mine] = best
            return whole
    return None


def _attempts(
    task: Rounding, shared: SlotPrograms, x: Floats, together: Ints, decided: Ints
) -> Iterator[tuple[Floats, Floats, Floats, int, float]]:
    """Yield bounds and costs [columns], node limit and gap of a slot's program.

    First with the fleet as it is and the roles that the schedule uses here, or that were resident before; then with all roles; then with
    a larger fleet. In the first slot with a fleet near that of the schedule; where that costs much more than the schedule, with any fleet, too.
    """
    arrays, factor = task.arrays, _columns_of(task.program, "lambda")
    lower, upper, cost = arrays.lower, arrays.upper, task.cost
    peak, slot = (SETTINGS.peak_nodes, SETTINGS.peak_gap), (SETTINGS.slot_nodes, shared.gap)
    if not len(decided):
        held = _columns_of(task.program, "n")
        share = SETTINGS.least_fleet if task.data.hourly is None else 1.0  # one slot's rent says nothing of the others
        least = np.where(held, np.floor(share * x + SETTINGS.used), lower)
        yield least, np.where(held & (x < SETTINGS.used), 0.0, upper), cost, *peak
        yield lower, upper, cost, *peak
        return
    lower, upper = np.where(shared.grows, x, lower), np.where(factor, x, upper)
    near = np.where(_unlikely(task, shared, x, np.concatenate([together, decided[-2:]])), np.maximum(lower, 0.0), upper)
    if factor.any():  # at the factor found so far for the least money
        thrifty = _thrifty(task)
        for most in (near, upper):
            yield np.where(factor, x, lower), np.where(shared.grows, x, most), thrifty, *slot
        yield np.where(factor, x, lower), upper, thrifty, *slot
    else:
        for most in (near, upper):
            yield lower, np.where(shared.grows, x, most), np.where(shared.grows, 0.0, cost), *slot
    yield lower, near, cost, *peak
    yield lower, upper, cost, *peak


def _unlikely(task: Rounding, shared: SlotPrograms, x: Floats, groups: Ints) -> Bools:
    """[columns]: residents of the roles that neither the schedule uses nor anybody holds in some groups of slots."""
    held = task.program.columns["residents"]
    here = held[:, groups]
    there = np.where(here >= 0, np.maximum(x[here], shared.schedule[here]), 0.0)
    unlikely = np.zeros(len(x), dtype=bool)
    columns = held[there.max(axis=1, initial=0.0) < SETTINGS.used]
    unlikely[columns[columns >= 0]] = True
    return unlikely


def _thrifty(task: Rounding) -> Floats:
    """[columns]: money, and a little of it for every system that residents take."""
    program, data = task.program, task.data
    cost = program.functional(COST) if COST in program.functionals else np.zeros(program.column_count)
    small = max(float(np.abs(cost).max(initial=0.0)), 1.0) * 1e-6
    held = program.columns["residents"]
    systems = data.point_uses_systems / data.role_workers()
    cost[held[held >= 0]] += small * np.broadcast_to(systems[:, None], held.shape)[held >= 0]
    return cost


def _solved(
    task: Rounding, part: Arrays, cost: Floats, nodes: int, gap: float = 0.0, threads: int | None = None
) -> Floats | None:
    """Return the columns of the best solution of a part that is found by the last node, None where there is none in time.

    `threads`: other than those asked for. The program of a slot takes some milliseconds, in which a second thread only waits.
    """
    if (limit_s := task.left_s) <= 0 or (part.lower > part.upper).any():
        return None
    scaled = part.scaled(cost)
    options = replace(
        task.options, time_limit_s=limit_s, gap=max(gap, task.options.gap), node_limit=nodes, threads=threads or task.options.threads,
    )  # fmt: skip
    outcome = run_highs(scaled, options, MIP_FEASIBILITY_TOL)
    if outcome.x is None:
        return None
    found: Floats = outcome.x * scaled.column
    return np.where(part.integer, np.round(found), found)


def _units(program: Program, group: Ints) -> Ints:
    """[columns]: the group of slots that decides a column, -1 for the others."""
    unit = np.full(program.column_count, -1)
    for block in IN_SLOTS:
        columns = program.columns.get(block, np.zeros((0, len(group)), dtype=np.int64))
        where = np.nonzero(columns >= 0)
        unit[columns[where]] = group[where[1]]
    for block, columns in program.columns.items():
        if block.startswith("limit "):  # sub-totals by slot
            unit[columns] = group[: len(columns)]
    for block in BY_GROUP:
        columns = program.columns[block]
        where = np.nonzero(columns >= 0)
        unit[columns[where]] = where[1]
    return unit


def _part(
    task: Rounding, x: Floats, mine: Ints, known: Bools, skipped: Bools, linked: Bools, loose: Bools
) -> Arrays:  # fmt: skip
    """Cut out the program of some columns, the others as in x; rows with undecided columns are left out unless `linked`.

    Rows are left out also where only `loose` columns touch them.
    """
    arrays, inside = task.arrays, np.zeros(len(x), dtype=bool)
    inside[mine] = True
    touches: Bools = task.size @ (inside & ~loose).astype(float) > 0
    open_: Bools = task.size @ (~inside & ~known).astype(float) > 0
    rows = np.flatnonzero(touches & ~skipped & (~open_ | linked))
    held = task.matrix[rows]
    offset = held @ np.where(inside, 0.0, x)
    return Arrays(
        held[:, mine].tocsc(),
        arrays.row_lower[rows] - offset,
        arrays.row_upper[rows] - offset,
        arrays.lower[mine],
        arrays.upper[mine],
        arrays.integer[mine],
        arrays.unit[mine],
    )
