"""The failure of a zone beside ports that are paid and workloads among which is chosen, against the reference that knows neither of these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.block_data.choice import ChoiceData
from solvers.model.block_data.porting import PortData
from solvers.model.data import Objective, SpreadData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.model.test_choice import alone, as_one
from tests.solvers.model.test_porting import by_sets
from tests.solvers.reference import SMALL, TIMES, TOLERANCE, agree, agree_with_each_other, best
from tests.solvers.test_bruteforce import problem

EXACT = Options(gap=0.0)
ALL = ("cost", "carbon_kg", "throughput")


def surviving(rng, objectives, workloads=1):
    """Draw a problem of two sites, each a zone; what has demand can be served at both, and survives the loss of either."""
    while True:
        data = problem(rng, objectives)
        if data.sites < 2 or data.demand.shape[0] < workloads or not data.demand[0].any():
            continue
        filled = np.isin(data.arc_pool, data.point_pool)
        if all((filled & (data.arc_workload == w)).any() for w in range(workloads)):
            break
    served = {(w, o, r) for w, o, r in zip(data.arc_workload[filled], data.arc_origin[filled], data.arc_site[filled], strict=True)}  # fmt: skip
    W, O = data.demand.shape[:2]
    both = np.array([[all(any((m, o, r) in served for m in range(W) if m == w or (workloads == 2 and w == 0)) for r in range(2)) for o in range(O)] for w in range(W)])  # fmt: skip
    demand = np.minimum(data.demand, 2.0) * both[:, :, None]
    spread = SpreadData(
        site_zone=np.arange(2),
        largest_share=np.ones(W),
        zones=np.ones(W, dtype=int),
        least_share=np.full(W, 0.1),
        survives=np.array([w == 0 or rng.random() < 0.5 for w in range(W)]),
        tried_slots=np.array([int(demand[0].sum(axis=0).argmax())]),
    )
    return replace(data, demand=demand, spread=spread, site_power_limit_w=data.site_power_limit_w + 4)


def ported(rng, objectives):
    data = surviving(rng, objectives)
    groups = int(rng.integers(1, 3))
    member = [(p, g) for p in range(len(data.point_pool)) for g in range(groups) if rng.random() < 0.5]
    cost = {"cost": rng.integers(0, 6, groups).astype(float)}
    ports = PortData(member=np.array(member, dtype=np.int64).reshape(-1, 2), cost=cost, groups=groups)
    return replace(data, ports=ports)


def chosen(rng, objectives, one):
    """Two workloads, either of which may serve the demand of the first and survives where it does."""
    data = surviving(rng, objectives, workloads=2)
    demand, spread = data.demand.copy(), data.spread
    demand[1:] = 0.0
    able = rng.random(2) < 0.9 if one else np.ones(2, dtype=bool)
    choice = ChoiceData(
        group=np.zeros(2, dtype=int),
        one=np.array([one]),
        able=able,
        score=np.ones(2),
        least=np.array([-np.inf]),
        hourly=np.array([False]),
    )
    objective = Objective("throughput", min(data.objective.workload, 0)) if data.objective.maximises else data.objective
    spread = replace(spread, survives=np.ones(2, dtype=bool))
    data = replace(data, demand=demand, choice=choice, objective=objective, spread=spread)
    bare = {"host_cost": {}, "edge_workload": np.zeros(0, dtype=int), "edge_cost": {}}
    return data if one else replace(data, **bare, tree_path=np.zeros((0, 3), dtype=int))


def problems(make, *words, objectives=ALL):
    return st.integers(0, 2**32 - 1).map(lambda seed: make(np.random.default_rng(seed), objectives, *words))


@settings(max_examples=few_of(50) * TIMES, **SMALL)
@given(problems(ported))
def test_ports_equal_the_best_set_of_groups(data):
    agree(solve(data, EXACT), by_sets(data))


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(chosen, True))
def test_a_single_choice_is_the_best_workload_that_survives(data):
    found = [value for w in np.flatnonzero(data.choice.able) if (value := best(alone(data, w))) is not None]
    agree(solve(data, EXACT), (max if data.objective.maximises else min)(found, default=None))


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(chosen, False))
def test_a_mix_equals_one_workload_with_all_arcs(data):
    agree(solve(data, EXACT), best(as_one(data)))


@pytest.mark.parametrize("make", [(ported,), (chosen, True)])
@settings(max_examples=few_of(20), **SMALL)
@given(seed=st.integers(0, 2**32 - 1))
def test_branching_and_direct_agree(make, seed):
    function, *words = make
    data = function(np.random.default_rng(seed), ALL, *words)
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


@settings(max_examples=few_of(30), **SMALL)
@given(problems(ported, objectives=("cost",)))
def test_surviving_never_costs_less(data):
    """What need not survive may do without a port that only a failure needs."""
    before = solve(data, EXACT)
    after = solve(replace(data, spread=replace(data.spread, survives=np.zeros_like(data.spread.survives))), EXACT)
    if before.status == "optimal":
        assert after.value <= before.value + TOLERANCE * max(1.0, before.value)


def test_a_port_that_only_a_failure_needs_is_paid():
    """Some of the drawn problems pay for a port that the same problem without the failure does not need."""
    more = 0
    for seed in range(60):
        data = ported(np.random.default_rng(seed), ("cost",))
        with_failure = solve(data, EXACT)
        none = replace(data.spread, survives=np.zeros_like(data.spread.survives))
        without = solve(replace(data, spread=none), EXACT)
        if with_failure.status == without.status == "optimal":
            more += with_failure.values["port"].sum() > without.values["port"].sum() + 0.5
    assert more >= 3
