"""Operating points of serving workloads: layouts x batch evaluated at once, the SLO held against them, the best kept.

Not here: the closed forms (`models`), and which lots may host a point (`planner.candidates.search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from models.energy.power import PowerConstants, serving_power_w
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import BOUNDS, ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.percentiles import SloScreen, latency_s
from models.transformer.architecture import Architecture, forward_flops_per_token
from planner.candidates.fleet_options import Lot
from planner.candidates.points import Point, Use
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.derating import stretch_of
from planner.problem.facts import Problem, ServingFacts, SystemFacts
from planner.spec.model import Slo

BATCHES = np.unique(np.rint(np.geomspace(1, 8192, 53)))
WIDE = (2, 4, 8)  # scale-up domains over which experts may be spread
QUANTILES = {"mean": "mean", "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Grid:
    """All evaluated points of one workload on one system at one precision; arrays are [layout, batch]."""

    system: SystemFacts
    precision: str
    layouts: ServingLayouts
    systems: np.ndarray  # [layout] systems per replica
    point: ServingPoint


@dataclass(frozen=True, slots=True)
class Choice:
    """One point of a grid that goes on."""

    grid: Grid
    layout: int
    batch: int


def systems_per_replica(system: SystemFacts, chips: np.ndarray, stages: np.ndarray) -> np.ndarray:
    """Share of a system, or number of systems, that one replica blocks: whole copies only inside a system."""
    inside = np.maximum(system.chips // np.maximum(chips, 1), 1)
    return np.where(stages > 1, stages * np.ceil(chips / stages / system.chips), np.where(chips <= system.chips, 1 / inside, np.ceil(chips / system.chips)))


def serving_layouts(arch: Architecture, system: SystemFacts, stages: Sequence[int]) -> ServingLayouts:
    """Legal layouts: tp divides the heads and stays in the scale-up domain; more stages only with a full domain each.

    Where there is a network (`stages` beyond one), the experts may be spread over several full domains, one chip per attention rank.
    """
    domain = min(system.scaleup_chips, system.chips)
    powers = [1 << i for i in range(domain.bit_length()) if 1 << i <= domain]
    found = []
    for tp in powers:
        if arch.heads % tp:
            continue
        for dp in powers if arch.experts else [1]:
            if tp * dp > domain:
                continue
            experts = {tp * dp} if dp > 1 else {1, tp} if arch.experts else {1}
            for ep in sorted(ep for ep in experts if not arch.experts or arch.experts % ep == 0):
                found += [(tp, pp, dp, ep) for pp in stages if pp == 1 or (tp * dp == powers[-1] and pp <= arch.layers)]
    spread = [powers[-1] * domains for domains in WIDE if len(stages) > 1 and powers[-1] == system.chips]
    found += [(1, 1, ranks, ranks) for ranks in spread if arch.experts and arch.experts % ranks == 0]
    columns = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return ServingLayouts(tp=columns[0], pp=columns[1], dp=columns[2], ep=columns[3])


def evaluate(
    workload: ServingFacts, system: SystemFacts, scaleout: float, layouts: ServingLayouts, batch: np.ndarray | float, precision: str,
    constants: ServingConstants,
) -> ServingPoint:  # fmt: skip
    """The steady state of layouts x batch, or of one layout and one batch; KV cache as wide as the weights' GEMMs allow."""
    lengths = workload.spec.lengths
    return aggregated(
        workload.architecture, system.rates(precision, scaleout), layouts, batch,
        input_tokens=float(lengths.input), output_tokens=float(lengths.output),
        input_scv=lengths.input_cv**2, output_scv=lengths.output_cv**2,
        weight_precision=precision, kv_precision=kv_precision(precision), constants=engine_constants(workload, system, constants),
        speculation=drafting(workload.spec.speculation), cache=prefix_cache(workload.spec.cache, system.chips),
    )  # fmt: skip


def engine_constants(workload: ServingFacts, system: SystemFacts, constants: ServingConstants) -> ServingConstants:
    """The constants of the workload's engine on the system's generation of chips."""
    return _profile(constants, workload.spec.engine or "other", system.family or "other")


