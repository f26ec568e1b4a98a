"""What limits are worth by the search over the slots, against the whole linear program solved again with a little more or less of each."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from catalog.units import HOUR_S
from solvers.analysis.relief import LimitKey, with_limits
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.mip import Options
from solvers.model.block_data.power_stages import PowerStages
from solvers.model.build import build, objective_vector
from solvers.model.data import Limit, PlanData
from solvers.search.joint import solve
from solvers.solution import Solution

ASKED = Options(gap=1e-2, time_limit_s=60, method="decomposed")
SEEDS = (3, 6, 9, 14)  # found slot by slot, with limits of each kind that bind
NEAR, NOTHING = (
    3e-3,
    1e-5,
)  # share of a price, and of the cost: prices come from a search that ends near the best, not at it
ROWS = (("power", 0), ("power", 1), ("supply", 0), ("supply", 1), ("limit", 1))


def question(seed: int, *, jobs: int = 0, fixed: float = 0.0, staged: bool = False) -> PlanData:
    """Two kinds of system at two sites, of which one serves more per watt and the other per USD; demand from two places in four hours."""
    rng = np.random.default_rng(seed)
    vary = lambda *shape: rng.uniform(0.8, 1.25, shape)
    option_site, kind, slots = np.repeat([0, 1], 2), np.tile([0, 1], 2), 4
    price, idle, busy, rate = (
        np.array(pair) for pair in ((90e3, 40e3), (700.0, 900.0), (2400.0, 2900.0), (130.0, 70.0))
    )
    demand = 9000.0 * vary(1, 2, slots)
    need = demand.sum(axis=1).max() / rate.mean()  # systems
    power = need * rng.uniform(0.55, 0.9, 2) * (idle + busy).mean()
    stages = (
        PowerStages(
            site=np.array([0, 0]),
            first=np.array([0, 1]),
            last=np.array([0, 1]),
            limit_w=power[0] * np.array([1.0, 0.9]),
        )
        if staged
        else None
    )
    supply = np.floor(need * np.array([0.6, 1.0]) * rng.uniform(0.7, 1.4, 2))
    hours = np.full(slots, 2190 * HOUR_S)
    fleet_options, width = (
        np.tile(np.arange(4), 1 + jobs),
        np.repeat([1.0, 12.0], [4, 4 * jobs]),
    )  # points: those that serve, then those of each job
    which = np.repeat(np.arange(-1, jobs), 4)
    return PlanData(
        slot_window=np.arange(slots) // 2 if staged else np.zeros(slots, dtype=int), slot_hours_s=hours,
        site_power_limit_w=np.array([np.inf, power[1]]) if staged else power, power_stages=stages, site_fixed={"cost": np.full(2, fixed)},
        option_site=option_site, option_group=np.arange(4), option_fabric=np.full(4, -1),
        holding_option=np.arange(4), holding_window=np.full(4, -1), holding_upper=np.full(4, 500.0), holding_power_w=idle[kind],
        holding_cost={"cost": price[kind] * vary(4), "capital": price[kind], "places": np.ones(4)},
        supply_limit=supply, supply_member=np.column_stack([kind, np.arange(4)]),
        point_pool=np.where(which < 0, option_site[fleet_options], -1), point_job=which,
        point_uses=np.column_stack([np.arange(len(fleet_options)), fleet_options]), point_uses_systems=width,
        point_capacity=rate[kind[fleet_options]] * width, point_power_w=busy[kind[fleet_options]] * width,
        point_cost={"cost": (busy[kind[fleet_options]] * width)[:, None] * 0.2 * vary(len(fleet_options), slots)},
        arc_workload=np.zeros(4, dtype=int), arc_origin=np.repeat([0, 1], 2), arc_site=kind, arc_pool=kind,
        arc_cost={"cost": 0.5 * vary(4, slots)}, demand=demand,
        job_work=np.full(jobs, 3 * 70.0 * hours.sum() * 0.6 * 4), job_window_mask=np.ones((jobs, slots), dtype=bool),
        limits=(Limit("limits.places", "places", math.inf), Limit("limits.capital", "capital", 62e3 * need * rng.uniform(0.9, 1.15) * (1 + 0.1 * jobs))),
    )  # fmt: skip


def asked(data: PlanData, row: LimitKey) -> float:
    kind, position = row
    if kind == "limit":
        return data.limits[position].upper
    return float(
        data.supply_limit[position]
        if kind == "supply"
        else np.append(data.site_power_limit_w, [] if data.power_stages is None else data.power_stages.limit_w)[
            position
        ]
    )


def least(data: PlanData, held: Solution | None = None) -> float:
    """Of the linear program, or with the plan's integers held; inf where there is no answer."""
    program = build(data)
    arrays = program.arrays()
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    for block, index in program.columns.items() if held is not None else ():
        there = (index >= 0) & arrays.integer[index]
        if there.any():
            lower[index[there]] = upper[index[there]] = held.values[block][there]
    found = WarmStartedLp(arrays, objective_vector(program, data), Options()).solve(lower, upper)
    return found.value if found.status == "optimal" else math.inf


