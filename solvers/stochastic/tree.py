"""The program over a scenario tree: the decisions of each date for all leaves that are alike so far, and the dispatch of every leaf.

Sets
    s            leaves with weights p_s; node(d, s): leaves that are alike at date d share its decisions
    u            holdings, each decided at date d(u); u' returns, each with the holding u that it ends early
    k, r, v(t)   fleet options, sites, window of a slot t
    c, q, a      classes of demand, pools, arcs c -> q; g: ways to serve (pool -> option); j, h: jobs, and their uses of options
Data
    D_{c,t} growth_{s,c,t} [requests/s], eff_{s,g} requests/s and rate_{s,h} work/s of one system, seconds_t
    cost_{s,u}, arc_{s,a,t}, way_{s,g,t}, use_{s,k,t} of options paid by use, lack_{w,t}, undone_j
    there(s, t): holdings whose systems are there in a slot; systems that are delivered late in a leaf come in a later window
Variables
    n_{u,node}   >= 0, units of a holding (integer where it is whole)                           column block "n"
    f_{s,a,t}    >= 0 requests/s; x_{s,g,t} >= 0 and y_{s,h,t} >= 0 systems at work             blocks "f", "x", "y"
    m_{s,c,t}    >= 0 requests/s not served; e_{s,j} in [0, 1] share of a job not done          blocks "m", "e"
    hired_{k,t}  >= 0, systems paid by use that all leaves share; only with `fixed_use`         block "hired"
    z_s          cost of a leaf; quantile, beyond_s >= 0; only with a conditional value at risk blocks "z", "quantile", "beyond"
Objective
    sum_s p_s z_s, or quantile + sum_s p_s beyond_s / (1 - beta) with beyond_s >= z_s - quantile (Rockafellar and Uryasev 2000)
    z_s = sum_u cost_u n_u + arcs + ways + use + lack + undone
Constraints, for each s
    demand       sum_{a of c} f_{a,t} + m_{c,t} >= growth_{c,t} D_{c,t}
    pool         sum_{g of q} eff_g x_{g,t} >= sum_{a into q} f_{a,t}
    installed    sum_{g of k} x_{g,t} + sum_{h of k} y_{h,t} <= sum_{u of k in there(s, t)} n_u - returned    options not paid by use
    hired        the same <= hired_{k,t}                                       options paid by use, with `fixed_use`
    power        sum_g power_g x_{g,t} + sum_h power_h y_{h,t} + sum_u power_u n_u <= room_{r,t}
    supply       sum of the same systems over the options of a supply <= limit
    returned     sum_{u' of u} n_{u'} <= n_u
    progress     sum_{h of j, t} seconds_t rate_h / work_j y_{h,t} + e_j >= 1
    money        z as above; only with a conditional value at risk
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import ABSOLUTE_GAP, Options
from solvers.mip import solve
from solvers.program import Arrays, Program
from solvers.stochastic.data import Aim, FleetData, Leaves

Entries = Sequence[tuple[Any, Any, Any]]  # (row numbers, columns, coefficients), each of shapes that go together
VALUE = "value"
ROUND_TOL = 1e-6  # part of a unit
UNDONE_TOL = 1e-6  # share of a demand or of a job's work; less counts as rounding


@dataclass(frozen=True, slots=True)
class TreeSolution:
    """A solution of the program, or its status where there is none.

    `held` [U, S]: units of each holding in each leaf. `cost` [S]: of each leaf, of which `lack` [S] for work left undone. `kept` [S]: 1 for
    leaves in which all is served and done. `bound`: of the program with whole counts; `divisible`: value of the program in divisible counts.
    """

    status: str
    value: float | None
    bound: float | None
    held: Floats
    cost: Floats
    kept: Floats
    lack: Floats
    seconds: float
    divisible: float | None = None

    @property
    def found(self) -> bool:
        """Whether there is a solution."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class TreeProgram:
    """A program and the columns that a reader of its solution needs."""

    program: Program
    nodes: Ints  # [U, S] column n of each leaf
    spent: tuple[tuple[Ints, Floats], ...]  # by leaf: columns, and what a unit costs
    lacking: tuple[tuple[Ints, Ints], ...]  # by leaf: columns m and e
    working: tuple[tuple[Ints, Ints], ...]  # by leaf: columns x and y


