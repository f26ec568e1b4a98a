"""The bound of whole systems and replicas in every slot: never beyond the optimum, and equal to it by hand where slots are alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from solvers.bound.every_slot import bound_of_every_slot, sum_of_slots
from solvers.bound.whole_replicas import bound_of_slot, decisive_slot
from solvers.mip import Options
from solvers.search.direct import solve_direct
from tests.conftest import few_of
from tests.solvers import test_all_blocks_bruteforce as all_blocks
from tests.solvers.bound.test_whole_replicas import with_relaxation
from tests.solvers.model.test_hourly import problem as hourly_problem
from tests.solvers.model.test_residency import SEEDS, whole_problem
from tests.solvers.reference import SMALL, TIMES, near

EXACT = Options(gap=0.0)


def assert_not_beyond(data, duals, expected):
    sign = -1.0 if data.objective.maximises else 1.0
    found = sum_of_slots(data, duals, EXACT)
    if found is not None and expected is not None:
        assert sign * found.bound <= sign * expected + 1e-6 * max(1.0, abs(expected))


@settings(max_examples=few_of(60) * TIMES, **SMALL)
@given(SEEDS)
def test_it_never_proves_more_than_the_optimum_at_any_duals(seed):
    data, rng = whole_problem(seed), np.random.default_rng(seed)
    if (found := with_relaxation(data)) is not None:
        duals, expected = found
        assert_not_beyond(data, duals, expected)
        wrong = {block: (index, values + rng.normal(size=len(values))) for block, (index, values) in duals.items()}
        assert_not_beyond(data, wrong, expected)


@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(SEEDS)
def test_nor_beside_every_other_block(seed):
    rng = np.random.default_rng(seed)
    data = all_blocks.problem(rng)
    data = replace(data, point_whole=rng.random(len(data.point_pool)) < 0.85)
    found = with_relaxation(data, lambda data: solve_direct(data, EXACT).value)
    if found is not None:
        assert_not_beyond(data, *found)


@pytest.mark.parametrize("slots", [1, 4, 24])
def test_alike_slots_take_whole_systems_in_each_by_hand(slots):
    """Load of 1.25 systems in every slot, at 1 per system and slot: 2 in each, 2 T in all; one slot alone proves 1.25 T and a part."""
    data = hourly_problem([1.25] * slots, 100.0, 1.0, whole=True)
    relaxed = solve_direct(data.relaxation(), EXACT)
    found = bound_of_every_slot(data, relaxed, EXACT)
    assert found is not None and near(found.bound, 2.0 * slots) and near(solve_direct(data, EXACT).value, 2.0 * slots)
    assert found.points.any()
    single = decisive_slot(data.by_use(), relaxed, EXACT)
    if single is not None and slots > 1:
        assert bound_of_slot(data.by_use(), single, np.inf, EXACT)[0] < found.bound - 0.5
