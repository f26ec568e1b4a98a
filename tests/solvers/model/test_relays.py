"""Price and ceiling of loads: by hand, against every assignment of systems to deployments in each slot, and what follows from a higher price."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.model.block_data.electricity import Chronology
from solvers.model.block_data.relays import DAY_S, RelayData, day_of_slots
from solvers.model.build import objective_vector
from solvers.model.data import PlanData
from solvers.search.direct import solve_direct
from solvers.search.joint import solve
from solvers.search.slot_rounding import round_replicas
from tests.conftest import few_of
from tests.solvers.model.test_blocks import real, whole
from tests.solvers.model.test_rows_by_hand import INF, YES, Rows, three_slots
from tests.solvers.reference import SMALL, TIMES
from tests.solvers.test_bruteforce import EXACT

SEEDS = st.integers(0, 2**32 - 1)
SLOTS, MOST = 3, 3


def test_days_are_24_hours_of_a_ring_within_one_window():
    two_days = Chronology(next=np.roll(np.arange(6), -1), step_s=np.full(6, DAY_S / 3))
    assert day_of_slots(two_days, np.zeros(6, dtype=int)).tolist() == [0, 0, 0, 1, 1, 1]
    assert day_of_slots(two_days, np.array([0, 0, 1, 1, 1, 1])).tolist() == [0, 0, 1, 1, 1, 2]
    rings = Chronology(next=np.array([1, 0, 3, 2]), step_s=np.full(4, DAY_S / 24))
    assert day_of_slots(rings, np.array([0, 0, 1, 1])).tolist() == [0, 0, 1, 1]


def test_a_load_costs_and_counts_the_systems_that_it_takes():
    relays = RelayData(cost={"cost": real([3, 4, 5])}, per_day=2.0)
    rows = Rows(three_slots(point_whole=YES, use_workers=whole(2), relays=relays))
    assert rows.program.functional("cost")[rows.program.columns["loading"][0]].tolist() == [3, 4, 5]
    loads = {f"loading[0,{t}]": 1 / 2 for t in range(3)}  # a system holds two workers
    assert rows.of("relays", 0, 0) == (loads | {"n[0]": -2}, -INF, 0)
    none = Rows(three_slots(point_whole=YES, relays=replace(relays, per_day=0.0)))
    assert none.of("relays", 0, 0) == ({f"loading[0,{t}]": 1 for t in range(3)}, -INF, 0)
    free = Rows(three_slots(point_whole=YES, relays=replace(relays, per_day=INF)))
    assert "relays" not in free.program.row_blocks


def test_wrong_figures_are_named():
    relays = RelayData(cost={"cost": np.full((2, 3), -1.0)}, per_day=float("nan"))
    assert len(list(relays.problems(2, 3, ordered=False))) == 3


def drawn(seed):
    """Two workloads whose loads take turns, each with two layouts on one kind of system of which the dearer to run holds more."""
    rng = np.random.default_rng((seed, 58))
    points = 4
    capacity = rng.integers(2, 6, points).astype(float)
    demand = rng.integers(0, 7, (2, 1, SLOTS)).astype(float)
    energy = rng.integers(0, 6, (points, SLOTS)).astype(float)
    price = rng.integers(0, 5, (points, 1)) * np.ones(SLOTS)
    step = np.full(SLOTS, DAY_S / SLOTS)
    return PlanData(
        slot_window=np.zeros(SLOTS, dtype=np.int64),
        slot_hours_s=step * 10,
        site_power_limit_w=np.array([np.inf]),
        option_site=whole(0),
        option_group=whole(0),
        option_fabric=whole(0),
        holding_option=whole(0),
        holding_window=whole(-1),
        holding_upper=np.array([float(MOST)]),
        holding_cost={"cost": np.array([float(rng.integers(5, 30))])},
        holding_power_w=np.zeros(1),
        point_pool=np.array([0, 0, 1, 1]),
        point_job=np.full(points, -1),
        point_uses=np.array([(p, 0) for p in range(points)]),
        point_uses_systems=np.ones(points),
        point_capacity=capacity,
        point_power_w=np.zeros(points),
        point_cost={"cost": energy},
        point_whole=np.ones(points, dtype=bool),
        point_load_s=np.where(rng.random(points) < 0.5, rng.random(points) * step[0], 0.0),
        arc_workload=whole(0, 1),
        arc_origin=whole(0, 0),
        arc_site=whole(0, 0),
        arc_pool=whole(0, 1),
        arc_cost={"cost": np.zeros((2, SLOTS))},
        demand=demand,
        order=Chronology(next=np.roll(np.arange(SLOTS), -1), step_s=step),
        relays=RelayData(cost={"cost": price}, per_day=float(rng.choice([0.0, 0.5, 1.0, 2.0, np.inf]))),
    )


def enumerated(data, group=range(SLOTS)):
    """Return the least cost over all counts of systems and all assignments of them to layouts in each slot; None where none serves.

    `group`: slots of one group have the same assignment. Days of three slots go round by themselves.
    """
    best = None
    for n in range(MOST + 1):
        days = (day_of_least_cost(data, n, first, group) for first in range(0, data.slots, SLOTS))
        value = sum(days) + n * float(data.holding_cost["cost"][0])
        if np.isfinite(value) and (best is None or value < best):
            best = value
    return best


def day_of_least_cost(data, n, start, group=range(SLOTS)):
    """Return the least cost of a day of three slots with so many systems; inf where they do not serve it."""
    share = np.minimum(data.point_load_s / data.order.step_s[0], 1.0)
    states = np.array([s for s in itertools.product(range(n + 1), repeat=4) if sum(s) <= n])
    arriving = np.maximum(states[None, :, :] - states[:, None, :], 0)  # [before, after, point]
    work = states[None, :, :] - arriving * share
    loads, paid = arriving.sum(axis=2), arriving @ data.relays.cost["cost"][:, start]
    slot = [paid + sum(served(data, work, w, start + t) for w in range(2)) for t in range(SLOTS)]
    cost = slot[0].T[:, None, :] + slot[1][:, :, None] + slot[2][None, :, :]  # states of the slots 0, 1 and 2
    count = loads.T[:, None, :] + loads[:, :, None] + loads[None, :, :]
    cost = np.where(count <= data.relays.per_day * n + 1e-9 if n else count == 0, cost, np.inf)
    index = np.indices(cost.shape)
    for first, second in itertools.combinations(range(SLOTS), 2):
        if group[first] == group[second]:
            cost = np.where(index[first] == index[second], cost, np.inf)
    return float(cost.min())


def of_two_days(seed, windows):
    """Two of the drawn days, in one window as of two seasons, or in a window each; every system is held on both."""
    one, other, slots = drawn(seed), drawn((seed + 1) % 2**32), 2 * SLOTS
    step = np.tile(one.order.step_s, 2)
    price = np.tile(one.relays.cost["cost"], 2)
    return replace(
        one,
        slot_window=np.repeat(np.arange(2) % windows, SLOTS),
        slot_hours_s=np.tile(one.slot_hours_s, 2),
        point_cost={"cost": np.hstack([one.point_cost["cost"], other.point_cost["cost"]])},
        arc_cost={"cost": np.zeros((2, slots))},
        demand=np.concatenate([one.demand, other.demand], axis=2),
        order=Chronology(next=np.concatenate([np.roll(np.arange(SLOTS), -1) + SLOTS * d for d in range(2)]), step_s=step),
        relays=replace(one.relays, cost={"cost": price}),
    )  # fmt: skip


def served(data, work, w, t):
    """[before, after]: what it costs to run one workload's requests, those of the layout that serves one for less first; inf where not all are served."""
    left, cost = np.full(work.shape[:2], data.demand[w, 0, t]), np.zeros(work.shape[:2])
    mine = np.array([2 * w, 2 * w + 1])
    for p in mine[np.argsort(data.point_cost["cost"][mine, t] / data.point_capacity[mine], kind="stable")]:
        runs = np.minimum(np.maximum(work[:, :, p], 0.0) * data.point_capacity[p], left)
        cost += runs / data.point_capacity[p] * data.point_cost["cost"][p, t]
        left = left - runs
    return np.where(left > 1e-9, np.inf, cost)


