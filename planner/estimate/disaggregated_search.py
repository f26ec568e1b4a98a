"""Search the best prefill and decode pools for a serving case: layouts x workers x batch under its load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.arrays import Ints, Result
from models.serving.closed_points import closed_pools, closed_sessions
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from planner.candidates.disaggregated import efficient_prefill_layouts
from planner.candidates.serving import Grid
from planner.errors import Issue, SpecError
from planner.estimate.batch_search import Batches, Selection, busiest_row, choose_batch
from planner.estimate.case import CaseFacts
from planner.estimate.power import capped_group
from planner.estimate.serving_configuration import (
    CONCURRENCY,
    Load,
    SearchResult,
    ServingConfiguration,
    allowed_layouts,
    best_result,
    common_choices,
    meets_limits,
)
from planner.evaluate import disaggregated, serving
from planner.evaluate.serving import limits_at_site, systems_per_replica
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.fabrics import may_exchange
from planner.spec.stack.case import CasePool

MAX_SPLITS = 24  # numbers of prefill workers tried for a pair of layouts


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
    if stated[0].layout is None:
        grid = Grid(
            facts.sides[0], choice, sides[0], systems_per_replica(facts.sides[0], np.asarray(sides[0].chips), np.asarray(sides[0].pp)),
            np.ones((len(sides[0]), 1)),
            serving.evaluate(
                facts.serving, facts.sides[0], facts.scaleout, sides[0].take((slice(None), None)), np.ones((1, 1)), choice, constants
            ),
        )  # fmt: skip
        sides[0] = sides[0].take(efficient_prefill_layouts(grid, limits_at_site(facts.serving.spec, 0.0), constants))
    first, second, n_p, n_d = _chip_splits(case.chips, sides, stated)
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
        picked = choose_batch(
            facts, load, np.ones(n_p.size), ranks, lambda rows, batch: held(uncapped(rows, batch)).point
        )
        if picked.row is None:
            return SearchResult(None, *picked.counts)
        row, counts = picked.row, picked.counts
        found = held(uncapped(row, picked.batch))
    configuration = ServingConfiguration(
        choice, facts.sides, (sides[0].take(first[row]), sides[1].take(second[row])), (int(n_p[row]), int(n_d[row])), 1.0,
        int(found.chips), float(found.point.batch), found.point, found, meets_limits(facts, found.point), float(surplus),
    )  # fmt: skip
    return SearchResult(configuration, *counts)


def _chip_splits(
    chips: int, sides: Sequence[ServingLayouts], stated: Sequence[CasePool]
) -> tuple[Ints, Ints, Ints, Ints]:
    """List the splits of the chips to try: arrays (prefill layout, decode layout, prefill workers, decode workers)."""
    found: list[tuple[int, int, int, int]] = []
    each = [np.asarray(side.chips) for side in sides]
    for i, first in enumerate(each[0]):
        for j, second in enumerate(each[1]):
            most = (stated[0].chips or chips - second) // first
            counts = (
                [stated[0].workers]
                if stated[0].workers
                else [most]
                if stated[0].chips
                else np.geomspace(1, max(most, 1), MAX_SPLITS)
            )
            for n_p in sorted({round(n) for n in counts}):
                left = stated[1].chips or chips - n_p * first
                n_d = stated[1].workers or left // second
                if n_p >= 1 and n_d >= 1 and n_p <= most and n_d * second <= left:
                    found.append((i, j, n_p, int(n_d)))
    first, second, prefill, decode = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return first, second, prefill, decode