def around(data: PlanData, row: LimitKey, held: Solution | None = None) -> tuple[float, float]:
    """Change of the least cost per unit of a limit: (to a little less, to a little more); -inf the first where less is not enough."""
    step = 1.0 if row[0] == "supply" else 1e-5 * asked(data, row)
    less, here, more = (least(with_limits(data, {row: asked(data, row) + side}), held) for side in (-step, 0.0, step))
    return (here - less) / step, (more - here) / step


def worth(duals, row: LimitKey) -> float:
    kind, position = row
    index, values = duals.get(kind, (np.zeros((0, 1)), np.zeros(0)))
    return float(values[index[:, -1 if kind == "power" else 0] == position].sum())


@cache
def answer(seed: int, **asked_for) -> Solution:
    found = solve(question(seed, **asked_for), ASKED)
    assert found.relaxed_duals, "not found slot by slot"
    return found


def lies_between(price: float, around: tuple[float, float], slip: float) -> bool:
    return around[0] - slip <= price <= around[1] + slip


def slip(data: PlanData, row: LimitKey, price: float, value: float) -> float:
    return NEAR * abs(price) + NOTHING * value / asked(data, row)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_price_of_the_bound_is_what_a_little_more_changes_of_the_linear_program(seed):
    data, found = question(seed), answer(seed)
    for row in ROWS:
        price = worth(found.relaxed_duals, row)
        assert lies_between(price, around(data, row), slip(data, row, price, found.value)), row


@pytest.mark.parametrize("kind", ("power", "supply", "limit"))
def test_each_kind_of_limit_binds_somewhere_and_has_no_price_where_it_has_room(kind):
    """Without these the test above could pass on zeros alone."""
    share = [
        -worth(answer(seed).relaxed_duals, row) * asked(question(seed), row) / answer(seed).value
        for seed in SEEDS
        for row in ROWS
        if row[0] == kind
    ]
    assert min(share) >= 0 and max(share) > 0.01 and min(share) < NOTHING