@settings(max_examples=few_of(300) * TIMES, **SMALL)
@given(SEEDS)
def test_equals_every_assignment_of_systems_in_each_slot(seed):
    data = drawn(seed)
    found, expected = solve(data, EXACT), enumerated(data)
    assert (found.value is None) == (expected is None)
    if expected is not None:
        assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(SEEDS, st.sampled_from((1, 2)))
def test_equals_every_assignment_of_systems_on_two_days(seed, windows):
    """Days of two seasons, and of two windows, have a limit on loads each, and their loads cost each."""
    data = of_two_days(seed, windows)
    assert day_of_slots(data.order, data.slot_window).tolist() == [0] * SLOTS + [1] * SLOTS
    found, expected = solve(data, EXACT), enumerated(data)
    assert (found.value is None) == (expected is None)
    if expected is not None:
        assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
        loaded = np.nan_to_num(found.values["loading"]).reshape(4, 2, SLOTS).sum(axis=(0, 2))
        assert (loaded <= min(data.relays.per_day, 1e9) * found.values["n"].sum() + 1e-6).all()


@settings(max_examples=few_of(100), **SMALL)
@given(SEEDS, st.sampled_from((1, 2)))
def test_slots_made_whole_in_turn_keep_the_limit_of_their_day(seed, windows):
    """The plan is never better than every assignment allows, and keeps all rows; it costs more where a day's loads were taken too early."""
    data = of_two_days(seed, windows)
    divided = solve_direct(data.divisible(), EXACT)
    found = round_replicas(data, divided.values, EXACT) if divided.values else None
    if found is None:
        return
    program, values = found
    x = program.vector(values)
    assert program.arrays().violation(x) < 1e-6
    assert objective_vector(program, data) @ x >= enumerated(data) - 1e-6


def loads_in(data, values):
    """Count the workers that begin to hold their weights in some slot."""
    resident = values["resident"]
    return sum(np.maximum(resident[:, u] - resident[:, t], 0.0).sum() for t, u in enumerate(data.order.next.tolist()))


@settings(max_examples=few_of(90), **SMALL)
@given(SEEDS)
def test_a_dearer_load_never_saves_and_never_adds_one(seed):
    data = drawn(seed)
    prices = (0.1, 1.0, 4.0)
    plans = [
        solve(replace(data, relays=replace(data.relays, cost={"cost": np.full((4, SLOTS), price)})), EXACT)
        for price in prices
    ]
    for cheap, dear in itertools.pairwise(plans):
        assert (cheap.value is None) == (dear.value is None)
        if cheap.value is not None:
            assert dear.value >= cheap.value - 1e-6 * abs(cheap.value)
            assert loads_in(data, dear.values) <= loads_in(data, cheap.values) + 1e-6


@settings(max_examples=few_of(90), **SMALL)
@given(SEEDS)
def test_no_relays_is_one_layout_all_day(seed):
    data = drawn(seed)
    solution = solve(replace(data, relays=replace(data.relays, per_day=0.0)), EXACT)
    if solution.values:
        assert (np.ptp(solution.values["resident"], axis=1) < 1e-6).all()
