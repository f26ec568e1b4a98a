"""Jobs of the first class return least: against a program written a second time, on two jobs that share systems with serving."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.data import PlanData
from solvers.model.preemption import width_back
from solvers.search.joint import solve
from solvers.search.yielding import yielding_in_order
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES

EXACT = Options(gap=0.0)


def problem(rng) -> PlanData:
    """One workload and two jobs of one point each on systems of one kind, in a ring of slots."""
    T = int(rng.integers(3, 6, endpoint=True))
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    following = (np.arange(T) + 1) % T
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.full(T, 2.0), site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(1, int), option_group=np.zeros(1, int), option_fabric=np.full(1, -1),
        holding_option=np.zeros(1, int), holding_window=np.full(1, -1), holding_upper=np.array([6.0]),
        holding_cost={"cost": np.array([100.0])}, holding_power_w=np.zeros(1),
        point_pool=np.array([0, -1, -1]), point_job=np.array([-1, 0, 1]), point_uses=np.array([[0, 0], [1, 0], [2, 0]]),
        point_uses_systems=np.array([1.0, *table(2, low=1, high=2)]), point_capacity=np.ones(3), point_power_w=np.zeros(3),
        point_cost={"cost": np.vstack([np.zeros(T), table(2, T, high=2) / 10])}, arc_workload=np.zeros(1, int), arc_origin=np.zeros(1, int),
        arc_site=np.zeros(1, int), arc_pool=np.zeros(1, int), arc_cost={"cost": np.zeros((1, T))}, demand=table(1, 1, T, high=3),
        job_work=table(2, low=1, high=T), job_window_mask=np.ones((2, T), dtype=bool), point_restart_s=np.array([0.0, 0.25, 0.25]),
        order=Chronology(next=following, step_s=np.full(T, 2.0)),
    )  # fmt: skip


def least_returns(data: PlanData, systems: float, most: float, first: int) -> tuple[float, float]:
    """The least returns of the job `first`, and those of the other given these, by a program of its own; columns v, then u, of both jobs."""
    T = len(data.slot_window)
    before = [int(np.flatnonzero(data.order.next == t)[0]) for t in range(T)]
    at = lambda kind, j, t: (kind * 2 + j) * T + t
    rows, sides, equal, equal_sides = [], [], [], []
    for j in range(2):
        work = np.zeros(4 * T)
        for t in range(T):
            work[at(0, j, t)], work[at(1, j, t)] = 2.0, -0.25
            rise = np.zeros(4 * T)
            rise[at(0, j, t)] += 1.0
            rise[at(0, j, before[t])] -= 1.0
            rise[at(1, j, t)] -= 1.0
            rows.append(rise)
            sides.append(0.0)
        equal.append(work)
        equal_sides.append(data.job_work[j])
    for t in range(T):
        room = np.zeros(4 * T)
        room[at(0, 0, t)], room[at(0, 1, t)] = data.point_uses_systems[1:]
        rows.append(room)
        sides.append(systems - data.demand[0, 0, t])
    cost = np.zeros(4 * T)
    cost[: 2 * T] = data.point_cost["cost"][1:].ravel()
    rows.append(cost)
    sides.append(most - 100.0 * systems)
    found = []
    for j in (first, 1 - first):
        goal = np.zeros(4 * T)
        goal[at(1, j, 0) : at(1, j, 0) + T] = 1.0
        best = linprog(goal, np.array(rows), np.array(sides) + 1e-9, np.array(equal), equal_sides, bounds=(0.0, 1.0))
        found.append(best.fun)
        rows.append(goal)
        sides.append(best.fun + 1e-8)
    return found[0], found[1]


@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0.0, 0.05, 0.5]))
def test_the_first_class_returns_least_then_the_second(seed, second_first, room):
    data = problem(np.random.default_rng(seed))
    plan = solve(data, EXACT)
    if not plan.values:
        return
    first = int(second_first)
    classes = [np.array([j == first for j in range(2)]), np.array([j != first for j in range(2)])]
    found = yielding_in_order(data, plan, classes, room, EXACT)
    returns = [float(width_back(data, found.values["v"][p]).sum()) for p in (1, 2)]
    least = least_returns(data, float(plan.values["n"].sum()), plan.value + room, first)
    assert returns[first] <= least[0] + 1e-5 and returns[1 - first] <= least[1] + 1e-4
    assert found.value <= plan.value + room + 1e-6
    assert (found.values["n"] == plan.values["n"]).all()


def test_nothing_changes_without_a_cost_of_returning():
    data = problem(np.random.default_rng(1))
    free = replace(data, point_restart_s=None, order=None)
    plan = solve(free, EXACT)
    assert yielding_in_order(free, plan, [np.array([True, True])], 1.0, EXACT) is plan
