"""Each constraint alone: a problem in which it decides the answer, with the number derived beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.mip import Options
from solvers.model.build import build
from solvers.model.data import Limit, Objective, PlanData
from solvers.model.dominance import undominated
from solvers.search.joint import solve

EXACT = Options(gap=0.0)
whole, real = lambda *values: np.array(values, dtype=int), lambda *values: np.array(values, dtype=float)


def serving(asked=12.0, **other):
    """One site, one fleet option, a holding at 10 each, one point of 5 requests/s per system, one slot."""
    return PlanData(
        **dict(
            dict(
                slot_window=whole(0),
                slot_hours_s=real(3600),
                site_power_limit_w=real(np.inf),
                option_site=whole(0),
                option_group=whole(0),
                option_fabric=whole(-1),
                holding_option=whole(0),
                holding_window=whole(-1),
                holding_upper=real(9),
                holding_cost={"cost": real(10)},
                holding_power_w=real(1000),
                point_pool=whole(0),
                point_job=whole(-1),
                point_uses=whole([0, 0]),
                point_uses_systems=real(1),
                point_capacity=real(5),
                point_power_w=real(500),
                point_cost={"cost": real([2])},
                arc_workload=whole(0),
                arc_origin=whole(0),
                arc_site=whole(0),
                arc_pool=whole(0),
                arc_cost={"cost": real([0])},
                demand=real([[asked]]),
            ),
            **other,
        )
    )


def two_options(**other):
    """The same with a second fleet option at 11 a system of the same group; either could serve everything."""
    return serving(
        **dict(
            dict(
                option_site=whole(0, 0),
                option_group=whole(0, 0),
                option_fabric=whole(-1, -1),
                holding_option=whole(0, 1),
                holding_window=whole(-1, -1),
                holding_upper=real(9, 9),
                holding_cost={"cost": real(10, 11)},
                holding_power_w=real(1000, 1000),
                point_pool=whole(0, 0),
                point_job=whole(-1, -1),
                point_uses=whole([0, 0], [1, 1]),
                point_uses_systems=real(1, 1),
                point_capacity=real(5, 5),
                point_power_w=real(500, 500),
                point_cost={"cost": real([2], [2])},
            ),
            **other,
        )
    )


def training(slots=2, windows=(0, 0), work=3600.0, **other):
    """One job that needs 2 systems at 1 unit/s; each slot is an hour."""
    return PlanData(
        **dict(
            dict(
                slot_window=whole(*windows),
                slot_hours_s=np.full(slots, 3600.0),
                site_power_limit_w=real(np.inf),
                option_site=whole(0),
                option_group=whole(0),
                option_fabric=whole(-1),
                holding_option=whole(0),
                holding_window=whole(-1),
                holding_upper=real(9),
                holding_cost={"cost": real(10)},
                holding_power_w=real(0),
                point_pool=whole(-1),
                point_job=whole(0),
                point_uses=whole([0, 0]),
                point_uses_systems=real(2),
                point_capacity=real(1),
                point_power_w=real(0),
                point_cost={"cost": np.arange(1.0, slots + 1)[None, :]},
                demand=np.zeros((0, 0, slots)),
                job_work=real(work),
                job_window_mask=np.ones((1, slots), dtype=bool),
            ),
            **other,
        )
    )


def test_installed_systems_are_integer():
    answer = solve(serving(), EXACT)  # 12 / 5 = 2.4 replicas at 2, on 3 systems at 10
    assert answer.values["n"].tolist() == [3] and answer.value == pytest.approx(30 + 4.8)


def test_short_supply_forces_the_more_expensive_option():
    limited = two_options(supply_limit=real(1), supply_member=whole([0, 0]))
    assert solve(limited, EXACT).values["n"].tolist() == [1, 2]
    assert solve(two_options(), EXACT).values["n"].tolist() == [3, 0]


def test_supply_counts_per_window():
    """Two windows, one system each: each window may have it, so a supply of 1 suffices for two holdings."""
    windows = dict(
        slot_window=whole(0, 1),
        slot_hours_s=real(3600, 3600),
        holding_option=whole(0, 0),
        holding_window=whole(0, 1),
        holding_upper=real(9, 9),
        holding_cost={"cost": real(10, 10)},
        holding_power_w=real(0, 0),
        point_cost={"cost": real([2, 2])},
        arc_cost={"cost": real([0, 0])},
        demand=real([[5, 5]]),
        supply_limit=real(1),
        supply_member=whole([0, 0], [0, 1]),
    )
    assert solve(serving(**windows), EXACT).values["n"].tolist() == [1, 1]
    both = serving(**(windows | {"holding_window": whole(-1, -1), "demand": real([[6, 6]])}))
    assert solve(both, EXACT).status == "infeasible"  # 6 requests/s need two systems in the same window


@pytest.mark.parametrize(
    ("limit_w", "status"), [(3 * 1000 + 2.4 * 500, "optimal"), (3 * 1000 + 2.4 * 500 - 1, "infeasible")]
)
def test_power_counts_idle_systems_and_running_replicas(limit_w, status):
    assert solve(serving(site_power_limit_w=real(limit_w)), EXACT).status == status


def test_one_fabric_per_group():
    """Each design can be had twice only, three systems are needed: two designs would do, one cannot."""
    upper = dict(holding_upper=real(2, 2))
    assert solve(two_options(**upper), EXACT).values["n"].tolist() == [2, 1]
    assert solve(two_options(**upper, option_fabric=whole(0, 1)), EXACT).status == "infeasible"
    assert solve(two_options(**upper, option_fabric=whole(0, 1), option_group=whole(0, 1)), EXACT).status == "optimal"
    chosen = solve(two_options(option_fabric=whole(0, 1)), EXACT)
    assert chosen.values["z"].tolist() == [[1, 0]]


def two_sites(**other):
    """Two workload-free choices of site for the same origin; the second site is dearer by 1 a system."""
    return two_options(
        **dict(
            dict(
                site_power_limit_w=real(np.inf, np.inf),
                option_site=whole(0, 1),
                option_group=whole(0, 1),
                point_pool=whole(0, 1),
                arc_workload=whole(0, 0),
                arc_origin=whole(0, 0),
                arc_site=whole(0, 1),
                arc_pool=whole(0, 1),
                arc_cost={"cost": real([0], [0])},
            ),
            **other,
        )
    )


def test_a_fixed_cost_of_a_site_is_paid_once_and_only_where_it_is_open():
    answer = solve(two_sites(site_fixed={"cost": real(5, 0)}), EXACT)  # 30 + 5 against 33
    assert answer.values["open"].tolist() == [0, 0] and answer.values["n"].tolist() == [0, 3]
    answer = solve(two_sites(site_fixed={"cost": real(2, 0)}), EXACT)  # 30 + 2 against 33
    assert answer.values["open"].tolist() == [1, 0] and answer.value == pytest.approx(32 + 4.8)


def test_placing_a_workload_costs_and_a_shared_edge_is_paid_once():
    placed = solve(two_sites(host_cost={"cost": real([5, 0])}), EXACT)
    assert placed.values["n"].tolist() == [0, 3]
    # edge 0 leads to both sites, edge 1 on to the second only
    tree = dict(
        edge_workload=whole(0, 0), edge_cost={"cost": real(4, 1)}, tree_path=whole([0, 0, 0], [0, 1, 0], [0, 1, 1])
    )
    near = solve(two_sites(**tree), EXACT)
    assert near.values["edge"].tolist() == [1, 0] and near.value == pytest.approx(30 + 4.8 + 4)
    both = solve(two_sites(**tree, holding_upper=real(2, 2)), EXACT)
    assert both.values["edge"].tolist() == [1, 1] and both.value == pytest.approx(20 + 11 + 4.8 + 5)
    assert both.values["host"].tolist() == [[1, 1]]


def test_flow_follows_the_cheaper_path():
    answer = solve(two_sites(holding_cost={"cost": real(10, 10)}, arc_cost={"cost": real([1], [0])}), EXACT)
    assert answer.values["f"][:, 0].tolist() == pytest.approx([0, 12])


def test_a_limit_bounds_its_functional():
    """Carbon 1 a system of the first fleet option, 0 of the second: at most 2 of the first, so 2 and 1."""
    data = two_options(
        holding_cost={"cost": real(10, 11), "carbon_kg": real(1, 0)}, limits=(Limit("limits.carbon", "carbon_kg", 2.0),)
    )
    answer = solve(data, EXACT)
    assert answer.values["n"].tolist() == [2, 1] and answer.functionals["carbon_kg"] == pytest.approx(2)
    assert (
        solve(serving(limits=(Limit("limits.budget", "cost", 34.0),)), EXACT).status == "infeasible"
    )  # 34.8 is the least


def test_a_job_runs_in_its_cheapest_slots_with_its_full_width():
    answer = solve(training(), EXACT)  # one hour of work in the first, cheaper slot; 2 systems at 10
    assert (
        answer.values["v"].tolist() == [[1, 0]]
        and answer.values["n"].tolist() == [2]
        and answer.value == pytest.approx(21)
    )
    half = solve(training(work=1800.0), EXACT)  # half of the time still takes both systems
    assert half.values["v"].tolist() == [[0.5, 0]] and half.values["n"].tolist() == [2]


def test_a_job_runs_at_one_point_only():
    """Two hours of work; one point is cheap in the first hour, the other in the second: 1 + 9 at either, not 1 + 1."""
    twice = training(
        work=7200.0,
        point_pool=whole(-1, -1),
        point_job=whole(0, 0),
        point_uses=whole([0, 0], [1, 0]),
        point_uses_systems=real(2, 2),
        point_capacity=real(1, 1),
        point_power_w=real(0, 0),
        point_cost={"cost": real([1, 9], [9, 1])},
    )
    answer = solve(twice, EXACT)
    assert answer.value == pytest.approx(20 + 10) and sorted(answer.values["y"].tolist()) == [0, 1]


def test_a_job_keeps_to_its_mask_and_may_not_finish():
    later = solve(training(job_window_mask=np.array([[False, True]])), EXACT)
    assert later.values["v"].tolist() == [[0, 1]]
    late = solve(training(work=7201.0), EXACT)
    assert late.status == "infeasible" and late.structural == (("assigned", (0,)),)


def test_a_job_needs_its_full_width_in_every_window_it_runs_in():
    """Two windows, holdings by window at 10: an hour of work fits one window with 2 systems. Half a width in each window
    would cost as much, but is no way to run it; with 1 system per window at most there is none."""
    by_window = dict(
        windows=(0, 1),
        holding_option=whole(0, 0),
        holding_window=whole(0, 1),
        holding_cost={"cost": real(10, 10)},
        holding_power_w=real(0, 0),
    )
    answer = solve(training(**by_window, holding_upper=real(9, 9)), EXACT)
    assert answer.values["n"].tolist() == [2, 0] and answer.values["run"].tolist() == [[1, 0]]
    assert solve(training(**by_window, holding_upper=real(1, 1)), EXACT).status == "infeasible"
    long = solve(training(**by_window, holding_upper=real(9, 9), work=7200.0), EXACT)
    assert long.values["n"].tolist() == [2, 2]


def test_throughput_is_bounded_by_what_can_be_installed():
    """9 systems at 5 requests/s carry 45 of the 12 asked: factor 3.75; with a budget of 60: 5 systems and 25 - as 50 + 2 x <= 60
    leaves x <= 5 replicas - so 25/12."""
    most = solve(serving(objective=Objective("throughput")), EXACT)
    assert most.value == pytest.approx(3.75) and most.sense == "max" and most.bound >= most.value
    budget = solve(serving(objective=Objective("throughput"), limits=(Limit("limits.budget", "cost", 60.0),)), EXACT)
    assert budget.value == pytest.approx(25 / 12)


def test_throughput_of_one_workload_serves_the_others_as_asked():
    data = serving(
        arc_workload=whole(0, 1),
        arc_origin=whole(0, 0),
        arc_site=whole(0, 0),
        arc_pool=whole(0, 0),
        arc_cost={"cost": real([0], [0])},
        demand=real([[12]], [[10]]),
        objective=Objective("throughput", 1),
    )
    assert solve(data, EXACT).value == pytest.approx((45 - 12) / 10)


def test_ties_go_to_the_cheaper_plan():
    data = two_options(holding_cost={"cost": real(11, 10), "carbon_kg": real(1, 1)}, objective=Objective("carbon_kg"))
    answer = solve(data, EXACT)
    assert answer.value == pytest.approx(3) and answer.values["n"].tolist() == [0, 3]


def test_demand_that_nothing_can_serve_is_named():
    answer = solve(
        serving(arc_workload=whole(), arc_origin=whole(), arc_site=whole(), arc_pool=whole(), arc_cost={}), EXACT
    )
    assert answer.status == "infeasible" and answer.structural == (("balance", (0, 0)),)
    assert answer.value is answer.bound is answer.gap is None and not answer.values


def test_nothing_asked_costs_nothing():
    answer = solve(serving(asked=0.0), EXACT)
    assert answer.status == "optimal" and answer.value == 0


def test_every_row_leads_back_to_its_block():
    program = build(
        two_sites(
            site_fixed={"cost": real(1, 1)},
            host_cost={"cost": real([1, 1])},
            site_power_limit_w=real(1e6, 1e6),
            supply_limit=real(9),
            supply_member=whole([0, 0]),
        )
    )
    blocks = {program.row_of(row)[0] for row in range(program.row_count)}
    assert {"supply", "opening", "installed", "power", "balance", "capacity", "hosted", "housed"} <= blocks


def test_duals_are_those_of_the_fixed_fleet():
    """With the systems fixed, one more request/s takes 1/5 of a replica at 2."""
    answer = solve(serving(), EXACT)
    index, duals = answer.row_duals["balance"]
    assert index.tolist() == [[0, 0, 0]] and duals == pytest.approx([0.4])


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"slot_hours_s": real(1, 2)}, "slot_hours_s"),
        ({"holding_option": whole(4)}, "holding_option"),
        ({"holding_upper": real(np.inf)}, "holding_upper"),
        ({"objective": Objective("fame")}, "fame"),
        ({"limits": (Limit("limits.x", "fame", 1.0),)}, "fame"),
        ({"point_job": whole(0)}, "point_job"),
        ({"demand": real([[np.nan]])}, "demand"),
        ({"site_fixed": {"cost": real(-1)}}, "site_fixed"),
    ],
)
def test_broken_input_is_refused_by_name(wrong, word):
    with pytest.raises(ValueError, match=word):
        serving(**wrong)


def points(capacity, systems, power, cost):
    """Points of one pool on one fleet option, two slots."""
    count = len(capacity)
    return serving(
        slot_window=whole(0, 0),
        slot_hours_s=real(1, 1),
        site_power_limit_w=real(1e9),
        point_pool=np.zeros(count, dtype=int),
        point_job=np.full(count, -1),
        point_uses=np.column_stack([np.arange(count), np.zeros(count, dtype=int)]),
        point_uses_systems=real(*systems),
        point_capacity=real(*capacity),
        point_power_w=real(*power),
        point_cost={"cost": np.array(cost, dtype=float)},
        arc_cost={"cost": real([0, 0])},
        demand=real([[1, 1]]),
    )


def test_dominated_points_are_dropped():
    energy = np.array([[4, 8], [2, 4], [3, 6.0]])  # proportional to power
    mixture = points([1, 1, 1], [1, 3, 2.5], [4, 2, 3.5], energy + np.array([[0, 0], [0, 0], [0.5, 1.0]]))
    assert undominated(mixture).tolist() == [
        [True, True],
        [True, True],
        [False, False],
    ]  # above the line between the others
    below = points([1, 1, 1], [1, 3, 1.5], [4, 2, 2.5], [[4, 8], [2, 4], [2.5, 5]])
    assert undominated(below).all()  # a corner
    beaten = points([2, 1], [1, 1], [1, 1], [[1, 1], [1, 1]])
    assert undominated(beaten).tolist() == [[True, True], [False, False]]  # half as much for the same
    equal = points([2, 1], [2, 1], [2, 1], [[2, 2], [1, 1]])
    assert undominated(equal).tolist() == [[True, True], [False, False]]  # the first of equals
    by_slot = points([1, 1], [1, 1], [1, 1], [[1, 3], [2, 2]])
    assert undominated(by_slot).tolist() == [[True, False], [False, True]]  # each cheaper in one slot


def test_dropping_dominated_points_does_not_change_the_optimum(monkeypatch):
    rng = np.random.default_rng(5)
    for _ in range(10):
        power = rng.uniform(1, 9, 12)
        data = points(rng.uniform(1, 9, 12), rng.uniform(1, 9, 12), power, power[:, None] * rng.uniform(0.1, 1.0, 2))
        data = replace(data, demand=real([rng.uniform(5, 20, 2)]), holding_upper=real(90))
        assert not undominated(data).all()
        reduced = solve(data, EXACT).value
        with monkeypatch.context() as patch:
            patch.setattr("solvers.model.routing.undominated", lambda data: np.ones((12, 2), dtype=bool))
            assert solve(data, EXACT).value == pytest.approx(reduced, rel=1e-9)