def build(data: FleetData, leaves: Leaves, aim: Aim, given: Floats | None = None) -> TreeProgram:
    """Build the program; `given` [U]: units of holdings that are settled in every leaf, nan where they are free."""
    program = Program()
    nodes = _holdings(program, data, leaves, given)
    hired = None
    if aim.fixed_use:
        hired = program.add_columns("hired", data.use_price.shape, where=data.usable())
    added = [_Leaf(program, data, leaves, s, nodes[:, s], hired).add() for s in range(leaves.count)]
    spent = tuple(each for each, _, _ in added)
    if aim.tail is None:
        for weight, (columns, costs) in zip(leaves.weight, spent, strict=True):
            program.add_cost(VALUE, columns, weight * costs)
    else:
        _weigh_tail(program, leaves, spent, aim.tail)
    return TreeProgram(program, nodes, spent, tuple(each for _, each, _ in added), tuple(each for *_, each in added))


def _holdings(program: Program, data: FleetData, leaves: Leaves, given: Floats | None) -> Ints:
    """Add one column for each holding and node of its date; returns the column of each leaf [U, S]."""
    pairs: dict[tuple[int, int], int] = {}
    found = np.zeros((len(data.option), leaves.count), dtype=np.int64)
    for u, stage in enumerate(data.stage.tolist()):
        for s, node in enumerate(leaves.node[stage].tolist()):
            found[u, s] = pairs.setdefault((u, node), len(pairs))
    holding = np.array([u for u, _ in pairs], dtype=np.int64)
    lower, upper = data.lower[holding].astype(float), data.upper[holding].astype(float)
    if given is not None:
        settled = np.isfinite(given[holding])
        lower[settled] = upper[settled] = given[holding][settled]
    columns = np.zeros(len(pairs), dtype=np.int64)
    for whole in (True, False):
        at = np.flatnonzero(data.whole[holding] == whole)
        block = "n whole" if whole else "n"
        columns[at] = program.add_columns(block, (len(at),), lower[at], upper[at], integer=whole)
    return columns[found] if len(pairs) else found


