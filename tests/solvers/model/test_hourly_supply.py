"""The supply of systems that are counted by the slot, at several sites, against the enumeration of how many run in each slot."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from solvers.interface import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.block_data.hourly import HourlyData
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.search.joint import solve
from tests.solvers.model.test_hourly import starts_of
from tests.solvers.model.test_rows_by_hand import Rows
from tests.solvers.reference import near

EXACT = Options(gap=0.0)
CASES = 40
HELD, RENTED = (0, 1), (2, 3)  # fleet options of both sites


def problem(demand, held_cost, hours, limit, start_cost=0.0, whole=False):
    """Two sites that serve a workload each [2, T], on systems held throughout or rented by the slot; one supply for the rented ones."""
    T = np.shape(demand)[1]
    site = np.array([0, 1, 0, 1])
    rented = np.isin(np.arange(4), RENTED)
    return PlanData(
        slot_window=np.zeros(T, dtype=int),
        slot_hours_s=np.ones(T),
        site_power_limit_w=np.full(2, np.inf),
        option_site=site,
        option_group=np.arange(4),
        option_fabric=np.full(4, -1),
        holding_option=np.arange(4),
        holding_window=np.full(4, -1),
        holding_upper=np.full(4, 4.0),
        holding_cost={"cost": np.where(rented, 0.0, held_cost)},
        holding_power_w=np.zeros(4),
        supply_limit=np.array([float(limit)]),
        supply_member=np.array([[0, u] for u in RENTED]),
        hourly=HourlyData(
            holding=rented,
            least_slots=np.ones(4, dtype=int),
            cost={"cost": np.where(rented[:, None], np.asarray(hours, dtype=float), 0.0)},
            start_cost={"cost": np.where(rented[:, None], np.full((4, T), float(start_cost)), 0.0)},
        ),
        point_pool=site,
        point_job=np.full(4, -1),
        point_uses=np.column_stack([np.arange(4), np.arange(4)]),
        point_uses_systems=np.ones(4),
        point_capacity=np.ones(4),
        point_power_w=np.zeros(4),
        point_cost={"cost": np.zeros((4, T))},
        point_whole=np.ones(4, dtype=bool) if whole else None,
        point_load_s=np.zeros(4) if whole else None,
        arc_workload=np.arange(2),
        arc_origin=np.zeros(2, dtype=int),
        arc_site=np.arange(2),
        arc_pool=np.arange(2),
        arc_cost={"cost": np.zeros((2, T))},
        demand=np.asarray(demand, dtype=float)[:, None, :],
        order=Chronology(next=np.roll(np.arange(T), -1), step_s=np.ones(T)),
    )


def enumerated(demand, held_cost, hours, limit, start_cost=0.0):
    """Return the least cost over all numbers of systems that run at each site in each slot, with what both sites then hold."""
    best = math.inf
    slots = np.shape(demand)[1]
    runs_of_site = list(itertools.product(range(int(np.max(demand)) + 1), repeat=slots))
    for both in itertools.product(runs_of_site, repeat=2):
        runs = np.array(both)
        if (runs.sum(axis=0) > limit).any():
            continue
        lacks = np.maximum(np.ceil(np.asarray(demand) - runs - 1e-9).max(axis=1), 0.0)
        starts = sum(starts_of(run, 1) for run in runs) if start_cost else 0.0
        best = min(best, float(lacks.sum() * held_cost + (runs @ np.asarray(hours)).sum() + start_cost * starts))
    return best


def drawn(seed, starts=False):
    rng = np.random.default_rng(seed)
    return {
        "demand": rng.integers(0, 4, (2, 3)) * rng.choice([1.0, 0.75]),
        "held_cost": float(rng.integers(2, 9)),
        "hours": rng.integers(1, 4, 3).astype(float),
        "limit": int(rng.integers(1, 4)),
        "start_cost": float(rng.integers(1, 4)) if starts else 0.0,
    }


@pytest.mark.parametrize(("whole", "starts"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_least_cost_is_that_of_the_enumeration(whole, starts):
    for seed in range(CASES // (8 if whole else 4)):
        case = drawn(seed, starts)
        expected = enumerated(**case)
        found = solve(problem(**case, whole=whole), EXACT)
        assert near(found.value, expected) and near(found.bound, expected), (seed, case, found.value, expected)


def test_sites_that_are_full_at_different_times_share_a_supply():
    """Two systems by day at one site and two by night at the other: two are there at a time, not four."""
    case = {"demand": [[2, 0], [0, 2]], "held_cost": 100.0, "hours": [1.0, 1.0], "limit": 2}
    found = solve(problem(**case), EXACT)
    assert near(found.value, 4.0) and found.values["n"].tolist() == [0.0, 0.0, 2.0, 2.0]
    assert near(solve(problem(**{**case, "limit": 1}), EXACT).value, 202.0)


def test_the_rows_by_hand():
    data = problem([[2, 0], [0, 2]], 100.0, [1.0, 1.0], 2)
    assert Rows(data).of("supply", 0, 1) == ({"on[2,1]": 1, "on[3,1]": 1}, -np.inf, 2)
    assert Rows(data.by_use()).of("supply", 0, 0) == ({"x[2,0]": 1}, -np.inf, 2)
    assert Rows(data.by_use()).of("supply", 0, 1) == ({"x[3,1]": 1}, -np.inf, 2)


def test_a_supply_of_one_holding_at_a_time_has_a_row_of_its_window():
    data = replace(problem([[2, 0], [0, 2]], 100.0, [1.0, 1.0], 2), supply_member=np.array([[0, RENTED[0]]]))
    assert Rows(data).of("supply", 0, 0) == ({"n[2]": 1}, -np.inf, 2)
    assert data.by_use().supply_used is None


def test_fractions_of_systems_bound_whole_ones():
    for seed in range(20):
        case = drawn(seed)
        relaxed = solve(problem(**case).by_use(), EXACT)
        assert relaxed.value <= solve(problem(**case), EXACT).value * (1 + 1e-9), seed
    assert build(problem(**drawn(0)).by_use()).row_blocks["supply"]
