"""Search the best prefill and decode pools for a serving case: layouts x workers x batch under its load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints, Result
from models.serving.closed_points import closed_pools, closed_sessions
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import within_slo
from planner.candidates.disaggregated import efficient_prefill_layouts, meets_alone
from planner.candidates.serving import Grid
from planner.errors import Issue, SpecError
from planner.estimate.batch_search import FRACTIONS, BatchChoice, Batches, Selection, busiest_row, choose_batch
from planner.estimate.case import CaseFacts
from planner.estimate.power import capped_group
from planner.estimate.serving_configuration import (
    CONCURRENCY,
    MAX,
    Load,
    SearchResult,
    ServingConfiguration,
    allowed_layouts,
    best_result,
    common_choices,
    meets_limits,
)
from planner.evaluate import disaggregated, serving
from planner.evaluate.serving import batch_grid, limits_at_site, systems_per_replica
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.fabrics import may_exchange
from planner.spec.slo import TPOT
from planner.spec.stack.case import CasePool

MAX_SPLITS = 24  # numbers of prefill workers tried for a pair of layouts in a closed loop
FIRST_SPLITS = 256  # splits tried first; their number doubles
MOST_AT_ONCE = 4096
MANY = 4096  # workers that count as without limit
BOUND_TOL = 1e-9


def search_two_pools(facts: CaseFacts, load: Load) -> SearchResult:
    """Search the best prefill and decode pools on the chips of the case, within what the case states of them."""
    if facts.scaleout.bytes_per_s <= 0:
        return SearchResult(None)
    if not may_exchange(facts.serving.spec, *facts.sides):
        raise SpecError([Issue("workload.kv_exchange", Message.of("path.vendors_of_case").text())])
    return best_result(_search_two_pools(facts, load, choice) for choice in common_choices(facts, facts.sides))


def _search_two_pools(facts: CaseFacts, load: Load, choice: EngineChoice) -> SearchResult:
    """Search the layouts, splits of the chips and batches, run in one way."""
    case, constants = facts.case, facts.constants.serving
    stated = (case.pools.prefill, case.pools.decode) if case.pools else (CasePool(), CasePool())
    sides = [
        allowed_layouts(facts, system, side.chips or case.chips, side.layout, f"pools.{name}.layout")
        for system, side, name in zip(facts.sides, stated, ("prefill", "decode"))
    ]
    if not all(len(side) for side in sides):
        return SearchResult(None)
    bounds = PoolBounds.of(facts, sides, choice)
    if stated[0].layout is None:
        kept = bounds.efficient(facts, choice, sides[0])
        sides[0], bounds = sides[0].take(kept), bounds.take(kept)
    first, second, n_p, n_d = _chip_splits(case.chips, sides, stated, MAX_SPLITS if load.kind == CONCURRENCY else None)
    able = bounds.able(load, first, second, n_p, n_d)
    first, second, n_p, n_d = first[able], second[able], n_p[able], n_d[able]
    if not n_p.size:
        return SearchResult(None)

    def uncapped(rows: Selection, batch: Batches) -> DisaggregatedPoint:
        return disaggregated.evaluate(
            facts.serving, facts.sides, (facts.scaleout,) * 2, (sides[0].take(first[rows]), sides[1].take(second[rows])),
            batch, (n_p[rows], n_d[rows]), choice, constants,
        )  # fmt: skip

    def held(found: DisaggregatedPoint) -> DisaggregatedPoint:
        return capped_group(facts.power_cap, facts.sides, found, facts.constants.power)

    surplus: Result = 0.0
    if load.kind == CONCURRENCY and facts.serving.spec.session is not None:
        every = np.arange(n_p.size)
        loop = closed_sessions(lambda batch: uncapped(every, batch).point, np.full(n_p.size, load.value))
        group = held(replace(uncapped(every, np.asarray(loop.batch)), point=loop))
        busiest = busiest_row(facts, group.point, np.ones(n_p.size))
        if busiest.row is None:
            return SearchResult(None, *busiest.counts)
        row, counts = busiest.row, busiest.counts
        alone = closed_sessions(lambda batch: uncapped(row, batch).point, load.value)
        found = held(replace(uncapped(row, float(alone.batch)), point=alone))
    elif (
        load.kind == CONCURRENCY
    ):  # a power cap stretches all times alike, so the batch is the same with it and without
        every = np.arange(n_p.size)
        group = held(closed_pools(lambda batch: uncapped(every, batch), np.full(n_p.size, load.value), constants)[0])
        busiest = busiest_row(facts, group.point, np.ones(n_p.size))
        if busiest.row is None:
            return SearchResult(None, *busiest.counts)
        row, counts = busiest.row, busiest.counts
        free, surplus = closed_pools(lambda batch: uncapped(row, batch), load.value, constants)
        found = held(free)
        surplus = surplus * free.point.requests_per_s / found.point.requests_per_s
    else:
        ranks = np.asarray(sides[1].dp)[second]
        chosen, counts, picked_batch = _best_first(
            bounds.best(load, first, second, n_p, n_d),
            lambda rows: choose_batch(
                facts,
                load,
                np.ones(rows.size),
                ranks[rows],
                lambda some, batch: held(uncapped(rows[some], batch)).point,
            ),
        )
        if chosen is None:
            return SearchResult(None, *counts)
        row, found = chosen, held(uncapped(chosen, picked_batch))
    configuration = ServingConfiguration(
        choice, facts.sides, (sides[0].take(first[row]), sides[1].take(second[row])), (int(n_p[row]), int(n_d[row])), 1.0,
        int(found.chips), float(found.point.batch), found.point, found, meets_limits(facts, found.point), float(surplus),
    )  # fmt: skip
    return SearchResult(configuration, *counts)


def _best_first(bound: Floats, search: Callable[[Ints], BatchChoice]) -> tuple[int | None, tuple[int, int, int], float]:
    """Search splits, the best bound first, until no other can score more: (row, counts, batch) of the best."""
    order = np.argsort(-bound, kind="stable")
    best, best_score, batch = None, -np.inf, 0.0
    counts, start, size = (0, 0, 0), 0, FIRST_SPLITS
    while start < order.size and bound[order[start]] > best_score * (1 + BOUND_TOL):
        rows = order[start : start + size]
        choice = search(rows)
        counts = counts[0] + choice.counts[0], counts[1] + choice.counts[1], counts[2] + choice.counts[2]
        if choice.row is not None and choice.score > best_score:
            best, best_score, batch = int(rows[choice.row]), choice.score, choice.batch
        start, size = start + size, min(2 * size, MOST_AT_ONCE)
    return best, counts, batch


@dataclass(frozen=True, slots=True)
class PoolBounds:
    """What workers do at most: prompts of a prefill worker [p], and requests of a decode worker beside many others that keep TPOT.

    Used to leave out splits of the chips that cannot be better than one already found.
    """

    alone: DisaggregatedPoint  # [p, load] prefill workers beside little work, and beside more than they can do
    prompts_per_s: Floats  # [p]
    first_token_s: Floats  # [p] without a queue
    answers_per_s: Floats  # [d, batch] that fit, no fewer at larger batches
    in_time_per_s: Floats  # [d] that keep the limit on TPOT too
    later_s: Floats  # [d, batch] mean time of all later tokens
    batches: Floats  # [d, batch]
    rate_per_s: Floats  # [d, batch] requests per second of a decode worker, whether they fit or not

    @classmethod
    def of(cls, facts: CaseFacts, sides: Sequence[ServingLayouts], choice: EngineChoice) -> PoolBounds:
        """Evaluate both sides beside workers without number."""
        constants, scaleouts = facts.constants.serving, (facts.scaleout,) * 2
        batches = np.concatenate([np.tile(FRACTIONS, (len(sides[1]), 1)), batch_grid(np.asarray(sides[1].dp))], axis=1)

        def at(
            layouts: tuple[ServingLayouts, ServingLayouts], batch: Result, workers: tuple[Result, Result]
        ) -> DisaggregatedPoint:
            return disaggregated.evaluate(
                facts.serving, facts.sides, scaleouts, layouts, batch, workers, choice, constants
            )

        one = sides[1].take(np.array([int(np.argmax(sides[1].chips))]))
        alone = at(
            (sides[0].take((slice(None), None)), one), float(batches.max()), (np.array([MANY, 1]), np.array([1, MANY]))
        )
        shape = len(sides[0]), 2
        faster = disaggregated.correction_of(facts.serving, facts.sides, choice)
        prompts = faster.throughput / np.broadcast_to(alone.full_s, shape).min(axis=1)
        fastest = sides[0].take(np.array([int(np.argmax(prompts))]))
        many = at((fastest, sides[1].take((slice(None), None))), batches, (MANY**2, MANY)).point
        rate = np.broadcast_to(many.requests_per_s, batches.shape) / MANY
        tpot = {TPOT: limits_at_site(facts.serving.spec, 0.0).get(TPOT, [])}

        def reached(able: Bools) -> Floats:
            """Take the rates up to the batch after the last able one: finer batches are tried up to there."""
            up_to = np.concatenate([able[:, :1], able[:, :-1]], axis=1)
            return np.maximum.accumulate(np.where(up_to, rate, 0.0), axis=1)

        fits = np.broadcast_to(many.fits, batches.shape)
        return cls(
            alone=alone,
            prompts_per_s=prompts,
            first_token_s=np.broadcast_to(alone.point.unloaded_ttft_s, shape)[:, 0],
            answers_per_s=reached(fits),
            in_time_per_s=reached(fits & within_slo(many, tpot))[:, -1],
            later_s=np.broadcast_to(many.steps * many.step_s, batches.shape),
            batches=batches,
            rate_per_s=rate,
        )

    def take(self, kept: Ints) -> PoolBounds:
        """Keep some prefill layouts."""
        return replace(self, prompts_per_s=self.prompts_per_s[kept], first_token_s=self.first_token_s[kept])

    def efficient(self, facts: CaseFacts, choice: EngineChoice, layouts: ServingLayouts) -> Ints:
        """Select the prefill layouts that no other one dominates and that meet the limits without a queue."""
        constants = facts.constants.serving
        grid = Grid(
            facts.sides[0], choice, layouts, systems_per_replica(facts.sides[0], np.asarray(layouts.chips), np.asarray(layouts.pp)),
            np.ones((len(layouts), 1)),
            serving.evaluate(facts.serving, facts.sides[0], facts.scaleout, layouts.take((slice(None), None)), np.ones((1, 1)), choice, constants),
        )  # fmt: skip
        kept = efficient_prefill_layouts(grid, self.alone)
        return kept[meets_alone(grid, kept, limits_at_site(facts.serving.spec, 0.0), constants)]

    def able(self, load: Load, first: Ints, second: Ints, n_p: Ints, n_d: Ints) -> Bools:
        """Tell which splits may carry the load; the most only within the limits, and clients of a closed loop always."""
        if load.kind == CONCURRENCY:
            return np.ones(first.size, dtype=bool)
        if load.kind == MAX:
            return self.best(load, first, second, n_p, n_d) > 0.0
        most = np.minimum(n_p * self.prompts_per_s[first], n_d * self.answers_per_s[second, -1])
        able: Bools = most >= load.value * (1 - BOUND_TOL)
        return able

    def best(self, load: Load, first: Ints, second: Ints, n_p: Ints, n_d: Ints) -> Floats:
        """Compute the best score that splits can have (`batch_search`): requests/s, or by the time end to end at the given rate."""
        in_time = n_d * self.in_time_per_s[second]
        if load.kind == MAX:
            rate: Floats = np.minimum(n_p * self.prompts_per_s[first], in_time)
            return rate
        enough = n_d[:, None] * self.answers_per_s[second] >= load.value * (1 - BOUND_TOL)
        batch = np.maximum(enough.argmax(axis=1) - 1, 0)  # the rate may be reached between two batches
        shortest_s = self.first_token_s[first] + self.later_s[second, batch]
        score: Floats = (in_time >= load.value * (1 - BOUND_TOL)) + 1.0 / (1.0 + shortest_s)
        return score


def _chip_splits(
    chips: int, sides: Sequence[ServingLayouts], stated: Sequence[CasePool], most_splits: int | None
) -> tuple[Ints, Ints, Ints, Ints]:
    """List the splits of the chips to try: arrays (prefill layout, decode layout, prefill workers, decode workers).

    All whole numbers of prefill workers, or `most_splits` of them; beside them as many decode workers as the chips hold.
    """
    i, j = (part.ravel() for part in np.meshgrid(*(np.arange(len(side)) for side in sides), indexing="ij"))
    first, second = np.asarray(sides[0].chips)[i], np.asarray(sides[1].chips)[j]
    most = np.maximum((stated[0].chips or chips - second) // first, 0)
    if stated[0].workers:
        numbers = [np.array([stated[0].workers])] * i.size
    elif stated[0].chips:
        numbers = [np.array([n]) for n in most]
    elif most_splits is None:
        numbers = [np.arange(1, n + 1) for n in most]
    else:
        numbers = [np.unique(np.rint(np.geomspace(1, max(n, 1), most_splits)).astype(np.int64)) for n in most]
    pair = np.repeat(np.arange(i.size), [len(each) for each in numbers])
    n_p = np.concatenate([*numbers, np.zeros(0, np.int64)]).astype(np.int64)
    left = stated[1].chips or chips - n_p * first[pair]
    n_d = np.broadcast_to(stated[1].workers or left // second[pair], n_p.shape)
    able = (n_p >= 1) & (n_d >= 1) & (n_p <= most[pair]) & (n_d * second[pair] <= left)
    return i[pair[able]], j[pair[able]], n_p[able], np.array(n_d[able], dtype=np.int64)