def _weigh_tail(program: Program, leaves: Leaves, spent: tuple[tuple[Ints, Floats], ...], tail: float) -> None:
    """Minimise the conditional value at risk of the costs of the leaves."""
    size, rows = float(np.abs(leaves.cost).max(initial=1.0)), np.arange(leaves.count)
    money = program.add_columns("z", (leaves.count,), lower=-np.inf, unit=size)
    for s, (columns, costs) in enumerate(spent):
        all_columns, signs = np.append(columns, money[s]), np.append(costs, -1.0)
        program.add_rows("money", 0.0, 0.0, np.zeros(len(signs), dtype=np.int64), all_columns, signs, count=1)
    quantile = program.add_columns("quantile", (1,), lower=-np.inf, cost={VALUE: 1.0}, unit=size)
    share = leaves.weight / (1.0 - tail)
    beyond = program.add_columns("beyond", (leaves.count,), cost={VALUE: share}, unit=size)
    columns = np.concatenate([money, np.repeat(quantile, leaves.count), beyond])
    signs = np.repeat([1.0, -1.0, -1.0], leaves.count)
    program.add_rows("tail", -np.inf, 0.0, np.tile(rows, 3), columns, signs, count=leaves.count)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Columns and rows of one leaf."""

    program: Program
    data: FleetData
    leaves: Leaves
    s: int
    n: Ints  # [U]
    hired: Ints | None

    def add(self) -> tuple[tuple[Ints, Floats], tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Add all of it; returns the columns that cost something with their costs, and the columns of work left undone and of systems at work."""
        data, program, T = self.data, self.program, self.data.slots
        asked = data.demand * self.leaves.growth[self.s]
        usual = np.maximum(asked, 1e-30)
        flow = program.add_columns(f"{self.s} f", (len(data.arc_class), T), unit=usual[data.arc_class])
        able = np.where(self.leaves.efficiency[self.s] > 0, np.inf, 0.0)[:, None]
        work = program.add_columns(f"{self.s} x", (len(data.way_pool), T), upper=able)  # as many in every leaf
        able = np.where(self.leaves.rate[self.s] > 0, np.inf, 0.0)[:, None]
        mask = data.job_mask.reshape(-1, T)[data.job_of]
        width = program.add_columns(f"{self.s} y", (len(data.job_of), T), upper=able, where=mask)
        lack = program.add_columns(f"{self.s} m", asked.shape, where=asked > 0, unit=usual)
        undone = program.add_columns(f"{self.s} e", (len(data.job_work),), upper=1.0)
        self._serve(asked, flow, work, lack)
        self._carry(work, width)
        self._finish(width, undone)
        return self._costs((flow, work, width, lack, undone)), (lack, undone), (work, width)

    def _grid(self, rows: int) -> Ints:
        return np.arange(rows * self.data.slots).reshape(rows, self.data.slots)

    def _rows(
        self, name: str, low: Floats | float, high: Floats | float, entries: Entries, count: int
    ) -> None:  # fmt: skip
        """Add rows from entries (row numbers, columns, coefficients)."""
        if not count:
            return
        full = [np.broadcast_arrays(*entry) for entry in entries]
        rows, columns, values = (np.concatenate([part[i].ravel() for part in full]) for i in range(3))
        self.program.add_rows(f"{self.s} {name}", low, high, rows, columns, values.astype(float), count=count)

    def _serve(self, asked: Floats, flow: Ints, work: Ints, lack: Ints) -> None:
        """Add `demand` and `pool`."""
        data = self.data
        demand, pool = self._grid(len(asked)), self._grid(data.pools)
        self._rows(
            "demand", asked.ravel(), np.inf, [(demand[data.arc_class], flow, 1.0), (demand, lack, 1.0)], demand.size
        )
        efficiency = self.leaves.efficiency[self.s][:, None]
        entries = [(pool[data.way_pool], work, efficiency), (pool[data.arc_pool], flow, -1.0)]
        self._rows("pool", 0.0, np.inf, entries, pool.size)

    def _carry(self, work: Ints, width: Ints) -> None:
        """Add `installed`, `hired`, `power`, `supply` and `returned`."""
        data, covers = self.data, self.leaves.covers
        held = data.held(None if covers is None else covers[self.s])
        n = np.repeat(self.n[:, None], data.slots, axis=1)
        installed = self._grid(len(data.option_site))
        at_work = [(installed[data.way_option], work, 1.0), (installed[data.job_option], width, 1.0)]
        high = np.where(data.usable(), np.inf, 0.0).ravel()
        entries = [*at_work, (installed[data.option], n, -held)]
        if self.hired is not None:
            high = np.zeros(len(high))
            entries.append((installed, self.hired, -1.0))
        self._rows("installed", -np.inf, high, entries, installed.size)
        power = self._grid(len(data.room_w))
        entries = [
            (power[data.option_site[data.way_option]], work, data.way_power_w[:, None]),
            (power[data.option_site[data.job_option]], width, data.job_power_w[:, None]),
            (power[data.option_site[data.option]], n, held * data.power_w[:, None]),
        ]
        if np.isfinite(data.room_w).any():
            self._rows("power", -np.inf, data.room_w.ravel(), entries, power.size)
        supply = self._grid(len(data.supply_limit))
        entries = []
        for limit, k in data.supply_member.tolist():
            row = supply[limit]
            if data.by_use[k] and self.hired is None:
                entries += [(row[None], work[data.way_option == k], 1.0), (row[None], width[data.job_option == k], 1.0)]
            elif data.by_use[k] and self.hired is not None:
                entries.append((row, self.hired[k], 1.0))
            entries.append((row[None], n[data.option == k], held[data.option == k]))
        if entries:
            self._rows("supply", -np.inf, data.supply_limit.repeat(data.slots), entries, supply.size)
        back = np.flatnonzero(data.parent >= 0)
        if len(back):
            parents, row = np.unique(data.parent[back], return_inverse=True)
            entries = [(row.ravel(), self.n[back], 1.0), (np.arange(len(parents)), self.n[parents], -1.0)]
            self._rows("returned", -np.inf, 0.0, entries, len(parents))

    def _finish(self, width: Ints, undone: Ints) -> None:
        """Add `progress`."""
        data = self.data
        jobs = np.arange(len(data.job_work))
        pace = self.leaves.rate[self.s][:, None] / data.job_work[data.job_of][:, None] * data.seconds
        rows = np.repeat(data.job_of[:, None], data.slots, axis=1)
        self._rows("progress", 1.0, np.inf, [(rows, width, pace), (jobs, undone, 1.0)], len(jobs))

    def _costs(self, parts: tuple[Ints, Ints, Ints, Ints, Ints]) -> tuple[Ints, Floats]:
        """List the columns that cost something, and their costs."""
        data, leaves, s = self.data, self.leaves, self.s
        flow, work, width, lack, undone = parts
        arcs, ways, jobs, use_price = leaves.costs_of(data, s)
        used = use_price * leaves.use_factor[s][:, None]
        by_use = np.zeros_like(used) if self.hired is not None else used
        found: list[tuple[Ints, Floats]] = [
            (self.n, leaves.cost[s]),
            (flow, arcs),
            (work, ways + by_use[data.way_option]),
            (width, jobs + by_use[data.job_option]),
            (lack, data.lack_cost[data.class_workload]),
            (undone, data.job_undone),
        ]
        if self.hired is not None:
            found.append((self.hired, used))
        full = [np.broadcast_arrays(*pair) for pair in found]
        columns, costs = (np.concatenate([part[i].ravel() for part in full]) for i in range(2))
        there = (columns >= 0) & (costs != 0)
        return columns[there], costs[there]


