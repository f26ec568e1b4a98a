"""The porting block against trying every set of groups with a reference without porting."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.porting import PortData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TOLERANCE, agree, agree_with_each_other, best
from tests.solvers.test_bruteforce import problem

EXACT = Options(gap=0.0)


def problems(objectives=("cost", "carbon_kg", "throughput")):
    return st.integers(0, 2**32 - 1).map(lambda seed: ported(np.random.default_rng(seed), objectives))


def ported(rng, objectives):
    data = problem(rng, objectives)
    groups = int(rng.integers(1, 3))
    member = [(p, g) for p in range(len(data.point_pool)) for g in range(groups) if rng.random() < 0.5]
    cost = {"cost": rng.integers(0, 6, groups).astype(float)}
    return replace(
        data, ports=PortData(member=np.array(member, dtype=np.int64).reshape(-1, 2), cost=cost, groups=groups)
    )


def by_sets(data):
    """The best over all sets of groups that are paid for: points of the others can do nothing."""
    sense, found = max if data.objective.maximises else min, []
    for paid in itertools.product((False, True), repeat=data.ports.groups):
        gone = [p for p, g in data.ports.member if not paid[g]]
        spent = float(data.ports.cost["cost"] @ np.array(paid))
        able = data.point_capacity.copy()
        able[gone] = 0.0
        limits = tuple(
            replace(limit, upper=limit.upper - spent) if limit.functional == "cost" else limit for limit in data.limits
        )
        if any(limit.upper < 0 for limit in limits) or any(
            not able[data.point_job == j].any() for j in range(len(data.job_work))
        ):
            continue
        value = best(replace(data, ports=None, point_capacity=able, limits=limits))
        if value is not None:
            found.append(value + (spent if data.objective.functional == "cost" else 0.0))
    return sense(found) if found else None


@settings(max_examples=few_of(80), **SMALL)
@given(problems())
def test_equals_the_best_set_of_groups(data):
    agree(solve(data, EXACT), by_sets(data))


@settings(max_examples=few_of(30), **SMALL)
@given(problems())
def test_branching_and_direct_agree(data):
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


@settings(max_examples=few_of(30), **SMALL)
@given(problems(objectives=("cost",)))
def test_a_cheaper_port_never_costs_more_and_a_free_one_is_none(data):
    before = solve(data, EXACT)
    free = replace(data.ports, cost={"cost": np.zeros(data.ports.groups)})
    after = solve(replace(data, ports=free), EXACT)
    agree_with_each_other(after, solve(replace(data, ports=None), EXACT))
    if before.status == "optimal":
        assert after.value <= before.value + TOLERANCE * max(1.0, before.value)
