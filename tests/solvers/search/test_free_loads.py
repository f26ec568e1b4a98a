"""Plans decided as if loads were free: kept with all their loads and price where the limit holds, and never better than the best plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from solvers.model.build import objective_vector
from solvers.model.preemption import predecessors
from solvers.search.direct import solve_direct
from solvers.search.free_loads import with_free_loads
from tests.conftest import few_of
from tests.solvers.model.test_relays import SEEDS, drawn
from tests.solvers.test_bruteforce import EXACT


@settings(max_examples=few_of(40), deadline=None)
@given(SEEDS)
def test_a_plan_of_free_loads_keeps_the_limit_and_counts_every_load(seed):
    data = drawn(seed)
    divisible = solve_direct(data.divisible(), EXACT)
    if not divisible.values:
        return
    found = with_free_loads(data, divisible.values, np.ones(len(data.point_pool), dtype=bool), EXACT)
    if found is None:
        return
    program, values = found
    x = program.vector(values)
    assert program.arrays().violation(x) < 1e-6
    best = solve_direct(data, EXACT)
    assert objective_vector(program, data) @ x >= best.value - 1e-6 * max(abs(best.value), 1.0)
    resident, before = values["resident"], predecessors(data.order.next)
    counted = program.columns["loading"] >= 0
    assert (values["loading"] >= np.maximum(resident - resident[:, before], 0.0) - 1e-6)[counted].all()


def test_loads_beyond_the_limit_are_no_plan():
    """Whatever is drawn: with no load allowed, a plan that is kept loads nothing."""
    kept = 0
    for seed in range(12):
        data = drawn(seed)
        data = replace(data, relays=replace(data.relays, per_day=0.0))
        divisible = solve_direct(data.divisible(), EXACT)
        if not divisible.values:
            continue
        found = with_free_loads(data, divisible.values, np.ones(len(data.point_pool), dtype=bool), EXACT)
        if found is not None:
            kept += 1
            assert found[1]["loading"].sum() == pytest.approx(0.0, abs=1e-6)
    assert kept
