"""Choose operating points of serving in one pool: evaluate layouts x batch in arrays, screen them by the SLO, keep the best.

Not here: the closed forms (`models`), and which fleet options may host a point (`planner.candidates.search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Floats, sum_of
from models.energy.power import PowerConstants
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.percentiles import SloScreen
from models.transformer.architecture import Architecture
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import ENCODE, OperatingPoint, Use
from planner.evaluate.classes import class_rows, meets_classes
from planner.evaluate.serving import (
    batch_grid,
    call_s,
    encoder_power_w,
    encoder_use,
    entry_at,
    evaluate,
    extra_power_w,
    latencies,
    layout_of,
    lengths_of,
    limits_at_site,
    mfu,
    rates_of,
    systems_per_replica,
)
from planner.evaluate.serving_layouts import blocks, domain_of, runnable
from planner.messages import Message
from planner.problem.constants import ModelConstants
from planner.problem.derating import stretch_of
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ScaleOut, ServingFacts, SystemFacts
from planner.spec.slo import TPOT

# Numbers of whole scale-up domains over which experts may be spread: 16 to 144 chips of nodes of eight.
TENSOR_SPREAD_DOMAINS = (2,)  # nodes over which tensor parallelism is searched: each all-reduce crosses the network
MOST_OF_A_NODE = 16  # chips of a node; racks hold more in one domain
EXPERT_SPREAD_DOMAINS = (2, 3, 4, 6, 8, 9, 12, 16, 18)
WIDE_DOMAIN = 256  # chips of a domain whose halves and powers of two lie too far apart: experts are spread over twelfths of it too
EXPERT_SHARES = 12
PIPELINE_STAGES = (1, 2, 4)
POWER_GAIN_TOL = 1e-9  # relative saving of power per request below which a point that takes more systems is dropped


@dataclass(frozen=True, slots=True)
class Grid:
    """Evaluation of one workload on one system, run in one way; arrays are [layout, batch]."""

    system: SystemFacts
    choice: EngineChoice
    layouts: ServingLayouts
    systems: Floats  # [layout] systems per replica
    batches: Floats  # [layout, batch] requests in decode of a replica
    point: ServingPoint
    encoders: Floats | float = 0.0  # [layout, batch] systems of a replica that encode its media apart

    @property
    def precision(self) -> str:
        """Return the precision of the weights."""
        return self.choice.precision


@dataclass(frozen=True, slots=True)
class GridChoice:
    """A selected point of a grid."""

    grid: Grid
    layout: int
    batch: int


def serving_layouts(arch: Architecture, system: SystemFacts, networked: bool) -> ServingLayouts:
    """List the layouts to search, all of them `runnable`: tensor and expert parallel in blocks of the scale-up domain.

    Where there is a network (`networked`), pipeline stages take a domain each, tensor parallelism may span two nodes, and experts may spread
    over several whole domains, one chip per attention rank.
    """
    domain = domain_of(system)
    powers = [1 << i for i in range(domain.bit_length())]
    whole = {powers[-1], domain}  # stages that leave no room for another replica
    found = []
    for tp in powers:
        for stage in (block for block in blocks(domain) if block % tp == 0):
            dp = stage // tp
            for ep in {stage} if dp > 1 else {1, tp} if arch.experts else {1}:
                found += [(tp, pp, dp, ep) for pp in PIPELINE_STAGES if pp == 1 or stage in whole]
    if 1 < domain == system.chips <= MOST_OF_A_NODE:
        found += [
            (tp, 1, 1, ep)
            for tp in (domain * n for n in TENSOR_SPREAD_DOMAINS)
            for ep in ({1, tp} if arch.experts else {1})
        ]
    if domain == system.chips:
        found += [(1, 1, domain * domains, domain * domains) for domains in EXPERT_SPREAD_DOMAINS]
    if domain >= WIDE_DOMAIN:
        ranks = [domain * share // EXPERT_SHARES for share in range(1, EXPERT_SHARES + 1)]
        found += [(1, 1, n, n) for n in ranks if (1, 1, n, n) not in found]
    columns = np.array(found, dtype=np.int64).T
    layouts = ServingLayouts(tp=columns[0], pp=columns[1], dp=columns[2], ep=columns[3])
    return layouts.take(np.flatnonzero(runnable(arch, system, layouts, networked)))


def make_grid(
    workload: ServingFacts, system: SystemFacts, choice: EngineChoice, scaleout: ScaleOut, constants: ServingConstants
) -> Grid:
    """Evaluate all layouts of a workload at all batches on one system, run in one way."""
    layouts = serving_layouts(workload.architecture, system, scaleout.bytes_per_s > 0)
    batches = batch_grid(np.asarray(layouts.dp))
    point = evaluate(workload, system, scaleout, layouts.take((slice(None), None)), batches, choice, constants)
    chips, _ = encoder_use(workload, system, choice, point.requests_per_s, constants)
    return Grid(
        system,
        choice,
        layouts,
        systems_per_replica(system, np.asarray(layouts.chips), np.asarray(layouts.pp)),
        batches,
        point,
        np.broadcast_to(np.asarray(chips) / system.chips, np.shape(point.requests_per_s)),
    )


def within_demand(rate: Floats, workload: ServingFacts, problem: ResolvedSpec) -> Floats:
    """Set rates [layout, batch] beyond the first of a layout that serves the whole demand to 0: a replica at work in part has a smaller batch.

    The same for divisible and for whole replicas, so that the best plan with whole ones is a plan with divisible ones too. Where throughput
    is maximised, demand is no bound.
    """
    if problem.spec.objective.maximise:
        return rate
    enough = np.where(rate >= workload.peak_requests_per_s, rate, np.inf).min(axis=1, keepdims=True)
    return np.where(rate <= enough, rate, 0.0)


class GridSelection:
    """Selection of the points of one workload on one type of system; figures independent of the round trip are computed once."""

    def __init__(self, workload: ServingFacts, grids: Sequence[Grid], problem: ResolvedSpec):
        self.workload, self.grids, self.problem = workload, grids, problem
        self._stretch = stretch_of(problem.derating, (grid.system for grid in grids))
        common = {TPOT: self._limits(0.0).get(TPOT, ())}
        self._screens = [SloScreen(grid.point, common) for grid in grids]
        self._watts = [grid_power_w(grid, problem.constants.power) for grid in grids]
        self._chosen: dict[tuple[int, int, int], GridChoice] = {}  # one object per point, whatever origins it serves

    def _limits(self, allowance_s: float) -> Mapping[str, list[tuple[str | float, float]]]:
        return limits_at_site(self.workload.spec, allowance_s, self._stretch)

    def choose(self, allowance_s: float, dropped: Counter[str]) -> list[GridChoice]:
        """Take the largest capacity of each layout under the limits, then the Pareto front of systems and power per request.

        Smaller replicas join that take the fewest systems per request of all that are no larger: whole replicas of a large layout are too many
        systems for a small demand. Where replicas are divisible and several of each selected point serve the demand, only points of the front join.
        """
        most = self.problem.spec.solver.points_per_system
        further = {metric: limits for metric, limits in self._limits(allowance_s).items() if metric != TPOT}
        kept: list[tuple[float, float, tuple[int, int, int]]] = []  # systems per request, watts per request, place
        for g, (grid, screen, watts) in enumerate(zip(self.grids, self._screens, self._watts, strict=True)):
            satisfied, fits = screen.satisfied(further), np.asarray(grid.point.fits)
            satisfied = satisfied & meets_classes(self.workload.spec.classes, grid.point, allowance_s, self._stretch)
            dropped[Message.of("dropped.over_memory_or_batch").text()] += int((~fits).sum())
            dropped[Message.of("dropped.too_slow").text()] += int((fits & ~satisfied).sum())
            able = np.where(satisfied, grid.point.requests_per_s, 0.0)
            rate = within_demand(able, self.workload, self.problem)
            dropped[Message.of("dropped.over_demand").text()] += int((able > rate).sum())
            layouts, best = np.flatnonzero(rate.max(axis=1) > 0), rate.argmax(axis=1)
            dropped[Message.of("dropped.lesser_batch").text()] += int((rate > 0).sum()) - layouts.size
            batches = best[layouts]
            systems = (grid.systems[layouts] + _at(grid.encoders, layouts, batches)) / rate[layouts, batches]
            drawn_w = systems * watts[layouts, batches]
            places = [(g, layout, batch) for layout, batch in zip(layouts.tolist(), batches.tolist(), strict=True)]
            kept += zip(systems.tolist(), drawn_w.tolist(), places, strict=True)
        kept.sort(key=lambda item: item[:2])
        front: list[tuple[int, int, int]] = []
        least_w = np.inf
        for _, watts_per_request, place in kept:
            if watts_per_request < least_w * (1 - POWER_GAIN_TOL):
                least_w = watts_per_request
                front.append(place)
        dropped[Message.of("dropped.over_point_count").text()] += max(len(front) - most, 0)
        smaller = self._smaller(kept, front[:most])
        if not self._needs_smaller(front[:most]):
            smaller = [place for place in smaller if place in front]
        dropped[Message.of("dropped.dominated_point").text()] += len(kept) - len({*front, *smaller})
        front = front[:most]
        return [
            self._chosen.setdefault(place, GridChoice(self.grids[place[0]], *place[1:])) for place in [*front, *smaller]
        ]

    def _needs_smaller(self, front: Sequence[tuple[int, int, int]]) -> bool:
        """Tell whether dominated replicas may serve better: replicas are whole, or one of `front` is enough for the whole demand."""
        if self.problem.spec.solver.whole or self.problem.spec.objective.maximise:
            return self.problem.spec.solver.whole
        rates = (np.asarray(self.grids[g].point.requests_per_s)[layout, batch] for g, layout, batch in front)
        return any(rate >= self.workload.peak_requests_per_s for rate in rates)

    def _smaller(
        self, kept: Sequence[tuple[float, float, tuple[int, int, int]]], front: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Select replicas smaller than all in `front`, each with the fewest systems per request of those no larger than itself."""

        def size(place: tuple[int, int, int]) -> float:
            grid = self.grids[place[0]]
            return float(grid.systems[place[1]] + _at(grid.encoders, *place[1:]))

        least = min((size(place) for place in front), default=0.0)
        smaller: list[tuple[int, int, int]] = []
        best = np.inf
        for systems, _, place in sorted(kept, key=lambda item: (size(item[2]), item[0])):
            if size(place) < least and systems < best:
                best = systems
                smaller.append(place)
        return smaller


