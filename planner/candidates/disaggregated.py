"""Choose operating points with separate pools for prefill and decode, on one type of system or on two.

Layouts of both roles come from the grids of `planner.candidates.serving`; the closed forms are in `models.serving.disaggregation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints, Result, picked
from models.queueing.queues import gamma_quantile
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.disaggregation import DisaggregatedPoint, worker_ratios
from models.serving.percentiles import SloScreen
from planner.candidates.cache import Recent
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint, Use
from planner.candidates.serving import Grid, within_demand
from planner.evaluate.classes import class_rows, meets_classes
from planner.evaluate.disaggregated import evaluate, pool_power_w
from planner.evaluate.serving import (
    APART,
    call_s,
    latencies,
    layout_of,
    limits_at_site,
    mfu,
    rates_of,
)
from planner.problem.derating import stretch_of
from planner.problem.facts import ResolvedSpec, ScaleOut, ServingFacts
from planner.spec.slo import TPOT

MAX_WORKERS = 12  # workers of either role in one group; a plan uses any number of groups
RATIOS = worker_ratios(MAX_WORKERS)
MAX_BATCHES = 4  # batches kept of each decode layout
MAX_PREFILL_LAYOUTS = 3
# Relative: groups that differ less count as equal. If larger, a smaller group that costs more by so much could make looser limits dearer.
THROUGHPUT_TIE_TOL = 1e-9
NAMES = itertools.count()  # names of searches, under which their evaluations are kept
# Relative capital per request above the least at which the smallest group joins: one for demands of each size.
SMALLER_GROUPS = (0.05, 0.2, 0.6, np.inf)
Limits = Mapping[str, Sequence[tuple[str | float, float]]]


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """A selected group of prefill and decode workers; `found`: its steady state, in plain numbers."""

    prefill: Grid
    decode: Grid
    prefill_layout: int
    decode_layout: int
    batch: int  # index into the batches of the decode layout
    workers: tuple[int, int]
    found: DisaggregatedPoint


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """A selected group on two fleet options, or twice on one, before its operating point is built."""

    fleet_options: tuple[FleetOption, FleetOption]
    choice: GroupChoice
    capacity: float  # requests per second of the group
    systems: tuple[float, float]  # that its prefill and its decode workers occupy

    @classmethod
    def of(cls, first: FleetOption, second: FleetOption, choice: GroupChoice) -> WorkerGroup:
        """Put the prefill workers of a choice on the first fleet option, and the decode workers on the second."""
        prefill, decode = choice.workers
        systems = (
            float(choice.prefill.systems[choice.prefill_layout]) * prefill,
            float(choice.decode.systems[choice.decode_layout]) * decode,
        )
        return cls((first, second), choice, float(choice.found.point.requests_per_s), systems)


@dataclass(frozen=True, slots=True)
class FeasibleGroups:
    """Groups under the limits of one round trip; arrays over (prefill layout, decode layout, batch, worker ratio)."""

    prefill_layouts: Ints  # [prefill layout] index into the grid
    batches: Ints  # [decode layout, batch] index into the batches of the layout
    shape: tuple[int, ...]  # shape of the arrays
    hull: LowerHull


class GroupSearch:
    """Search over the groups of one workload on two types of system, run in one way; evaluations are shared by all origins.

    `recent`: evaluations that are kept; what it has dropped is evaluated again when it is asked for.
    """

    def __init__(
        self,
        workload: ServingFacts,
        prefill: Grid,
        decode: Grid,
        scaleouts: tuple[ScaleOut, ScaleOut],
        problem: ResolvedSpec,
        recent: Recent,
    ):
        self.workload, self.problem, self._recent = workload, problem, recent
        self.prefill, self.decode, self.scaleouts = prefill, decode, scaleouts
        self.evaluated = 0
        self._name = next(NAMES)
        self._counted: set[tuple[Any, ...]] = set()
        self._choices: dict[tuple[Any, ...], GroupChoice] = {}  # one object per group, whatever origins it serves
        self._chosen: dict[
            tuple[tuple[float, float], int, float], list[GroupChoice]
        ] = {}  # by prices, number and round trip

    def choose(self, prices: tuple[float, float], most: int, allowance_s: float) -> list[GroupChoice]:
        """Select at most `most` groups by the systems they occupy per request; see `LowerHull.fewest_systems`. What was chosen is kept."""
        key = prices, most, allowance_s
        if key not in self._chosen:
            self._chosen[key] = self._choose(*key)
        return self._chosen[key]

    def _choose(self, prices: tuple[float, float], most: int, allowance_s: float) -> list[GroupChoice]:
        """Select groups for `choose`."""
        feasible = self._name, "feasible", allowance_s
        groups: FeasibleGroups | None = self._recent.get(feasible, lambda: self._evaluate(allowance_s))
        if groups is None:
            return []
        return [
            self._choice(groups, position, allowance_s)
            for position in groups.hull.fewest_systems(prices, most, self.problem.spec.solver.whole)
        ]

    def least_loaded(self) -> ServingPoint:
        """Evaluate the fastest prefill layout that fits, in as many workers as may be, beside one decode worker of each layout and batch."""
        alone = self.prefill.point
        index = np.atleast_1d(
            np.argmin(np.where(np.asarray(alone.fits)[:, 0], np.asarray(alone.prompt_s)[:, 0], np.inf))
        )
        batch = np.broadcast_to(np.arange(self.decode.batches.shape[1]), self.decode.batches.shape)
        return self._found(index, batch, (MAX_WORKERS, 1), {})[0].point

    def _limits(self, allowance_s: float) -> Limits:
        stretch = stretch_of(self.problem.derating, (self.prefill.system, self.decode.system))
        return limits_at_site(self.workload.spec, allowance_s, stretch)

    def _evaluate(self, allowance_s: float) -> FeasibleGroups | None:
        """Evaluate the groups at a round trip; None where no prefill layout meets the limits."""
        limits = self._limits(allowance_s)
        index = efficient_prefill_layouts(self.prefill, limits, self.problem.constants.serving)
        if not index.size:
            return None
        # The batches that a decode worker can hold hardly depend on the prefill side: select them beside its fastest layout.
        fastest = index[np.argmin(np.asarray(self.prefill.point.prompt_s)[index, 0])]
        alone = self.rate(
            np.atleast_1d(fastest),
            np.arange(self.decode.batches.shape[1])[None, :],
            (MAX_WORKERS, 1),
            limits,
            allowance_s,
        )
        batch = np.sort(np.argsort(alone[0, ..., 0], axis=1)[:, -MAX_BATCHES:], axis=1)
        found, screen = self._found(index, batch, RATIOS, limits)
        ranked = self._ranked(index, batch, limits)
        satisfied = self._satisfied(found, screen, limits, allowance_s)
        rate = np.where(satisfied.ravel()[ranked.positions], ranked.rate, 0.0)
        rate = within_demand(rate, self.workload, self.problem)
        return FeasibleGroups(index, batch, satisfied.shape, ranked.hull(rate > 0.0))

    def _choice(self, groups: FeasibleGroups, position: int, allowance_s: float) -> GroupChoice:
        """Return the group at a flat position, the same object each time."""
        key = (*_key(groups.prefill_layouts, groups.batches), position)
        if key not in self._choices:
            n_p, n_d = RATIOS
            p, d, b, r = index = tuple(map(int, np.unravel_index(position, groups.shape)))
            found, _ = self._found(groups.prefill_layouts, groups.batches, RATIOS, self._limits(allowance_s))
            self._choices[key] = GroupChoice(
                prefill=self.prefill,
                decode=self.decode,
                prefill_layout=int(groups.prefill_layouts[p]),
                decode_layout=d,
                batch=int(groups.batches[d, b]),
                workers=(int(n_p[r]), int(n_d[r])),
                found=_picked(found, index),
            )
        return self._choices[key]

    def rate(
        self, index: Ints, batch: Ints, workers: tuple[Result, Result], limits: Limits, allowance_s: float
    ) -> Floats:
        """Evaluate some prefill layouts with given batches of all decode layouts; rates are 0 where a limit is missed."""
        found, screen = self._found(index, batch, workers, limits)
        return np.where(self._satisfied(found, screen, limits, allowance_s), found.point.requests_per_s, 0.0)

    def _satisfied(self, found: DisaggregatedPoint, screen: SloScreen, limits: Limits, allowance_s: float) -> Bools:
        """Tell which groups keep the limits at a round trip."""
        further = {metric: satisfied for metric, satisfied in limits.items() if metric != TPOT}
        return screen.satisfied(further) & meets_classes(self.workload.spec.classes, found.point, allowance_s)

    def _ranked(self, index: Ints, batch: Ints, limits: Limits) -> RankedGroups:
        """Rank the groups of all worker ratios that keep the limits of every round trip."""

        def ranked() -> RankedGroups:
            (n_p, n_d), (found, screen) = RATIOS, self._found(index, batch, RATIOS, limits)
            rate = np.where(screen.satisfied({}), found.point.requests_per_s, 0.0)
            prefill = self.prefill.systems[index][:, None, None, None] * n_p
            return RankedGroups.of(prefill, self.decode.systems[:, None, None] * n_d, rate)

        kept: RankedGroups = self._recent.get((self._name, "ranked", *_key(index, batch)), ranked)
        return kept

    def _found(
        self, index: Ints, batch: Ints, workers: tuple[Result, Result], limits: Limits
    ) -> tuple[DisaggregatedPoint, SloScreen]:
        """Evaluate groups, or look them up, with the screen of their limits."""
        key = (*_key(index, batch), np.shape(workers[0]))

        def evaluated() -> tuple[DisaggregatedPoint, SloScreen]:
            found = evaluate(
                self.workload,
                (self.prefill.system, self.decode.system),
                self.scaleouts,
                (
                    self.prefill.layouts.take((index, None, None, None)),
                    self.decode.layouts.take((slice(None), None, None)),
                ),
                np.take_along_axis(self.decode.batches, batch, axis=1)[..., None],
                workers,
                self.prefill.choice,
                self.problem.constants.serving,
            )
            if key not in self._counted:
                self._counted.add(key)
                self.evaluated += np.size(found.point.requests_per_s)
            return found, SloScreen(found.point, {TPOT: limits.get(TPOT, ())})

        kept: tuple[DisaggregatedPoint, SloScreen] = self._recent.get((self._name, *key), evaluated)
        return kept


def _key(index: Ints, batch: Ints) -> tuple[bytes, bytes]:
    """Return what tells apart the groups of some prefill layouts with given batches of all decode layouts."""
    return index.tobytes(), batch.tobytes()


def _picked(found: DisaggregatedPoint, index: tuple[int, ...]) -> DisaggregatedPoint:
    """Take one group out of arrays of them, in plain numbers."""
    point = found.point

    def one(value: Result | Ints) -> float:
        return float(picked(value, index))

    return DisaggregatedPoint(
        point=replace(point.pick(index), shares={name: one(share) for name, share in point.shares.items()}),
        prefill_workers=one(found.prefill_workers),
        decode_workers=one(found.decode_workers),
        prefill_chips=one(found.prefill_chips),
        decode_chips=one(found.decode_chips),
        prefill_shares={name: one(share) for name, share in found.prefill_shares.items()},
        prefill_memory_bytes=one(found.prefill_memory_bytes),
        transfer_s=one(found.transfer_s),
        links_s=one(found.links_s),
        full_s=one(found.full_s),
        boundary_s=one(found.boundary_s),
    )


def group_searches(
    workload: ServingFacts,
    prefills: Sequence[Grid],
    decodes: Sequence[Grid],
    first: FleetOption,
    second: FleetOption,
    problem: ResolvedSpec,
    recent: Recent,
) -> list[GroupSearch]:
    """Create one search for each way to run that both systems support."""
    scaleouts = first.scaleout, second.scaleout
    return [
        GroupSearch(workload, one, other, scaleouts, problem, recent)
        for one in prefills
        for other in decodes
        if one.choice == other.choice and one.choice.encoding != APART
    ]


def choose_groups(
    searches: Sequence[GroupSearch], first: FleetOption, second: FleetOption, allowance_s: float
) -> list[GroupChoice]:
    """Select at each precision the groups that occupy the fewest systems of either type per request.

    Prefill workers take the layouts that occupy the fewest systems per prompt. All decode layouts and worker ratios are tried, each
    layout at its largest batches within the limits.
    """
    prices = _relative_prices(first, second)
    chosen = []
    for search in searches:
        most = 1 if first is second else search.problem.spec.solver.points_per_system
        chosen += search.choose(prices, most, allowance_s)
    return chosen


def _relative_prices(first: FleetOption, second: FleetOption) -> tuple[float, float]:
    """Return the prices of two fleet options over the larger one, so that a price that changes for both changes no choice."""
    prices = _price(first), _price(second)
    largest = max(prices) or 1.0
    return prices[0] / largest, prices[1] / largest


def _price(option: FleetOption) -> float:
    """Compute the capital of one owned system with its fabric and building; 1 for a rented one, which is paired only with itself."""
    return option.capital + option.fabric_capital + option.facility_capital if option.owned else 1.0


@dataclass(frozen=True, slots=True)
class RankedGroups:
    """Groups of positive rate by the prefill systems that they occupy per request, then by the decode systems, then by position."""

    positions: Ints  # [group] flat position
    first: Floats  # [group] prefill systems per request
    second: Floats  # [group] decode systems per request
    rate: Floats  # [group] requests/s

    @classmethod
    def of(cls, first: Floats, second: Floats, rate: Floats) -> RankedGroups:
        """Rank groups that occupy `first` and `second` systems, which broadcast to the shape of the rates."""
        able = rate != 0.0
        positions, rate = np.flatnonzero(able), rate[able]
        x, y = (np.broadcast_to(systems, able.shape)[able] / rate for systems in (first, second))
        order = np.lexsort((y, x))
        return cls(positions[order], x[order], y[order], rate[order])

    def hull(self, kept: Bools | slice = slice(None)) -> LowerHull:
        """Build the hull of some of the groups, or of all."""
        x, y = self.first[kept], self.second[kept]
        falling = np.flatnonzero(y < np.minimum.accumulate(np.concatenate([[np.inf], y]))[:-1])
        corners: list[tuple[float, float, int]] = []
        for corner in zip(x[falling].tolist(), y[falling].tolist(), falling.tolist(), strict=True):
            while len(corners) > 1 and _is_not_convex(corners[-2], corners[-1], corner):
                corners.pop()
            corners.append(corner)
        return LowerHull(self.positions[kept], x, y, self.rate[kept], [i for _, _, i in corners])


@dataclass(frozen=True, slots=True)
class LowerHull:
    """Groups in the order of `RankedGroups`, and the corners of the lower left hull of their systems per request.

    A plan mixes groups in any proportion, so that only these corners matter.
    """

    positions: Ints  # [group] flat position
    first: Floats  # [group] prefill systems per request
    second: Floats  # [group] decode systems per request
    rate: Floats  # [group] requests/s
    corners: list[int]  # indices of groups

    def fewest_systems(self, prices: tuple[float, float], most: int, smaller: bool = False) -> list[int]:
        """Select the corner of the least capital per request, and its neighbours, which save systems of the type that is scarce.

        With `smaller`, groups that are smaller and take somewhat more capital per request join them, for plans that hold whole groups.
        Returns flat positions. Of groups as good as the first the smallest is taken. Looser limits never raise the capital of the first;
        they may raise that of its neighbours, which are other groups then, and the power.
        """
        if not self.positions.size:
            return []
        capital = prices[0] * self.first + prices[1] * self.second
        middle = int(np.argmin(capital[self.corners]))
        as_good = np.flatnonzero(capital <= (1 + THROUGHPUT_TIE_TOL) * capital[self.corners[middle]])
        smallest = self._least(self.rate, as_good)
        kept = [smallest, *(self.corners[i] for i in (middle - 1, middle + 1) if 0 <= i < len(self.corners))][:most]
        occupied = self.rate * (prices[0] * self.first + prices[1] * self.second)
        for worse in SMALLER_GROUPS if smaller else ():
            least = self._least(occupied, np.flatnonzero(capital <= (1 + worse) * capital[smallest]))
            if occupied[least] < occupied[kept].min() * (1 - THROUGHPUT_TIE_TOL):
                kept.append(least)
        return [int(self.positions[i]) for i in kept]

    def _least(self, values: Floats, groups: Ints) -> int:
        """Return the group of the least value among some; of equal ones the first by position."""
        equal = groups[values[groups] == values[groups].min()]
        return int(equal[np.argmin(self.positions[equal])])


def _is_not_convex(a: tuple[float, float, int], b: tuple[float, float, int], c: tuple[float, float, int]) -> bool:
    """Tell whether point b lies on or above the line from a to c; (x, y, index) each."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])


