"""Fleet, fabrics, routing, hosting and jobs against the reference that tries every whole-numbered plan (`tests/solvers/reference.py`),
and the answer against its own definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.data import Limit, Objective, PlanData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, TOLERANCE, agree, agree_with_each_other, best, near

EXACT = Options(gap=0.0)


# --- random problems -----------------------------------------------------------------------------------------------


def problems(objectives=("cost", "carbon_kg", "throughput")):
    """A number names a problem: drawn part by part, hypothesis would favour empty ones."""
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), objectives))


def problem(rng, objectives):
    whole = lambda low, high: int(rng.integers(low, high, endpoint=True))
    chance = lambda share=0.5: bool(rng.random() < share)
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    counts = lambda size, low, high: table(size, low=low, high=high).astype(int)
    sites, slots, windows = whole(1, 2), whole(1, 3), whole(1, 2)
    window = np.sort(counts(slots, 0, windows - 1))
    windows = int(window.max()) + 1
    fleet_options = whole(sites, 3)
    option_site = np.concatenate([np.arange(sites), counts(fleet_options - sites, 0, sites - 1)])
    system = (
        counts(fleet_options, 0, 1) if chance(0.3) else np.zeros(fleet_options, dtype=int)
    )  # mostly one group per site
    group = option_site * 2 + system
    fabric = np.where([chance(0.8) for _ in range(fleet_options)], np.arange(fleet_options) % 2, -1)
    holdings = [(k, w) for k in range(fleet_options) for w in ([-1] if chance() else range(windows))][:4]
    U = len(holdings)
    holding_option = np.array([k for k, _ in holdings])
    owned = fabric[holding_option] >= 0

    workloads, origins = whole(0, 2), whole(1, 2)
    pools, arcs = {}, []
    for w, o, r in itertools.product(range(workloads), range(origins), range(sites)):
        if len(arcs) < 5 and chance(0.85):
            arcs.append((w, o, r, pools.setdefault((w, r), len(pools))))
    point_pool, point_job, uses, systems = [], [], [], []
    jobs = whole(0, 1) if workloads else 1

    def add(pool, job, site):
        here = [k for k in range(fleet_options) if option_site[k] == site]
        if not here or len(point_pool) >= 5:
            return
        chosen = here[:2] if chance() and len(here) > 1 else [here[whole(0, len(here) - 1)]]
        for option in chosen:
            uses.append((len(point_pool), option))
            systems.append(float(whole(1, 2)))
        point_pool.append(pool)
        point_job.append(job)

    for job in range(jobs):
        for _ in range(whole(1, 2)):
            add(-1, job, whole(0, sites - 1))
    for (_, r), q in pools.items():
        for _ in range(whole(1, 2) if chance(0.9) else 0):
            add(q, -1, r)
    P, A = len(point_pool), len(arcs)
    demand = table(workloads, origins, slots, high=4)
    if chance(0.9):  # mostly without demand that nothing could serve
        served = {(w, o) for w, o, r, q in arcs if q in point_pool}
        demand *= np.array([[(w, o) in served for o in range(origins)] for w in range(workloads)], dtype=bool).reshape(
            workloads, origins, 1
        )
    objective = str(rng.choice(objectives))
    objective = Objective("throughput", whole(-1, workloads - 1)) if objective == "throughput" else Objective(objective)
    edges = whole(0, 2) if workloads else 0
    limits = tuple(Limit(f"limits.{name}", name, float(whole(20, 90))) for name in ("cost", "carbon_kg") if chance())
    suppliers = whole(1, 2) if chance(0.6) else 0
    arc = np.array(arcs, dtype=int).reshape(-1, 4)
    return PlanData(
        slot_window=window,
        slot_hours_s=table(slots, low=1, high=3),
        site_power_limit_w=np.where([chance(0.6) for _ in range(sites)], table(sites, low=2, high=9), np.inf),
        site_fixed={"cost": table(sites, high=6) if chance() else np.zeros(sites)},
        option_site=option_site,
        option_group=group,
        option_fabric=fabric,
        holding_option=holding_option,
        holding_window=np.array([w for _, w in holdings]),
        holding_upper=np.minimum(table(U, low=0, high=8), 3),
        holding_cost={"cost": table(U), "carbon_kg": table(U)},
        holding_power_w=table(U, high=2) * owned,
        supply_limit=table(suppliers, low=0, high=3),
        supply_member=np.array([(s, u) for s in range(suppliers) for u in range(U) if chance(0.7)], dtype=int).reshape(
            -1, 2
        ),
        point_pool=np.array(point_pool, dtype=int),
        point_job=np.array(point_job, dtype=int),
        point_uses=np.array(uses, dtype=int).reshape(-1, 2),
        point_uses_systems=np.array(systems),
        point_capacity=table(P, low=2, high=5),
        point_power_w=table(P, high=2),
        point_cost={"cost": table(P, slots, high=3), "carbon_kg": table(P, slots, high=3)},
        arc_workload=arc[:, 0],
        arc_origin=arc[:, 1],
        arc_site=arc[:, 2],
        arc_pool=arc[:, 3],
        arc_cost={"cost": table(A, slots, high=2)},
        demand=demand,
        host_cost={"cost": table(workloads, sites, high=4)} if chance() else {},
        edge_workload=np.zeros(edges, dtype=int),
        edge_cost={"cost": table(edges, high=4)},
        tree_path=np.array([(0, r, e) for e in range(edges) for r in range(sites) if chance()], dtype=int).reshape(
            -1, 3
        ),
        job_work=table(jobs, low=1, high=8),
        job_window_mask=table(jobs, slots, high=4) > 0,
        limits=limits,
        objective=objective,
    )


# --- the answer obeys its own definition ---------------------------------------------------------------------------


def covers(data, u, t):
    return data.holding_window[u] in (-1, data.slot_window[t])


def counts_allowed(data, n):
    for s, limit in enumerate(data.supply_limit):
        members = [u for row, u in data.supply_member if row == s]
        if any(sum(n[u] for u in members if covers(data, u, t)) > limit for t in range(len(data.slot_window))):
            return False
    designs = {}
    for u, count in enumerate(n):
        option = data.holding_option[u]
        if (
            count
            and data.option_fabric[option] >= 0
            and designs.setdefault(data.option_group[option], data.option_fabric[option]) != data.option_fabric[option]
        ):
            return False
    return True


def assert_holds(data, solution):
    """Every limit, from the values alone."""
    n, x, v, f = (solution.values[name] for name in "nxvf")
    T = len(data.slot_window)
    factor = np.ones(data.demand.shape[0])
    if data.objective.functional == "throughput":
        factor = np.where(
            [data.objective.workload in (-1, w) for w in range(len(factor))], float(solution.values["lambda"]), 1.0
        )
    assert np.array_equal(n, np.round(n)) and (n >= 0).all() and (n <= data.holding_upper).all()
    assert counts_allowed(data, n)
    for w, o, t in np.ndindex(data.demand.shape):
        served = sum(f[a, t] for a in range(len(f)) if (data.arc_workload[a], data.arc_origin[a]) == (w, o))
        assert near(served, factor[w] * data.demand[w, o, t])
    for t in range(T):
        for q in set(data.arc_pool):
            assert (
                f[data.arc_pool == q, t].sum()
                <= (x[:, t] * data.point_capacity)[data.point_pool == q].sum() + TOLERANCE
            )
        for k in range(len(data.option_site)):
            busy = sum(
                s * (x[p, t] + v[p, t])
                for (p, option), s in zip(data.point_uses, data.point_uses_systems, strict=True)
                if option == k
            )
            assert (
                busy
                <= sum(n[u] for u in range(len(n)) if data.holding_option[u] == k and covers(data, u, t)) + TOLERANCE
            )
    for j, work in enumerate(data.job_work):
        done = (v * data.slot_hours_s * data.point_capacity[:, None])[data.point_job == j]
        assert near(done.sum(), work) and (done.sum(axis=1) > TOLERANCE).sum() == 1
    for limit in data.limits:
        assert solution.functionals[limit.functional] <= limit.upper * (1 + TOLERANCE)


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(max_examples=few_of(100) * TIMES, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    solution = solve(data, EXACT)
    agree(solution, best(data))
    if solution.status == "optimal":
        assert solution.polished
        assert_holds(data, solution)


@settings(max_examples=few_of(80), **SMALL)
@given(problems())
def test_branch_and_bound_equals_highs(data):
    direct, branched = (solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch"))
    agree_with_each_other(direct, branched)


@settings(max_examples=few_of(40), **SMALL)
@given(problems())
def test_cbc_through_pulp_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    agree_with_each_other(ours, other)


@settings(max_examples=few_of(40), **SMALL)
@given(problems(objectives=("carbon_kg", "throughput")))
def test_ties_are_broken_by_cost(data):
    solution = solve(data, EXACT)
    if solution.status != "optimal":
        return
    slack = 1e-7 * max(1.0, abs(solution.value))  # slack of the reference, against our 1e-9
    side = solution.value - slack if data.objective.maximises else solution.value + slack
    cheapest = best(data, "cost", (data.objective.functional, side))
    assert solution.functionals["cost"] <= cheapest + 1e-4 * max(1.0, cheapest)
    assert solution.functionals["cost"] >= cheapest - 1e-4 * max(1.0, cheapest)


@pytest.mark.parametrize("method", ["direct", "branch"])
@settings(max_examples=few_of(15), **SMALL)
@given(data=problems())
def test_same_input_and_seed_same_plan(data, method):
    one, two = (solve(data, Options(seed=7, method=method)) for _ in range(2))
    assert one.status == two.status and one.value == two.value
    assert all(np.array_equal(one.values[block], two.values[block]) for block in one.values)
