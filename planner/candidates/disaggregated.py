"""Choose operating points with separate pools for prefill and decode, on one type of system or on two.

Layouts of both roles come from the grids of `planner.candidates.serving`; the closed forms are in `models.serving.disaggregation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from models.arrays import Bools, Floats, Ints, Result, picked, sum_of
from models.queueing.queues import gamma_quantile
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import SloScreen
from planner.candidates.fleet_options import FleetOption
from planner.candidates.group_selection import LOADS, THROUGHPUT_TIE_TOL, fewest_systems, open_between
from planner.candidates.load_steps import at_ends, find_steps
from planner.candidates.pairs import Joined
from planner.candidates.points import Exchange, OperatingPoint, Use
from planner.candidates.serving import Grid
from planner.candidates.worker_numbers import MOST_WORKERS, Found, NumbersSearch, Question, Sides
from planner.evaluate.classes import class_rows, meets_classes
from planner.evaluate.disaggregated import CacheLine, correction_of, evaluate, pool_power_w
from planner.evaluate.serving import (
    APART,
    call_s,
    latencies,
    layout_of,
    limits_at_site,
    mfu,
    rates_of,
)
from planner.messages import Message
from planner.problem.derating import stretch_of
from planner.problem.facts import ResolvedSpec, ScaleOut, ServingFacts
from planner.spec.slo import TPOT

MANY = 4096  # prefill workers that count as without limit
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
    exchange: Exchange | None = None

    @classmethod
    def of(
        cls, first: FleetOption, second: FleetOption, choice: GroupChoice, exchange: Exchange | None = None
    ) -> WorkerGroup:
        """Put the prefill workers of a choice on the first fleet option, and the decode workers on the second."""
        prefill, decode = choice.workers
        systems = (
            float(choice.prefill.systems[choice.prefill_layout]) * prefill,
            float(choice.decode.systems[choice.decode_layout]) * decode,
        )
        return cls((first, second), choice, float(choice.found.point.requests_per_s), systems, exchange)


@dataclass(frozen=True, slots=True)
class Asked:
    """Groups that are asked for: relative prices of the systems of both roles, the most that save either kind, and a round trip [s].

    On one kind of system only the sum of both roles counts, so that no other corner of the hull is of use.
    """

    prices: tuple[float, float]
    most: int
    allowance_s: float
    one_kind: bool


class GroupSearch:
    """Search over the groups of one workload on two types of system, run in one way; evaluations are shared by all origins."""

    def __init__(
        self,
        workload: ServingFacts,
        prefill: Grid,
        decode: Grid,
        scaleouts: tuple[ScaleOut, ScaleOut],
        problem: ResolvedSpec,
        line: CacheLine | None = None,
    ):
        self.workload, self.problem, self.line = workload, problem, line
        self.prefill, self.decode, self.scaleouts = prefill, decode, scaleouts
        self.evaluated = 0
        self._choices: dict[tuple[int, ...], GroupChoice] = {}  # one object per group, whatever origins it serves
        self._chosen: dict[tuple[Asked, ...], tuple[list[list[GroupChoice]], Counter[str]]] = {}

    def choose(self, asked: tuple[Asked, ...]) -> tuple[list[list[GroupChoice]], Counter[str]]:
        """Select groups by the systems that they occupy, and count those left out by reason. What was chosen is kept.

        The first of those for a round trip takes the fewest systems per request, of all pairs of layouts, batches and numbers of workers.
        Groups join that take fewer for the whole demand where one group can serve it. With whole replicas, groups also join that take fewer at
        some share (`LOADS`) of the whole demand, or carry most on a number of systems (`planner.candidates.load_steps`).
        """
        if asked not in self._chosen:
            self._chosen[asked] = self._choose(asked)
        return self._chosen[asked]

    def _choose(self, asked: tuple[Asked, ...]) -> tuple[list[list[GroupChoice]], Counter[str]]:
        """Select groups for `choose`."""
        trips = sorted({each.allowance_s for each in asked})
        sides = self._sides(trips)
        if not sides.able.any():
            return [[] for _ in asked], Counter()
        questions = [self._questions(sides, each, trips.index(each.allowance_s)) for each in asked]
        search = NumbersSearch(sides, [q for mine in questions for q in mine], partial(self._try, sides, trips))
        found, further = search.run(), self.problem.spec.solver.points_per_system
        of_one_kind = [mine if each.one_kind else mine[:1] for mine, each in zip(questions, asked, strict=True)]
        steps = find_steps(search, of_one_kind, further if self._whole else 0)  # divisible replicas have no steps
        picks = [
            fewest_systems(search, [*mine, *at_ends(mine[0], each_steps)], each.most, further)
            for mine, each_steps, each in zip(questions, steps, asked, strict=True)
        ]
        pairs, too_large = search.pairs
        between = np.logical_or.reduce(
            [
                open_between(search, mine if self._whole else mine[:1], pick.kept, each_steps.reach)
                for mine, each_steps, pick in zip(questions, steps, picks, strict=True)
            ]
        )
        used = {(int(found.prefill[i]), int(found.shape[i])) for pick in picks for i in pick.kept}
        for place in used:
            between[place] = False
        counts = {
            "dropped.over_point_count": sum_of(pick.beyond for pick in picks),
            "dropped.no_fewer_systems": pairs - len(used) - int(between.sum()),
            "dropped.between_shares": int(between.sum()),
            "dropped.numbers_between": search.untried(),
            "dropped.further_corners": sum_of(
                pick.corners for pick, each in zip(picks, asked, strict=True) if not each.one_kind
            ),
            "dropped.too_many_workers": too_large,
        }
        said = Counter({Message.of(code).text(): count for code, count in counts.items()})
        return [[self._choice(sides, found, i) for i in pick.kept] for pick in picks], said

    def _questions(self, sides: Sides, asked: Asked, trip: int) -> list[Question]:
        """List the groups sought at the prices and the round trip of groups asked for: the fewest systems per request, then at shares of the demand."""
        able = sides.able[trip].any(axis=0)
        peak = np.inf if self.problem.spec.objective.maximise else self.workload.peak_requests_per_s
        each = 1.0 / sides.alone_s[able]
        # A fraction of a replica is only on paper as efficient as a whole one; the smallest stays in any case.
        questions = [Question(trip, asked.prices, np.inf, max(peak, each.min(initial=np.inf)))]
        largest = MOST_WORKERS * each.max(initial=0.0)
        most = peak if np.isfinite(peak) else largest
        loads = LOADS if self._whole else LOADS[:1]
        if each.size and (self._whole or peak <= largest):  # one group for all may be better than parts of larger ones
            questions += [Question(trip, asked.prices, share * most) for share in loads]
        return questions

    @property
    def _whole(self) -> bool:
        return self.problem.spec.solver.whole

    def least_loaded(self) -> ServingPoint:
        """Evaluate the fastest prefill layout that fits beside decode workers of each layout and batch, with prefill workers without limit."""
        return self._beside_many(self._fastest()).point

    def _fastest(self) -> Ints:
        """Find the prefill layouts that fit of the shortest prompt, and of the most links."""
        alone, layouts = self.prefill.point, self.prefill.layouts
        fits = np.asarray(alone.fits)[:, 0]
        prompt_s = np.where(fits, np.asarray(alone.prompt_s)[:, 0], np.inf)
        links = np.where(fits, np.asarray(layouts.tp) * np.asarray(layouts.pp), 0)
        return np.array([np.argmin(prompt_s), np.lexsort((prompt_s, -links))[0]])

    def _beside_many(self, prefill: Ints) -> DisaggregatedPoint:
        """Evaluate prefill layouts without limit of number, beside one decode worker and `MOST_WORKERS` of each layout and batch."""
        layouts = (
            self.prefill.layouts.take((prefill, None, None, None)),
            self.decode.layouts.take((slice(None), None, None)),
        )
        return self._evaluated(layouts, self.decode.batches[..., None], (MANY, np.array([1, MOST_WORKERS])))

    def _sides(self, trips: Sequence[float]) -> Sides:
        """Find what the workers of either role take at least, and which of them keep the limits of each round trip."""
        many = self._beside_many(self._fastest())
        screen, shape = self._screen(many), np.shape(many.point.requests_per_s)
        able: list[Bools] = [
            np.asarray(self._satisfied(many, screen, allowance_s).any(axis=(0, 3))) for allowance_s in trips
        ]  # [layout, batch]
        decode, batch = np.nonzero(np.logical_or.reduce(able))
        rate = np.broadcast_to(many.point.requests_per_s, shape)[0][decode, batch]
        index, prompt_s = self._prefill_layouts()
        fast = [meets_alone(self.prefill, index, self._limits(trip), self.problem.constants.serving) for trip in trips]
        together = [mine[:, None] & shapes[decode, batch] for mine, shapes in zip(fast, able, strict=True)]
        return Sides(
            prefill=index,
            prompt_s=prompt_s,
            first=np.asarray(self.prefill.systems[index], float),
            decode=decode,
            batch=batch,
            answer_s=MOST_WORKERS / rate[:, 1],
            alone_s=1.0 / rate[:, 0],
            second=np.asarray(self.decode.systems[decode], float),
            able=np.array(together, dtype=bool).reshape(len(trips), index.size, decode.size),
        )

    def _prefill_layouts(self) -> tuple[Ints, Floats]:
        """Find the prefill layouts that no other one dominates, and the least time of their workers per request: that in full passes.

        Prompts that find their prefix in a cache find it the more often the more prompts there are.
        """
        every = np.asarray(self.decode.point.requests_per_s)
        layout, batch = np.unravel_index(int(every.argmax()), every.shape)
        layouts = self.prefill.layouts.take((slice(None), None)), self.decode.layouts.take(np.array([layout]))
        workers = np.array([MANY, 1]), np.array([1, MOST_WORKERS])
        found = self._evaluated(layouts, float(self.decode.batches[layout, batch]), workers)
        index = efficient_prefill_layouts(self.prefill, found)
        full_s = np.broadcast_to(found.full_s, (len(self.prefill.layouts), 2)).min(axis=1)
        faster = correction_of(self.workload, (self.prefill.system, self.decode.system), self.prefill.choice).throughput
        return index, full_s[index] / faster

    def _limits(self, allowance_s: float) -> Limits:
        stretch = stretch_of(self.problem.derating, (self.prefill.system, self.decode.system))
        return limits_at_site(self.workload.spec, allowance_s, stretch)

    def _screen(self, found: DisaggregatedPoint) -> SloScreen:
        return SloScreen(found.point, {TPOT: self._limits(0.0).get(TPOT, ())})

    def _satisfied(self, found: DisaggregatedPoint, screen: SloScreen, allowance_s: float) -> Bools:
        """Tell which groups keep the limits at a round trip."""
        further = {metric: limits for metric, limits in self._limits(allowance_s).items() if metric != TPOT}
        return screen.satisfied(further) & meets_classes(self.workload.spec.classes, found.point, allowance_s)

    def _try(
        self, sides: Sides, trips: Sequence[float], prefill: Ints, shape: Ints, n_p: Ints, n_d: Ints
    ) -> tuple[DisaggregatedPoint, Floats, Bools]:
        """Evaluate groups for `NumbersSearch`."""
        decode = sides.decode[shape]
        layouts = self.prefill.layouts.take(sides.prefill[prefill]), self.decode.layouts.take(decode)
        found = self._evaluated(layouts, self.decode.batches[decode, sides.batch[shape]], (n_p, n_d))
        screen = self._screen(found)
        kept = np.array([self._satisfied(found, screen, allowance_s) for allowance_s in trips])
        return found, np.asarray(found.point.requests_per_s, float), kept

    def _evaluated(
        self,
        layouts: tuple[ServingLayouts, ServingLayouts],
        batch: Result,
        workers: tuple[Result | Ints, Result | Ints],
    ) -> DisaggregatedPoint:
        systems = self.prefill.system, self.decode.system
        found = evaluate(
            self.workload,
            systems,
            self.scaleouts,
            layouts,
            batch,
            workers,
            self.prefill.choice,
            self.problem.constants.serving,
            self.line,
        )
        self.evaluated += np.size(found.point.requests_per_s)
        return found

    def _choice(self, sides: Sides, found: Found, i: int) -> GroupChoice:
        """Return a group found, the same object each time."""
        p, s, (n_p, n_d) = found.prefill[i], found.shape[i], (int(workers[i]) for workers in found.workers)
        key = tuple(map(int, (sides.prefill[p], sides.decode[s], sides.batch[s], n_p, n_d)))
        if key not in self._choices:
            evaluation, position = found.place[i]
            self._choices[key] = GroupChoice(
                prefill=self.prefill,
                decode=self.decode,
                prefill_layout=key[0],
                decode_layout=key[1],
                batch=key[2],
                workers=(n_p, n_d),
                found=_picked(found.evaluations[evaluation], (int(position),)),
            )
        return self._choices[key]


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
    exchange: Exchange | None = None,
) -> list[GroupSearch]:
    """Create one search for each way to run that both systems support."""
    scaleouts, line = (first.scaleout, second.scaleout), None if exchange is None else exchange.line
    return [
        GroupSearch(workload, one, other, scaleouts, problem, line)
        for one in prefills
        for other in decodes
        if one.choice == other.choice and one.choice.encoding != APART
    ]


def choose_groups(
    searches: Sequence[GroupSearch], asked: Mapping[float, Joined]
) -> tuple[dict[float, list[GroupChoice]], Counter[str]]:
    """Select at each precision the groups that occupy the fewest systems of either type per request, by round trip; count those left out.

    All layouts of both roles, batches and whole numbers of workers are tried (`planner.candidates.worker_numbers`).
    """
    chosen: dict[float, list[GroupChoice]] = {allowance_s: [] for allowance_s in asked}
    dropped: Counter[str] = Counter()
    for search in searches:
        most = search.problem.spec.solver.points_per_system
        wanted = tuple(
            Asked(_relative_prices(first, second), 1 if first is second else most, allowance_s, first is second)
            for allowance_s, (first, second, _) in asked.items()
        )
        found, counts = search.choose(wanted)
        dropped += counts
        for allowance_s, groups in zip(asked, found, strict=True):
            chosen[allowance_s] += groups
    return chosen, dropped


def _relative_prices(first: FleetOption, second: FleetOption) -> tuple[float, float]:
    """Return the prices of two fleet options over the larger one, so that a price that changes for both changes no choice."""
    prices = _price(first), _price(second)
    largest = max(prices) or 1.0
    return prices[0] / largest, prices[1] / largest


def _price(option: FleetOption) -> float:
    """Compute the capital of one owned system with its fabric and building; 1 for a rented one, which is paired only with itself."""
    return option.capital + option.fabric_capital + option.facility_capital if option.owned else 1.0


def efficient_prefill_layouts(grid: Grid, found: DisaggregatedPoint) -> Ints:
    """Select the prefill layouts that fit and that no other one dominates, whatever the numbers of workers.

    Another dominates where it has no fewer prompts per second, alone and in full passes, no more latency, no more chips and no fewer links;
    of equal ones the first stays. `found` [layout, load]: the layouts beside little work, and beside more than they can do.
    """
    layouts, shape = grid.layouts, (len(grid.layouts), 2)
    links = np.asarray(layouts.tp) * np.asarray(layouts.pp)
    columns = (
        np.broadcast_to(found.point.prefill_s, shape)[:, 0],
        np.broadcast_to(found.full_s, shape).min(axis=1),
        np.broadcast_to(found.point.unloaded_ttft_s, shape)[:, 0],
        np.asarray(grid.systems, float),
        np.asarray(layouts.chips, float),
        -np.asarray(links, float),
    )
    fits = np.flatnonzero(np.asarray(grid.point.fits)[:, 0])
    values = np.column_stack([column[fits] for column in columns])
    no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)  # [one, other]
    equal = no_worse & no_worse.T
    earlier = np.tri(fits.size, k=-1, dtype=bool).T
    dominated = (no_worse & (~equal | earlier)).any(axis=0)
    return fits[~dominated]


def meets_alone(grid: Grid, index: Ints, limits: Limits, constants: ServingConstants) -> Bools:
    """Tell which of some prefill layouts meet the limits on the time to first token without a queue."""
    latency = np.asarray(grid.point.prompt_s)[index, 0]
    able = np.ones(index.size, dtype=bool)
    spread = np.broadcast_to(grid.point.input_scv, np.shape(grid.point.requests_per_s))[index, 0]
    for quantile, limit in limits.get("ttft", ()):
        slowest = 1.0 if quantile == "mean" else gamma_quantile(quantile, spread)
        able &= constants.disaggregated_first_token_factor * slowest * latency <= limit
    return able


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

    Groups at two sites stay, whose prices differ. By themselves: with one pool for both roles, or, for a group on two types of system, with separate pools on each type.
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
            * sum_of(best.get(id(option), 0.0) * systems for option, systems in zip(p.fleet_options, p.systems))
        ]

    for point in alone:
        learn(point.uses[0].option, point.capacity / sum_of(use.systems for use in point.uses))
    across = [pair for pair in pairs if pair.exchange is not None]
    pairs = [pair for pair in pairs if pair.exchange is None]
    one_kind = better(pair for pair in pairs if pair.fleet_options[0] is pair.fleet_options[1])
    for pair in one_kind:
        learn(pair.fleet_options[0], pair.capacity / sum_of(pair.systems))
    return one_kind + better(pair for pair in pairs if pair.fleet_options[0] is not pair.fleet_options[1]) + across
