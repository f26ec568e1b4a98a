"""How a decided fleet fares in sampled worlds: its layouts stay, batches are chosen anew, and requests go where there is room.

In a world every latency, rate and step time of a point is multiplied by the error of its chips. A point then runs the batch that serves
most within the limits on latency, so it may serve less, or nothing. Prices are those of the world; what is left undone is found by
`solvers.fixed_fleet.redispatch`. Waiting requests, batteries, lines and the spread over zones are not looked at (`left_out`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.candidates.points import OperatingPoint, Pool
from planner.evaluate import disaggregated, serving
from planner.evaluate.serving import BATCHES, QUANTILES
from planner.problem.derating import scaled
from planner.problem.facts import Problem, ServingFacts, SystemFacts
from planner.problem.intervals import SERVING_LABEL, network
from planner.problem.scenarios import SERVING, Scenarios
from planner.spec.slo import LatencyLimit

if TYPE_CHECKING:
    pass

UNDONE = 1e-6  # share of a demand that is a solver's rounding


@dataclass(frozen=True, slots=True)
class Curve:
    """What one replica of a deployment does at each batch, as predicted."""

    rate: np.ndarray  # [batch] requests/s, 0 where it does not fit
    latency: Mapping[str, np.ndarray]  # "ttft.p95" -> [batch] seconds at the site

    def at(self, batch: int) -> float:
        """Requests/s at a batch."""
        return float(self.rate[int(np.searchsorted(BATCHES, batch))])

    def capacity(
        self, limits: Sequence[LatencyLimit], allowance_s: float, errors: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """[world] most requests/s within the limits, under the errors of each world."""
        able = np.broadcast_to(self.rate > 0, (len(errors["throughput"]), len(self.rate))).copy()
        for limit in limits:
            left_s = limit.at_site(allowance_s).seconds
            able &= errors[SERVING_LABEL[limit.metric]][:, None] * self.latency[limit.key] <= left_s * (1 + 1e-9)
        return (able * self.rate).max(axis=1) * errors["throughput"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a fleet fared: `undone` [world, workload] shares of demand or work; `cost` [world]."""

    names: tuple[str, ...]
    undone: np.ndarray
    cost: np.ndarray
    budget: float

    @property
    def kept(self) -> np.ndarray:
        """[world] whether everything that the plan promises holds."""
        return (self.undone <= UNDONE).all(axis=1) & self.affordable

    @property
    def affordable(self) -> np.ndarray:
        return self.cost <= self.budget * (1 + 1e-9)

    @property
    def share(self) -> float:
        return float(self.kept.mean())

    def as_json(self) -> dict[str, Any]:
        return {
            "worlds": len(self.cost),
            "kept": self.share,
            "workloads": {name: float((self.undone[:, i] <= UNDONE).mean()) for i, name in enumerate(self.names)},
            "budget": float(self.affordable.mean()),
            "mean_undone": {name: float(self.undone[:, i].mean()) for i, name in enumerate(self.names)},
            "cost": {
                name: float(np.quantile(self.cost, level))
                for name, level in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95))
            },
        }


def left_out(problem: Problem) -> list[str]:
    """What the spec asks for and sampled worlds do not look at."""
    found = {
        "lines": problem.lines is not None,
        "spread": any(w.spec.spread is not None for w in problem.serving),
        "deferral": any(w.spec.demand.deferral for w in problem.serving),
        "electricity": any(site.electricity is not None for site in problem.sites),
        "preemption": any(job.spec.preemption for job in problem.training),
        "storage": any(math.isfinite(site.storage_bytes_per_s) for site in problem.sites),
    }
    return [name for name, there in found.items() if there]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A layout on fleet options of a site, as the world's batch leaves open: what it can do in each world depends on the pool that it serves."""

    point: OperatingPoint
    pool: int  # its position among the candidates' pools

    @property
    def key(self) -> tuple:
        return (*deployment_of(self.point), self.pool)


