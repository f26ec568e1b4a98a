"""Fleets extended in scenarios: hand calculations, and relations that hold for any data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.fixed_fleet.recourse import RecourseData, outcomes


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def two_options(**changes) -> RecourseData:
    """Ten requests/s by systems of 2 or of 1 request/s, and a job of 6 units on the second; of the first at most three can be had."""
    data = RecourseData(
        demand=np.array([[10.0, 4.0]]), class_workload=whole(0), way_class=whole(0, 0), way_option=whole(0, 1), way_power_w=np.zeros(2), job_work=np.array([6.0]),
        job_mask=np.ones((1, 2), dtype=bool), use_job=whole(0), use_option=whole(1), use_power_w=np.zeros(1), option_site=whole(0, 0), option_cost=np.array([2.0, 3.0]),
        option_idle_w=np.ones(2), supply_limit=np.array([3.0]), supply_member=whole(0, 0).reshape(1, 2), room_w=np.full((1, 2), np.inf), seconds=np.ones(2),
        undone=np.array([100.0, 40.0]),
    )  # fmt: skip
    return replace(data, **changes)


def at(data: RecourseData, efficiency: list[float], rate: list[float], held: list[float], late: float = 1.0):
    (row,) = outcomes(data, np.array(efficiency)[:, None], np.array(rate)[:, None], np.array([held]), late)
    return row[0]


def test_the_cheapest_fleet_serves_the_peak_and_the_job_the_rest():
    """Three of the first serve 6; four of the second serve the rest at the peak, and all six units of the job in the other slot need 6."""
    found = at(two_options(), [2.0, 1.0], [1.0], [0.0, 0.0])
    assert found.systems == pytest.approx([3.0, 5.0])  # 4 + y1 and y2 with y1 + y2 = 6: five each
    assert found.cost == pytest.approx(3 * 2 + 5 * 3) and found.undone == pytest.approx([0.0, 0.0])


def test_a_late_system_costs_more_and_what_is_held_is_sunk():
    found = at(two_options(), [2.0, 1.0], [1.0], [3.0, 4.0], 1.5)
    assert found.systems == pytest.approx([3.0, 5.0]) and found.cost == pytest.approx(6 + 12 + 1.5 * 3)
    more = at(two_options(), [2.0, 1.0], [1.0], [3.0, 9.0], 1.5)
    assert more.cost == pytest.approx(6 + 27)


def test_what_is_not_worth_a_system_is_left_undone():
    found = at(two_options(undone=np.array([100.0, 1.0])), [2.0, 1.0], [1.0], [0.0, 0.0])
    assert found.systems == pytest.approx([3.0, 4.0]) and found.undone[1] == pytest.approx(
        1 / 3
    )  # four in the slack slot
    dead = at(two_options(), [0.0, 0.0], [1.0], [0.0, 0.0])
    assert dead.undone[0] == pytest.approx(1.0) and dead.cost == pytest.approx(100 + 3 * 3)


def test_power_of_a_site_limits_its_systems():
    found = at(two_options(room_w=np.full((1, 2), 5.0)), [2.0, 1.0], [1.0], [0.0, 0.0])
    assert found.systems.sum() <= 5 + 1e-9 and found.undone.max() > 0


@given(st.integers(0, 10**6))
def test_no_fleet_costs_less_than_the_best_one_and_more_systems_never_raise_what_is_undone(seed):
    rng = np.random.default_rng(seed)
    data = two_options(option_cost=rng.uniform(0.5, 4.0, 2), undone=rng.uniform(5, 100, 2))
    efficiency, rate = rng.uniform(0, 3, (2, 3)), rng.uniform(0.2, 2, (1, 3))
    fleets = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 7.0]])
    late = outcomes(data, efficiency, rate, fleets, 1.5)
    for best, row in zip(outcomes(data, efficiency, rate, fleets[:1], 1.0), late, strict=True):
        for fleet, found in zip(fleets, row, strict=True):
            assert found.cost >= best[0].cost - 1e-7 and found.cost >= data.option_cost @ fleet - 1e-9
        assert row[2].undone @ data.undone <= row[0].undone @ data.undone + 1e-7
    part = data.restricted(np.array([False, True]))
    assert len(part.way_option) == 1 and part.supply_member.size == 0 and part.use_option.tolist() == [0]
