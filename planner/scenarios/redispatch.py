"""Evaluate a fixed fleet in sampled scenarios: layouts stay; batches and routes are chosen again.

A scenario multiplies every latency, rate and step time of an operating point by the error of its chips. The point then runs the batch
of the largest throughput within the latency limits, so it may serve less, or nothing. Prices are the scenario's;
`solvers.fixed_fleet.redispatch` finds the share of demand left unserved. Features not modelled here are listed by `left_out`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Bools, Floats
from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.candidates.points import ENCODE, OperatingPoint, Pool
from planner.evaluate import disaggregated, serving
from planner.evaluate.serving import QUANTILES, batch_grid
from planner.plan.rows.robust import Outcome
from planner.problem.derating import scaled
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ScaleOut, ServingFacts, SystemFacts
from planner.problem.intervals import SERVING_LABEL, network
from planner.problem.phases import API
from planner.problem.scenarios import SERVING, Scenarios
from planner.spec.slo import LatencyLimit

DELIVERIES = "late deliveries"
UNDONE_TOL = 1e-6  # share of a demand or of a job's work; less counts as solver rounding
LATENCY_TOL = 1e-9  # relative
BUDGET_TOL = 1e-9  # relative


@dataclass(frozen=True, slots=True)
class BatchCurve:
    """Predicted throughput and latencies of one replica of a deployment at each batch of the grid of its layout."""

    batches: Floats  # [batch]
    rate: Floats  # [batch] requests/s, 0 where it does not fit
    latency: Mapping[str, Floats]  # "ttft.p95" -> [batch] seconds at the site

    def at(self, batch: int) -> float:
        """Look up the throughput at a batch [request/s]."""
        return float(self.rate[int(np.searchsorted(self.batches, batch))])

    def capacity(self, limits: Sequence[LatencyLimit], allowance_s: float, errors: Mapping[str, Floats]) -> Floats:
        """Compute the largest throughput within the latency limits under the errors of each scenario, [scenario] [request/s]."""
        able = np.broadcast_to(self.rate > 0, (len(errors["throughput"]), len(self.rate))).copy()
        for limit in limits:
            left_s = limit.at_site(allowance_s).seconds
            able &= errors[SERVING_LABEL[limit.metric]][:, None] * self.latency[limit.key] <= left_s * (1 + LATENCY_TOL)
        best: Floats = (able * self.rate).max(axis=1)
        return best * errors["throughput"]


Curves = dict[tuple[Any, ...], BatchCurve]


@dataclass(frozen=True, slots=True)
class ScenarioOutcome:
    """Outcome of a fleet by scenario."""

    names: tuple[str, ...]
    undone: Floats  # [scenario, workload] share of demand or work that is not done
    cost: Floats  # [scenario]
    budget: float

    @property
    def kept(self) -> Bools:
        """Tell for each scenario whether the plan keeps all its promises."""
        return (self.undone <= UNDONE_TOL).all(axis=1) & self.affordable

    @property
    def affordable(self) -> Bools:
        """Tell for each scenario whether the cost is within the budget."""
        return self.cost <= self.budget * (1 + BUDGET_TOL)

    @property
    def share(self) -> float:
        """Compute the share of scenarios in which the plan keeps all its promises."""
        return float(self.kept.mean())

    def as_json(self) -> Outcome:
        """Write the outcome as a row of the section `robustness`."""
        return {
            "scenarios": len(self.cost),
            "kept": self.share,
            "workloads": {name: float((self.undone[:, i] <= UNDONE_TOL).mean()) for i, name in enumerate(self.names)},
            "budget": float(self.affordable.mean()),
            "mean_undone": {name: float(self.undone[:, i].mean()) for i, name in enumerate(self.names)},
            "cost": {
                name: float(np.quantile(self.cost, level))
                for name, level in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95))
            },
        }


def left_out(problem: ResolvedSpec, pauses: bool = False) -> list[str]:
    """List the features of the spec that the evaluation in scenarios does not model; `pauses`: whether rates of jobs are net of them."""
    found = {
        "lines": problem.lines is not None,
        "spread": any(w.spec.spread is not None for w in problem.serving),
        "deferral": any(w.spec.demand.deferral for w in problem.serving),
        "electricity": any(site.electricity is not None for site in problem.sites),
        "preemption": not pauses and any(job.spec.preemption for job in problem.training),
        "choice of architectures": any(len(facts.scores) > 1 for facts in problem.quality),
        "sessions": any(w.spec.session is not None for w in problem.serving),
        "classes of requests": any(w.spec.classes is not None for w in problem.serving),
        "storage": any(math.isfinite(site.storage_bytes_per_s) for site in problem.sites),
        DELIVERIES: any(offer.is_late for offer in problem.offers),
    }
    return [name for name, asked in found.items() if asked]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A layout on fleet options of a site that serves one pool; its batch is chosen in each scenario."""

    point: OperatingPoint
    pool: int  # position among the candidates' pools

    @property
    def key(self) -> tuple[Any, ...]:
        """Identify the deployment, whatever the batch of its point."""
        return (*layout_key(self.point), self.pool)