_profile = lru_cache(maxsize=64)(ServingConstants.profile)


def kv_precision(precision: str) -> str:
    """KV cache in 8 bit where the weights are in 8 bit or fewer, else in 16 bit."""
    return "fp8" if precision in ("fp8", "fp4") else "bf16"


def make_grid(workload: ServingFacts, system: SystemFacts, precision: str, scaleout: float, constants: ServingConstants) -> Grid:
    layouts = serving_layouts(workload.architecture, system, (1, 2, 4) if scaleout > 0 else (1,))
    point = evaluate(workload, system, scaleout, layouts.take((slice(None), None)), BATCHES[None, :], precision, constants)
    return Grid(system, precision, layouts, systems_per_replica(system, np.asarray(layouts.chips), np.asarray(layouts.pp)), point)


def limits_at_site(slo: Slo, allowance_s: float, stretch: Mapping[str, float] = {}) -> Mapping[str, list[tuple[str | float, float]]]:
    """Limits that hold at the site once the round trip is taken off those that it counts against; `stretch`: what latencies may grow by."""
    limits: dict[str, list[tuple[str | float, float]]] = {}
    for metric, percentile, limit in slo.limits():
        left = limit - (0.0 if metric == "tpot" else allowance_s)
        limits.setdefault(metric, []).append((QUANTILES[percentile], left / stretch.get(metric, 1.0)))
    return limits


def latencies(point: ServingPoint, slo: Slo) -> dict[str, np.ndarray]:
    """ "ttft.p95" -> seconds at the site, for every limit of the SLO."""
    return {f"{metric}.{percentile}": latency_s(point, metric, QUANTILES[percentile]) for metric, percentile, _ in slo.limits()}


def no_larger_than_the_work(rate: np.ndarray, workload: ServingFacts, problem: Problem) -> np.ndarray:
    """Rates with 0 for what serves more than the whole demand: a part of a replica is as efficient as a whole one only on paper.

    The smallest is kept in any case. Where throughput is asked for, demand is no bound.
    """
    if problem.spec.objective.maximise or not rate.any():
        return rate
    whole = max(workload.peak_requests_per_s, float(rate[rate > 0].min()))
    return np.where(rate <= whole, rate, 0.0)


class Chooser:
    """The points of one workload on one kind of system; what is worked out once serves the limits of all origins."""

    def __init__(self, workload: ServingFacts, grids: Sequence[Grid], problem: Problem):
        self.workload, self.grids, self.problem = workload, grids, problem
        self._stretch = stretch_of(problem.derating, (grid.system for grid in grids))
        common = {"tpot": self._limits(0.0).get("tpot", ())}
        self._screens = [SloScreen(grid.point, common) for grid in grids]
        self._watts = [grid_power_w(grid, problem.constants.power) for grid in grids]
        self._known: dict[tuple[int, int, int], Choice] = {}  # so that one point is one object, whatever origins it serves

    def _limits(self, allowance_s: float) -> Mapping[str, list[tuple[str | float, float]]]:
        return limits_at_site(self.workload.spec.slo, allowance_s, self._stretch)

    def choose(self, allowance_s: float, dropped: Counter[str]) -> list[Choice]:
        """The largest capacity per layout under the limits, then the points no other beats, a few at most."""
        most = self.problem.spec.solver.points_per_system
        further = {metric: held for metric, held in self._limits(allowance_s).items() if metric != "tpot"}
        kept: list[tuple[float, float, tuple[int, int, int]]] = []
        for g, (grid, screen, watts) in enumerate(zip(self.grids, self._screens, self._watts, strict=True)):
            satisfied, fits = screen.satisfied(further), np.asarray(grid.point.fits)
            dropped["does not fit memory or the engine's batch limit"] += int((~fits).sum())
            dropped["misses the latency limits"] += int((fits & ~satisfied).sum())
            able = np.where(satisfied, grid.point.requests_per_s, 0.0)
            rate = no_larger_than_the_work(able, self.workload, self.problem)
            dropped["serves more than the whole demand"] += int((able > rate).sum())
            layouts, best = np.flatnonzero(rate.max(axis=1) > 0), rate.argmax(axis=1)
            dropped["another batch of the layout does more"] += int((rate > 0).sum()) - layouts.size
            batches = best[layouts]
            per_request = grid.systems[layouts] / rate[layouts, batches]
            drawn = per_request * watts[layouts, batches]
            kept += zip(per_request.tolist(), drawn.tolist(), ((g, layout, batch) for layout, batch in zip(layouts.tolist(), batches.tolist())))
        kept.sort(key=lambda item: item[:2])
        front: list[tuple[int, int, int]] = []
        least_power = np.inf
        for _, drawn_w, place in kept:
            if drawn_w < least_power * (1 - 1e-9):
                least_power = drawn_w
                front.append(place)
        dropped["beaten by another point on systems and power"] += len(kept) - len(front)
        dropped["beyond points_per_system"] += max(len(front) - most, 0)
        return [self._known.setdefault(place, Choice(self.grids[place[0]], *place[1:])) for place in front[:most]]