def test_a_supply_of_one_kind_at_one_site_is_worth_what_its_bound_is():
    """There the most that may be held says the same as the row of the supply, and either may have the price."""
    priced = 0
    for seed in SEEDS:
        data = question(seed)
        data = replace(
            data,
            supply_limit=np.tile(data.supply_limit // 2, 2),
            supply_member=np.column_stack([np.arange(4), np.arange(4)]),
        )
        found = solve(data, ASKED)
        for row in (("supply", s) for s in range(4)):
            price = worth(found.relaxed_duals, row)
            priced += price < -1.0
            assert lies_between(price, around(data, row), slip(data, row, price, found.value)), (seed, row)
    assert priced


@pytest.mark.parametrize("fixed", (0.0, 50.0), ids=("", "a site that is opened"))
def test_a_supply_on_one_of_two_networks_saves_what_is_rented_instead(fixed):
    """Ten of twenty systems can be bought, for 100 on one network or 130 on the other; the rest is rented for 300 each."""
    data = PlanData(
        slot_window=np.zeros(1, dtype=int), slot_hours_s=np.array([HOUR_S]), site_power_limit_w=np.array([np.inf]), site_fixed={"cost": np.array([fixed])},
        option_site=np.zeros(3, dtype=int), option_group=np.array([0, 0, 1]), option_fabric=np.array([0, 1, -1]),
        holding_option=np.arange(3), holding_window=np.full(3, -1), holding_upper=np.full(3, 50.0), holding_power_w=np.zeros(3),
        holding_cost={"cost": np.array([100.0, 130.0, 300.0])}, supply_limit=np.array([10.0]), supply_member=np.array([[0, 0], [0, 1]]),
        point_pool=np.zeros(3, dtype=int), point_job=np.full(3, -1), point_uses=np.column_stack([np.arange(3), np.arange(3)]), point_uses_systems=np.ones(3),
        point_capacity=np.full(3, 2.0), point_power_w=np.zeros(3), point_cost={"cost": np.zeros((3, 1))},
        arc_workload=np.zeros(1, dtype=int), arc_origin=np.zeros(1, dtype=int), arc_site=np.zeros(1, dtype=int), arc_pool=np.zeros(1, dtype=int),
        arc_cost={"cost": np.zeros((1, 1))}, demand=np.full((1, 1, 1), 40.0),
    )  # fmt: skip
    found = solve(data, ASKED)
    assert found.values["n"][0] > 0 == found.values["n"][1]
    assert worth(found.relaxed_duals, ("supply", 0)) == pytest.approx(-200)


def test_power_where_the_plan_opens_no_site_has_no_price():
    """In fractions both sites are opened, each as far as its power is used, which is what pays for it."""
    data = question(SEEDS[0], fixed=2e6)
    data = with_limits(data, {row: 2.5 * asked(data, row) for row in ROWS})
    found = solve(data, ASKED)
    assert sorted(found.values["open"]) == [0, 1]
    closed, opened = (worth(found.relaxed_duals, ("power", int(r))) for r in np.argsort(found.values["open"]))
    assert closed == 0 and opened < 0


def test_ample_limits_have_no_price():
    data = question(SEEDS[0])
    data = with_limits(data, {row: 5 * asked(data, row) for row in ROWS})
    found = solve(data, ASKED)
    assert all(
        -worth(duals, row) * asked(data, row) <= NOTHING * found.value
        for duals in (found.row_duals, found.relaxed_duals)
        for row in ROWS
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_with_more_of_a_limit_costs_less_than_the_bound_less_its_worth(seed):
    data, found = question(seed), answer(seed)
    for row in ROWS:
        more = 0.3 * asked(data, row) if row[0] != "supply" else 5.0
        assert (
            least(with_limits(data, {row: asked(data, row) + more}))
            >= found.relaxed_bound + more * worth(found.relaxed_duals, row) - 1e-6 * found.value
        ), row


def test_with_the_fleet_held_power_is_worth_what_the_same_fleet_makes_of_it():
    binding = 0
    for seed in SEEDS:
        data, found = question(seed, staged=True), answer(seed, staged=True)
        for row in powers(data):
            price = worth(found.row_duals, row)
            binding += price < -1e-3
            assert lies_between(price, around(data, row, found), slip(data, row, price, found.value)), (seed, row)
        assert not found.row_duals["supply"][1].any() and not found.row_duals["limit"][1].any()
    assert binding


def test_with_a_job_nothing_is_said_of_the_fleet_held():
    """Held in its hours it would make the last watt of a slot as dear as one likes, where the same fleet could run it at another."""
    assert set(answer(SEEDS[0], jobs=1).row_duals) == {"supply", "limit"}


def powers(data: PlanData) -> list[LimitKey]:
    return [("power", 0), ("power", 1)] if data.power_stages is None else [("power", 1), ("power", 2), ("power", 3)]


def test_power_that_changes_is_priced_by_stage():
    priced = 0
    for seed in SEEDS:
        data, found = question(seed, staged=True), answer(seed, staged=True)
        for row in (*powers(data), ("supply", 0), ("supply", 1), ("limit", 1)):
            price = worth(found.relaxed_duals, row)
            priced += row[1] > 1 and price < -1e-3
            assert lies_between(price, around(data, row), slip(data, row, price, found.value)), (seed, row)
    assert priced


def test_with_a_job_prices_are_those_of_the_bound():
    """The bound of a program with jobs may lie above its linear program's, so only what it promises is held against that."""
    for seed in SEEDS:
        data, found = question(seed, jobs=1), answer(seed, jobs=1)
        for row in ROWS:
            more = 0.1 * asked(data, row) if row[0] != "supply" else 2.0
            better = solve(with_limits(data, {row: asked(data, row) + more}), Options(gap=1e-2, method="direct"))
            assert better.value >= found.relaxed_bound + more * worth(found.relaxed_duals, row) - 1e-6 * found.value, (
                seed,
                row,
            )


def test_duals_stand_in_the_rows_of_the_whole_program():
    data, found = question(SEEDS[0]), answer(SEEDS[0])
    blocks = build(data).row_blocks
    for name, (index, duals) in found.relaxed_duals.items():
        assert np.array_equal(index, np.concatenate([part.index for part in blocks[name]])) and len(duals) == len(index)
    assert set(found.relaxed_duals) == set(found.row_duals) == {"power", "balance", "supply", "limit"}
