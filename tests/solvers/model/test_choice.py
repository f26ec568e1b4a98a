"""Demand that several workloads may answer, against the reference that knows no such thing: each of them alone, and all of them as one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.choice import ChoiceData
from solvers.model.data import Limit, Objective, SpreadData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, agree, agree_with_each_other, best, near
from tests.solvers.test_all_blocks_bruteforce import order
from tests.solvers.test_bruteforce import problem

EXACT = Options(gap=0.0)
ALL = ("cost", "carbon_kg", "throughput")


def problems(one, hosted=True, least=False, objectives=ALL, hourly=False):
    return st.integers(0, 2**32 - 1).map(
        lambda seed: with_choice(np.random.default_rng(seed), one, hosted, least, objectives, hourly)
    )


def with_choice(rng, one, hosted, least, objectives, hourly=False):
    """Draw a problem of two workloads, either of which may serve the demand of the first."""
    data = problem(rng, objectives)
    while data.demand.shape[0] < 2 or not data.demand[0].any() or not (data.arc_workload == 1).any():
        data = problem(rng, objectives)
    demand = data.demand.copy()
    demand[1] = 0.0
    able = rng.random(2) < 0.9 if one else np.ones(2, dtype=bool)
    score = rng.integers(1, 5, 2).astype(float)
    floor = float(rng.integers(1, 9)) / 2 if least else -np.inf
    choice = ChoiceData(
        group=np.zeros(2, dtype=int),
        one=np.array([one]),
        able=able,
        score=score,
        least=np.array([floor]),
        hourly=np.array([hourly]),
    )
    objective = Objective("throughput", min(data.objective.workload, 0)) if data.objective.maximises else data.objective
    data = replace(data, demand=demand, choice=choice, objective=objective)
    return (
        data
        if hosted
        else replace(
            data,
            host_cost={},
            edge_workload=np.zeros(0, dtype=int),
            edge_cost={},
            tree_path=np.zeros((0, 3), dtype=int),
        )
    )


def alone(data, w):
    """The same problem with only one of the workloads."""
    demand = np.zeros_like(data.demand)
    demand[w] = data.demand[0]
    objective = replace(data.objective, workload=w) if data.objective.workload == 0 else data.objective
    return replace(data, demand=demand, choice=None, objective=objective)


def as_one(data):
    """All arcs as those of the first workload; a least mean score as a limit on what is missing to it."""
    limits, costs = data.limits, dict(data.arc_cost)
    if np.isfinite(data.choice.least[0]):
        missing = (data.choice.least[0] - data.choice.score[data.arc_workload])[:, None] * data.slot_hours_s
        for name, of in (
            [(f"missing in {t}", np.arange(data.slots) == t) for t in range(data.slots)]
            if data.choice.hourly[0]
            else [("missing", 1.0)]
        ):
            costs[name] = missing * of
            limits = (*limits, Limit(name, name, 0.0))
    return replace(data, arc_workload=np.zeros_like(data.arc_workload), arc_cost=costs, limits=limits, choice=None)


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(one=True))
def test_a_single_choice_is_the_best_permitted_workload(data):
    found = [value for w in np.flatnonzero(data.choice.able) if (value := best(alone(data, w))) is not None]
    agree(solve(data, EXACT), (max if data.objective.maximises else min)(found, default=None))


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(one=False, hosted=False))
def test_a_mix_equals_one_workload_with_all_arcs(data):
    agree(solve(data, EXACT), best(as_one(data)))


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(one=False, hosted=False, least=True))
def test_the_mean_score_is_kept_at_least_cost(data):
    agree(solve(data, EXACT), best(as_one(data)))


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(one=False, hosted=False, least=True, hourly=True))
def test_the_mean_score_of_every_slot_is_kept_at_least_cost(data):
    agree(solve(data, EXACT), best(as_one(data)))


def spread_and_waiting(seed, hourly):
    """A mix whose requests are spread over zones, survive the failure of one, and may wait."""
    rng = np.random.default_rng(seed)
    while True:
        data = with_choice(rng, False, False, True, ALL, hourly)
        if len(data.site_power_limit_w) > 1:
            break
    R, T = len(data.site_power_limit_w), data.slots
    both = np.ones(2, dtype=int)
    spread = SpreadData(
        site_zone=np.arange(R), largest_share=both * float(rng.choice([0.5, 0.7, 1.0])), zones=both * int(rng.integers(1, 3)), least_share=both * float(rng.choice([0.1, 0.3])),
        survives=both * (rng.random() < 0.3) > 0, tried_slots=np.array([int(data.demand.sum(axis=(0, 1)).argmax())]))  # fmt: skip
    asks = rng.random() < 0.7
    return replace(
        data,
        spread=spread if asks or T == 1 else None,
        wait_slots=both * int(rng.integers(0 if asks else 1, 3)),
        order=order(rng, T),
    )


@pytest.mark.parametrize("hourly", [False, True])
@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_mix_that_is_spread_or_waits_equals_one_workload_with_all_arcs(hourly, seed):
    """The requests of all architectures together are spread and wait; the mean is that of what is served."""
    data = spread_and_waiting(seed, hourly)
    agree(solve(data, EXACT), best(as_one(data)))


@settings(max_examples=few_of(40), **SMALL)
@given(problems(one=True))
def test_branching_and_direct_agree(data):
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


@settings(max_examples=few_of(45), **SMALL)
@given(problems(one=False, least=True, objectives=("cost",)))
def test_each_relaxation_never_costs_more(data):
    """One alone, several of them, a mean in each slot, a mean over all, a lower one."""
    floor, choice = data.choice.least[0], data.choice
    each = ChoiceData(
        group=choice.group,
        one=np.array([True]),
        able=choice.score >= floor,
        score=choice.score,
        least=np.array([-np.inf]),
        hourly=choice.hourly,
    )
    lower = replace(choice, least=np.array([floor - 1.0]))
    steps = [
        solve(replace(data, choice=asked), EXACT)
        for asked in (
            each,
            replace(each, one=np.array([False])),
            replace(choice, hourly=np.array([True])),
            choice,
            lower,
        )
    ]
    for tight, loose in itertools.pairwise(steps):
        if tight.status == "optimal":
            assert loose.status == "optimal" and (loose.value <= tight.value or near(loose.value, tight.value))


@pytest.mark.parametrize(
    "wrong",
    [
        {"group": np.array([0, 1])},
        {"able": np.ones(3, dtype=bool)},
        {"score": np.array([1.0, np.nan])},
        {"one": np.array([True, True])},
    ],
)
def test_a_broken_choice_is_refused(wrong):
    data = with_choice(np.random.default_rng(0), True, True, False, ("cost",))
    with pytest.raises(ValueError, match="choice"):
        replace(data, choice=replace(data.choice, **wrong))


def test_only_the_first_workload_of_a_group_has_demand():
    data = with_choice(np.random.default_rng(0), True, True, False, ("cost",))
    with pytest.raises(ValueError, match="the others have none"):
        replace(data, demand=np.ones_like(data.demand))