def grid_power_w(grid: Grid, constants: PowerConstants) -> np.ndarray:
    """[layout, batch] IT power above idle of one fully occupied system [W]."""
    watts = extra_power_w(grid.system, grid.point.shares, constants)
    return np.broadcast_to(watts, np.shape(grid.point.requests_per_s))


def extra_power_w(system: SystemFacts, shares: Mapping[str, Any], constants: PowerConstants) -> Any:
    """IT power above idle of one fully occupied system whose engine's time goes by `shares` of the parts of a step [W]."""
    bounds = {name: sum(shares[part] for part in parts) for name, parts in BOUNDS.items()}
    return serving_power_w(bounds, system.idle_w, system.power_w, constants) - system.idle_w


def at(values: Mapping[str, np.ndarray], shape: tuple[int, ...], index: tuple[int, ...]) -> dict[str, float]:
    """One entry of arrays that broadcast to `shape`."""
    return {name: float(np.broadcast_to(value, shape)[index]) for name, value in values.items()}


def mfu(workload: ServingFacts, requests_per_s: float, chips: Sequence[tuple[ChipRates, float]], computed_share: float = 1.0) -> float:
    """Model FLOPs of what is computed of the prompt and of the output over the peak of all chips of the replica.

    `chips`: (rates, count) of each pool.
    """
    lengths = workload.spec.lengths
    per_token = forward_flops_per_token(workload.architecture, lengths.input + lengths.output / 2)
    peak = sum(count * rates.flop_per_s for rates, count in chips)
    return float(requests_per_s * (computed_share * lengths.input + lengths.output) * per_token / peak)


def layout_of(layouts: ServingLayouts, index: int) -> dict[str, int]:
    return {name: int(np.asarray(getattr(layouts, name))[index]) for name in ("tp", "pp", "dp", "ep")}


def as_point(workload: ServingFacts, lot: Lot, choice: Choice, power: PowerConstants) -> Point:
    """The chosen grid point on a lot."""
    grid, index = choice.grid, (choice.layout, choice.batch)
    point, shape = grid.point, grid.point.requests_per_s.shape
    systems, layout, rate = float(grid.systems[choice.layout]), layout_of(grid.layouts, choice.layout), float(point.requests_per_s[index])
    shares = at(point.shares, shape, index)
    one = lambda value: float(np.broadcast_to(value, shape)[index])  # noqa: E731
    use = Use(
        role="serve",
        lot=lot,
        systems=systems,
        extra_it_w=systems * float(extra_power_w(grid.system, shares, power)),
        precision=grid.precision,
        layout=layout,
        batch=int(BATCHES[choice.batch]),
    )
    return Point(
        workload=workload,
        uses=(use,),
        capacity=rate,
        latency={name: float(value) for name, value in latencies(point.pick(index), workload.spec.slo).items()},
        breakdown=shares,
        mfu=mfu(workload, rate, [(grid.system.rates(grid.precision), chips_of(layout))], one(point.computed_share)),
        memory_bytes=one(point.memory_bytes),
    )


def chips_of(layout: Mapping[str, int]) -> int:
    return layout["tp"] * layout["pp"] * layout["dp"]
