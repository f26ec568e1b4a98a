"""The bound of whole replicas against the reference that tries every whole-numbered plan."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers.bound.best_first import least
from solvers.bound.whole_replicas import bound_of_slot, decisive_slot, duals_of, slot_program
from solvers.mip import Options
from solvers.model.build import build, objective_vector
from solvers.model.data import Objective, PlanData
from solvers.search.direct import solve_direct
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers import test_all_blocks_bruteforce as all_blocks
from tests.solvers.model.test_residency import SEEDS, whole_problem
from tests.solvers.reference import SMALL, TIMES, best, near

SHORT = Options(gap=0.0, node_limit=30)


def assert_never_above(data, duals, expected):
    """Each slot alone, with the other slots at these duals."""
    sign = -1.0 if data.objective.maximises else 1.0
    for slot in range(data.slots):
        part = slot_program(data, duals, slot)
        found = None if part is None else least(part.part, math.inf, SHORT)
        if found is not None and expected is not None:
            assert found.bound <= sign * expected + 1e-6 * max(1.0, abs(expected)), slot


def with_relaxation(data, optimum=best):
    """The duals of the program with divisible replicas, and the best value with whole ones; None where one of them is missing."""
    divisible, expected = solve_direct(data.relaxation(), Options(gap=0.0)), optimum(data)
    if not divisible.values or data.point_whole is None or not (data.point_whole & (data.point_pool >= 0)).any():
        return None
    if expected is not None and math.isinf(expected):
        return None
    duals = duals_of(data.relaxation(), divisible, Options())
    return None if duals is None else (duals, expected)


@settings(max_examples=few_of(60) * TIMES, **SMALL)
@given(SEEDS)
def test_no_slot_proves_more_than_the_optimum(seed):
    data = whole_problem(seed)
    found = with_relaxation(data)
    if found is not None:
        assert_never_above(data, *found)


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(SEEDS)
def test_neither_do_duals_of_any_size(seed):
    data, rng = whole_problem(seed), np.random.default_rng(seed)
    found = with_relaxation(data)
    if found is not None:
        duals, expected = found
        wrong = {block: (index, values + rng.normal(size=len(values)) * (rng.random(len(values)) < 0.5)) for block, (index, values) in duals.items()}  # fmt: skip
        assert_never_above(data, wrong, expected)


@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(SEEDS)
def test_nor_beside_every_other_block(seed):
    rng = np.random.default_rng(seed)
    data = all_blocks.problem(rng)
    data = replace(data, point_whole=rng.random(len(data.point_pool)) < 0.85)
    found = with_relaxation(data, lambda data: solve_direct(data, Options(gap=0.0)).value)
    if found is not None:
        assert_never_above(data, *found)


def linear(data):
    """The least value of a program without integrality, minimised; None where there is none."""
    program = build(data)
    if not program.column_count:
        return None
    arrays, cost = program.arrays(), objective_vector(program, data) * (-1.0 if data.objective.maximises else 1.0)
    sides = LinearConstraint(arrays.matrix, arrays.row_lower, arrays.row_upper)
    found = milp(cost, constraints=sides, bounds=Bounds(arrays.lower, arrays.upper))
    return None if found.x is None else float(found.fun)


@settings(max_examples=few_of(60) * TIMES, **SMALL)
@given(SEEDS)
def test_without_branching_it_lies_between_both_linear_programs(seed):
    """Not below divisible replicas, whose duals it takes, and not above whole ones, also at wrong duals."""
    data, rng = whole_problem(seed), np.random.default_rng(seed)
    found = with_relaxation(data, linear)
    if found is None or found[1] is None:
        return
    duals, upper = found
    wrong = {block: (index, values * rng.choice([0.9, 1.0, 1.1], len(values))) for block, (index, values) in duals.items()}  # fmt: skip
    lower, slack = linear(data.relaxation()), 1e-6 * max(1.0, abs(upper))
    for slot in range(data.slots):
        right, other = (slot_program(data, y, slot) for y in (duals, wrong))
        assert (
            right is not None
            and lower - slack <= least(right.part, math.inf, replace(SHORT, node_limit=1)).bound <= upper + slack
        )
        if other is not None:
            assert least(other.part, math.inf, replace(SHORT, node_limit=1)).bound <= upper + slack


def fleet(demand, capacity, **changes):
    """One site, one kind of system for 10 each; a replica of each point takes one."""
    points, slots = len(capacity), len(demand)
    return PlanData(
        slot_window=np.zeros(slots, dtype=int), slot_hours_s=np.ones(slots), site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(1, dtype=int), option_group=np.zeros(1, dtype=int), option_fabric=np.full(1, -1),
        holding_option=np.zeros(1, dtype=int), holding_window=np.full(1, -1), holding_upper=np.array([50.0]), holding_cost={"cost": np.array([10.0])}, holding_power_w=np.zeros(1),
        point_pool=np.arange(points), point_job=np.full(points, -1), point_uses=np.column_stack([np.arange(points), np.zeros(points, dtype=int)]), point_uses_systems=np.ones(points),
        point_capacity=np.array(capacity, dtype=float), point_power_w=np.zeros(points), point_cost={"cost": np.zeros((points, slots))}, point_whole=np.ones(points, dtype=bool),
        arc_workload=np.arange(points), arc_origin=np.zeros(points, dtype=int), arc_site=np.zeros(points, dtype=int), arc_pool=np.arange(points), arc_cost={"cost": np.zeros((points, slots))},
        demand=np.array(demand, dtype=float).T[:, None, :], host_cost={}, objective=Objective("cost"), **changes)  # fmt: skip


def test_workloads_that_share_systems_only_on_paper():
    """Three workloads that ask for 1.5 replicas each: 45 by the LP, 50 with whole systems, 60 with whole replicas."""
    data = fleet([(1.5, 3.0, 15.0), (0.1, 0.2, 1.0)], capacity=(1.0, 2.0, 10.0))
    divisible = solve_direct(data.relaxation(), Options(gap=0.0))
    assert divisible.value == pytest.approx(50.0) and best(data) == pytest.approx(60.0)
    slot = decisive_slot(data, divisible, Options())
    bound, taken = bound_of_slot(data, slot, math.inf, Options())
    assert bound == pytest.approx(60.0) and taken["n"] == pytest.approx(6.0)  # where the search ends
    assert bound_of_slot(data, slot, 46.0, Options())[0] >= 46.0  # enough was proven


def test_the_bound_of_a_plan_is_that_of_whole_replicas(monkeypatch):
    """Where the program is too large to be searched over all points, the bound of the slot proves the plan."""
    from solvers.search import joint

    monkeypatch.setattr(joint, "SETTINGS", replace(joint.SETTINGS, small=0, most_full=0))
    found = solve(fleet([(1.5, 3.0, 15.0), (0.1, 0.2, 1.0)], capacity=(1.0, 2.0, 10.0)), Options(gap=0.0))
    assert found.status == "optimal" and near(found.value, 60.0) and near(found.bound, 60.0)


def test_a_plan_short_of_the_gap_asked_gets_a_further_bound(monkeypatch):
    """One linear program of the slot proves less than 59 of 60; up to forty times as many prove the rest, where less was proven than asked."""
    from solvers.bound import best_first
    from solvers.search import joint

    monkeypatch.setattr(joint, "SETTINGS", replace(joint.SETTINGS, small=0, most_full=0, further_bound=40))
    monkeypatch.setattr(best_first, "SETTINGS", replace(best_first.SETTINGS, nodes=1))
    data = fleet([(1.5, 3.0, 15.0), (0.1, 0.2, 1.0)], capacity=(1.0, 2.0, 10.0))
    close, loose = (solve(data, Options(gap=gap)) for gap in (0.0, 0.3))
    assert close.status == "optimal" and near(close.value, 60.0) and near(close.bound, 60.0)
    assert loose.status == "within_gap" and loose.bound < 59.0


def test_a_search_that_would_end_short_of_its_target_ends_at_once(monkeypatch):
    """Where 4 linear programs raise the bound by so little that 400 would not reach a far target, no more are solved; a near one is proven."""
    from solvers.bound import best_first

    counted = []
    solved = best_first._Tree.solved
    monkeypatch.setattr(best_first._Tree, "solved", lambda *given: counted.append(1) or solved(*given))
    settings = replace(best_first.SETTINGS, trial=4, least_rise=math.nan)  # a bound that stays ends nothing
    monkeypatch.setattr(best_first, "SETTINGS", settings)
    demand = [tuple(float(a) for a in row) for row in np.random.default_rng(3).uniform(1.0, 9.0, (1, 12))]
    data = fleet(demand, capacity=tuple(1.0 + 0.37 * p for p in range(12)))
    slot = decisive_slot(data, solve_direct(data.relaxation(), Options(gap=0.0)), Options())
    open_end, _ = bound_of_slot(data, slot, math.inf, Options())
    used = len(counted)
    counted.clear()
    far, _ = bound_of_slot(data, slot, 1e6, Options())
    assert far <= open_end and len(counted) <= 6 < used
    counted.clear()
    near_by, _ = bound_of_slot(data, slot, open_end, Options())
    assert near_by >= open_end - 1e-9


def test_nothing_is_proven_without_whole_replicas():
    data = fleet([(1.5,), (0.1,)], capacity=(1.0,))
    divisible = solve_direct(data.relaxation(), Options(gap=0.0))
    assert decisive_slot(data.divisible(), divisible, Options()) is None


def three_kinds():
    """Four workloads of which two share a large system on paper; a middle one for each is best when replicas are whole, a tiny one only the cheapest."""
    workload, kind = (index.ravel() for index in np.indices((4, 3)))
    data = fleet([(5.0,) * 4, (1.0,) * 4], capacity=np.ones(4))
    return replace(
        data, option_site=np.zeros(3, dtype=int), option_group=np.arange(3), option_fabric=np.full(3, -1),
        holding_option=np.arange(3), holding_window=np.full(3, -1), holding_upper=np.full(3, 50.0), holding_cost={"cost": np.array([10.0, 6.2, 3.0])}, holding_power_w=np.zeros(3),
        point_pool=workload, point_job=np.full(12, -1), point_uses=np.column_stack([np.arange(12), kind]), point_uses_systems=np.ones(12),
        point_capacity=np.array([10.0, 5.9, 0.5])[kind], point_power_w=np.zeros(12), point_cost={"cost": np.zeros((12, 2))}, point_whole=np.ones(12, dtype=bool))  # fmt: skip


@pytest.mark.parametrize("taken, value", [(False, 40.0), (True, 24.8)])
def test_the_points_of_the_slot_are_rounded_too(monkeypatch, taken, value):
    """Large systems alone, as the relaxation has them, or the middle ones that the slot takes where its bound ends."""
    from solvers.search import joint

    settings = replace(joint.SETTINGS, small=0, most_full=0, most_in_every_slot=0, poor=1.0)
    monkeypatch.setattr(joint, "SETTINGS", settings)
    monkeypatch.setattr(joint, "with_least_fleet", lambda data: data)  # which tells the relaxation what is best here
    if not taken:
        monkeypatch.setattr(joint, "bound_of_slot", lambda *given: (bound_of_slot(*given)[0], {}))
    found = solve(three_kinds(), Options(gap=0.0))
    assert found.value == pytest.approx(value) and found.bound == pytest.approx(24.8)
