"""The scenario block: one fleet that serves everything in each of several scenarios, with a dispatch of its own.

This is a two-stage program: the fleet is chosen before it is known which scenario comes, the dispatch after. Dispatch costs nothing, but
where it is a part of the risk of prices (`priced` scenarios). Of workloads that share a demand (`solvers.model.choice`) each serves in every
scenario what it serves as planned: how requests are split among them is decided with the fleet.

Sets
    s        scenarios; in each the sets of the routing and schedule blocks
    c        classes of demand (workload, origin); c' classes of workloads that share a demand
    t        a few slots
Data
    D_{c,t}          demand [requests/s]
    cap_{s,p}        requests/s per replica in a scenario, over the growth of demand
    pace_{s,p}       share of its job's work that a point does per second at full width
    seconds_t        time that a slot stands for
    cost_{s,u}       cost of one system of holding u at the prices of scenario s
    most_{p,t}       replicas that the most systems of the fleet options of p allow
    beta             level of the CVaR; S scenarios of prices
    g_{s,a,t}        cost of a request/s on an arc over the slot in a priced scenario; g_{s,p,t} of a replica
    lack_{s,c,t}     cost of a request/s not served, in priced scenarios that need not serve everything
Variables
    f_{s,a,t}        >= 0, requests/s on an arc (column block "scenario s f")
    x_{s,p,t}        >= 0, replicas at work (column block "scenario s x")
    v_{s,p,t}        in [0, 1], share of the slot in which a job runs (column block "scenario s v")
    quantile         >= 0, value at risk of the fleet's cost; free with priced scenarios
    beyond_s         >= 0, cost of the fleet beyond the quantile
    missing_{s,c,t}  >= 0, requests/s not served (column block "scenario s missing"); only in scenarios that need not serve everything
    planned          free, cost of the planned dispatch; only with priced scenarios
Objective
    quantile + sum_s beyond_s / ((1 - beta) S) in the functional cost, where the risk of prices counts (Rockafellar and Uryasev 2000).
Constraints
    demand           sum_{a of c} f_{s,a,t} + missing_{s,c,t} >= D_{c,t}
                     for each s, c, t; times lambda where throughput is maximised; sum_{a of c'} f_{a,t} in place of D_{c,t} for each c'
    pool             sum_{p of q} cap_{s,p} x_{s,p,t} >= sum_{a into q} f_{s,a,t}    for each s, q, t
    installed        sum_p uses_{p,k} (x_{s,p,t} + v_{s,p,t}) <= sum_{u of k, u covers w(t)} n_u    for each s, k, t
    power            sum_u power_u n_u + sum_p power_p (x_{s,p,t} + v_{s,p,t}) <= limit_{r,w(t)}    for each s, r, t
    width            v_{s,p,t} <= y_p    for each s, p, t
    ported           x_{s,p,t} <= most_{p,t} port_g    for each s, p that needs the port of g, t
    progress         sum_{p of j, t} seconds_t pace_{s,p} v_{s,p,t} >= 1    for each s, j
    risk             sum_u cost_{s,u} n_u + operation_s <= quantile + beyond_s
                     for each s; operation_s = sum_{a,t} g_{s,a,t} f_{s,a,t} + sum_{p,t} g_{s,p,t} x_{s,p,t} + sum_{c,t} lack_{s,c,t}
                     missing_{s,c,t} - planned where s is priced, else 0
    planned          sum_{a,t} cost_{a,t} f_{a,t} + sum_{p,t} cost_{p,t} x_{p,t} = planned    the functional cost; with priced scenarios

All row blocks but `risk` and `planned` carry the scenario in front, as in "scenario s demand".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.scenarios import Risk, Scenario, ScenarioData
from solvers.model.data import COST, PlanData
from solvers.model.fleet import option_upper
from solvers.program import Program


def add_scenarios(program: Program, data: PlanData, blocks: ScenarioData) -> None:
    """Add the columns and rows of every scenario, and the risk of prices."""
    priced: list[tuple[Ints, Ints, Floats]] = []
    for number, scenario in enumerate(blocks.scenarios):
        dispatch = _Dispatch.of(program, data, scenario, blocks.slots, blocks.seconds, f"scenario {number}")
        dispatch.add_rows()
        priced += dispatch.costs()
    if blocks.risk is not None:
        _add_risk(program, data, blocks.risk, priced)


def _add_risk(program: Program, data: PlanData, risk: Risk, priced: Sequence[tuple[Ints, Ints, Floats]]) -> None:
    """Add the conditional value at risk of the cost over price scenarios; `priced`: (scenario, columns, costs) of dispatch."""
    count, held = len(risk.cost), program.columns["n"]
    if priced:
        planned = _add_planned(program, data)
        numbers = np.unique(np.concatenate([number for number, _, _ in priced]))
        priced = [*priced, (numbers, np.repeat(planned, len(numbers)), -np.ones(len(numbers)))]
    usual = max(float(risk.cost.max(initial=0.0)), 1.0)
    least = -np.inf if priced else 0.0  # what is planned is taken off again
    quantile = program.add_columns("quantile", (1,), lower=least, cost={COST: 1.0}, unit=usual)
    beyond = program.add_columns("beyond", (count,), cost={COST: 1.0 / ((1.0 - risk.share) * count)}, unit=usual)
    row, holding = np.nonzero(risk.cost)
    program.add_rows(
        "risk",
        -np.inf,
        0.0,
        np.concatenate([row, np.tile(np.arange(count), 2), *(number for number, _, _ in priced)]),
        np.concatenate([held[holding], np.repeat(quantile, count), beyond, *(columns for _, columns, _ in priced)]),
        np.concatenate([risk.cost[row, holding], -np.ones(2 * count), *(costs for _, _, costs in priced)]),
        count=count,
    )


def _add_planned(program: Program, data: PlanData) -> Ints:
    """Add the cost of the planned dispatch, as a column."""
    parts = [(program.columns["f"], data.arc_cost), (program.columns["x"], data.point_cost)]
    columns, costs = [], []
    for block, cost in parts:
        values = np.broadcast_to(cost.get(COST, np.zeros(block.shape)), block.shape)
        there = np.nonzero((block >= 0) & (values != 0))
        columns.append(block[there])
        costs.append(values[there])
    usual = max((float(np.abs(each).max(initial=0.0)) for each in costs), default=1.0) or 1.0
    planned = program.add_columns("planned", (1,), lower=-np.inf, unit=usual)
    entries = np.concatenate([*columns, planned])
    values = np.concatenate([*costs, -np.ones(1)])
    program.add_rows("planned", 0.0, 0.0, np.zeros(len(entries), dtype=np.int64), entries, values, count=1)
    return planned


@dataclass(frozen=True, slots=True)
class _Dispatch:
    """Dispatch of one scenario: its columns, and the rows over them."""

    program: Program
    data: PlanData
    scenario: Scenario
    slots: Ints
    seconds: Floats
    name: str
    classes: Ints  # [C, 2] (workload, origin) with demand
    arc_class: Ints  # [A] class that an arc answers, -1 without demand
    split: Bools  # [C] the workload shares its demand with others
    demand: Floats  # [C, slots] of the workload, or of all that share it
    missing: Ints  # [C, slots] columns
    flow: Ints  # [A, slots] columns f
    active: Ints  # [P', slots] columns x
    width: Ints  # [P, slots] columns v

    @classmethod
    def of(
        cls, program: Program, data: PlanData, scenario: Scenario, slots: Ints, seconds: Floats, name: str
    ) -> _Dispatch:
        """Add the columns of a scenario."""
        T, demand = len(slots), data.demand[:, :, slots]
        shared = np.zeros(len(demand), dtype=bool)
        if data.choice is not None:
            demand, shared = demand[data.choice.leads()], data.choice.group >= 0
        classes = np.argwhere(demand.max(axis=2, initial=0.0) > 0)
        number = np.full(demand.shape[:2], -1)
        number[tuple(classes.T)] = np.arange(len(classes))
        arc_class = number[data.arc_workload, data.arc_origin]
        usual = np.maximum(demand[data.arc_workload, data.arc_origin], 1e-30)
        flow = program.add_columns(f"{name} f", (len(arc_class), T), where=(arc_class >= 0)[:, None], unit=usual)
        serving = (scenario.capacity > 0)[:, None]
        active = program.add_columns(f"{name} x", (len(scenario.point_pool), T), where=serving)
        training = (program.columns["y"] >= 0) & (scenario.pace > 0)
        mask = np.zeros((len(training), T), dtype=bool)
        if len(data.job_work):
            mask = data.job_window_mask[:, slots][data.point_job]
        width = program.add_columns(f"{name} v", (len(training), T), upper=1.0, where=training[:, None] & mask)
        asked = demand[tuple(classes.T)]
        lacks = scenario.operation is not None and scenario.operation.missing is not None
        usual = np.maximum(asked, 1e-30)
        missing = program.add_columns(f"{name} missing", asked.shape, where=lacks & (asked > 0), unit=usual)
        return cls(
            program,
            data,
            scenario,
            slots,
            seconds,
            name,
            classes,
            arc_class,
            shared[classes[:, 0]],
            asked,
            missing,
            flow,
            active,
            width,
        )

    def add_rows(self) -> None:
        """Add all rows of the scenario."""
        self._add_demand()
        self._add_pools()
        holding, at = np.nonzero(self.data.covers()[:, self.data.slot_window[self.slots]])
        self._add_installed(holding, at)
        self._add_power(holding, at)
        if len(self.scenario.ports):
            self._add_ported()
        self._add_jobs()

    def _grid(self, rows: int) -> Ints:
        """[rows, slots]: row numbers of a block with a row per position and slot."""
        return np.arange(rows * len(self.slots)).reshape(rows, len(self.slots))

    def _add(
        self,
        block: str,
        low: Floats | float,
        high: Floats | float,
        entries: Sequence[tuple[Ints, Ints, Floats]],
        count: int,
    ) -> None:
        """Add rows from entries (row numbers, columns, coefficients), each ravelled."""
        rows, cols, vals = (np.concatenate([entry[k].ravel() for entry in entries]) for k in range(3))
        self.program.add_rows(f"{self.name} {block}", low, high, rows, cols, vals, count=count)

    def costs(self) -> list[tuple[Ints, Ints, Floats]]:
        """List (scenario of prices, columns, costs) of what this dispatch costs; empty where it is not priced."""
        operation = self.scenario.operation
        if operation is None:
            return []
        parts = [(self.flow, operation.arc), (self.active, operation.point)]
        if operation.missing is not None:
            parts.append((self.missing, operation.missing[self.classes[:, 0]]))
        found = []
        for columns, costs in parts:
            there = np.nonzero((columns >= 0) & (costs != 0))
            found.append((np.full(len(there[0]), operation.number), columns[there], costs[there]))
        return found

    def _add_demand(self) -> None:
        """Add `demand`."""
        grid, arcs = self._grid(len(self.classes)), np.flatnonzero(self.arc_class >= 0)
        entries = [
            (grid[self.arc_class[arcs]], self.flow[arcs], np.ones(self.flow[arcs].shape)),
            (grid, self.missing, np.ones(grid.shape)),
        ]
        planned = arcs[self.split[self.arc_class[arcs]]]
        if len(planned):
            before = self.program.columns["f"][planned][:, self.slots]
            entries.append((grid[self.arc_class[planned]], before, -np.ones(before.shape)))
        scaled = (self.data.scaled()[self.classes[:, 0]] > 0) & ~self.split
        if scaled.any():
            factor = np.full(grid[scaled].shape, int(self.program.columns["lambda"].ravel()[0]))
            entries.append((grid[scaled], factor, -self.demand[scaled]))
        floor = np.where((scaled | self.split)[:, None], 0.0, self.demand)
        self._add("demand", floor.ravel(), np.inf, entries, grid.size)

    def _add_pools(self) -> None:
        pools = self._grid(self.data.pools)
        capacity = np.broadcast_to(self.scenario.capacity[:, None], self.active.shape)
        entries = [
            (pools[self.scenario.point_pool], self.active, capacity),
            (pools[self.data.arc_pool], self.flow, -np.ones(self.flow.shape)),
        ]
        self._add("pool", 0.0, np.inf, entries, pools.size)

    def _add_installed(self, holding: Ints, at: Ints) -> None:
        """`holding`, `at`: pairs of a holding and a slot in which it is there."""
        data, scenario = self.data, self.scenario
        job_uses = scenario.pace[data.point_uses[:, 0]] > 0
        point, option = data.point_uses[job_uses].T
        grid = self._grid(len(data.option_site))
        user = scenario.point_uses[:, 0]
        entries = [
            (grid[scenario.point_uses[:, 1]], self.active[user], self._by_slot(scenario.point_systems)),
            (grid[option], self.width[point], self._by_slot(data.point_uses_systems[job_uses])),
            (grid[data.holding_option[holding], at], self.program.columns["n"][holding], -np.ones(len(holding))),
        ]
        self._add("installed", -np.inf, 0.0, entries, grid.size)

    def _add_power(self, holding: Ints, at: Ints) -> None:
        """`holding`, `at`: pairs of a holding and a slot in which it is there."""
        data, scenario = self.data, self.scenario
        site = np.zeros(len(scenario.point_pool), dtype=np.int64)
        site[scenario.point_uses[:, 0]] = data.option_site[scenario.point_uses[:, 1]]
        jobs, grid = np.flatnonzero(scenario.pace > 0), self._grid(data.sites)
        holding_site = data.option_site[data.holding_option[holding]]
        entries = [
            (grid[site], self.active, self._by_slot(scenario.point_power_w)),
            (grid[data.point_site()[jobs]], self.width[jobs], self._by_slot(data.point_power_w[jobs])),
            (grid[holding_site, at], self.program.columns["n"][holding], data.holding_power_w[holding]),
        ]
        limit = data.power_limit()[0][:, data.slot_window[self.slots]]
        self._add("power", -np.inf, limit.ravel(), entries, grid.size)

    def _add_ported(self) -> None:
        data, scenario = self.data, self.scenario
        room = option_upper(data)[:, data.slot_window[self.slots]]  # [K, slots]
        most = np.full(self.active.shape, np.inf)
        user, option = scenario.point_uses.T
        np.minimum.at(most, user, room[option] / np.maximum(scenario.point_systems, 1e-300)[:, None])
        point, group = scenario.ports.T
        row, slot = np.nonzero((self.active[point] >= 0) & (most[point] > 0))
        self.program.add_linking_rows(
            f"{self.name} ported",
            self.active[point[row], slot],
            self.program.columns["port"][group[row]],
            most[point[row], slot],
            np.column_stack([point[row], slot, group[row]]),
        )

    def _add_jobs(self) -> None:
        """Add `width` and `progress`."""
        data = self.data
        point, slot = np.nonzero(self.width >= 0)
        chosen = self.program.columns["y"][point]
        index = np.arange(len(point))[:, None]
        self.program.add_linking_rows(f"{self.name} width", self.width[point, slot], chosen, 1.0, index)
        if len(data.job_work):
            pace = self.scenario.pace[point] * self.seconds[slot]
            work = [(data.point_job[point], self.width[point, slot], pace)]
            self._add("progress", 1.0, np.inf, work, len(data.job_work))

    def _by_slot(self, values: Floats) -> Floats:
        return np.repeat(values[:, None], len(self.slots), axis=1)
