"""Operating points with separate pools for prefill and decode, on one kind of system or on two.

Layouts of both sides come from the grids of `planner.candidates.serving`; the closed forms are in `models.serving.disaggregation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.queueing.queues import gamma_quantile
from models.serving.constants import ServingConstants
from models.serving.disaggregation import DisaggregatedPoint, worker_ratios
from models.serving.percentiles import SloScreen
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint, Use
from planner.candidates.serving import Grid, within_demand
from planner.evaluate.disaggregated import evaluate, pool_power_w
from planner.evaluate.serving import (
    BATCHES,
    chips_of,
    entry_at,
    latencies,
    layout_of,
    limits_at_site,
    mfu,
)
from planner.problem.derating import stretch_of
from planner.problem.fabrics import share_a_network
from planner.problem.facts import Problem, ServingFacts
from planner.spec.slo import TPOT

MAX_WORKERS = 12  # of each kind in one group; a plan takes any number of groups
MAX_BATCHES = 4  # of each decode layout
THROUGHPUT_TIE_TOL = 1e-9  # groups that differ less do as well. Not more: a smaller group that is dearer by so much would make looser limits cost more
Limits = Mapping[str, Sequence[tuple[str | float, float]]]


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """A group of workers that goes on; arrays of `found` are indexed by `index`."""

    prefill: Grid
    decode: Grid
    prefill_layout: int
    decode_layout: int
    batch: int
    workers: tuple[int, int]
    found: DisaggregatedPoint
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """A group on two fleet options, or on one, before all that a plan says of it is worked out."""

    fleet_options: tuple[FleetOption, FleetOption]
    choice: GroupChoice
    capacity: float  # requests per second of the group
    systems: tuple[float, float]  # that its prefill and its decode workers occupy

    @classmethod
    def of(cls, first: FleetOption, second: FleetOption, choice: GroupChoice) -> WorkerGroup:
        sides = (choice.prefill, choice.prefill_layout), (choice.decode, choice.decode_layout)
        systems = (float(grid.systems[layout]) * workers for (grid, layout), workers in zip(sides, choice.workers))
        return cls((first, second), choice, float(choice.found.point.requests_per_s[choice.index]), tuple(systems))


def connected_pairs(fleet_options: Sequence[FleetOption]) -> Iterator[tuple[FleetOption, FleetOption]]:
    """(prefill, decode) fleet options of one site that share a network: our own of one design, or one rented kind by itself."""
    for first in fleet_options:
        for second in fleet_options:
            if share_a_network(first, second) and min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) > 0:
                yield first, second


@dataclass(frozen=True, slots=True)
class FeasibleGroups:
    """Groups that meet some limits, before what a system is worth picks among them: arrays over (prefill, decode, batch, ratio)."""

    index: np.ndarray
    batch: np.ndarray
    found: DisaggregatedPoint
    rate: np.ndarray
    occupied: tuple[np.ndarray, np.ndarray]
    choices: dict[int, GroupChoice] = field(default_factory=dict)
    places: dict[tuple, list[int]] = field(default_factory=dict)
    corners: list[_HullCorners] = field(default_factory=list)  # none or those of these groups

    def least_occupying(self, worth: tuple[float, float], most: int) -> list[int]:
        if not self.corners:
            self.corners.append(_HullCorners.of(*self.occupied, self.rate))
        if (worth, most) not in self.places:
            self.places[worth, most] = self.corners[0].least_occupying(worth, most)
        return self.places[worth, most]


class GroupSearch:
    """Groups of one workload on two kinds of system at one precision; what is evaluated serves the limits of all origins."""

    def __init__(
        self, workload: ServingFacts, prefill: Grid, decode: Grid, scaleouts: tuple[float, float], problem: Problem
    ):
        self.workload, self.prefill, self.decode, self.scaleouts, self.problem = (
            workload,
            prefill,
            decode,
            scaleouts,
            problem,
        )
        self.evaluated = 0
        self._known: dict[tuple, tuple[DisaggregatedPoint, SloScreen]] = {}
        self._fronts: dict[float, FeasibleGroups | None] = {}

    def front(self, allowance_s: float) -> FeasibleGroups | None:
        if allowance_s not in self._fronts:
            self._fronts[allowance_s] = self._front(allowance_s)
        return self._fronts[allowance_s]

    def _front(self, allowance_s: float) -> FeasibleGroups | None:
        n_p, n_d = worker_ratios(MAX_WORKERS)
        stretch = stretch_of(self.problem.derating, (self.prefill.system, self.decode.system))
        limits = limits_at_site(self.workload.spec.slo, allowance_s, stretch)
        index = efficient_prefill_layouts(self.prefill, limits, self.problem.constants.serving)
        if not index.size:
            return None
        # Which batches a decode worker can hold hardly depends on the prefill side: they are picked beside the fastest of it.
        fastest = index[np.argmin(np.asarray(self.prefill.point.prompt_s)[index, 0])]
        _, alone = self.rate(np.atleast_1d(fastest), np.arange(BATCHES.size), (MAX_WORKERS, 1), limits)
        batch = np.sort(np.argsort(alone[0, ..., 0], axis=1)[:, -MAX_BATCHES:], axis=1)
        found, rate = self.rate(index, batch, (n_p, n_d), limits)
        rate = within_demand(rate, self.workload, self.problem)
        occupied = np.broadcast_arrays(
            self.prefill.systems[index][:, None, None, None] * n_p, self.decode.systems[:, None, None] * n_d, rate
        )[:2]
        return FeasibleGroups(index, batch, found, rate, occupied)

    def choice(self, front: FeasibleGroups, place: int) -> GroupChoice:
        if place not in front.choices:
            n_p, n_d = worker_ratios(MAX_WORKERS)
            p, d, b, r = map(int, np.unravel_index(place, front.rate.shape))
            workers = int(n_p[r]), int(n_d[r])
            front.choices[place] = GroupChoice(
                self.prefill,
                self.decode,
                int(front.index[p]),
                d,
                int(front.batch[d, b]),
                workers,
                front.found,
                (p, d, b, r),
            )
        return front.choices[place]

    def rate(
        self, index: np.ndarray, batch: np.ndarray, workers: tuple, limits: Limits
    ) -> tuple[DisaggregatedPoint, np.ndarray]:
        """The groups of some prefill layouts and of these batches of all decode layouts; their rates, 0 where a limit is missed."""
        key = (index.tobytes(), batch.tobytes(), np.shape(workers[0]))
        if key not in self._known:
            layouts = (
                self.prefill.layouts.take((index, None, None, None)),
                self.decode.layouts.take((slice(None), None, None)),
            )
            systems, constants = (self.prefill.system, self.decode.system), self.problem.constants.serving
            found = evaluate(
                self.workload,
                systems,
                self.scaleouts,
                layouts,
                BATCHES[batch][..., None],
                workers,
                self.prefill.precision,
                constants,
            )
            self._known[key] = found, SloScreen(found.point, {TPOT: limits.get(TPOT, ())})
            self.evaluated += found.point.requests_per_s.size
        found, screen = self._known[key]
        further = {metric: held for metric, held in limits.items() if metric != TPOT}
        return found, np.where(screen.satisfied(further), found.point.requests_per_s, 0.0)


def group_searches(
    workload: ServingFacts,
    prefills: Sequence[Grid],
    decodes: Sequence[Grid],
    first: FleetOption,
    second: FleetOption,
    problem: Problem,
) -> list[GroupSearch]:
    """One for each precision that both sides have."""
    scaleouts = first.scaleout_bytes_per_s, second.scaleout_bytes_per_s
    return [
        GroupSearch(workload, one, other, scaleouts, problem)
        for one in prefills
        for other in decodes
        if one.precision == other.precision
    ]


def choose_groups(
    groups: Sequence[GroupSearch], first: FleetOption, second: FleetOption, allowance_s: float
) -> list[GroupChoice]:
    """The groups that serve most per system of either kind, at each precision.

    Prefill workers are the layouts of least occupied systems per prompt; all decode layouts and ratios are tried, with the
    largest batches of each that meet the limits.
    """
    chosen = []
    for each in groups:
        front = each.front(allowance_s)
        if front is not None:
            most = 1 if first is second else each.problem.spec.solver.points_per_system
            chosen += [
                each.choice(front, place) for place in front.least_occupying((_worth(first), _worth(second)), most)
            ]
    return chosen


def _worth(option: FleetOption) -> float:
    """What one system of the fleet option ties up: purchase with fabric and building. A rented fleet option is paired only with itself."""
    return option.capital + option.fabric_capital + option.facility_capital if option.owned else 1.0


@dataclass(frozen=True, slots=True)
class _HullCorners:
    """Groups that serve something: flat positions, systems per request of either kind, requests, and which of them are corners of the hull."""

    able: np.ndarray
    first: np.ndarray
    second: np.ndarray
    rate: np.ndarray
    hull: list[int]

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray, rate: np.ndarray) -> _HullCorners:
        """A plan mixes groups in any proportion, so only corners of the lower left hull of (first, second) systems per request count."""
        able = np.flatnonzero(rate)
        x, y = first.flat[able] / rate.flat[able], second.flat[able] / rate.flat[able]
        order = np.lexsort((y, x))
        falling = y[order] < np.minimum.accumulate(np.concatenate([[np.inf], y[order]]))[:-1]
        hull: list[int] = []
        for i in order[falling]:
            while len(hull) > 1 and (x[hull[-1]] - x[hull[-2]]) * (y[i] - y[hull[-2]]) <= (
                y[hull[-1]] - y[hull[-2]]
            ) * (x[i] - x[hull[-2]]):
                hull.pop()
            hull.append(int(i))
        return cls(able, x, y, rate.flat[able], hull)

    def least_occupying(self, worth: tuple[float, float], most: int) -> list[int]:
        """Flat positions of the groups that occupy the fewest systems per request: the corner that ties up the least, and its neighbours,
        which save either kind where it is scarce. Of groups that do as well as the first the smallest is taken, since a plan may come to
        use a part of one. Looser limits never raise what the first ties up; of the neighbours, which are others then, and of power that need not be so.
        """
        if not self.able.size:
            return []
        tied = worth[0] * self.first + worth[1] * self.second
        middle = int(np.argmin(tied[self.hull]))
        as_good = np.flatnonzero(tied <= (1 + THROUGHPUT_TIE_TOL) * tied[self.hull[middle]])
        smallest = int(as_good[np.argmin(self.rate[as_good])])
        kept = [smallest, *(self.hull[i] for i in (middle - 1, middle + 1) if 0 <= i < len(self.hull))]
        return [int(self.able[i]) for i in kept[:most]]


def efficient_prefill_layouts(grid: Grid, limits: Limits, constants: ServingConstants, most: int = 3) -> np.ndarray:
    """Layouts whose prompts occupy the fewest system-seconds, a few of them: each further one is faster than those before it.

    Left out is what takes longer than the limit on the time to first token even without a queue.
    """
    latency = np.asarray(grid.point.prompt_s)[:, 0]
    occupied = np.asarray(grid.point.prefill_s)[:, 0] * grid.systems
    able = np.asarray(grid.point.fits)[:, 0].copy()
    spread = np.broadcast_to(grid.point.input_scv, np.shape(grid.point.requests_per_s))[:, 0]
    for quantile, limit in limits.get("ttft", ()):
        slowest = 1.0 if quantile == "mean" else gamma_quantile(quantile, spread)
        able &= constants.disaggregated_first_token_factor * slowest * latency <= limit
    order = np.flatnonzero(able)[np.argsort(occupied[able], kind="stable")]
    faster = latency[order] < np.minimum.accumulate(np.concatenate([[np.inf], latency[order]]))[:-1]
    return np.sort(order[faster][:most])


def disaggregated_point(workload: ServingFacts, pair: WorkerGroup, problem: Problem) -> OperatingPoint:
    choice = pair.choice
    found, shape, index = choice.found, choice.found.point.requests_per_s.shape, choice.index
    sides = (
        ("prefill", choice.prefill, choice.prefill_layout, 1, entry_at(found.prefill_shares, shape, index)),
        (
            "decode",
            choice.decode,
            choice.decode_layout,
            int(BATCHES[choice.batch]),
            entry_at(found.point.shares, shape, index),
        ),
    )
    uses = []
    for (role, grid, layout, batch, shares), option, systems, workers in zip(
        sides, pair.fleet_options, pair.systems, choice.workers
    ):
        extra = systems * pool_power_w(shares, option.system, problem)
        uses.append(Use(role, option, systems, extra, grid.precision, layout_of(grid.layouts, layout), batch, workers))
    return OperatingPoint(
        workload=workload,
        uses=tuple(uses),
        capacity=pair.capacity,
        latency={name: float(value) for name, value in latencies(found.point.pick(index), workload.spec.slo).items()},
        breakdown=sides[1][-1],
        mfu=mfu(
            workload,
            pair.capacity,
            [(use.option.system.rates(use.precision), chips_of(use.layout) * use.workers) for use in uses],
            float(np.broadcast_to(found.point.computed_share, shape)[index]),
        ),
        memory_bytes=entry_at({"": found.point.memory_bytes}, shape, index)[""],
    )


def without_replaceable(pairs: Sequence[WorkerGroup], alone: Sequence[OperatingPoint]) -> list[WorkerGroup]:
    """Pairs that serve more (by `THROUGHPUT_TIE_TOL`) than the same systems would by themselves; a mere saving of power is not looked at.

    By themselves: with one pool for both, or, where a pair takes two kinds of system, with separate pools on each kind.
    """
    best: dict[int, float] = {}

    def learn(option: FleetOption, requests_per_system_s: float) -> None:
        best[id(option)] = max(best.get(id(option), 0.0), requests_per_system_s)

    def better(some: Iterable[WorkerGroup]) -> list[WorkerGroup]:
        return [
            p
            for p in some
            if p.capacity
            > (1 + THROUGHPUT_TIE_TOL)
            * sum(best.get(id(option), 0.0) * systems for option, systems in zip(p.fleet_options, p.systems))
        ]

    for point in alone:
        learn(point.uses[0].option, point.capacity / sum(use.systems for use in point.uses))
    one_kind = better(pair for pair in pairs if pair.fleet_options[0] is pair.fleet_options[1])
    for pair in one_kind:
        learn(pair.fleet_options[0], pair.capacity / sum(pair.systems))
    return one_kind + better(pair for pair in pairs if pair.fleet_options[0] is not pair.fleet_options[1])