def _at(values: Floats | float, layouts: Any, batches: Any) -> Any:
    """Take entries of an array [layout, batch], or of a number that stands for one."""
    return values[layouts, batches] if isinstance(values, np.ndarray) else values


def grid_power_w(grid: Grid, constants: PowerConstants) -> Floats:
    """Compute the IT power above idle of one fully occupied system [W], [layout, batch]."""
    watts = extra_power_w(grid.system, grid.point.shares, constants)
    return np.broadcast_to(watts, np.shape(grid.point.requests_per_s))


def _encoders(
    workload: ServingFacts, option: FleetOption, grid: Grid, rate: float, constants: ModelConstants
) -> list[Use]:
    """Build the pool that encodes the media of a replica apart, one worker a chip; none for other ways."""
    chips, busy = encoder_use(workload, grid.system, grid.choice, rate, constants.serving)
    if not chips:
        return []
    systems = float(chips) / grid.system.chips
    watts = systems * float(encoder_power_w(grid.system, float(busy), constants.power))
    weights = sum_of(media.encoder.weight_bytes for media in lengths_of(workload, grid.choice).media)
    return [
        Use(
            ENCODE, option, systems, watts, grid.precision, {"tp": 1, "pp": 1, "dp": 1, "ep": 1}, 1, int(chips), memory_bytes=weights,
            encoding=grid.choice.encoding,
        )
    ]  # fmt: skip


