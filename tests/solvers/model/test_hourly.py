"""Systems counted by the slot against the enumeration of how many run in each, with the starts and the least run of each system."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from solvers.interface import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.block_data.hourly import HourlyData
from solvers.model.data import Limit, PlanData
from solvers.search.joint import solve
from solvers.search.proven import with_whole_hours
from tests.solvers.model.test_rows_by_hand import Rows
from tests.solvers.reference import near

EXACT = Options(gap=0.0)
CASES = 100


def problem(demand, held_cost, hour_cost, start_cost=0.0, least=1, whole=False, most=3, rings=None, capacity=1.0):
    """One workload at one site, on systems of which each serves `capacity`: held throughout, or rented by the slot."""
    T = len(demand)
    hours = np.broadcast_to(np.asarray(hour_cost, dtype=float), (T,))
    follows = np.roll(np.arange(T), -1) if rings is None else rings
    return PlanData(
        slot_window=np.zeros(T, dtype=int),
        slot_hours_s=np.ones(T),
        site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(2, dtype=int),
        option_group=np.zeros(2, dtype=int),
        option_fabric=np.full(2, -1),
        holding_option=np.arange(2),
        holding_window=np.array([-1, -1]),
        holding_upper=np.full(2, float(most)),
        holding_cost={"cost": np.array([held_cost, 0.0])},
        holding_power_w=np.zeros(2),
        hourly=HourlyData(
            holding=np.array([False, True]),
            least_slots=np.array([1, least]),
            cost={"cost": np.array([np.zeros(T), hours])},
            start_cost={"cost": np.array([np.zeros(T), np.full(T, float(start_cost))])},
        ),
        point_pool=np.zeros(2, dtype=int),
        point_job=np.full(2, -1),
        point_uses=np.array([[0, 0], [1, 1]]),
        point_uses_systems=np.ones(2),
        point_capacity=np.full(2, capacity),
        point_power_w=np.zeros(2),
        point_cost={"cost": np.zeros((2, T))},
        point_whole=np.ones(2, dtype=bool) if whole else None,
        point_load_s=np.zeros(2) if whole else None,
        arc_workload=np.zeros(1, dtype=int),
        arc_origin=np.zeros(1, dtype=int),
        arc_site=np.zeros(1, dtype=int),
        arc_pool=np.zeros(1, dtype=int),
        arc_cost={"cost": np.zeros((1, T))},
        demand=np.asarray(demand, dtype=float)[None, None, :],
        order=Chronology(next=np.asarray(follows, dtype=np.int64), step_s=np.ones(T)),
    )


def starts_of(runs, least):
    """Return the starts in one round of systems that run so many at a time, None where one stops before its least run; those that started
    first stop first, round after round."""
    T, queue, starts = len(runs), [-math.inf] * int(runs[-1]), 0
    for t in range(T * (2 + least + int(max(runs)))):
        now = int(runs[t % T])
        starts += max(now - len(queue), 0) if t < T else 0
        queue += [t] * (now - len(queue))
        while len(queue) > now:
            if t - queue.pop(0) < least:
                return None
    return starts


def enumerated(demand, held_cost, hours, start_cost, least, most=3, capacity=1.0):
    """Return the least cost over all counts of systems held, and all numbers of others that run in each slot."""
    best = math.inf
    for runs in itertools.product(range(most + 1), repeat=len(demand)):
        if (starts := starts_of(runs, least)) is None:
            continue
        lacks = np.ceil(np.asarray(demand) / capacity - np.array(runs) - 1e-9).max()
        if lacks <= most:
            best = min(best, max(lacks, 0) * held_cost + float(hours @ np.array(runs)) + start_cost * starts)
    return best


def drawn(seed):
    """Draw a case whose whole numbers make ties and borders likely."""
    rng = np.random.default_rng(seed)
    T = int(rng.integers(2, 5))
    return {
        "demand": rng.integers(0, 4, T) * rng.choice([1.0, 0.75]),
        "held_cost": float(rng.integers(1, 3 * T)),
        "hours": rng.integers(1, 6, T).astype(float),
        "start_cost": float(rng.integers(0, 4)),
        "least": int(rng.integers(1, T + 2)),
    }


@pytest.mark.parametrize("whole", [False, True])
def test_the_least_cost_is_that_of_the_enumeration(whole):
    for seed in range(CASES):
        case = drawn(seed)
        expected = enumerated(**case)
        data = problem(case["demand"], case["held_cost"], case["hours"], case["start_cost"], case["least"], whole=whole)
        found = solve(data, EXACT)
        assert near(found.value, expected), (seed, case, found.value, expected)
        assert near(found.bound, expected), (seed, case)


def test_whole_replicas_take_whole_systems():
    for seed in range(0, CASES, 10):
        case = drawn(seed)
        data = problem(case["demand"], case["held_cost"], case["hours"], case["start_cost"], case["least"], whole=True)
        assert near(solve(data, EXACT).value, enumerated(**case)), seed


def test_two_solvers_agree():
    for seed in range(10):
        case = drawn(seed)
        data = problem(case["demand"], case["held_cost"], case["hours"], case["start_cost"], case["least"])
        assert near(solve(data, replace(EXACT, solver="pulp")).value, enumerated(**case)), seed


def test_the_rows_by_hand():
    """Three slots in a ring: a system that starts in one runs in the next, too."""
    rows = Rows(problem([1, 2, 2], 3.0, 1.0, start_cost=0.5, least=2))
    assert rows.of("rented", 1, 0) == ({"on[1,0]": 1, "n[1]": -1}, -np.inf, 0)
    assert rows.of("started", 1, 0) == ({"on[1,0]": 1, "on[1,2]": -1, "started[1,0]": -1}, -np.inf, 0)
    assert rows.of("least run", 1, 1) == ({"started[1,1]": 1, "started[1,0]": 1, "on[1,1]": -1}, -np.inf, 0)
    assert rows.of("installed", 1, 0) == ({"x[1,0]": 1, "on[1,0]": -1}, -np.inf, 0)


def little_job():
    """One system for a billionth of an hour, in the second or third of three, beside a workload."""
    return replace(
        problem([1, 1, 1], 3.0, 1.0),
        point_job=np.array([-1, 0]),
        point_pool=np.array([0, -1]),
        job_work=np.array([1e-9]),
        job_window_mask=np.array([[False, True, True]]),
    )


def test_a_job_of_little_work_takes_its_systems_for_a_slot():
    """It pays a whole hour of its system at 1, not a share that rounding loses."""
    data = little_job()
    assert Rows(data).of("worked", 0, 1) == ({"y[1]": 1, "on[1,1]": -1, "on[1,2]": -1}, -np.inf, 0)
    assert near(solve(data, EXACT).value, 3.0 + 1.0)


def test_day_and_night():
    """Four systems by day at 2 an hour against 1.2 throughout: one is held, three are rented for 6 of 24 hours."""
    demand = [1.0] * 18 + [4.0] * 6
    found = solve(problem(demand, 24 * 1.2, 2.0, most=4), EXACT)
    assert near(found.value, 24 * 1.2 + 3 * 6 * 2.0)
    assert found.values["n"].tolist() == [1.0, 3.0]
    assert found.values["on"][1].tolist() == [0.0] * 18 + [3.0] * 6


def test_each_ring_is_a_cycle_of_its_own():
    """Two days of two hours: a system wanted in the second hour of each starts on each day."""
    data = problem([0, 1, 0, 1], 100.0, 1.0, start_cost=0.25, rings=[1, 0, 3, 2])
    assert near(solve(data, EXACT).value, 2 * 1.25)
    assert near(
        solve(replace(data, order=Chronology(next=np.array([1, 2, 3, 0]), step_s=np.ones(4))), EXACT).value, 2.5
    )


def test_a_start_longer_than_its_ring_binds_for_all_of_it():
    assert near(solve(problem([0, 1, 0], 100.0, 1.0, start_cost=5.0, least=9), EXACT).value, 3.0)


def test_a_limit_on_cost_counts_the_hours():
    data = problem([1, 2, 2], 3.5, [1.0, 2.0, 2.0], start_cost=0.5)
    least = solve(data, EXACT).value
    assert solve(replace(data, limits=(Limit("limits.budget", "cost", least * 1.001),)), EXACT).value is not None
    short = solve(replace(data, limits=(Limit("limits.budget", "cost", least * 0.999),)), EXACT)
    assert short.status == "infeasible"


def test_fractions_of_systems_bound_whole_ones():
    for seed in range(20):
        case = drawn(seed)
        data = problem(case["demand"], case["held_cost"], case["hours"], case["start_cost"], case["least"])
        assert solve(data.by_use(), EXACT).value <= solve(data, EXACT).value * (1 + 1e-9)


def test_whole_systems_by_the_hour_raise_the_bound():
    """Half a system's load in two slots takes a whole one in each, 2 in all; the relaxation pays for two halves. No bound is beyond the optimum."""
    data = problem([0.5, 0.5], 100.0, 1.0, whole=True)
    relaxed, found = solve(data.relaxation(), EXACT).value, solve(data, EXACT)
    assert near(relaxed, 1.0) and near(found.value, 2.0)
    assert near(with_whole_hours(data, replace(found, bound=relaxed), EXACT).bound, 2.0)
    for seed in range(10):
        case = drawn(seed)
        data = problem(case["demand"], case["held_cost"], case["hours"], case["start_cost"], case["least"], whole=True)
        raised = with_whole_hours(data, replace(solve(data, EXACT), bound=0.0), EXACT)
        assert raised.bound <= enumerated(**case) * (1 + 1e-9), seed