def efficient_prefill_layouts(grid: Grid, limits: Limits, constants: ServingConstants) -> Ints:
    """Select a few layouts whose prompts occupy the fewest system-seconds, each faster than those before it.

    Leaves out layouts that miss the limit on the time to first token even without a queue.
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
    return np.sort(order[faster][:MAX_PREFILL_LAYOUTS])


def disaggregated_point(workload: ServingFacts, pair: WorkerGroup, problem: ResolvedSpec) -> OperatingPoint:
    """Build the operating point of a group."""
    choice, found = pair.choice, pair.choice.found
    drawn = [{name: float(part) for name, part in side.items()} for side in (found.prefill_shares, found.point.shares)]
    sides = (
        ("prefill", choice.prefill, choice.prefill_layout, 1, drawn[0]),
        (
            "decode",
            choice.decode,
            choice.decode_layout,
            int(choice.decode.batches[choice.decode_layout, choice.batch]),
            drawn[1],
        ),
    )
    held = {"prefill": float(found.prefill_memory_bytes), "decode": float(found.point.memory_bytes)}
    uses = []
    for (role, grid, layout, batch, shares), option, systems, workers in zip(
        sides, pair.fleet_options, pair.systems, choice.workers
    ):
        extra = systems * float(pool_power_w(shares, option.system, problem.constants.power))
        sizes = layout_of(grid.layouts, layout)
        uses.append(
            Use(
                role, option, systems, extra, grid.precision, sizes, batch, workers, memory_bytes=held[role],
                kv_precision=grid.choice.kv_precision, kv_chosen=workload.spec.kv_precision is not None, waiting=grid.choice.waiting, encoding=grid.choice.encoding,
            )
        )  # fmt: skip
    return OperatingPoint(
        workload=workload,
        uses=tuple(uses),
        capacity=pair.capacity,
        latency={name: float(value) for name, value in latencies(found.point, workload.spec).items()},
        breakdown=sides[1][-1],
        call_s=call_s(found.point),
        links_s=float(found.links_s),
        classes=class_rows(workload.spec.classes, found.point),
        steady=found.point,
        mfu=mfu(
            workload,
            pair.capacity,
            [
                (rates_of(workload, use.option.system, use.precision), use.systems * use.option.system.chips)
                for use in uses
            ],
            float(found.point.computed_share),
        ),
    )


def without_replaceable(pairs: Sequence[WorkerGroup], alone: Sequence[OperatingPoint]) -> list[WorkerGroup]:
    """Keep the groups that serve more (by `THROUGHPUT_TIE_TOL`) than the same systems would by themselves; power is not compared.

    By themselves: with one pool for both roles, or, for a group on two types of system, with separate pools on each type.
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
