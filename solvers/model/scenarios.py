"""Scenarios that the fleet must be able to carry: in each, capacities and rates of its own, and a dispatch of its own at no cost.

Sets        scenarios s, and in each: points p of a pool, arcs a, fleet options k, sites r, jobs j with their points, slots t of a few.
Data        demand_{c,t}, uses_{p,k}; in each scenario capacity_p (over the growth of demand) and pace_p, the share of its work that a job
            does per second at full width.
Variables   f_{s,a,t}, x_{s,p,t}, v_{s,p,t}: as in the routing and the schedule, for each scenario
Constraints demand     sum_{a of c} f_{s,a,t} >= demand_{c,t} (times the factor on demand where that is asked for)
            pool       sum_{p of q} capacity_{s,p} x_{s,p,t} >= sum_{a to q} f_{s,a,t}
            installed  sum_p uses_{p,k} x_{s,p,t} + sum_p uses_{p,k} v_{s,p,t} <= sum_{u of k, u covers w(t)} n_u
            power      sum_u power_u n_u + sum_p power_p x_{s,p,t} + sum_p power_p v_{s,p,t} <= limit_r
            width      v_{s,p,t} <= y_p
            progress   sum_{p of j, t} seconds_t pace_{s,p} v_{s,p,t} >= 1
            risk       sum_u cost_{s,u} n_u <= e + z_s, with e + sum z_s / ((1 - share) S) as cost of the fleet, where that is asked for
What holds in all scenarios at once is a fleet chosen before, a dispatch after it is known which scenario has come.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.data import COST, PlanData
from solvers.model.scenario_data import Risk, Scenario, ScenarioData
from solvers.program import Program


def add_scenarios(program: Program, data: PlanData, blocks: ScenarioData) -> None:
    """Columns and rows of every scenario, and of the cost of the fleet over the dearest prices."""
    if blocks.risk is not None:
        _add_risk(program, blocks.risk)
    for number, scenario in enumerate(blocks.scenarios):
        _add(program, data, scenario, blocks.slots, blocks.seconds, f"scenario {number}")


def _add_risk(program: Program, risk: Risk) -> None:
    """Mean cost over the dearest scenarios:  min e + sum_s z_s / ((1 - share) S),  z_s >= cost_s - e,  z_s >= 0 (Rockafellar and Uryasev)."""
    count, held = len(risk.cost), program.columns["n"]
    usual = max(float(risk.cost.max(initial=0.0)), 1.0)
    quantile = program.add_columns("quantile", (1,), cost={COST: 1.0}, unit=usual)
    beyond = program.add_columns("beyond", (count,), cost={COST: 1.0 / ((1.0 - risk.share) * count)}, unit=usual)
    row, holding = np.nonzero(risk.cost)
    program.add_rows(
        "risk", -np.inf, 0.0, np.concatenate([row, np.tile(np.arange(count), 2)]),
        np.concatenate([held[holding], np.repeat(quantile, count), beyond]),
        np.concatenate([risk.cost[row, holding], -np.ones(2 * count)]), count=count,
    )  # fmt: skip


def _add(program: Program, data: PlanData, scenario: Scenario, slots: Ints, seconds: Floats, name: str) -> None:
    T, columns = len(slots), program.columns
    demand = data.demand[:, :, slots]
    asked = np.argwhere(demand.max(axis=2, initial=0.0) > 0)
    number = np.full(demand.shape[:2], -1)
    number[tuple(asked.T)] = np.arange(len(asked))
    arc_class = number[data.arc_workload, data.arc_origin]
    usual = np.maximum(demand[data.arc_workload, data.arc_origin], 1e-30)
    f = program.add_columns(f"{name} f", (len(arc_class), T), where=(arc_class >= 0)[:, None], unit=usual)
    able = (scenario.capacity > 0)[:, None]
    x = program.add_columns(f"{name} x", (len(scenario.point_pool), T), where=able)
    can = (columns["y"] >= 0) & (scenario.pace > 0)
    mask = data.job_window_mask[:, slots][data.point_job] if len(data.job_work) else np.zeros((len(can), T), dtype=bool)
    v = program.add_columns(f"{name} v", (len(can), T), upper=1.0, where=can[:, None] & mask)

    wanted = demand[tuple(asked.T)]  # [C, T]
    grid = np.arange(wanted.size).reshape(wanted.shape)
    arcs = np.flatnonzero(arc_class >= 0)
    rows, cols, values = [grid[arc_class[arcs]].ravel()], [f[arcs].ravel()], [np.ones(f[arcs].size)]
    scaled = data.scaled()[asked[:, 0]] > 0
    if scaled.any():
        rows.append(grid[scaled].ravel())
        cols.append(np.full(grid[scaled].size, int(columns["lambda"].ravel()[0])))
        values.append(-wanted[scaled].ravel())
    floor = np.where(scaled[:, None], 0.0, wanted)
    program.add_rows(
        f"{name} demand",
        floor.ravel(),
        np.inf,
        np.concatenate(rows),
        np.concatenate(cols),
        np.concatenate(values),
        count=wanted.size,
    )

    pools = np.arange(data.pools * T).reshape(data.pools, T)
    program.add_rows(
        f"{name} pool", 0.0, np.inf, np.concatenate([pools[scenario.point_pool].ravel(), pools[data.arc_pool].ravel()]), np.concatenate([x.ravel(), f.ravel()]),
        np.concatenate([np.repeat(scenario.capacity, T), -np.ones(f.size)]), count=pools.size,
    )  # fmt: skip

    job_uses = scenario.pace[data.point_uses[:, 0]] > 0
    point, option = data.point_uses[job_uses].T
    present = data.covers()[:, data.slot_window[slots]]  # [U, T]
    holding, at = np.nonzero(present)
    K = len(data.option_site)
    fleet_options = np.arange(K * T).reshape(K, T)
    program.add_rows(
        f"{name} installed", -np.inf, 0.0,
        np.concatenate([fleet_options[scenario.point_uses[:, 1]].ravel(), fleet_options[option].ravel(), fleet_options[data.holding_option[holding], at]]),
        np.concatenate([x[scenario.point_uses[:, 0]].ravel(), v[point].ravel(), columns["n"][holding]]),
        np.concatenate([np.repeat(scenario.point_systems, T), np.repeat(data.point_uses_systems[job_uses], T), -np.ones(len(holding))]), count=fleet_options.size,
    )  # fmt: skip

    site = np.zeros(len(scenario.point_pool), dtype=np.int64)
    site[scenario.point_uses[:, 0]] = data.option_site[scenario.point_uses[:, 1]]
    jobs = np.flatnonzero(scenario.pace > 0)
    places = np.arange(data.sites * T).reshape(data.sites, T)
    program.add_rows(
        f"{name} power", -np.inf, data.power_limit()[0][:, data.slot_window[slots]].ravel(),
        np.concatenate([places[site].ravel(), places[data.point_site()[jobs]].ravel(), places[data.option_site[data.holding_option[holding]], at]]),
        np.concatenate([x.ravel(), v[jobs].ravel(), columns["n"][holding]]),
        np.concatenate([np.repeat(scenario.point_power_w, T), np.repeat(data.point_power_w[jobs], T), data.holding_power_w[holding]]), count=places.size,
    )  # fmt: skip

    width, slot = np.nonzero(v >= 0)
    row = np.arange(len(width))
    program.add_rows(
        f"{name} width",
        -np.inf,
        0.0,
        np.tile(row, 2),
        np.concatenate([v[width, slot], columns["y"][width]]),
        np.concatenate([np.ones(len(row)), -np.ones(len(row))]),
        count=len(row),
    )
    if len(data.job_work):
        program.add_rows(
            f"{name} progress",
            1.0,
            np.inf,
            data.point_job[width],
            v[width, slot],
            scenario.pace[width] * seconds[slot],
            count=len(data.job_work),
        )
