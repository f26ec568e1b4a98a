"""Systems that whole replicas hold at least: by hand, and never more than any plan holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.hourly import HourlyData
from solvers.model.data import Objective, PlanData
from solvers.model.least_fleet import least_fleet_of, with_least_fleet
from solvers.search.direct import solve_direct
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.model.test_residency import whole_problem
from tests.solvers.reference import SMALL, TIMES
from tests.solvers.test_bruteforce import EXACT


def side_by_side(sizes, demand=0.1, prices=(10.0,), upper=100.0):
    """Workloads of little demand at one site, each with one point for every fleet option and size: `sizes[w]` lists (option, systems)."""
    points = [(w, k, s) for w, of_one in enumerate(sizes) for k, s in of_one]
    W, K = len(sizes), len(prices)
    return PlanData(
        slot_window=np.zeros(1, dtype=int), slot_hours_s=np.ones(1), site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(K, dtype=int), option_group=np.arange(K), option_fabric=np.full(K, -1),
        holding_option=np.arange(K), holding_window=np.full(K, -1), holding_upper=np.full(K, upper),
        holding_cost={"cost": np.array(prices)}, holding_power_w=np.zeros(K),
        point_pool=np.array([w for w, _, _ in points]), point_job=np.full(len(points), -1),
        point_uses=np.array([(p, k) for p, (_, k, _) in enumerate(points)]),
        point_uses_systems=np.array([s for _, _, s in points]), point_capacity=np.ones(len(points)), point_power_w=np.zeros(len(points)),
        point_cost={"cost": np.zeros((len(points), 1))}, point_whole=np.ones(len(points), dtype=bool),
        arc_workload=np.arange(W), arc_origin=np.zeros(W, dtype=int), arc_site=np.zeros(W, dtype=int), arc_pool=np.arange(W),
        arc_cost={"cost": np.zeros((W, 1))}, demand=np.full((W, 1, 1), demand),
    )  # fmt: skip


def test_workloads_of_little_demand_stand_side_by_side():
    """Nine on an eighth of a system and three on a quarter take 15 eighths: two systems. Parts of replicas would be served by one."""
    data = side_by_side([[(0, 1 / 8), (0, 1 / 2)]] * 9 + [[(0, 1 / 4)]] * 3)
    found = solve(data, Options(gap=0.0))
    assert (found.status, found.value) == ("optimal", 20.0)
    assert solve_direct(data.divisible(), EXACT).value == 10.0
    assert solve_direct(with_least_fleet(data).relaxation(), EXACT).value == 20.0


def test_a_workload_takes_the_kind_that_is_cheapest_for_it():
    """Four take half of the first kind or a quarter of the second, which is dearer: 2 x 10 or 1 x 12; both kinds are enough for a bound of 12."""
    data = side_by_side([[(0, 1 / 2), (1, 1 / 4)]] * 4, prices=(10.0, 12.0))
    relaxed = solve_direct(with_least_fleet(data).relaxation(), EXACT)
    assert solve(data, EXACT).value == 12.0
    assert relaxed.value == pytest.approx(12.0)


def test_spares_are_held_too():
    data = replace(side_by_side([[(0, 1.0)]]), use_spares=np.array([2]))
    assert solve_direct(with_least_fleet(data).relaxation(), EXACT).value == 30.0


@pytest.mark.parametrize(
    "change",
    [
        lambda d: replace(d, point_whole=None),
        lambda d: replace(d, point_whole=np.zeros_like(d.point_whole)),
        lambda d: replace(d, demand=np.zeros_like(d.demand)),
        lambda d: replace(d, objective=Objective("throughput")),
    ],
)
def test_nothing_is_held_for_certain(change):
    assert least_fleet_of(change(side_by_side([[(0, 1 / 8)]] * 3))) is None


def test_workloads_that_share_a_pool_may_share_a_replica():
    data = side_by_side([[(0, 1.0)], [(0, 1.0)]])
    shared = replace(data, arc_pool=np.zeros(2, dtype=int), point_pool=np.zeros(2, dtype=int))
    assert solve(shared, EXACT).value == 10.0
    assert least_fleet_of(shared).least.max() == 1.0


def test_a_fleet_that_is_too_small_for_whole_replicas_alone_is_no_proof_against_divisible_ones():
    data = side_by_side([[(0, 1 / 2)]] * 5, upper=2.0)
    found = solve(data, EXACT)
    assert (found.status, found.relaxed) == ("infeasible", False)
    assert solve(data.divisible(), EXACT).status == "optimal"
    none = solve(replace(data, demand=data.demand * 1000), EXACT)
    assert (none.status, none.relaxed) == ("infeasible", True)


@settings(max_examples=few_of(60) * TIMES, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_no_plan_holds_less(seed):
    """The best plan of the program without the rows keeps them, and so do the best plans for other prices."""
    data = whole_problem(seed)
    block = least_fleet_of(data)
    if block is None:
        return
    rng = np.random.default_rng(seed)
    prices = {name: rng.permutation(values) for name, values in data.holding_cost.items()}
    for asked in (data, replace(data, holding_cost=prices)):
        plan = solve_direct(asked, EXACT)
        if plan.values:
            held = np.zeros((len(data.option_site), data.windows))
            np.add.at(held, data.holding_option, plan.values["n"][:, None] * data.covers())
            assert ((block.weight * held[:, block.window].T).sum(axis=1) >= block.least - 1e-6).all()


def by_the_hour(data, rents, demand):
    """The same input over some slots, in which systems of the second kind run by the slot at `rents`; `demand` [W, T]."""
    slots, points = demand.shape[1], len(data.point_pool)
    zeros = np.zeros((points, slots))
    cost = np.zeros((2, slots))
    cost[1] = rents
    return replace(
        data, slot_window=np.zeros(slots, dtype=int), slot_hours_s=np.ones(slots), point_cost={"cost": zeros},
        arc_cost={"cost": np.zeros((len(demand), slots))}, demand=demand[:, None, :],
        hourly=HourlyData(holding=np.array([False, True]), least_slots=np.ones(2, dtype=int), cost={"cost": cost}),
    )  # fmt: skip


def test_workloads_stand_side_by_side_in_each_slot_of_rented_systems():
    """Five on a quarter of either kind take two systems in each of three slots: 2 x 10 bought, or 2 x 3 x 4 rented by the slot."""
    data = side_by_side([[(0, 1 / 4), (1, 1 / 4)]] * 5, prices=(10.0, 0.0))
    for rent, expected in ((4.0, 20.0), (3.0, 18.0)):
        rented = by_the_hour(data, np.full(3, rent), np.full((5, 3), 0.1))
        assert solve_direct(with_least_fleet(rented).relaxation(hourly=True), EXACT).value == pytest.approx(expected)
        assert solve(rented, EXACT).value == pytest.approx(expected)


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_no_plan_runs_less_in_any_slot(seed):
    """The best plan of the program without the rows keeps those of each slot, and its value is never below the bound with them."""
    rng = np.random.default_rng(seed)
    sizes = [
        [(k, float(rng.choice([0.25, 0.5, 1.0]))) for k in (0, 1) if k == 0 or rng.random() < 0.7] for _ in range(3)
    ]
    slots = int(rng.integers(1, 4))
    demand = rng.choice([0.0, 0.3, 1.4], (3, slots))
    data = by_the_hour(side_by_side(sizes, prices=(10.0, 0.0), upper=5.0), rng.integers(1, 9, slots), demand)
    plan, block = solve_direct(data, EXACT), least_fleet_of(data)
    if block is None:
        assert not demand.any()
        return
    runs = np.stack([np.broadcast_to(plan.values["n"][:1], (slots,)), plan.values["on"][1]])
    by_slot = block.slot >= 0
    assert ((block.weight[by_slot] * runs[:, block.slot[by_slot]].T).sum(axis=1) >= block.least[by_slot] - 1e-6).all()
    assert solve_direct(with_least_fleet(data).relaxation(hourly=True), EXACT).value <= plan.value + 1e-6
    assert solve_direct(with_least_fleet(data), EXACT).value == pytest.approx(plan.value)
