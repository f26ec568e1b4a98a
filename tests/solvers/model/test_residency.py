"""Whole replicas against the reference that tries every whole-numbered plan, and what follows from their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.block_data.relays import RelayData
from solvers.search import joint
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, agree, agree_with_each_other, best, near
from tests.solvers.test_bruteforce import EXACT, problem

SEEDS = st.integers(0, 2**32 - 1)


def whole_problem(seed):
    """A random problem with whole replicas: small and large ones, of one role and of two, of one worker and of several."""
    rng = np.random.default_rng(seed)
    data = problem(rng, ("cost", "carbon_kg", "throughput"))
    points = len(data.point_pool)
    serving = data.point_pool[data.point_uses[:, 0]] >= 0
    small = rng.random(len(serving)) < 0.4  # replicas that share a system
    systems = np.where(serving & small, data.point_uses_systems / 2, data.point_uses_systems)
    step = data.slot_hours_s / rng.integers(1, 3, data.slots)
    window = data.slot_window
    following = np.arange(data.slots)
    for w in range(data.windows):
        mine = np.flatnonzero(window == w)
        following[mine] = np.roll(mine, -1)
    loads = rng.random() < 0.6
    workers = np.where(serving & (rng.random(len(serving)) < 0.4), rng.integers(1, 3, len(serving)), 1)
    return replace(
        data,
        point_uses_systems=systems * workers,
        use_workers=workers if rng.random() < 0.8 or (workers > 1).any() else None,
        use_spares=np.where(serving & (rng.random(len(serving)) < 0.5), rng.integers(0, 3, len(serving)), 0)
        if rng.random() < 0.4
        else None,
        point_whole=rng.random(points) < 0.85,
        point_load_s=np.where(rng.random(points) < 0.7, rng.random(points) * step.max(), 0.0) if loads else None,
        order=Chronology(next=following, step_s=step) if loads else None,
    )


@settings(max_examples=few_of(120) * TIMES, **SMALL)
@given(SEEDS)
def test_equals_enumeration(seed):
    data = whole_problem(seed)
    solution = solve(data, EXACT)
    agree(solution, best(data))
    if solution.status == "optimal":
        assert_resides(data, solution.values)


def assert_resides(data, values):
    """Every worker is whole, on systems that are held, beside the full width of each job that runs."""
    x, v = values["x"], values["v"]
    point, option = data.point_uses.T
    workers = np.ones(len(point)) if data.use_workers is None else data.use_workers
    systems = data.point_uses_systems / workers
    resident = values.get("resident", np.zeros((len(point), data.slots)))  # absent where no replica is whole
    whole = (data.point_whole & (data.point_pool >= 0))[point]
    assert np.array_equal(resident, np.round(resident))
    left = resident - (data.role_spares()[:, None] * (x[point] > 1e-6))  # when a system has failed
    assert (left >= workers[:, None] * x[point] - 1e-6)[whole].all()
    assert (left >= workers[:, None] * (x[point] > 1e-6))[whole].all()
    covers = data.covers()[:, data.slot_window]
    for t in range(data.slots):
        for k in range(len(data.option_site)):
            held = values["n"][(data.holding_option == k) & covers[:, t]].sum()
            here = option == k
            stay = (systems * resident[:, t])[here & whole].sum()
            others = (data.point_uses_systems * (x + v)[point, t])[here & ~whole].sum()
            assert stay + others <= held + 1e-6
            for i in np.flatnonzero(here & (v[point, t] > 1e-6)) if (here & whole).any() else ():
                assert stay + data.point_uses_systems[i] <= held + 1e-6


@settings(max_examples=few_of(60), **SMALL)
@given(SEEDS)
def test_divisible_replicas_are_a_relaxation(seed):
    data = whole_problem(seed)
    whole, divisible = solve(data, EXACT), solve(data.divisible(), EXACT)
    if whole.value is None or divisible.value is None:
        assert divisible.status != "infeasible" or whole.status == "infeasible"
        return
    sign = -1.0 if data.objective.maximises else 1.0
    assert sign * whole.value >= sign * divisible.value - 1e-6 * max(1.0, abs(whole.value))


@pytest.mark.parametrize("most_full", [0, 10**9])
@settings(max_examples=few_of(60), **SMALL)
@given(seed=SEEDS)
def test_rounded_plans_hold_and_their_bound_too(most_full, seed):
    """As for large programs: relaxation, rounding slot by slot, search over the points in use, and over all or not."""
    data = whole_problem(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "SETTINGS", replace(joint.SETTINGS, small=0, most_full=most_full))
        solution = solve(data, EXACT)
    expected = best(data)
    if expected is None or np.isinf(expected):
        assert solution.value is None
        return
    sign = -1.0 if data.objective.maximises else 1.0
    slack = 1e-6 * max(1.0, abs(expected))
    assert solution.bound is not None and sign * solution.bound <= sign * expected + slack
    if solution.value is None:
        assert solution.status == "limit" and not most_full
        return
    assert sign * solution.value >= sign * expected - slack
    assert_resides(data, solution.values)
    if most_full:
        assert near(solution.value, expected)


@settings(max_examples=few_of(40), **SMALL)
@given(SEEDS)
def test_cbc_through_pulp_agrees(seed):
    data = whole_problem(seed)
    agree_with_each_other(*(solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp")))


@settings(max_examples=few_of(40), **SMALL)
@given(SEEDS)
def test_slots_of_a_group_have_the_same_residents(seed):
    data = replace(whole_problem(seed), resident_group=None)
    grouped = replace(data, resident_group=data.slot_window)
    apart, together = solve(data, EXACT), solve(grouped, EXACT)
    if together.value is None or "resident" not in together.values:
        return
    for w in range(data.windows):
        for row in np.round(together.values["resident"][:, data.slot_window == w]):
            assert len(set(row[row > 0])) <= 1
    sign = -1.0 if data.objective.maximises else 1.0
    assert sign * together.value >= sign * apart.value - 1e-6 * max(1.0, abs(together.value))


def relayed(seed):
    """A random problem with whole replicas whose loads cost something, are limited, or both."""
    rng = np.random.default_rng((seed, 58))
    data = whole_problem(seed)
    if data.order is None:
        following = np.arange(data.slots)
        for w in range(data.windows):
            mine = np.flatnonzero(data.slot_window == w)
            following[mine] = np.roll(mine, -1)
        data = replace(data, order=Chronology(next=following, step_s=np.full(data.slots, 86_400.0 / 2)))
    uses = len(data.point_uses)
    cost = np.where(rng.random((uses, 1)) < 0.8, rng.integers(0, 4, (uses, 1)), 0) * np.ones(data.slots)
    per_day = float(rng.choice([0.0, 0.5, 1.0, 2.0, np.inf]))
    return replace(data, relays=RelayData(cost={"cost": cost} if rng.random() < 0.8 else {}, per_day=per_day))


@settings(max_examples=few_of(150) * TIMES, **SMALL)
@given(SEEDS)
def test_priced_loads_equal_enumeration(seed):
    data = relayed(seed)
    solution = solve(data, EXACT)
    agree(solution, best(data))
    if solution.status == "optimal":
        assert_resides(data, solution.values)
