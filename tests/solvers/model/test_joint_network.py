"""Networks that kinds of systems share, against enumeration of who joins, and rows against numbers by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from solvers.decomposition.coverage import supports
from solvers.model.block_data.joint_network import JointNetworks
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.model.fabric import exceedable, joined_of, most_taken
from solvers.search.joint import solve, with_values
from tests.conftest import few_of
from tests.solvers.model.test_residency import SEEDS
from tests.solvers.model.test_zone_failure import surviving
from tests.solvers.reference import SMALL, TIMES, agree, best
from tests.solvers.search.test_simplest import restricted
from tests.solvers.test_bruteforce import EXACT


def drawn(seed):
    """A random problem of two or three kinds at one site, some of whose points stand on two of them, and of single-kind points."""
    rng = np.random.default_rng(seed)
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    kinds, slots = whole(2, 3), whole(1, 2)
    windows = whole(1, slots)
    window = np.sort(np.r_[np.arange(windows), rng.integers(0, windows, slots - windows)])
    holdings = [(k, w) for k in range(kinds) for w in ([-1] if rng.random() < 0.6 else range(windows))]
    option = np.array([k for k, _ in holdings])
    upper = rng.integers(1, 3, len(holdings), endpoint=True).astype(float)
    unit = rng.integers(1, 2, kinds, endpoint=True).astype(float)
    alone = np.zeros(kinds)
    np.add.at(alone, option, upper * unit[option])
    size = np.array([alone.max() + whole(0, 2)])
    uses = [[k] for k in range(kinds) if rng.random() < 0.5]
    uses += [list(pair) for pair in itertools.combinations(range(kinds), 2) if rng.random() < 0.8]
    uses = uses or [[0, 1]]
    rows = np.array([(p, k) for p, used in enumerate(uses) for k in used])
    pooled = [(k, j) for j, (p, k) in enumerate(rows.tolist()) if len(uses[p]) > 1]
    points, jobs = len(uses), whole(0, 1)
    point_job = np.where(rng.random(points) < 0.3 * jobs, 0, -1)
    if (point_job < 0).all():
        jobs = 0
    joint = JointNetworks(
        size=size,
        network=np.zeros(kinds, dtype=int),
        unit=unit,
        member=np.column_stack([option, np.arange(len(option))]),
        pooled=np.array(pooled, dtype=int).reshape(-1, 2),
    )
    data = PlanData(
        slot_window=window,
        slot_hours_s=rng.integers(1, 3, slots, endpoint=True).astype(float),
        site_power_limit_w=np.full(1, np.inf),
        option_site=np.zeros(kinds, dtype=int),
        option_group=np.arange(kinds),
        option_fabric=np.zeros(kinds, dtype=int),
        holding_option=option,
        holding_window=np.array([w for _, w in holdings]),
        holding_upper=upper,
        holding_cost={"cost": rng.integers(1, 5, len(holdings), endpoint=True).astype(float)},
        holding_power_w=np.zeros(len(holdings)),
        point_pool=np.where(point_job < 0, 0, -1),
        point_job=point_job,
        point_uses=rows,
        point_uses_systems=rng.integers(1, 2, len(rows), endpoint=True).astype(float),
        point_capacity=rng.integers(1, 6, points, endpoint=True).astype(float),
        point_power_w=np.zeros(points),
        point_cost={"cost": rng.integers(0, 1, (points, slots), endpoint=True).astype(float)},
        arc_workload=np.zeros(1, dtype=int),
        arc_origin=np.zeros(1, dtype=int),
        arc_site=np.zeros(1, dtype=int),
        arc_pool=np.zeros(1, dtype=int),
        arc_cost={},
        demand=rng.integers(2, 14, (1, 1, slots), endpoint=True).astype(float),
        job_work=rng.integers(1, 4, jobs, endpoint=True).astype(float),
        job_window_mask=np.ones((jobs, slots), dtype=bool),
    )
    return replace(data, joint=joint)


def joined(data, kinds):
    """The problem in which these kinds share the network and no others: points on other pairs left out, their systems counted together."""
    joint = data.joint
    pairs = {p: {int(k) for q, k in data.point_uses if q == p} for p in data.point_uses[:, 0].tolist()}
    kept = np.array([len(pairs[p]) == 1 or pairs[p] <= set(kinds) for p in range(len(data.point_pool))])
    times = [(0, u) for u, k in enumerate(data.holding_option) if k in kinds for _ in range(int(joint.unit[k]))]
    part = replace(data, joint=None, supply_limit=joint.size, supply_member=np.array(times, dtype=int).reshape(-1, 2))
    return restricted(part, kept)


def enumerated(data):
    """The least cost over all sets of kinds that join, by whole-numbered plans; None where no set has a plan."""
    kinds = range(len(data.joint.network))
    values = [
        best(joined(data, some)) for count in range(len(kinds) + 1) for some in itertools.combinations(kinds, count)
    ]
    return min((value for value in values if value is not None), default=None)


@settings(max_examples=few_of(200) * TIMES, **SMALL)
@given(SEEDS)
def test_plans_are_the_best_of_all_sets_that_join(seed):
    data = drawn(seed)
    agree(solve(data, EXACT), enumerated(data))


def test_the_drawn_problems_bind():
    """Among the first problems the size of the shared network changes the plan of some, and makes some infeasible."""
    dearer = infeasible = 0
    for seed in range(60):
        data = drawn(seed)
        free, bound = (solve(each, EXACT) for each in (replace(data, joint=None), data))
        dearer += bound.value is not None and bound.value > free.value + 1e-6
        infeasible += bound.value is None and free.value is not None
    assert dearer >= 3 and infeasible >= 1, (dearer, infeasible)


@pytest.fixture
def two():
    """Two kinds of at most 3 and 2 systems, of which the second takes 2 of a network of 6; one point on both."""
    data = drawn(0)
    return replace(
        data,
        slot_window=np.zeros(1, dtype=int),
        slot_hours_s=np.ones(1),
        option_site=np.zeros(2, dtype=int),
        option_group=np.arange(2),
        option_fabric=np.zeros(2, dtype=int),
        holding_option=np.arange(2),
        holding_window=np.full(2, -1),
        holding_upper=np.array([3.0, 2.0]),
        holding_cost={"cost": np.ones(2)},
        holding_power_w=np.zeros(2),
        point_pool=np.zeros(1, dtype=int),
        point_job=np.full(1, -1),
        point_uses=np.array([[0, 0], [0, 1]]),
        point_uses_systems=np.array([1.0, 2.0]),
        point_capacity=np.ones(1),
        point_power_w=np.zeros(1),
        point_cost={},
        demand=np.ones((1, 1, 1)),
        job_work=np.zeros(0),
        job_window_mask=np.zeros((0, 1), dtype=bool),
        joint=JointNetworks(
            size=np.array([6.0]),
            network=np.zeros(2, dtype=int),
            unit=np.array([1.0, 2.0]),
            member=np.array([[0, 0], [1, 1]]),
            pooled=np.array([[0, 0], [1, 1]]),
        ),
    )


def matrix(program):
    arrays = program.arrays()
    return arrays.matrix.toarray(), arrays


def test_rows_by_hand(two):
    """3 x 1 + 2 x 2 = 7 exceed 6; a replica takes 1 x 1 of the first kind's and 2 x 2 of the second's."""
    assert most_taken(two, two.joint).tolist() == [[3.0], [4.0]] and exceedable(two).tolist() == [True]
    program = build(two)
    joins, taken, held = (program.columns[name].ravel() for name in ("joins", "joint", "n"))
    [x] = program.columns["x"].ravel()
    dense, arrays = matrix(program)
    rows = {
        name: np.arange(part.rows.start, part.rows.stop)
        for name in ("joined size", "joined systems", "joined pools")
        for part in program.row_blocks[name]
    }
    [size] = rows["joined size"]
    assert dense[size, taken].tolist() == [1, 1] and arrays.row_upper[size] == 6
    first, second = rows["joined systems"]
    assert dense[first, [held[0], taken[0], joins[0]]].tolist() == [1, -1, 3] and arrays.row_upper[first] == 3
    assert dense[second, [held[1], taken[1], joins[1]]].tolist() == [2, -1, 4] and arrays.row_upper[second] == 4
    first, second = rows["joined pools"]
    assert dense[first, [x, joins[0]]].tolist() == [1, -6] and dense[second, [x, joins[1]]].tolist() == [4, -6]


def test_a_network_that_holds_all_has_no_rows(two):
    roomy = replace(two, joint=replace(two.joint, size=np.array([7.0])))
    assert "joins" not in build(roomy).columns and supports(roomy) and not supports(two)


def test_jobs_join_too(two):
    job = replace(
        two,
        point_pool=np.full(1, -1),
        point_job=np.zeros(1, dtype=int),
        job_work=np.ones(1),
        job_window_mask=np.ones((1, 1), dtype=bool),
        demand=np.zeros((1, 1, 1)),
    )
    program = build(job)
    dense, _ = matrix(program)
    [part] = program.row_blocks["joined job"]
    for row, i in zip(range(part.rows.start, part.rows.stop), (0, 1), strict=True):
        assert dense[row, [program.columns["y"][0], program.columns["joins"][i]]].tolist() == [1, -1]


def test_a_wrong_membership_is_refused(two):
    with pytest.raises(ValueError, match=r"joint\.member"):
        replace(two, joint=replace(two.joint, member=np.array([[2, 0]])))


def test_values_of_a_fleet_join_what_runs(two):
    """One replica on both kinds: both join, the first takes 2 x 1 and the second 1 x 2; a plan without it joins none."""
    found = joined_of(two, np.array([2.0, 1.0]), {"x": np.ones((1, 1)), "y": np.zeros(1)})
    assert found["joins"].tolist() == [1, 1] and found["joint"].tolist() == [[2], [2]]
    assert not joined_of(two, np.array([2.0, 1.0]), {"x": np.zeros((1, 1)), "y": np.zeros(1)})["joins"].any()
    assert joined_of(replace(two, joint=None), np.ones(2), {}) == {}
    solution = solve(two, EXACT)
    again = joined_of(two, solution.values["n"], solution.values)
    assert with_values(two, solution, {**solution.values, **again}).value == pytest.approx(solution.value)


def surviving_on_networks(seed):
    """Two sites, either of which may fail, with a network that the kinds of a site may share; what survives may run on two kinds only then."""
    rng = np.random.default_rng(seed)
    while True:
        data = surviving(rng, ("cost",))
        uses = [data.point_uses[data.point_uses[:, 0] == p, 1].tolist() for p in range(len(data.point_pool))]
        if any(len(used) > 1 for used in uses):
            break
    kinds = len(data.option_site)
    data = replace(data, option_group=np.arange(kinds), option_fabric=np.zeros(kinds, dtype=int))
    unit = rng.integers(1, 2, kinds, endpoint=True).astype(float)
    alone, size = np.zeros(kinds), np.zeros(data.sites)
    np.add.at(alone, data.holding_option, data.holding_upper * unit[data.holding_option])
    np.maximum.at(size, data.option_site, alone)
    joint = JointNetworks(
        size=np.maximum(size, 1.0),
        network=data.option_site,
        unit=unit,
        member=np.column_stack([data.holding_option, np.arange(len(data.holding_option))]),
        pooled=np.array([(k, j) for j, (p, k) in enumerate(data.point_uses.tolist()) if len(uses[p]) > 1]),
    )
    return replace(data, joint=joint)


def by_sets_that_join(data):
    """The least cost over all sets of kinds that join: points on pairs of other kinds do nothing, at any time; what joins fits its site's network."""
    joint, found, suppliers = data.joint, [], len(data.supply_limit)
    uses = [set(data.point_uses[data.point_uses[:, 0] == p, 1].tolist()) for p in range(len(data.point_pool))]
    for joins in itertools.product((False, True), repeat=len(joint.network)):
        kinds = {k for k, joined in enumerate(joins) if joined}
        able = np.array([len(used) == 1 or used <= kinds for used in uses])
        if any(not able[data.point_job == j].any() for j in range(len(data.job_work))):
            continue
        times = [(suppliers + joint.network[k], u) for u, k in enumerate(data.holding_option) if k in kinds for _ in range(int(joint.unit[k]))]  # fmt: skip
        part = replace(
            data,
            joint=None,
            point_capacity=np.where(able, data.point_capacity, 0.0),
            supply_limit=np.concatenate([data.supply_limit, joint.size]),
            supply_member=np.concatenate([data.supply_member, np.array(times, dtype=int).reshape(-1, 2)]),
        )
        if (value := best(part)) is not None:
            found.append(value)
    return min(found, default=None)


@settings(max_examples=few_of(60) * TIMES, **SMALL)
@given(SEEDS)
def test_pools_that_only_a_failure_runs_stand_on_one_network_too(seed):
    data = surviving_on_networks(seed)
    agree(solve(data, EXACT), by_sets_that_join(data))


def test_some_pools_on_two_kinds_run_in_a_failure_only():
    """Among the drawn problems the networks cost something that they cost nobody where nothing need survive."""
    dearer = 0
    for seed in range(40):
        data = surviving_on_networks(seed)
        calm = replace(data, spread=replace(data.spread, survives=np.zeros_like(data.spread.survives)))
        bound, free, alone, freely = (
            solve(each, EXACT).value for each in (data, replace(data, joint=None), calm, replace(calm, joint=None))
        )
        if free is not None and alone is not None and alone <= freely + 1e-6:
            dearer += bound is None or bound > free + 1e-6
    assert dearer >= 1, dearer