def test_decomposed_and_in_one_piece():
    for seed in range(5):
        case = drawn(seed)
        case["demand"] = np.ceil(case["demand"]) + 1.0
        data = problem(case["demand"], case["held_cost"], case["hours"], 0.0, 1, most=5)
        assert near(solve(data, replace(EXACT, method="decomposed")).value, solve(data, EXACT).value), seed


def test_a_year_by_hour():
    """8760 hours of whole systems: the held ones serve up to a level, the rest is rented hour by hour, with starts."""
    rng = np.random.default_rng(7)
    day = np.array([1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 3, 3, 3, 4, 4, 4, 3, 2, 2, 1, 1, 1])
    demand = np.tile(day, 365) * (rng.random(8760) < 0.9)
    hours, start, held_cost = 2.0, 0.5, 8760 * 1.2
    most = int(demand.max())

    def cost(held):
        need = np.maximum(demand - held, 0)
        total = held * held_cost
        for level in range(1, most - held + 1):  # each system beside those held serves one level of demand
            runs = need >= level
            gaps = np.flatnonzero(runs & ~np.roll(runs, 1))
            total += hours * runs.sum() + start * len(gaps)  # a gap of one hour costs 2 to bridge and 0.5 to start anew
        return total

    expected = min(cost(held) for held in range(most + 1))
    found = solve(problem(demand, held_cost, hours, start_cost=start, most=most), replace(EXACT, time_limit_s=120))
    assert near(found.value, expected)