def serving_point(
    workload: ServingFacts, option: FleetOption, choice: GridChoice, constants: ModelConstants
) -> OperatingPoint:
    """Build the operating point of a selected grid point on a fleet option."""
    grid, index = choice.grid, (choice.layout, choice.batch)
    point, shape = grid.point, np.shape(grid.point.requests_per_s)
    mine = point.pick(index)
    systems, layout = float(grid.systems[choice.layout]), layout_of(grid.layouts, choice.layout)
    shares = entry_at(point.shares, shape, index)
    figures = {
        "rate": point.requests_per_s, "computed_share": point.computed_share, "memory_bytes": point.memory_bytes
    }  # fmt: skip
    found = entry_at(figures, shape, index)
    power = constants.power
    chips = [(rates_of(workload, grid.system, grid.precision), systems * grid.system.chips)]
    use = Use(
        role="serve",
        option=option,
        systems=systems,
        extra_it_w=systems * float(extra_power_w(grid.system, shares, power)),
        precision=grid.precision,
        kv_precision=grid.choice.kv_precision,
        kv_chosen=workload.spec.kv_precision is not None,
        waiting=grid.choice.waiting,
        encoding=grid.choice.encoding,
        layout=layout,
        batch=int(grid.batches[index]),
        memory_bytes=found["memory_bytes"],
    )
    return OperatingPoint(
        workload=workload,
        uses=(use, *_encoders(workload, option, grid, found["rate"], constants)),
        capacity=found["rate"],
        latency={name: float(value) for name, value in latencies(mine, workload.spec).items()},
        breakdown=shares,
        call_s=call_s(mine),
        classes=class_rows(workload.spec.classes, mine),
        steady=mine,
        mfu=mfu(workload, found["rate"], chips, found["computed_share"]),
    )