def solved(data: FleetData, leaves: Leaves, aim: Aim, options: Options, given: Floats | None = None) -> TreeSolution:
    """Solve the program over a tree; see `build`.

    Divisible counts give the bound, and rounded a solution; a search in whole counts follows where the two are apart by more than `options.gap`.
    Status: "optimal" within that gap; "limit" where the time was up, with the best solution so far, if any; "infeasible" or "unbounded".
    """
    began, built = time.perf_counter(), build(data, leaves, aim, given)
    arrays, cost = built.program.arrays(), built.program.functional(VALUE)
    ends = began + options.time_limit_s
    program = WarmStartedLp(arrays, cost, options, deadline=ends)
    relaxed = program.solve(arrays.lower, arrays.upper)
    status, value, x, bound = relaxed.status, relaxed.value, relaxed.x, relaxed.value
    if x is not None and bound is not None and (np.abs(x - np.floor(x + 0.5))[arrays.integer] > ROUND_TOL).any():
        status, value, x = _rounded(program, arrays, x)
        if value is None or value - bound > options.gap * abs(value) + ABSOLUTE_GAP:
            status, value, x, bound = _in_whole_counts(built, options, ends, (value, x, bound))
    found = _solution(data, leaves, built, status, (x, value, bound), time.perf_counter() - began)
    return replace(found, divisible=relaxed.value)


def _rounded(program: WarmStartedLp, arrays: Arrays, x: Floats) -> tuple[str, float | None, Floats | None]:
    """Round the whole counts of a solution in divisible ones, down where the nearest have no solution, and solve the rest again."""
    status = "limit"
    for counts in (np.floor(x + 0.5), np.floor(x + ROUND_TOL)):
        fixed = np.clip(counts, arrays.lower, arrays.upper)
        lower, upper = (np.where(arrays.integer, fixed, side) for side in (arrays.lower, arrays.upper))
        found = program.solve(lower, upper)
        if found.x is not None:
            return "optimal", found.value, found.x
        status = found.status
    return status, None, None


def _in_whole_counts(
    built: TreeProgram, options: Options, ends: float, known: tuple[float | None, Floats | None, float]
) -> tuple[str, float | None, Floats | None, float]:
    """Search in whole counts until a moment; `known`: value and columns of a solution, if any, and the bound of divisible counts."""
    value, x, bound = known
    left = ends - time.perf_counter()
    if left <= 0.0:
        return "limit", value, x, bound
    raw = solve(built.program, built.program.functional(VALUE), "min", replace(options, time_limit_s=left), start=x)
    bound = bound if raw.bound is None else max(bound, raw.bound)
    if raw.x is None or raw.objective is None:
        return raw.status if value is None else "limit", value, x, bound
    if value is None or raw.objective <= value:
        return raw.status, raw.objective, raw.x, bound
    return raw.status, value, x, bound


def _solution(
    data: FleetData, leaves: Leaves, built: TreeProgram, status: str, found: tuple[Floats | None, float | None, float | None], seconds: float,
) -> TreeSolution:  # fmt: skip
    """Read a solution, given as its columns, value and bound."""
    x, value, bound = found
    if x is None or value is None:
        return replace(unsolved(data, leaves), status=status, bound=bound, seconds=seconds)
    return TreeSolution(status, value, bound, *read(data, leaves, built, x), seconds)


def unsolved(data: FleetData, leaves: Leaves) -> TreeSolution:
    """Return the solution of a program for which there was no time."""
    nothing, none = np.zeros((len(data.option), leaves.count)), np.zeros(leaves.count)
    return TreeSolution("limit", None, None, nothing, none, none, none, 0.0)


def read(data: FleetData, leaves: Leaves, built: TreeProgram, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Read from the columns of a solution the units held [U, S] and, by leaf, the cost, whether all is served and done, and the cost of the rest."""
    x = np.append(x, 0.0)  # column -1 reads the 0 at the end
    asked = data.demand[None] * leaves.growth
    kept, lost = np.ones(leaves.count), np.zeros(leaves.count)
    for s, (lack, undone) in enumerate(built.lacking):
        short = np.divide(x[lack], asked[s], out=np.zeros(lack.shape), where=asked[s] > 0)
        kept[s] = float(max(short.max(initial=0.0), x[undone].max(initial=0.0)) <= UNDONE_TOL)
        lost[s] = (data.lack_cost[data.class_workload] * x[lack]).sum() + data.job_undone @ x[undone]
    cost = np.array([float(x[columns] @ costs) for columns, costs in built.spent])
    return x[built.nodes], cost, kept, lost


def alone(leaves: Leaves, s: int) -> Leaves:
    """Return one leaf as a tree of its own."""
    return replace(leaves.picked([s]), node=np.zeros((len(leaves.node), 1), dtype=np.int64))
