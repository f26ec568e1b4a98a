"""Dispatch the fleet of an answer in every scenario: its fixed parts as data of `solvers.fixed_fleet.redispatch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Floats, Ints, sum_of
from planner.candidates.points import OperatingPoint
from planner.interpret.solution import count_held, standing_points
from planner.problem.derating import scaled
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import (
    BatchCurve,
    Capacities,
    Deployment,
    ScenarioOutcome,
    bought_in,
    curve_of,
    deployments_of,
    is_api,
    layout_key,
    worst_errors,
)
from planner.solving.operation import growth_of, planned_operation, with_apis
from solvers.fixed_fleet.redispatch import FixedFleet, Redispatch
from solvers.model.data import PlanData

if TYPE_CHECKING:
    from planner.solving.variants import Answer

POWER_ROOM_TOL = 1e-6  # relative slack on the power left beside idle systems


def evaluate_fleet(
    answer: Answer,
    scenarios: Scenarios,
    cost: Floats,
    further: Iterable[Deployment] = (),
    capacities: Capacities | None = None,
    slots: Ints | None = None,
) -> ScenarioOutcome:
    """Dispatch the fleet of an answer in each scenario, with what APIs sell.

    `cost` [scenario]: its cost there, operated as predicted. `further`: standby layouts besides those that the answer uses. `slots`: of
    the calendar, for which the slots of the answer's program stand; all if omitted.
    """
    problem = answer.problem
    apis = [d for pool in answer.candidates.pools for d in bought_in(pool, answer.candidates.pools)]
    fleet, deployments, jobs = _fixed_fleet(answer, [*further, *apis])
    if apis:
        every = np.arange(answer.form.data.slots) if slots is None else slots
        fleet = with_apis(fleet, answer, deployments, demand_classes(answer), every)
    program = Redispatch(fleet.without_dominated_slots())
    known = capacities or Capacities(problem, answer.candidates.pools, scenarios)
    capacity = np.array([known.of(deployment) for deployment in deployments]).reshape(-1, scenarios.count)
    rate = np.array([known.rate(point) for point in jobs]).reshape(-1, scenarios.count)
    growth = growth_of(answer, demand_classes(answer), scenarios)
    planned = planned_operation(answer) if apis else 0.0
    undone, operation = [], np.zeros(scenarios.count)
    for s in range(scenarios.count):
        undone.append(program.shortfall(capacity[:, s], rate[:, s]))
        factors = {path: float(values[s]) for path, values in scenarios.prices.items()}
        operation[s] = program.operate(growth[:, s], factors) - planned
    names = tuple(w.name for w in (*problem.serving, *(p.workload for p in jobs)))
    return ScenarioOutcome(names, np.array(undone), cost + operation, problem.budget)


@dataclass(frozen=True, slots=True)
class RoutedFleet:
    """The fleet of an answer with one pool for each class of demand, site and route, at the exact round trip of that route."""

    fleet: FixedFleet
    deployments: tuple[OperatingPoint, ...]
    curves: tuple[BatchCurve | None, ...]  # curve of each deployment, over its batches; None for an API
    points: tuple[tuple[int, float], ...]  # points of the fleet: deployment, and the round trip [s]
    jobs: tuple[OperatingPoint, ...]

    def capacities(self, problem: ResolvedSpec, scenarios: Scenarios) -> Floats:
        """Compute the capacity of each point over the growth of demand, [point, scenario] [request/s]."""
        found = np.zeros((len(self.points), scenarios.count))
        for p, (i, rtt_s) in enumerate(self.points):
            point, curve = self.deployments[i], self.curves[i]
            rate: Floats | float = point.capacity  # what a provider states is no prediction
            if curve is not None:
                errors = worst_errors(scenarios, [use.option.system.chip for use in point.uses])
                rate = curve.capacity(point.serving.spec.limits(), rtt_s, errors)
            grown = scenarios.demand[point.workload.name]
            found[p] = rate if scaled(problem, point.workload.asked) else rate / grown
        return found


def routed_fleet(answer: Answer, reduced: bool = True) -> RoutedFleet:
    """Build the fleet of an answer by route: any deployment of a workload may serve any origin that has a route to its site; `reduced` to the slots
    that no other one dominates."""
    problem, form = answer.problem, answer.form
    fleet, pooled, jobs = _fixed_fleet(answer, ())
    known = {layout_key(deployment.point): deployment.point for deployment in pooled}
    deployments = tuple(known.values())
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    arcs: list[tuple[int, int]] = []
    points: list[tuple[int, float]] = []
    pool_of: list[int] = []
    for c, (w, o) in enumerate(demand_classes(answer)):
        workload = problem.serving[w]
        origin = form.origins[o]
        for site in problem.sites:
            here = [i for i, p in enumerate(deployments) if p.workload is workload and p.site == site.region]
            for route in problem.routes(workload.name, origin, site.region).values() if here else ():
                pool_of += [len(arcs)] * len(here)
                points += [(i, route.rtt_s) for i in here]
                arcs.append((c, len(arcs)))
    serving = [deployments[i] for i, _ in points]
    uses, systems = _uses_of(serving, option_of)
    routed = replace(
        fleet, arcs=np.array(arcs, dtype=np.int64).reshape(-1, 2), pools=len(arcs), point_pool=np.array(pool_of, dtype=np.int64), point_uses=uses,
        point_systems=systems, point_power_w=_power_w(serving), point_site=np.array([site_of[p.site] for p in serving], dtype=np.int64),
    )  # fmt: skip
    curves = tuple(None if is_api(point) else curve_of(problem, point) for point in deployments)
    fixed = routed.without_dominated_slots() if reduced else routed
    return RoutedFleet(fixed, deployments, curves, tuple(points), tuple(jobs))


def _demand(answer: Answer) -> Floats:
    """Return the requests/s [workload, origin, slot] of an answer; workloads that share a demand keep their split."""
    data = answer.form.data
    if data.choice is None:
        return data.demand
    split = np.zeros(data.demand.shape)
    np.add.at(split, (data.arc_workload, data.arc_origin), np.maximum(answer.solution.values["f"], 0.0))
    shared: Floats = np.where((data.choice.group >= 0)[:, None, None], split, data.demand)
    return shared


def demand_classes(answer: Answer) -> list[tuple[int, int]]:
    """List the (workload, origin) with demand that an arc serves, in order."""
    demand = _demand(answer)
    return sorted({(w, o) for w, o, _, _ in answer.form.arcs if demand[w, o].any()})


def _fixed_fleet(
    answer: Answer, further: Iterable[Deployment]
) -> tuple[FixedFleet, list[Deployment], list[OperatingPoint]]:
    """Return (the fleet, its serving deployments, the operating point of each job)."""
    problem, form, values = answer.problem, answer.form, answer.solution.values
    data = form.data
    held = count_held(form, answer.solution, (_bought(data, values["f"]),)) * 1.0
    present = data.covers()[:, data.slot_window]  # [holding, slot]
    count = np.zeros((len(form.fleet_options), data.slots))
    np.add.at(count, data.holding_option, held[:, None] * present)
    idle_w = np.zeros((data.sites, data.slots))
    np.add.at(idle_w, data.option_site[data.holding_option], (held * data.holding_power_w)[:, None] * present)
    factor = float(np.ravel(values["lambda"])[0]) if data.objective.maximises else 1.0
    grows = data.scaled() > 0
    if data.choice is not None:
        grows &= data.choice.group < 0  # a split is planned with the factor
    demand = _demand(answer) * np.where(grows, factor, 1.0)[:, None, None]
    classes = demand_classes(answer)
    number = {c: i for i, c in enumerate(classes)}
    arcs = sorted({(number[w, o], q) for w, o, _, q in form.arcs if (w, o) in number})
    at_work = (values["x"] > 0) & standing_points(form, answer.solution)
    used = [form.points[p] for p in np.flatnonzero((data.point_pool >= 0) & at_work.any(axis=1))]
    known = {
        d.key: d
        for point in (*used, *(d.point for d in further))
        for d in deployments_of(point, answer.candidates.pools)
    }
    deployments = list(known.values())
    serving = [deployment.point for deployment in deployments]
    jobs = [
        form.points[p]
        for j in range(len(data.job_work))
        for p in np.flatnonzero((data.point_job == j) & (values["y"] > 0.5))
    ]
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    point_uses, point_systems = _uses_of(serving, option_of)
    job_uses, job_systems = _uses_of(jobs, option_of)
    fleet = FixedFleet(
        demand=np.array([demand[c] for c in classes]).reshape(-1, data.slots), class_workload=np.array([w for w, _ in classes], dtype=np.int64),
        arcs=np.array(arcs, dtype=np.int64).reshape(-1, 2),
        pools=len(answer.candidates.pools),
        point_pool=np.array([deployment.pool for deployment in deployments], dtype=np.int64), point_uses=point_uses, point_systems=point_systems,
        point_power_w=_power_w(serving), point_site=np.array([site_of[point.site] for point in serving], dtype=np.int64),
        job_uses=job_uses, job_systems=job_systems, job_power_w=_power_w(jobs),
        job_site=np.array([site_of[point.site] for point in jobs], dtype=np.int64),
        job_mask=data.job_window_mask, job_work=data.job_work, option_count=count,
        room_w=data.power_limit()[0][:, data.slot_window] - idle_w + POWER_ROOM_TOL * np.maximum(idle_w, 1.0), seconds=data.slot_hours_s,
        workloads=len(problem.serving),
    )  # fmt: skip
    return fleet, deployments, jobs


def _bought(data: PlanData, flow: Floats) -> Floats:
    """Return the replicas that the flows need where a pool has one point, as pools of APIs have, [point, slot]."""
    into = np.zeros((data.pools, data.slots))
    np.add.at(into, data.arc_pool, flow)
    serving = (data.point_pool >= 0) & (data.point_capacity > 0)
    replicas = np.zeros((len(data.point_pool), data.slots))
    replicas[serving] = into[data.point_pool[serving]] / data.point_capacity[serving, None]
    return replicas


def _uses_of(points: Sequence[OperatingPoint], option_of: dict[int, int]) -> tuple[Ints, Floats]:
    """List rows (point, fleet option) and the systems per replica of each."""
    uses = [(i, option_of[id(use.option)], use.systems) for i, point in enumerate(points) for use in point.uses]
    pairs = np.array([row[:2] for row in uses], dtype=np.int64).reshape(-1, 2)
    return pairs, np.array([row[2] for row in uses], dtype=float)


def _power_w(points: Sequence[OperatingPoint]) -> Floats:
    """Compute the power above idle of one active replica at the meter [W]; a rented system counts nothing."""
    return np.array([sum_of(u.extra_it_w * u.option.pue for u in point.uses if u.option.owned) for point in points])