class Capacities:
    """Capacities of deployments and jobs by scenario; curves are cached, since the same system stands at many sites.

    `curves`: a cache that further scenarios of the same problem share.
    """

    def __init__(
        self, problem: ResolvedSpec, pools: Sequence[Pool], scenarios: Scenarios, curves: Curves | None = None
    ):
        self.problem, self.pools, self.scenarios = problem, pools, scenarios
        self._curves: Curves = {} if curves is None else curves
        self._known: dict[tuple[Any, ...], Floats] = {}

    def of(self, deployment: Deployment) -> Floats:
        """Compute the capacity of a replica, divided by the growth of demand, [scenario] [request/s]."""
        if deployment.key not in self._known:
            self._known[deployment.key] = self._of(deployment.point, self.pools[deployment.pool].allowance_s)
        return self._known[deployment.key]

    def _of(self, point: OperatingPoint, allowance_s: float) -> Floats:
        """Evaluate the layout of a point, or take its curve from the cache, under the errors of each scenario."""
        if is_api(point):  # what a provider states is no prediction
            found = np.full(self.scenarios.count, point.capacity)
            return self._over_growth(found, point)
        system = tuple((use.option.system.name, use.option.scaleout) for use in point.uses)
        key = (
            system,
            *((use.role, use.choice, tuple(use.layout.items()), use.workers) for use in point.uses),
            point.workload.name,
            point.power_cap,
        )
        if key not in self._curves:
            self._curves[key] = curve_of(self.problem, point)
        found = self._curves[key].capacity(
            point.serving.spec.limits(),
            allowance_s,
            worst_errors(self.scenarios, [use.option.system.chip for use in point.uses]),
        )
        return self._over_growth(found, point)

    def _over_growth(self, capacity: Floats, point: OperatingPoint) -> Floats:
        workload = point.workload
        return capacity if scaled(self.problem, workload.asked) else capacity / self.scenarios.demand[workload.name]

    def rate(self, point: OperatingPoint) -> Floats:
        """Compute the rate of a job at full width, [scenario] [token/s]."""
        chip, label = point.uses[0].option.system.chip, network(point.workload.architecture.experts)
        errors = self.scenarios.training.get((chip, label), np.ones(self.scenarios.count))
        return point.capacity / errors


def worst_errors(scenarios: Scenarios, chips: Iterable[str]) -> dict[str, Floats]:
    """Compute the errors of a point by scenario; of two pools on different chips, the worse error counts."""
    none = {label: np.ones(scenarios.count) for label in SERVING}
    found = [scenarios.serving.get(chip, none) for chip in chips]
    worst: dict[str, Floats] = {
        label: np.max([errors[label] for errors in found], axis=0) for label in ("tpot", "ttft")
    }
    return worst | {"throughput": np.min([errors["throughput"] for errors in found], axis=0)}


def is_api(point: OperatingPoint) -> bool:
    """Tell whether a point is tokens bought from an API."""
    return point.uses[0].role == API


def bought_in(pool: Pool, pools: Sequence[Pool]) -> list[Deployment]:
    """List what an API sells to a pool, as deployments of `pools`."""
    number = next(q for q, other in enumerate(pools) if other is pool)
    return [Deployment(point, number) for point in pool.points if is_api(point)]


def layout_key(point: OperatingPoint) -> tuple[Any, ...]:
    """Identify the part of a point that all scenarios share: all but its batch and its pool."""
    uses = ((id(use.option), use.role, use.choice, tuple(use.layout.items()), use.workers) for use in point.uses)
    return (point.workload.name, point.power_cap, *uses)


def deployments_of(point: OperatingPoint, pools: Sequence[Pool]) -> list[Deployment]:
    """List the deployments of a point's layout, one for each pool of its workload at its site."""
    return [
        Deployment(point, q)
        for q, pool in enumerate(pools)
        if pool.workload is point.workload and pool.site == point.site
    ]


def curve_of(problem: ResolvedSpec, point: OperatingPoint) -> BatchCurve:
    """Evaluate the layout of a point at every batch."""
    serving_uses = [use for use in point.uses if use.role != ENCODE]  # encoders apart follow the rate
    uses = [(use.option.system, use.option.scaleout, use.choice, use.layout, use.workers) for use in serving_uses]
    plain = curve_at(problem, point.serving, uses, 1.0)
    speed = point.capacity / plain.at(serving_uses[-1].batch) if point.power_cap is not None else 1.0
    return plain if speed == 1.0 else curve_at(problem, point.serving, uses, speed)


PoolLayout = tuple[
    SystemFacts, ScaleOut, EngineChoice, Mapping[str, int], int
]  # system, its network, how it runs, layout, workers


def curve_at(problem: ResolvedSpec, workload: ServingFacts, uses: Sequence[PoolLayout], speed: float) -> BatchCurve:
    """Evaluate a layout, in one pool or in two, at every batch; `speed`: below 1 under a power cap."""
    constants = problem.constants.serving
    (system, scaleout, choice, sizes, workers), *others = uses
    layout, batches = ServingLayouts(**sizes), batch_grid(uses[-1][3]["dp"])
    if not others:
        found = serving.evaluate(workload, system, scaleout, layout, batches, choice, constants)
    else:
        ((decode, decode_scaleout, _, decode_sizes, decode_workers),) = others
        found = disaggregated.evaluate(
            workload, (system, decode), (scaleout, decode_scaleout), (layout, ServingLayouts(**decode_sizes)), batches,
            (workers, decode_workers), choice, constants,
        ).point  # fmt: skip
    shape = batches.shape
    fits = np.broadcast_to(found.fits, shape) & np.isfinite(np.broadcast_to(found.ttft_s, shape))
    rate = np.where(fits, np.broadcast_to(found.requests_per_s, shape), 0.0)
    latency = {
        limit.key: np.where(
            fits, np.broadcast_to(latency_s(found, limit.metric, QUANTILES[limit.percentile]), shape), np.inf
        )
        for limit in workload.spec.limits()
    }
    return BatchCurve(batches, rate * speed, {name: seconds / speed for name, seconds in latency.items()})
