"""Many scenarios of a fixed fleet: the same answers as one program for each, and further systems by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.fixed_fleet.many_scenarios import UNDONE_TOL, settle
from solvers.fixed_fleet.redispatch import Extension, FixedFleet, Redispatch

SCENARIOS = 12


def whole(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def drawn_fleet(seed: int) -> tuple[FixedFleet, np.ndarray, np.ndarray]:
    """A fleet of few options with shared systems, several classes, and a job; capacities and rates of its scenarios."""
    rng = np.random.default_rng(seed)
    T, K, W, J = rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 3), rng.integers(0, 2)
    classes = [w for w in range(W) for _ in range(rng.integers(1, 3))]
    arcs, point_pool, uses, systems = [], [], [], []
    for c in range(len(classes)):
        for _ in range(rng.integers(1, 3)):
            pool = len(arcs)
            arcs.append((c, pool))
            for _ in range(rng.integers(1, 3)):
                for k in rng.choice(K, size=rng.integers(1, min(K, 2) + 1), replace=False):
                    uses.append((len(point_pool), k))
                    systems.append(rng.choice([0.5, 1.0, 2.0]))
                point_pool.append(pool)
    P = len(point_pool)
    fleet = FixedFleet(
        demand=rng.uniform(0, 10, (len(classes), T)) * (rng.random((len(classes), T)) > 0.2), class_workload=whole(*classes),
        arcs=whole(*np.ravel(arcs)).reshape(-1, 2), pools=len(arcs), point_pool=whole(*point_pool), point_uses=whole(*np.ravel(uses)).reshape(-1, 2),
        point_systems=np.array(systems), point_power_w=rng.choice([0.0, 1.0], P), point_site=np.zeros(P, dtype=np.int64),
        job_uses=whole(*([0, 0] * J)).reshape(-1, 2), job_systems=np.ones(J) * 2.0, job_power_w=np.ones(J), job_site=np.zeros(J, dtype=np.int64),
        job_mask=rng.random((J, T)) > 0.3, job_work=np.full(J, 2.0), option_count=rng.integers(1, 12, (K, T)) * 1.0,
        room_w=np.full((1, T), rng.choice([np.inf, 8.0])), seconds=np.ones(T), workloads=int(W),
    )  # fmt: skip
    capacity = rng.uniform(0.3, 4.0, (P, SCENARIOS)) * (rng.random((P, SCENARIOS)) > 0.15)
    return fleet, capacity, rng.uniform(0.5, 3.0, (J, SCENARIOS))


@given(st.integers(0, 10**6))
def test_scenarios_settled_together_are_those_of_their_own_programs(seed):
    fleet, capacity, rate = drawn_fleet(seed)
    found = settle(fleet, capacity, rate)
    assert not found.open.any() and found.programs <= SCENARIOS
    for s in range(SCENARIOS):
        undone = Redispatch(fleet).shortfall(capacity[:, s], rate[:, s])
        assert found.kept[s] == (undone <= UNDONE_TOL).all()
        if len(undone) == 1 or found.kept[s]:
            assert list(found.done[s]) == list(undone <= UNDONE_TOL)
        else:
            assert not found.done[s].all()


@given(st.integers(0, 10**6))
def test_with_fewer_programs_nothing_is_said_that_they_would_deny(seed):
    fleet, capacity, rate = drawn_fleet(seed)
    every, some = settle(fleet, capacity, rate), settle(fleet, capacity, rate, 2 * Redispatch(fleet).columns)
    assert some.programs <= 2
    assert not (some.kept & ~every.kept).any()
    assert ((some.kept | some.open) >= every.kept).all()


@given(st.integers(0, 10**6), st.integers(0, 3))
def test_options_that_nothing_uses_change_nothing(seed, before):
    fleet, capacity, rate = drawn_fleet(seed)
    idle = np.ones((before, len(fleet.seconds)))
    shift = np.array([0, before])
    more = replace(
        fleet, option_count=np.vstack([idle, fleet.option_count, idle]), point_uses=fleet.point_uses + shift, job_uses=fleet.job_uses + shift,
    )  # fmt: skip
    one, other = settle(fleet, capacity, rate), settle(more, capacity, rate)
    assert (one.kept == other.kept).all() and (one.done == other.done).all() and one.programs == other.programs


def test_a_fleet_without_points_loses_every_scenario():
    fleet, _, _ = drawn_fleet(0)
    none = np.zeros((0, 2), dtype=np.int64)
    empty = replace(
        fleet, demand=fleet.demand + 1.0, arcs=none, pools=0, point_pool=whole(), point_uses=none, point_systems=np.zeros(0), point_power_w=np.zeros(0),
        point_site=whole(), job_uses=none, job_systems=np.zeros(0), job_power_w=np.zeros(0), job_site=whole(), job_mask=fleet.job_mask[:0],
        job_work=np.zeros(0),
    )  # fmt: skip
    found = settle(empty, np.zeros((0, SCENARIOS)), np.zeros((0, SCENARIOS)))
    assert not found.kept.any() and not found.open.any()


def test_one_kind_of_point_needs_few_programs():
    """Scenarios in order of one capacity are halved each time."""
    fleet, _, _ = drawn_fleet(0)
    one = FixedFleet(
        demand=np.array([[8.0]]), class_workload=whole(0), arcs=whole(0, 0).reshape(1, 2), pools=1, point_pool=whole(0), point_uses=whole(0, 0).reshape(1, 2),
        point_systems=np.ones(1), point_power_w=np.zeros(1), point_site=whole(0), job_uses=fleet.job_uses[:0], job_systems=np.zeros(0),
        job_power_w=np.zeros(0), job_site=whole(), job_mask=np.zeros((0, 1), dtype=bool), job_work=np.zeros(0), option_count=np.full((1, 1), 8.0),
        room_w=np.full((1, 1), np.inf), seconds=np.ones(1), workloads=1,
    )  # fmt: skip
    capacity = np.linspace(0.5, 1.5, 1001)[None, :]
    found = settle(one, capacity, np.zeros((0, 1001)))
    assert found.programs <= 12 and found.kept.sum() == (capacity >= 1.0 - 1e-9).sum()


def test_the_cheapest_further_systems_are_found():
    """Demand 10 on options of 4 and 2 systems; a system of the second costs less per request, and only one of it is left."""
    fleet = FixedFleet(
        demand=np.array([[10.0, 4.0]]), class_workload=whole(0), arcs=whole(0, 0).reshape(1, 2), pools=1, point_pool=whole(0, 0),
        point_uses=whole(0, 0, 1, 1).reshape(2, 2), point_systems=np.ones(2), point_power_w=np.zeros(2), point_site=whole(0, 0),
        job_uses=np.zeros((0, 2), dtype=np.int64), job_systems=np.zeros(0), job_power_w=np.zeros(0), job_site=whole(), job_mask=np.zeros((0, 2), dtype=bool),
        job_work=np.zeros(0), option_count=np.array([[4.0, 4.0], [2.0, 2.0]]), room_w=np.full((1, 2), 100.0), seconds=np.ones(2), workloads=1,
    )  # fmt: skip
    further = Extension(whole(0, 1), np.array([3.0, 1.0]), np.array([np.inf, 1.0]), np.array([0.0, 0.0]), whole(0, 0))
    program = Redispatch(fleet, further)
    assert program.shortfall(np.array([1.0, 2.0]), np.zeros(0)) == pytest.approx(
        [0.0]
    )  # 4 + 2 x 2 = 8: two more requests
    assert program.further() == pytest.approx([0.0, 1.0])
    assert program.shortfall(np.array([1.0, 1.0]), np.zeros(0)) == pytest.approx([0.0])  # 4 + 2 = 6: four more
    assert program.further() == pytest.approx([3.0, 1.0])
    without_power = Extension(
        whole(0, 1), np.array([3.0, 1.0]), np.array([np.inf, 1.0]), np.array([200.0, 200.0]), whole(0, 0)
    )
    assert Redispatch(fleet, without_power).shortfall(np.array([1.0, 1.0]), np.zeros(0))[0] > 0.3
