"""What scenarios need: by hand, and whatever systems are at work beyond it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.interface import Options
from solvers.stochastic.data import FleetData, Leaves
from solvers.stochastic.outcomes import outcomes

EXACT = Options(gap=1e-9, time_limit_s=20.0)
NONE = np.zeros(0, dtype=np.int64)


def service(held, lack_cost=100.0):
    """One workload on systems of 8 chips that are held from the start, at 2 requests/s each, with tokens of an API that cost more than nothing."""
    data = FleetData(
        option=np.array([0]), stage=np.array([0]), covers=np.array([[True, True]]), parent=np.array([-1]), lower=np.zeros(1), upper=np.array([9.0]),
        whole=np.array([True]), power_w=np.zeros(1), option_site=np.array([0, 0]), by_use=np.array([False, True]), size=np.array([8.0, 0.0]),
        window=np.array([0, 0, 1]), seconds=np.ones(3), room_w=np.full((1, 3), np.inf), demand=np.array([[4.0, 6.0, 10.0]]),
        class_workload=np.array([0]), arc_class=np.array([0]), arc_pool=np.array([0]), arc_cost=np.zeros((1, 3)), way_pool=np.array([0, 0]),
        way_option=np.array([0, 1]), way_power_w=np.zeros(2), way_cost=np.zeros((2, 3)), use_price=np.array([[0.0] * 3, [7.0] * 3]),
        lack_cost=np.full((1, 3), lack_cost),
    )  # fmt: skip
    leaf = Leaves(
        weight=np.ones(1), efficiency=np.array([[2.0, 1.0]]), rate=np.zeros((1, 0)), growth=np.ones((1, 1, 3)), cost=np.ones((1, 1)),
        use_factor=np.ones((1, 2)), node=np.zeros((1, 1), dtype=np.int64),
    )  # fmt: skip
    return data, leaf, np.array([[float(held)]])


@given(st.integers(0, 9), st.sampled_from([1.0, 100.0]))
def test_chips_needed_do_not_depend_on_what_is_held(held, lack_cost):
    """6 requests/s take 3 systems and 10 take 5, at 8 chips, whether systems, tokens or nobody serves them."""
    data, leaf, given_counts = service(held, lack_cost)
    (found,) = outcomes(data, leaf, given_counts, EXACT)
    assert found.needed == pytest.approx([24.0, 40.0])
    assert found.used[0] <= held


def test_options_without_a_size_have_no_needs():
    data, leaf, given_counts = service(3)
    (found,) = outcomes(replace(data, size=np.zeros(0)), leaf, given_counts, EXACT)
    assert found.needed.size == 0


def test_a_job_counts_with_its_mean_over_a_window():
    """A job of 6 units at 1 unit/s a system, done in the first window of 2 s: 3 systems there, of 8 chips; half of it done counts as all."""
    data, leaf, _ = service(3)
    data = replace(
        data, demand=np.zeros((0, 3)), class_workload=NONE, arc_class=NONE, arc_pool=NONE, arc_cost=np.zeros((0, 3)), way_pool=NONE,
        way_option=NONE, way_power_w=np.zeros(0), way_cost=np.zeros((0, 3)), lack_cost=np.zeros((0, 3)), job_work=np.array([6.0]),
        job_mask=np.array([[True, True, False]]), job_option=np.array([0]), job_of=np.array([0]), job_power_w=np.zeros(1),
        job_cost=np.full((1, 3), 0.1), job_undone=np.array([1000.0]),
    )  # fmt: skip
    leaf = replace(leaf, efficiency=np.zeros((1, 0)), rate=np.ones((1, 1)), growth=np.ones((1, 0, 3)))
    for held in (3.0, 1.5):
        (found,) = outcomes(data, leaf, np.array([[held]]), EXACT)
        assert found.needed == pytest.approx([24.0, 0.0])
    assert not found.kept


def test_systems_paid_by_use_serve_only_where_they_are_on_offer():
    """Two systems serve 4 of 4, 6 and 10 requests/s; where no tokens are sold 6 go unserved in the last slot, at 100 each, where they are it costs 7 each."""
    data, leaf, given_counts = service(2)
    (always,) = outcomes(data, leaf, given_counts, EXACT)
    assert always.kept and always.cost == pytest.approx(2 + 7 * (2 + 6))
    never_last = replace(data, on_offer=np.array([[True] * 3, [True, True, False]]))
    (found,) = outcomes(never_last, leaf, given_counts, EXACT)
    assert not found.kept and found.cost == pytest.approx(2 + 7 * 2 + 100 * 6)
