"""Electricity and deferrable requests against the reference that tries every whole-numbered plan (`tests/solvers/reference.py`),
and each of their constraints alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.decomposition.coverage import supports
from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.data import Limit, Objective, PlanData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, agree, agree_with_each_other, best

EXACT = Options(gap=0.0)


def problems(objectives=("cost", "carbon_kg", "throughput"), **changes):
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), objectives, **changes))


def problem(rng, objectives, least_price=-3):
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    R, T = whole(1, 2), whole(2, 5)
    pools = list(range(R))
    point_pool, point_job, uses = [], [], []
    for r in pools:
        for _ in range(whole(1, 2)):
            uses.append(r)
            point_pool.append(r)
            point_job.append(-1)
    jobs = whole(0, 1)
    for _ in range(whole(1, 2) if jobs else 0):
        uses.append(whole(0, R - 1))
        point_pool.append(-1)
        point_job.append(0)
    P, metered = len(uses), np.array([r for r in range(R) if chance(0.8)], dtype=int)
    M = len(metered)
    contract = np.array([whole(0, M - 1) for _ in range(whole(0, 2))] if M else [], dtype=int)
    battery = np.array([m for m in range(M) if chance(0.6)], dtype=int)
    peak = np.array([whole(0, M - 1) for _ in range(whole(0, 2))] if M else [], dtype=int)
    C, B, N = len(contract), len(battery), len(peak)
    following = np.arange(1, T + 1)
    cut = whole(1, T)  # one ring, or two
    following[cut - 1] = 0
    if cut < T:
        following[T - 1] = cut
    upper_j, upper_w, upper_c = table(B, high=9), table(B, high=4), table(C, high=6)
    given_size = np.array([chance(0.3) for _ in range(B)], dtype=bool)
    meters = MeterData(
        meter_site=metered, grid_upper_w=np.where([chance(0.3) for _ in range(M)], table(M, low=1, high=6), np.inf),
        grid_cost={"cost": table(M, T, low=least_price), "carbon_kg": table(M, T)},
        peak_meter=peak, peak_slot=table(N, T, high=1) > 0, peak_cost={"cost": table(N, high=4)},
        contract_meter=contract, contract_least_w=np.where([chance(0.3) for _ in range(C)], upper_c, 0.0), contract_upper_w=upper_c,
        contract_passes=np.array([chance(0.5) for _ in range(C)], dtype=bool), peak_grid=np.array([chance(0.7) for _ in range(N)], dtype=bool),
        contract_share=table(C, T, high=4) / 4, contract_cost={"cost": table(C, high=3)}, taken_cost={"cost": table(C, T, high=2), "carbon_kg": table(C, T, high=1)},
        battery_meter=battery, battery_least_j=np.where(given_size, upper_j, 0.0), battery_upper_j=upper_j,
        battery_least_w=np.where(given_size, upper_w, 0.0), battery_upper_w=upper_w, battery_efficiency=table(B, low=2, high=4) / 4,
        battery_energy_cost={"cost": table(B, high=2) / 2}, battery_power_cost={"cost": table(B, high=2) / 2},
    )  # fmt: skip
    objective = str(rng.choice(objectives))
    unmetered = np.array([r not in metered for r in range(R)])
    own_cost = lambda *shape: table(*shape, low=least_price, high=3)
    site_of = np.array(uses)
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=table(T, low=1, high=3), site_power_limit_w=np.where([chance(0.3) for _ in range(R)], table(R, low=3, high=9), np.inf),
        option_site=np.arange(R), option_group=np.arange(R), option_fabric=np.full(R, -1), holding_option=np.arange(R), holding_window=np.full(R, -1),
        holding_upper=table(R, low=1, high=3), holding_cost={"cost": table(R, low=1), "carbon_kg": table(R)}, holding_power_w=table(R, high=2),
        point_pool=np.array(point_pool), point_job=np.array(point_job), point_uses=np.column_stack([np.arange(P), site_of]),
        point_uses_systems=table(P, low=1, high=2) / 2, point_capacity=table(P, low=2, high=5), point_power_w=table(P, high=3),
        point_cost={"cost": own_cost(P, T) * unmetered[site_of][:, None], "carbon_kg": table(P, T, high=2)},
        arc_workload=np.zeros(R, dtype=int), arc_origin=np.zeros(R, dtype=int), arc_site=np.arange(R), arc_pool=np.arange(R), arc_cost={"cost": table(R, T, high=1)},
        demand=table(1, 1, T, high=4), job_work=table(jobs, low=1, high=8), job_window_mask=table(jobs, T, high=4) > 0,
        meters=meters if M else None, wait_slots=np.array([whole(0, 2)]), order=Chronology(next=following, step_s=table(T, low=1, high=2)),
        limits=tuple(Limit(name, name, float(whole(15, 90))) for name in ("cost", "carbon_kg") if chance(0.3)),
        objective=Objective("throughput", -1) if objective == "throughput" else Objective(objective),
    )  # fmt: skip


@settings(max_examples=few_of(50) * TIMES, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(40), **SMALL)
@given(problems())
def test_cbc_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    if other.status == "limit" and ours.status == "infeasible":
        return  # CBC now and then ends without a proof; it may not contradict one
    agree_with_each_other(ours, other)


# --- each constraint alone -----------------------------------------------------------------------------------------


def alone(price=(1.0, 4.0), power=1.0, demand=(1.0, 1.0), **meter):
    """One site, one system, one point of one watt per request: load is what is served."""
    T = len(price)
    order = Chronology(next=np.roll(np.arange(T), -1), step_s=np.ones(T))
    parts = {name: meter.pop(name) for name in ("wait_slots",) if name in meter}
    meters = MeterData(
        **(
            {
                "meter_site": np.array([0]),
                "grid_upper_w": np.array([np.inf]),
                "grid_cost": {"cost": np.array([price]), "carbon_kg": np.ones((1, T))},
            }
            | meter
        )
    )
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.ones(T), site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(1, dtype=int), option_group=np.zeros(1, dtype=int), option_fabric=np.array([-1]), holding_option=np.zeros(1, dtype=int), holding_window=np.array([-1]),
        holding_upper=np.array([9.0]), holding_cost={"cost": np.zeros(1)}, holding_power_w=np.zeros(1), point_pool=np.zeros(1, dtype=int), point_job=np.array([-1]),
        point_uses=np.zeros((1, 2), dtype=int), point_uses_systems=np.ones(1), point_capacity=np.ones(1), point_power_w=np.array([power]), point_cost={"cost": np.zeros((1, T))},
        arc_workload=np.zeros(1, dtype=int), arc_origin=np.zeros(1, dtype=int), arc_site=np.zeros(1, dtype=int), arc_pool=np.zeros(1, dtype=int), arc_cost={"cost": np.zeros((1, T))},
        demand=np.array([[demand]], dtype=float), meters=meters, order=order, **parts,
    )  # fmt: skip


def battery(energy=1.0, power=9.0, eta=1.0, price=0.0):
    return dict(
        battery_meter=np.array([0]), battery_least_j=np.zeros(1), battery_upper_j=np.array([energy]), battery_least_w=np.zeros(1), battery_upper_w=np.array([power]),
        battery_efficiency=np.array([eta]), battery_energy_cost={"cost": np.array([price])}, battery_power_cost={"cost": np.zeros(1)},
    )  # fmt: skip


def contract(upper=1.0, share=(1.0, 1.0), price=0.0, least=0.0, taken=0.0):
    return dict(
        contract_meter=np.array([0]), contract_least_w=np.array([least]), contract_upper_w=np.array([upper]), contract_share=np.array([share]),
        contract_cost={"cost": np.array([price])}, taken_cost={"cost": np.full((1, len(share)), taken)},
    )  # fmt: skip


PEAK = dict(peak_meter=np.array([0]), peak_slot=np.array([[True, True]]), peak_cost={"cost": np.array([10.0])})

CASES = {  # the derivation of each value stands beside it
    "all from the grid": (alone(), 1 + 4),
    "a battery moves one unit to the cheap hour": (alone(**battery()), 1 + 1),
    "of half the size half of it": (alone(**battery(energy=0.5)), 1.5 + 2),
    "or of half the power": (alone(**battery(power=0.5)), 1.5 + 2),
    "with losses more is charged": (
        alone(**battery(energy=9, eta=0.5)),
        1 + 4,
    ),  # 1 W out takes 4 W in: 4 > 4 - 0, equal
    "with small losses it pays": (alone(**battery(energy=9, eta=0.8)), 1 + 1 / 0.64),
    "its price counts": (alone(**battery(price=2.0)), 1 + 1 + 2),
    "a peak is paid for once": (alone(**PEAK), 1 + 4 + 10),
    "a peak keeps the battery small": (alone(**PEAK, **battery()), 1 + 4 + 10),  # moving x saves 3x and adds 10x
    "a contract of 1 W takes the load over": (alone(**contract()), 0),
    "over the grid its power counts in the peak": (alone(**contract(), contract_passes=np.array([True]), **PEAK), 10),
    "behind the meter it does not": (alone(**contract(), contract_passes=np.array([False]), **PEAK), 0),
    "a peak of contracts leaves purchases out": (alone(**PEAK, peak_grid=np.array([False])), 1 + 4),
    "of what it produces": (alone(**contract(share=(1.0, 0.5))), 2),
    "at its price": (alone(**contract(price=3.0)), 3),
    "unless it is too dear": (alone(**contract(price=6.0)), 5),
    "where the least is owed": (alone(**contract(price=6.0, least=1.0)), 6),
    "paid as taken": (alone(**contract(taken=2.0)), 1 + 2),
    "waiting one slot moves the dear hour": (alone(wait_slots=np.array([1])), 1 + 1),
    "but no longer: the first request comes too early for the cheap hour": (
        alone(price=(4.0, 4.0, 1.0), demand=(1.0, 1.0, 1.0), wait_slots=np.array([1])),
        4 + 1 + 1,
    ),
    "which two slots reach": (alone(price=(4.0, 4.0, 1.0), demand=(1.0, 1.0, 1.0), wait_slots=np.array([2])), 3),
    "a negative price pays for the load alone": (alone(price=(-2.0, 4.0)), -2 + 4),
    "and for what a battery can move": (alone(price=(-2.0, 4.0), **battery()), -2 - 2),
    "but not for burning it in a battery beyond its modules": (
        alone(price=(-2.0, -2.0), **battery(eta=0.5, power=1.0)),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_constraint_alone(name):
    data, expected = CASES[name]
    if expected is None:
        # a module that charges at c and one that discharges at 1 - c keep the level where 0.5 c = (1 - c) / 0.5: c = 0.8, so 0.6 W are lost
        expected = -2 * (1 + 0.6) * 2
    assert solve(data, EXACT).value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_connection_limits_what_is_bought():
    data = alone()
    tight = replace(data, meters=replace(data.meters, grid_upper_w=np.array([0.9])))
    assert solve(tight, EXACT).status == "infeasible"
    helped = alone(**contract(upper=0.1))
    helped = replace(helped, meters=replace(helped.meters, grid_upper_w=np.array([0.9])))
    assert solve(helped, EXACT).value == pytest.approx(0.9 * 5)


def test_replicas_do_not_idle_for_a_negative_price_without_a_meter():
    """A replica that runs without requests would earn 3 per slot at a price below 0."""
    data = replace(alone(), meters=None, point_cost={"cost": np.array([[-3.0, 1.0]])})
    solution = solve(data, EXACT)
    assert solution.value == pytest.approx(-3 + 1)
    assert solution.values["x"].tolist() == [[1.0, 1.0]]
    assert supports(replace(alone(), meters=None, order=None)) and not supports(
        replace(data, order=None)
    )  # slot by slot nothing keeps it from idling


def test_a_wasteful_point_is_kept_where_power_pays():
    data = alone(price=(-2.0, 4.0))
    two = replace(
        data, point_pool=np.zeros(2, dtype=int), point_job=np.full(2, -1), point_uses=np.array([[0, 0], [1, 0]]), point_uses_systems=np.ones(2),
        point_capacity=np.ones(2), point_power_w=np.array([1.0, 3.0]), point_cost={"cost": np.zeros((2, 2))},
    )  # fmt: skip
    assert solve(two, EXACT).value == pytest.approx(-2 * 3 + 4 * 1)


@settings(max_examples=few_of(40), **SMALL)
@given(problems(objectives=("cost", "carbon_kg"), least_price=0))
def test_an_empty_block_changes_nothing(data):
    """A meter with nothing behind it is the same as a price on every watt."""
    if data.meters is None:
        return
    m, site = data.meters, data.point_uses[:, 1]
    bare = MeterData(meter_site=m.meter_site, grid_upper_w=np.full(len(m.meter_site), np.inf), grid_cost=m.grid_cost)
    watt = {name: np.zeros((data.sites, data.slots)) for name in ("cost", "carbon_kg")}
    for name, table in watt.items():
        table[m.meter_site] = m.grid_cost[name]
    without = replace(
        data, meters=None,
        point_cost={name: data.point_cost[name] + data.point_power_w[:, None] * watt[name][site] for name in watt},
        holding_cost={name: data.holding_cost[name] + data.holding_power_w * watt[name].sum(axis=1) for name in watt},
    )  # fmt: skip
    one, other = solve(replace(data, meters=bare), EXACT), solve(without, EXACT)
    agree_with_each_other(one, other)
