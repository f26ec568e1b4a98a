"""Choose the operating points of reinforcement learning: the numbers of systems of both pools, at one site or at two.

What runs best on given pools is in `planner.candidates.splits`, the closed forms are in `models.reinforcement`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import sum_of
from models.reinforcement.iteration import COLOCATED
from models.reinforcement.synchronise import Line
from planner.candidates.cache import EvaluationCache
from planner.candidates.fleet_options import FleetOption, charged
from planner.candidates.pairs import SplitOptions, connected_pairs, splits_across
from planner.candidates.points import OperatingPoint, Use, WeightExchange
from planner.candidates.splits import Split, SplitSearch, colocated, separate
from planner.evaluate.exchange import line_of, returned_bytes, sent_bytes
from planner.evaluate.interruptions import RunTerms, checkpoints_of, spares_of
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.losses import losses_of
from planner.evaluate.reinforcement import (
    ROLLOUT,
    UPDATE,
    Figures,
    figures_of,
    interval_of,
    iteration_row,
)
from planner.evaluate.serving import layout_of
from planner.messages import Message
from planner.money.owning import holding_worth
from planner.problem.fabrics import uneven
from planner.problem.facts import ResolvedSpec, permitted
from planner.problem.phases import terms_of
from planner.problem.reinforcement import ReinforcementFacts

BEST_SPLITS = 3  # that a point states
FIELDS_WITHOUT_EFFECT = {
    "name",
    "iterations",
    "iterations_per_hour",
    "start",
    "deadline",
    "residency",
    "sole_tenant",
    "audit",
    "checkpoints",
    "preemption",
    "availability",
    "across_sites",
    "token_bytes",
    "note",
}  # limits of a job on its splits
WIDER = 2.0  # totals beyond the least that is fast enough, up to which wider ones are tried
MOST_RATIO = 16  # systems of one pool over those of the other
MOST_SYSTEMS = 1 << 13  # no pool is larger
MOST_CHIPS_PER_RESPONSE = 1.0  # chips of the update, which divides responses
MOST_ROLLOUT_CHIPS_PER_RESPONSE = 2.0  # beyond which engines hold no response at all
NEAR_ENOUGH = 0.5  # share of the throughput needed: an update pool that stays below beside any rollout pool is left out
PRICE_TIE_TOL = 1e-9


@dataclass(frozen=True, slots=True)
class Offered:
    """A split of whole systems of one or two fleet options, evaluated."""

    split: Split
    figures: Figures
    options: tuple[FleetOption, FleetOption]  # options of update and rollout
    systems: tuple[int, int]  # 0 in rollout where one pool takes turns
    holding: float  # cost of its systems over the job, at present value
    slots: float  # cost of environment slots that are held all the time
    needed: float  # trained tokens/s
    exchange: WeightExchange | None = None  # where the pools stand at two sites

    @property
    def price(self) -> float:
        """Compute what it costs at the throughput needed: its systems, and its environment slots while it is at work."""
        return self.holding + self.slots * min(self.needed / self.figures.tokens_per_s, 1.0)

    @property
    def price_at_work(self) -> float:
        """Compute what it costs when it works all the time."""
        return self.holding + self.slots


def job_worth_s(problem: ResolvedSpec, job: ReinforcementFacts) -> float:
    """Compute the time between start and deadline, at present value [s]."""
    calendar = problem.calendar
    within = calendar.within(job.spec.start, job.spec.deadline)
    return float((calendar.seconds * calendar.discount)[within].sum())


def holding_cost(problem: ResolvedSpec, option: FleetOption, worth_s: float) -> float:
    """Compute what one system costs at present value [currency]: owned, over the horizon as first delivered; rented, for `worth_s`."""
    if not option.owned:
        return float(holding_worth(0.0, option.renting_per_s, worth_s))
    terms = terms_of(problem, option.site, option.offer)
    whole_s = float(problem.calendar.seconds @ problem.calendar.discount)
    if not terms:
        return np.inf
    return float(holding_worth(charged(problem.economics, option, terms[0]), option.hall_per_s, whole_s))


def counts_up_to(most: float) -> list[int]:
    """List the numbers of systems of a pool that are tried: powers of two, and one and a half times them."""
    halves = [3 << i for i in range(MOST_SYSTEMS.bit_length())]
    return [
        n
        for n in sorted({1 << i for i in range(MOST_SYSTEMS.bit_length())} | set(halves))
        if n <= min(most, MOST_SYSTEMS)
    ]


class ReinforcementSearch:
    """Search for the operating points of jobs of reinforcement learning, on one fleet option or on two of one site."""

    def __init__(self, problem: ResolvedSpec, cache: EvaluationCache):
        self.problem, self.cache = problem, cache

    def points(self, job: ReinforcementFacts, fleet_options: Sequence[FleetOption]) -> Iterator[OperatingPoint]:
        """Yield the points of a job on all fleet options that it may use."""
        dropped = self.cache.dropped[job.name]
        able = [option for option in fleet_options if permitted(job, option.site)]
        dropped[Message.of("dropped.option_outside_residency").text()] += len(fleet_options) - len(able)
        fields = job.spec.model_dump_json(exclude=FIELDS_WITHOUT_EFFECT)
        search: SplitSearch = self.cache.kept.setdefault(
            ("splits", *self.cache.catalog_key, fields), SplitSearch(job, self.problem.constants)
        )
        before = search.evaluated
        pairs: list[SplitOptions] = [(option, option, None) for option in able]
        pairs += [(*pair, None) for pair in connected_pairs(able) if pair[0] is not pair[1] and pair[0].owned]
        pairs += splits_across(self.problem, job, able, dropped)
        for options in pairs:
            self.cache.check_time()
            found = self._offered(job, search, options)
            for offered in select_offered(found, self._needed(job), self.problem.spec.solver.points_per_system):
                yield reinforcement_point(job, offered, best_of(found, offered), self.problem)
            if not found:
                dropped[Message.of("dropped.no_split").text()] += 1
        self.cache.evaluated += search.evaluated - before

    def _needed(self, job: ReinforcementFacts) -> float:
        """Compute the trained tokens per second from start to deadline."""
        return job.spec.tokens / (job.spec.deadline - job.spec.start)

    def _offered(self, job: ReinforcementFacts, search: SplitSearch, pair_of: SplitOptions) -> list[Offered]:
        """Evaluate splits of growing totals, until one is fast enough and further ones up to `WIDER` times as large."""
        options, exchange = pair_of[:2], pair_of[2]
        one = options[0] is options[1]
        widest = MOST_CHIPS_PER_RESPONSE, MOST_ROLLOUT_CHIPS_PER_RESPONSE
        most = [
            min(option.largest, option.offer.supply, max(share * job.spec.responses / option.system.chips, 1.0))
            for option, share in zip(options, widest, strict=True)
        ]
        together = min(options[0].largest, options[0].offer.supply)
        if one and options[0].scaleout_bytes_per_s <= 0:  # one system, if it is a scale-up domain
            together = 1.0 if options[0].system.scaleup_chips >= options[0].system.chips else 0.0
            most = [min(count, together) for count in most]
        pairs = [
            (n, m)
            for n in counts_up_to(most[0])
            for m in counts_up_to(most[1])
            if max(n, m) <= MOST_RATIO * min(n, m) and (not one or n + m <= together)
        ]
        pairs += [(n, 0) for n in counts_up_to(most[0])] if one else []

        needed = self._needed(job)
        worth_s = job_worth_s(self.problem, job)
        slots = job.environments_per_s * worth_s
        of_one = [holding_cost(self.problem, option, worth_s) for option in options]

        def holding(pair: tuple[int, int]) -> float:
            return sum_of(count * cost for count, cost in zip(pair, of_one, strict=True) if count)

        beside: dict[int, int] = {}  # largest rollout pool of each update pool, with which it is fastest
        for n, m in pairs:
            beside[n] = max(beside.get(n, 0), m)
        hopeless = set()
        for n, m in beside.items():
            self.cache.check_time()
            best = self._best(search, pair_of, (n, m)) if m else None
            self.cache.learn(job.name, best[1].tokens_per_s if best is not None else 0.0)
            if m and (best is None or best[1].tokens_per_s < NEAR_ENOUGH * needed):
                hopeless.add(n)
        pairs = [(n, m) for n, m in pairs if not m or n not in hopeless]
        found: list[Offered] = []
        enough = np.inf
        for pair in sorted(pairs, key=holding):
            if holding(pair) > WIDER * enough:
                break
            self.cache.check_time()
            best = self._best(search, pair_of, pair)
            if best is None:
                continue
            self.cache.learn(job.name, best[1].tokens_per_s)
            way = exchange and carried_weights(exchange, job, best)
            offered = Offered(*best, options, pair, holding(pair), slots, needed, way)
            found.append(offered)
            if offered.figures.tokens_per_s >= needed:
                enough = min(enough, offered.price)
        return found

    def _best(self, search: SplitSearch, pair: SplitOptions, systems: tuple[int, int]) -> tuple[Split, Figures] | None:
        """Find the best way to run on a number of systems of update and rollout; options of equal systems and networks share it."""
        options, line = pair[:2], line_between(search.job, pair[2])
        key = (
            *systems,
            line,
            *(
                (o.system.name, o.scaleout, uneven(o.plant), o.offer.spot, o.site.storage_bytes_per_s, o.owned)
                for o in options
            ),
        )
        if key not in search.kept:
            best = min(self._splits(search, options, systems, line), key=lambda split: split.iteration_s, default=None)
            option, figures = options[0], None
            if best is not None:
                terms = RunTerms.of(option.system, option.offer, option.site)
                figures = figures_of(search.job, best.way, best.update, best.rollout, best.found, terms)
            search.kept[key] = best, figures
        split, figures = search.kept[key]
        return None if split is None or figures is None else (split, figures)

    def _splits(
        self,
        search: SplitSearch,
        options: tuple[FleetOption, FleetOption],
        systems: tuple[int, int],
        line: Line | None,
    ) -> Iterator[Split]:
        """Yield the splits of a number of systems of update and rollout."""
        job, (update, rollout) = search.job, options
        able = [precision for precision in job.spec.precision if update.system.trains(precision)]
        setups = [
            TrainingSetup(job, update.system, precision, self.problem.constants, update.scaleout, uneven(update.plant))
            for precision in able
        ]
        chips = systems[0] * update.system.chips
        if not systems[1]:
            if COLOCATED in job.spec.ways or job.spec.algorithm == "dpo":
                yield from colocated(search, setups, chips)
            return
        pool = rollout.system, rollout.scaleout, systems[1] * rollout.system.chips
        yield from separate(search, setups, chips, pool, line)


def line_between(job: ReinforcementFacts, exchange: WeightExchange | None) -> Line | None:
    """Describe the line of an exchange to the closed forms; None where both pools stand at one site."""
    return None if exchange is None else line_of(job, exchange.bytes_per_s, exchange.way.rtt_s)


def carried_weights(
    exchange: WeightExchange, job: ReinforcementFacts, best: tuple[Split, Figures]
) -> WeightExchange | None:
    """State what a way carries in an iteration of a split; None where there is no rollout."""
    split, figures = best
    if split.pool is None:
        return None
    return replace(
        exchange,
        weights_bytes=sent_bytes(job, split.pool.precision),
        back_bytes=returned_bytes(job),
        iteration_s=figures.iteration_s,
    )


def select_offered(found: Sequence[Offered], needed: float, most: int) -> list[Offered]:
    """Select the cheapest split of the needed throughput, and of further splits the ones of most throughput per price, each faster than all cheaper ones.

    `needed` [token/s].
    """
    fastest, rising = 0.0, []
    for offered in sorted(found, key=lambda one: (one.price, -one.figures.tokens_per_s)):
        if offered.figures.tokens_per_s > fastest:
            fastest = offered.figures.tokens_per_s
            rising.append(offered)
    able = [offered for offered in rising if offered.figures.tokens_per_s >= needed]
    wider = sorted(able[1:], key=lambda one: -one.figures.tokens_per_s / one.price_at_work)[: most - 1]
    return able[:1] + wider


def best_of(found: Sequence[Offered], chosen: Offered) -> list[Offered]:
    """List the fastest splits that cost no more than the one chosen, which comes first."""
    others = [one for one in found if one is not chosen and one.price <= chosen.price * (1 + PRICE_TIE_TOL)]
    others.sort(key=lambda one: -one.figures.tokens_per_s)
    return [chosen, *others[: BEST_SPLITS - 1]]


def reinforcement_point(
    job: ReinforcementFacts, offered: Offered, best: Sequence[Offered], problem: ResolvedSpec
) -> OperatingPoint:
    """Build the operating point of a split on its fleet options, spares included."""
    split, figures, reliability = offered.split, offered.figures, problem.constants.reliability
    roles = (UPDATE, ROLLOUT)
    uses = []
    for role, option, count in zip(roles, offered.options, offered.systems, strict=True):
        if not count:
            continue
        spares = spares_of(job, count * option.system.chips, option.system, option.owned, reliability)
        updates, rollout = split.update.updates, split.rollout
        layout, precision = updates.layouts.row(0), split.update.setup.precision
        batch, workers = 0, 1
        if role == ROLLOUT and rollout is not None:
            pool, engines, i = rollout
            layout, precision = layout_of(engines.layouts, i), pool.precision
            batch, workers = int(engines.slots[i]), int(engines.replicas[i])
        uses.append(
            Use(
                role=role, option=option, systems=count + spares, spares=spares, extra_it_w=count * figures.extra_w[role], precision=precision,
                layout=layout, batch=batch, workers=workers, memory_bytes=figures.memory_bytes[role],
            )
        )  # fmt: skip
    option, parts = uses[0].option, {name: seconds / figures.iteration_s for name, seconds in figures.parts_s.items()}
    terms = RunTerms.of(option.system, option.offer, option.site)
    chips = sum_of(count * option.system.chips for option, count in zip(offered.options, offered.systems, strict=True))
    return OperatingPoint(
        workload=job,
        uses=tuple(uses),
        capacity=figures.tokens_per_s,
        breakdown=parts,
        losses=losses_of(job, chips, reliability, terms, offered.split.update.chips, parts),
        checkpoints=checkpoints_of(job, chips, reliability, terms, offered.split.update.chips),
        mfu=figures.mfu,
        hfu=figures.hfu,
        goodput=figures.goodput,
        time_s={"iteration": figures.iteration_s, "run": job.spec.tokens / figures.tokens_per_s},
        interval=interval_of(split.update.setup),
        exchange=offered.exchange,
        iteration=iteration_row(job, split.way, split.rollout, figures) | {"splits": [_split_row(one) for one in best]},
    )


def _split_row(offered: Offered) -> dict[str, Any]:
    """Write one of the best splits as a row of a plan document, with the layouts from which it can be evaluated again."""
    figures, split = offered.figures, offered.split
    rollout = None
    if split.rollout is not None:
        pool, engines, i = split.rollout
        rollout = {"precision": pool.precision, "layout": layout_of(engines.layouts, i)}
    return {
        "precision": split.update.setup.precision,
        "layout": split.update.updates.layouts.row(0),
        "rollout": rollout,
        "way": offered.split.way,
        "update_systems": offered.systems[0],
        "rollout_systems": offered.systems[1],
        "iteration_s": figures.iteration_s,
        "tokens_per_s": figures.tokens_per_s,
        "binds": figures.binds,
        "idle": dict(figures.idle),
    }