class Capacities:
    """What deployments and jobs can do in each world; curves are kept, since one system stands at many sites."""

    def __init__(self, problem: Problem, pools: Sequence[Pool], worlds: Scenarios):
        self.problem, self.pools, self.worlds = problem, pools, worlds
        self._curves: dict[tuple, Curve] = {}
        self._known: dict[tuple, np.ndarray] = {}

    def of(self, deployment: Deployment) -> np.ndarray:
        """[world] requests/s of a replica, over the growth of demand."""
        if deployment.key not in self._known:
            self._known[deployment.key] = self._of(deployment.point, self.pools[deployment.pool].allowance_s)
        return self._known[deployment.key]

    def _of(self, point: OperatingPoint, allowance_s: float) -> np.ndarray:
        system = tuple((use.option.system.name, use.option.scaleout_bytes_per_s) for use in point.uses)
        key = (
            system,
            *((use.role, use.precision, tuple(use.layout.items()), use.workers) for use in point.uses),
            point.workload.name,
            point.power_cap,
        )
        if key not in self._curves:
            self._curves[key] = curve_of(self.problem, point)
        found = self._curves[key].capacity(
            point.workload.spec.slo.limits(),
            allowance_s,
            worst_errors(self.worlds, [use.option.system.chip for use in point.uses]),
        )
        return found if scaled(self.problem, point.workload.name) else found / self.worlds.demand[point.workload.name]

    def rate(self, point: OperatingPoint) -> np.ndarray:
        """[world] tokens/s of a job at full width."""
        chip, label = point.uses[0].option.system.chip, network(point.workload.architecture.experts)
        return point.capacity / self.worlds.training.get((chip, label), np.ones(self.worlds.count))


def worst_errors(worlds: Scenarios, chips: Iterable[str]) -> dict[str, np.ndarray]:
    """Errors of a point, of the worse of its pools where they stand on two kinds of chip."""
    none = {label: np.ones(worlds.count) for label in SERVING}
    found = [worlds.serving.get(chip, none) for chip in chips]
    worst = {label: np.max([errors[label] for errors in found], axis=0) for label in ("tpot", "ttft")}
    return worst | {"throughput": np.min([errors["throughput"] for errors in found], axis=0)}


def deployment_of(point: OperatingPoint) -> tuple:
    """What stays of a point in all worlds: all but its batch and its pool."""
    uses = ((id(use.option), use.role, use.precision, tuple(use.layout.items()), use.workers) for use in point.uses)
    return (point.workload.name, point.power_cap, *uses)


def deployments_of(point: OperatingPoint, pools: Sequence[Pool]) -> list[Deployment]:
    """The layout of a point for all pools of its workload at its site."""
    return [
        Deployment(point, q)
        for q, pool in enumerate(pools)
        if pool.workload is point.workload and pool.site == point.site
    ]


def curve_of(problem: Problem, point: OperatingPoint) -> Curve:
    """The deployment of a point at every batch."""
    uses = [
        (use.option.system, use.option.scaleout_bytes_per_s, use.precision, use.layout, use.workers)
        for use in point.uses
    ]
    plain = curve_at(problem, point.workload, uses, 1.0)
    speed = point.capacity / plain.at(point.uses[-1].batch) if point.power_cap is not None else 1.0
    return plain if speed == 1.0 else curve_at(problem, point.workload, uses, speed)


Layout = tuple[SystemFacts, float, str, Mapping[str, int], int]  # system, bytes/s beyond it, precision, layout, workers


def curve_at(problem: Problem, workload: ServingFacts, uses: Sequence[Layout], speed: float) -> Curve:
    """What a layout, in one pool or in two, does at every batch; `speed`: below 1 under a power cap."""
    systems, scaleouts, precisions, sizes, workers = zip(*uses, strict=True)
    layouts, constants = tuple(ServingLayouts(**size) for size in sizes), problem.constants.serving
    if len(uses) == 1:
        found = serving.evaluate(workload, systems[0], scaleouts[0], layouts[0], BATCHES, precisions[0], constants)
    else:
        found = disaggregated.evaluate(
            workload, systems, scaleouts, layouts, BATCHES, workers, precisions[0], constants
        ).point
    shape = BATCHES.shape
    fits = np.broadcast_to(found.fits, shape) & np.isfinite(np.broadcast_to(found.ttft_s, shape))
    rate = np.where(fits, np.broadcast_to(found.requests_per_s, shape), 0.0)
    slow = {
        limit.key: np.where(
            fits, np.broadcast_to(latency_s(found, limit.metric, QUANTILES[limit.percentile]), shape), np.inf
        )
        for limit in workload.spec.slo.limits()
    }
    return Curve(rate * speed, {name: seconds / speed for name, seconds in slow.items()})
