"""Solve a joint program by decomposition, in and out in SI: scale it, search, and return the plan as blocks of values with duals.

Covered are fleets, fabrics, sites, hosting, routing and jobs at minimum cost. Rack positions and limits on first-stage cost, such as
capital, are rows of the first stage. Not covered is what ties slots together otherwise: electricity contracts, lines, spread, deferral,
limits on the cost of slots; nor porting, the cost of preemption, and storage (see `solvers.decomposition.coverage`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvers.arrays import Floats, Functionals, Ints
from solvers.backends import subprocess_mip
from solvers.backends.highs import set_threads
from solvers.decomposition import cheap_hosting, integer_recovery, limit_duals
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.reformulation import Reformulation, build_first_stage
from solvers.decomposition.search import run_search
from solvers.decomposition.slots import SlotView
from solvers.interface import Options, ProgressReporter, SolverError
from solvers.model.data import PlanData
from solvers.model.routing import arc_most
from solvers.model.schedule import can_finish
from solvers.program import Program

RESERVED_TIME_SHARE = 0.04  # share of the time limit kept for turning the solution into a plan
BOUND_ROUNDING = 1e-9  # relative rounding error of the bound, by which it is lowered
BOUND_EXCESS_TOL = 1e-5  # how far, relative to the objective, the bound may exceed it: rows hold to a tolerance


@dataclass(frozen=True, slots=True)
class DecompositionResult:
    """Plan, bound and duals, in SI, with the size of the full program.

    `value` is recomputed from the values; `bound` holds for the full problem. Duals as in `limit_duals.py`: `row_duals` with the fleet
    fixed, `relaxed_duals` of the LP relaxation, which prove `relaxed_bound` alone."""

    rows: int
    columns: int
    integers: int
    bound: float | None = None
    value: float | None = None
    values: Mapping[str, Floats] = field(default_factory=dict)
    functionals: Mapping[str, float] = field(default_factory=dict)
    row_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    relaxed_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    relaxed_bound: float | None = None


def solve(data: PlanData, options: Options, build: Callable[[PlanData], Program]) -> DecompositionResult:
    """Search for a plan and its bound; the result has no values where none was found."""
    begin = time.perf_counter()

    def seconds_left() -> float:
        return options.left_s(begin)

    set_threads(options.threads)
    subprocess_mip.start_process()
    units = Units.of(data, data.objective.functional)
    progress = ProgressReporter(options.progress or (lambda line: None), 1 / units.cost)
    one = _one_window(units.scaled(data))
    # chunks of slots run in parallel, each with one BLAS thread, since their products are small
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(options.threads) as pool:
        parallel_map: Callable[..., Iterable[Any]] = pool.map if options.threads > 1 else map

        def reformulation(part: PlanData) -> Reformulation:
            return Reformulation(
                part,
                data.objective.functional,
                build,
                options.threads,
                progress,
                lambda: options.noted(seconds_left() - RESERVED_TIME_SHARE * options.time_limit_s),
                parallel_map,
            )

        light = cheap_hosting.without_hosting_cost(one)
        dec = reformulation(light)
        trivial_bound = dec.trivial_bound()
        if (
            light is not one
            and cheap_hosting.max_hosting_cost(one) > cheap_hosting.MAX_SHARE_OF_GAP * options.gap * trivial_bound
        ):
            dec, light = reformulation(one), one
        rows, columns, integers = sizes(dec, data, build)
        result = run_search(
            dec,
            options,
            dec.seconds_left,
            cheap_hosting.OmittedCost.none(one) if light is one else cheap_hosting.OmittedCost.of(one),
        )
    plan = result.plan
    bound = result.lower_bound / units.cost
    bound -= BOUND_ROUNDING * abs(bound)
    dispatch = None if plan is None else integer_recovery.solve_slots(plan)
    if plan is None or dispatch is None:
        return DecompositionResult(rows, columns, integers, bound if np.isfinite(bound) else None)
    answer, flows, replicas = dispatch
    values = _values(dec, data, units, plan, flows, replicas)
    functionals = {name: total(data, values, name) for name in data.functionals()}
    value = functionals[data.objective.functional]
    if bound - value > BOUND_EXCESS_TOL * max(abs(value), 1.0 / units.cost):
        raise SolverError(f"the bound {bound} lies beyond the value {value} of a solution")
    if result.duals is None:
        raise SolverError("a plan was found without duals of the LP relaxation")
    relaxed = _relaxed(dec, data, units, result.duals, values)
    first_stage_rows = [block for block in limit_duals.FIRST_STAGE_LIMITS if block in relaxed]
    fixed_fleet: limit_duals.RowDuals = {
        block: (relaxed[block][0], np.zeros(len(relaxed[block][0]))) for block in first_stage_rows
    }
    if not len(data.job_work):  # a job would spread a change over several slots
        fixed_fleet |= _duals(data, units, answer.sigma.T, answer.delta.T)
    return DecompositionResult(
        rows,
        columns,
        integers,
        min(bound, value),
        value,
        values,
        functionals,
        fixed_fleet,
        relaxed,
        min(result.relaxation_bound / units.cost, bound, value),
    )


def _one_window(data: PlanData) -> PlanData:
    """Merge the windows into one where every holding covers all of them: plans stay the same, and the relaxation is tighter."""
    if data.power_stages is not None or not data.covers().all():
        return data
    least = data.least_fleet
    return replace(
        data,
        least_fleet=None if least is None else replace(least, window=np.zeros_like(least.window)),
        slot_window=np.zeros(data.slots, dtype=np.int64),
        holding_window=np.full(len(data.holding_option), -1),
        holding_last=None,
    )


# -- scaling: numbers near 1 ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Units:
    """Scale factors (powers of two) from SI to the units of the search, for money, watts, and requests/s of each workload and pool."""

    functional: str
    cost: float
    watt: float
    workload: Floats  # [W]
    pool: Floats  # [Q]

    @classmethod
    def of(cls, data: PlanData, functional: str) -> Units:
        """Choose factors that bring the median power and rate of a replica, and the median cost of a system in a slot, near 1."""
        serving = (data.point_pool >= 0) & (data.point_capacity > 0)
        pool, workload = np.ones(data.pools), np.ones(data.demand.shape[0])
        rate = data.point_capacity[serving]
        if rate.size:
            workload[:] = pool[:] = _factor(rate)
            workloads_of_pool = [np.unique(data.arc_workload[data.arc_pool == q]) for q in range(data.pools)]
            if all(len(mine) < 2 for mine in workloads_of_pool):
                for w in range(len(workload)):
                    mine = np.array([q for q in range(data.pools) if w in workloads_of_pool[q]], dtype=np.int64)
                    rates = data.point_capacity[serving & np.isin(data.point_pool, mine)]
                    if rates.size:
                        workload[w] = pool[mine] = _factor(rates)
        cost = [
            np.abs(part.get(functional, np.zeros(0)))
            for part in (data.holding_cost, data.site_fixed, data.host_cost, data.edge_cost)
        ]
        cost += [
            np.abs(part[functional]).sum(axis=1) for part in (data.point_cost, data.arc_cost) if functional in part
        ]
        dear = next((values for values in cost if (values > 0).any()), np.ones(1))
        return cls(
            functional,
            _factor(dear) * data.slots,
            _factor(np.concatenate([data.point_power_w, data.holding_power_w])),
            workload,
            pool,
        )

    def sizes(self, data: PlanData) -> dict[str, float]:
        """Return the factor of each limited functional and of the objective."""
        return {
            limit.functional: _factor(np.array([limit.upper])) for limit in data.limits if np.isfinite(limit.upper)
        } | {self.functional: self.cost}

    def scaled(self, data: PlanData) -> PlanData:
        """Scale the data; keep the functional of the objective, and limited first-stage functionals scaled by their limits."""
        size = self.sizes(data)

        def only(part: Functionals, unit: float | Floats) -> dict[str, Floats]:
            return {name: values * (self.cost * unit) for name, values in part.items() if name == self.functional}

        def once(part: Functionals) -> dict[str, Floats]:
            return {name: values * size[name] for name, values in part.items() if name in size}

        requests = np.where(data.point_pool >= 0, self.pool[np.maximum(data.point_pool, 0)] if data.pools else 1.0, 1.0)
        return replace(
            data, site_power_limit_w=data.site_power_limit_w * self.watt, holding_power_w=data.holding_power_w * self.watt,
            power_stages=None if (stages := data.power_stages) is None else replace(stages, limit_w=stages.limit_w * self.watt),
            point_power_w=data.point_power_w * self.watt, point_capacity=data.point_capacity * requests,
            demand=data.demand * self.workload[:, None, None],
            arc_cost=only(data.arc_cost, 1.0 / self.workload[data.arc_workload][:, None]),
            site_fixed=once(data.site_fixed), holding_cost=once(data.holding_cost), point_cost=only(data.point_cost, 1.0),
            host_cost=once(data.host_cost), edge_cost=once(data.edge_cost),
            limits=tuple(replace(limit, upper=limit.upper * size[limit.functional]) for limit in data.limits if limit.functional in size),
        )  # fmt: skip


def _factor(values: Floats) -> float:
    """Return the power of two that brings the median of the positive values near 1."""
    there = values[values > 0]
    return float(np.exp2(-np.round(np.log2(np.median(there))))) if there.size else 1.0


# -- the plan in blocks ------------------------------------------------------------------------------------------------


def _values(
    dec: Reformulation, data: PlanData, units: Units, plan: integer_recovery.Incumbent, flows: Floats, replicas: Floats
) -> dict[str, Floats]:
    """Return the values of all blocks of the full program, in SI."""
    model = plan.model
    first_stage = map_columns(model.master.first_stage, dec.first_stage, plan.point.first_stage)
    padded = np.append(first_stage, 0.0)
    values = {block: padded[index] for block, index in dec.first_stage.columns.items()}
    values["f"] = np.maximum(flows, 0.0) / units.workload[data.arc_workload][:, None]
    values["x"] = np.zeros((len(data.point_pool), data.slots))
    values["v"] = np.zeros((len(data.point_pool), data.slots))
    values["x"][model.subproblems.points] = np.maximum(replicas, 0.0)
    values["lambda"] = np.zeros(())
    if not (dec.first_stage.columns["host"] >= 0).any():  # hosting was left out of the search
        values["host"], values["edge"] = cheap_hosting.place_hosting(data, values["f"])
    values["v"][model.master.placements] = plan.point.running
    if dec.data.windows != data.windows:  # the search merged them
        run = np.zeros((len(data.point_pool), data.windows))
        several = np.zeros_like(
            run
        )  # as in `solvers/model/schedule.py`: a column where a job may run in several windows
        np.logical_or.at(
            several.T,
            data.slot_window,
            data.job_window_mask[np.maximum(data.point_job, 0)].T
            if len(data.job_work)
            else np.zeros((data.slots, 1), dtype=bool),
        )
        np.maximum.at(run.T, data.slot_window, (values["v"] > 0).T)
        values["run"] = run * (several.sum(axis=1, keepdims=True) > 1)
    return values


def _duals(data: PlanData, units: Units, sigma: Floats, delta: Floats) -> limit_duals.RowDuals:
    """Turn scaled duals of power `sigma` and demand `delta` into the duals of the rows, in SI."""
    return limit_duals.slot_row_duals(data, sigma, delta, units.watt / units.cost, units.workload / units.cost)


def _relaxed(
    dec: Reformulation, data: PlanData, units: Units, duals: Duals, values: Mapping[str, Floats]
) -> limit_duals.RowDuals:
    """Return the duals of the LP relaxation by block, in SI, with limits numbered as in the data."""
    completed, once = limit_duals.relaxation_duals(dec, duals, values)
    found = _duals(data, units, completed.sigma, completed.delta)
    for block in ("supply", "racks"):
        if block in once:
            index, row_duals = once[block]
            found[block] = index, row_duals / units.cost
    if "limit" in once:
        size = units.sizes(data)
        known = np.array([i for i, limit in enumerate(data.limits) if limit.functional in size])
        factors = np.array([size[limit.functional] for limit in dec.data.limits])
        index, row_duals = once["limit"]
        found["limit"] = known[index], row_duals * factors[index[:, 0]] / units.cost
    return found


def total(data: PlanData, values: Mapping[str, Floats], name: str) -> float:
    """Compute a functional from the values of a plan."""
    parts = (
        (data.site_fixed, "open"),
        (data.holding_cost, "n"),
        (data.arc_cost, "f"),
        (data.host_cost, "host"),
        (data.edge_cost, "edge"),
    )
    result = math.fsum(float((part[name] * values[block]).sum()) for part, block in parts if name in part)
    if name in data.point_cost:
        result += float((data.point_cost[name] * values["x"]).sum() + (data.point_cost[name] * values["v"]).sum())
    return result


# -- the size of the full program --------------------------------------------------------------------------------------


def sizes(dec: Reformulation, data: PlanData, build: Callable[[PlanData], Program]) -> tuple[int, int, int]:
    """Count (rows, columns, integers) of the full program without building it."""
    view: SlotView = dec.view
    once = build_first_stage(data, view, data.objective.functional, build)
    flow_upper = arc_most(data)
    serving = (data.point_pool >= 0) & (data.point_capacity > 0)
    filled = np.bincount(data.point_pool[serving], minlength=data.pools) > 0
    flow = (flow_upper > 0) & (filled[data.arc_pool][:, None] if len(data.arc_pool) else True)
    served = np.zeros((data.pools + 1, data.slots), dtype=bool)
    np.logical_or.at(served, data.arc_pool, flow_upper > 0)
    active = serving[:, None] & served[data.point_pool] & ~view.dominated
    job = np.maximum(data.point_job, 0)
    mask = data.job_window_mask if len(data.job_work) else np.zeros((1, data.slots), dtype=bool)
    share = can_finish(data)[:, None] & mask[job]
    used = np.zeros((data.pools, data.slots), dtype=bool)
    arc, at = np.nonzero(flow)
    used[data.arc_pool[arc], at] = True
    fleet_options = np.zeros((len(data.option_site), data.slots), dtype=bool)
    np.logical_or.at(fleet_options, view.use_option, (active | share)[view.use_point])
    gated = once.arc_gate >= 0
    ends = np.column_stack([data.arc_workload, data.arc_origin, data.arc_site])
    _, way = np.unique(ends, axis=0, return_inverse=True) if len(ends) else (None, np.zeros(0, dtype=np.int64))
    hosted = (
        np.unique(way.reshape(-1)[arc] * data.slots + at if len(arc) else at)[
            switchable_ways(way, gated, arc, at, data.slots)
        ]
        if len(arc)
        else at
    )
    rows = (
        len(once.keys)
        + int((data.demand > 0).sum() + used.sum() + fleet_options.sum() + share.sum())
        + int(can_finish(data).sum())
    )
    rows += len(hosted) + int(np.isfinite(data.power_limit()[0][:, data.slot_window]).sum())
    columns = once.size + int(flow.sum() + active.sum() + share.sum())
    return rows, columns, int(once.integer.sum())


def switchable_ways(way: Ints, gated: np.ndarray, arc: Ints, at: Ints, slots: int) -> np.ndarray:
    """Mark the ways in a slot that have a gate."""
    key = way.reshape(-1)[arc] * slots + at
    _, first = np.unique(key, return_index=True)
    return gated[arc[first]]
