"""What a robust plan holds fixed in every scenario."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.points import OperatingPoint
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import Capacities, Deployment, Outcome, deployments_of
from solvers.fixed_fleet.redispatch import FixedFleet, Redispatch

if TYPE_CHECKING:
    from planner.solving.variants import Answer


def fared(
    answer: Answer,
    worlds: Scenarios,
    cost: np.ndarray,
    further: Iterable[Deployment] = (),
    capacities: Capacities | None = None,
) -> Outcome:
    """How the fleet of an answer fares in each world; `cost` [world]: what it costs there; `further`: layouts besides those at work."""
    problem = answer.problem
    fleet, deployments, jobs = _held(answer, further)
    program, known = (
        Redispatch(fleet.without_dominated_slots()),
        capacities or Capacities(problem, answer.candidates.pools, worlds),
    )
    capacity = np.array([known.of(deployment) for deployment in deployments]).reshape(-1, worlds.count)
    rate = np.array([known.rate(point) for point in jobs]).reshape(-1, worlds.count)
    undone = np.array([program.shortfall(capacity[:, s], rate[:, s]) for s in range(worlds.count)])
    return Outcome(tuple(w.name for w in (*problem.serving, *(p.workload for p in jobs))), undone, cost, problem.budget)


def _held(answer: Answer, further: Iterable[Deployment]) -> tuple[FixedFleet, list[Deployment], list[OperatingPoint]]:
    """(the fleet, its serving deployments, the point of each job)."""
    problem, form, values = answer.problem, answer.form, answer.solution.values
    data = form.data
    held = np.rint(values["n"]) * 1.0
    present = data.covers()[:, data.slot_window]  # [holding, slot]
    count = np.zeros((len(form.fleet_options), data.slots))
    np.add.at(count, data.holding_option, held[:, None] * present)
    idle_w = np.zeros((data.sites, data.slots))
    np.add.at(idle_w, data.option_site[data.holding_option], (held * data.holding_power_w)[:, None] * present)
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    factor = float(np.ravel(values["lambda"])[0]) if data.objective.maximises else 1.0
    demand = data.demand * np.where(data.scaled() > 0, factor, 1.0)[:, None, None]
    classes = sorted({(w, o) for w, o, _, _ in form.arcs if demand[w, o].any()})
    number = {c: i for i, c in enumerate(classes)}
    arcs = sorted({(number[w, o], q) for w, o, _, q in form.arcs if (w, o) in number})
    used = [form.points[p] for p in np.flatnonzero((data.point_pool >= 0) & (values["x"].max(axis=1, initial=0.0) > 0))]
    known = {
        d.key: d
        for point in (*used, *(d.point for d in further))
        for d in deployments_of(point, answer.candidates.pools)
    }
    points = list(known.values())
    jobs = [
        form.points[p]
        for j in range(len(data.job_work))
        for p in np.flatnonzero((data.point_job == j) & (values["y"] > 0.5))
    ]
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    uses = lambda some: [
        (i, option_of[id(use.option)], use.systems) for i, point in enumerate(some) for use in point.uses
    ]
    power = lambda some: np.array(
        [sum(u.extra_it_w * u.option.site.pue for u in point.uses if u.option.owned) for point in some]
    )
    sites = lambda some: np.array([site_of[point.site] for point in some], dtype=np.int64)
    pairs = lambda table: np.array([row[:2] for row in table], dtype=np.int64).reshape(-1, 2)
    each = lambda table: np.array([row[2] for row in table], dtype=float)
    serving = [deployment.point for deployment in points]
    fleet = FixedFleet(
        demand=np.array([demand[c] for c in classes]).reshape(-1, data.slots), class_workload=np.array([w for w, _ in classes], dtype=np.int64),
        arcs=np.array(arcs, dtype=np.int64).reshape(-1, 2),
        pools=len(answer.candidates.pools),
        point_pool=np.array([deployment.pool for deployment in points], dtype=np.int64), point_uses=pairs(uses(serving)), point_systems=each(uses(serving)),
        point_power_w=power(serving), point_site=sites(serving), job_uses=pairs(uses(jobs)), job_systems=each(uses(jobs)), job_power_w=power(jobs),
        job_site=sites(jobs), job_mask=data.job_window_mask, job_work=data.job_work, option_count=count,
        room_w=data.power_limit()[0][:, data.slot_window] - idle_w + 1e-6 * np.maximum(idle_w, 1.0), seconds=data.slot_hours_s, workloads=len(problem.serving),
    )  # fmt: skip
    return fleet, points, jobs
