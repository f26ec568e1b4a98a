"""The joint program against enumeration on small random problems: every integer plan is tried, and what remains is a
linear program written here straight from the definition, sharing no code with `solvers`."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.backends import Options
from solvers.data import Limit, Objective, PlanData
from solvers.joint import solve

SMALL = dict(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
TOLERANCE = 1e-6


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
    lots = whole(sites, 3)
    lot_site = np.concatenate([np.arange(sites), counts(lots - sites, 0, sites - 1)])
    system = counts(lots, 0, 1) if chance(0.3) else np.zeros(lots, dtype=int)   # mostly one group per site
    group = lot_site * 2 + system
    fabric = np.where([chance(0.8) for _ in range(lots)], np.arange(lots) % 2, -1)
    holdings = [(k, w) for k in range(lots) for w in ([-1] if chance() else range(windows))][:4]
    U = len(holdings)
    holding_lot = np.array([k for k, _ in holdings])
    owned = fabric[holding_lot] >= 0

    workloads, origins = whole(0, 2), whole(1, 2)
    pools, arcs = {}, []
    for w, o, r in itertools.product(range(workloads), range(origins), range(sites)):
        if len(arcs) < 5 and chance(0.85):
            arcs.append((w, o, r, pools.setdefault((w, r), len(pools))))
    point_pool, point_job, uses, systems = [], [], [], []
    jobs = whole(0, 1) if workloads else 1

    def add(pool, job, site):
        here = [k for k in range(lots) if lot_site[k] == site]
        if not here or len(point_pool) >= 5:
            return
        chosen = here[:2] if chance() and len(here) > 1 else [here[whole(0, len(here) - 1)]]
        for lot in chosen:
            uses.append((len(point_pool), lot))
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
        demand *= np.array([[(w, o) in served for o in range(origins)] for w in range(workloads)], dtype=bool).reshape(workloads, origins, 1)
    objective = str(rng.choice(objectives))
    if objective == "throughput":
        objective = Objective("throughput", whole(-1, workloads - 1))
    else:
        objective = Objective(objective)
    edges = whole(0, 2) if workloads else 0
    limits = tuple(Limit(f"limits.{name}", name, float(whole(20, 90))) for name in ("cost", "carbon_kg") if chance())
    suppliers = whole(1, 2) if chance(0.6) else 0
    arc = np.array(arcs, dtype=int).reshape(-1, 4)
    return PlanData(
        slot_window=window, slot_hours_s=table(slots, low=1, high=3),
        site_power_limit_w=np.where([chance(0.6) for _ in range(sites)], table(sites, low=2, high=9), np.inf),
        site_fixed={"cost": table(sites, high=6) if chance() else np.zeros(sites)},
        lot_site=lot_site, lot_group=group, lot_fabric=fabric,
        holding_lot=holding_lot, holding_window=np.array([w for _, w in holdings]),
        holding_upper=np.minimum(table(U, low=0, high=8), 3), holding_cost={"cost": table(U), "carbon_kg": table(U)},
        holding_power_w=table(U, high=2) * owned,
        supply_limit=table(suppliers, low=0, high=3),
        supply_member=np.array([(s, u) for s in range(suppliers) for u in range(U) if chance(0.7)], dtype=int).reshape(-1, 2),
        point_pool=np.array(point_pool, dtype=int), point_job=np.array(point_job, dtype=int),
        point_uses=np.array(uses, dtype=int).reshape(-1, 2), point_uses_systems=np.array(systems),
        point_capacity=table(P, low=2, high=5), point_power_w=table(P, high=2),
        point_cost={"cost": table(P, slots, high=3), "carbon_kg": table(P, slots, high=3)},
        arc_workload=arc[:, 0], arc_origin=arc[:, 1], arc_site=arc[:, 2], arc_pool=arc[:, 3],
        arc_cost={"cost": table(A, slots, high=2)}, demand=demand,
        host_cost={"cost": table(workloads, sites, high=4)} if chance() else {},
        edge_workload=np.zeros(edges, dtype=int), edge_cost={"cost": table(edges, high=4)},
        tree_path=np.array([(0, r, e) for e in range(edges) for r in range(sites) if chance()], dtype=int).reshape(-1, 3),
        job_work=table(jobs, low=1, high=8),
        job_window_mask=table(jobs, slots, high=4) > 0,
        limits=limits, objective=objective)


# --- enumeration ---------------------------------------------------------------------------------------------------


def covers(data, u, t):
    return data.holding_window[u] in (-1, data.slot_window[t])


def fixed_costs(data, n, host):
    """Functional -> what the integers cost, with sites opened and edges used only as needed."""
    total = {}
    opened = {data.lot_site[data.holding_lot[u]] for u in range(len(n)) if n[u]}
    edges = {e for w, r, e in data.tree_path if host[w][r]}
    for part, chosen in ((data.site_fixed, opened), (data.edge_cost, edges)):
        for name, values in part.items():
            total[name] = total.get(name, 0) + sum(values[i] for i in chosen)
    for name, values in data.holding_cost.items():
        total[name] = total.get(name, 0) + float(values @ n)
    for name, values in data.host_cost.items():
        total[name] = total.get(name, 0) + float((values * np.array(host).reshape(values.shape)).sum())
    return total


def counts_allowed(data, n):
    T = range(len(data.slot_window))
    for s, limit in enumerate(data.supply_limit):
        members = [u for row, u in data.supply_member if row == s]
        if any(sum(n[u] for u in members if covers(data, u, t)) > limit for t in T):
            return False
    designs = {}
    for u, count in enumerate(n):
        lot = data.holding_lot[u]
        if count and data.lot_fabric[lot] >= 0 and designs.setdefault(data.lot_group[lot], data.lot_fabric[lot]) != data.lot_fabric[lot]:
            return False
    return True


def integer_plans(data):
    """(n, host, point of each job): everything whole. Windows without systems are empty of holdings that cover them."""
    W, R = data.demand.shape[0], len(data.site_power_limit_w)
    priced = [(w, r) for w in range(W) for r in range(R)
              if any(v[w, r] > 0 for v in data.host_cost.values()) or any(a == w and b == r for a, b, _ in data.tree_path)]
    hosts = []
    for pattern in itertools.product((False, True), repeat=len(priced)):
        host = [[True] * R for _ in range(W)]
        for (w, r), here in zip(priced, pattern, strict=True):
            host[w][r] = here
        hosts.append(host)
    choices = list(itertools.product(*[[p for p in range(len(data.point_job)) if data.point_job[p] == j] for j in range(len(data.job_work))]))
    for n in itertools.product(*[range(int(u) + 1) for u in data.holding_upper]):
        if counts_allowed(data, n):
            for host, chosen in itertools.product(hosts, choices):
                free = [[h and (w, r) in priced for r, h in enumerate(row)] for w, row in enumerate(host)]
                yield np.array(n, dtype=float), host, chosen, free


def hopeless(data, n, host, chosen):
    """Plainly infeasible: a job without its width anywhere, or hard demand that no installed point can reach."""
    slots = range(len(data.slot_window))
    there = np.zeros((len(data.lot_site), len(slots)))
    for u, t in itertools.product(range(len(n)), slots):
        there[data.holding_lot[u], t] += n[u] * covers(data, u, t)
    for p in chosen:
        wide = [(there[k] >= s) for (q, k), s in zip(data.point_uses, data.point_uses_systems, strict=True) if q == p]
        if not np.logical_and.reduce([*wide, data.job_window_mask[data.point_job[p]]]).any():
            return True
    standing = np.array([np.logical_and.reduce([there[k] > 0 for q, k in data.point_uses if q == p])
                         for p in range(len(data.point_pool))]).reshape(-1, len(slots))
    for w, o, t in np.argwhere(data.demand > 0):
        if data.objective.functional == "throughput" and data.objective.workload in (-1, w):
            continue
        ends = [q for a, b, r, q in zip(data.arc_workload, data.arc_origin, data.arc_site, data.arc_pool, strict=True)
                if (a, b) == (w, o) and host[w][r]]
        if not any(standing[p, t] for p in range(len(data.point_pool)) if data.point_pool[p] in ends):
            return True
    return False


def rest(data, n, host, chosen, fixed, target, held=None):
    """Best value of `target` over flows, replicas, shares and lambda with the integers given, None where there is
    none, inf for an unbounded factor. `held` = (functional or "throughput", value) must be kept."""
    T, A, P = len(data.slot_window), len(data.arc_pool), len(data.point_pool)
    columns = [("f", a, t) for a in range(A) for t in range(T)]
    columns += [("x", p, t) for p in range(P) if data.point_pool[p] >= 0 for t in range(T)]
    columns += [("v", p, t) for p in chosen for t in range(T)] + [("factor", 0, 0)]
    at = {column: i for i, column in enumerate(columns)}
    upper_rows, upper_sides, equal_rows, equal_sides = [], [], [], []

    def row(entries, side, equal=False):
        line = np.zeros(len(columns))
        for column, value in entries:
            line[at[column]] += value
        (equal_rows if equal else upper_rows).append(line)
        (equal_sides if equal else upper_sides).append(side)

    installed = lambda k, t: sum(n[u] for u in range(len(n)) if data.holding_lot[u] == k and covers(data, u, t))
    uses = lambda p: [(k, s) for (q, k), s in zip(data.point_uses, data.point_uses_systems, strict=True) if q == p]
    site = lambda p: data.lot_site[uses(p)[0][0]]
    running = [c for c in columns if c[0] in "xv"]
    upper = np.full(len(columns), np.inf)
    for a in range(A):
        for t in range(T):
            if not host[data.arc_workload[a]][data.arc_site[a]]:
                upper[at["f", a, t]] = 0
    for p in chosen:
        for t in range(T):
            full = all(installed(k, t) >= s for k, s in uses(p))   # a share of a slot takes the full width
            upper[at["v", p, t]] = 1.0 if full and data.job_window_mask[data.point_job[p], t] else 0.0
        row([(("v", p, t), data.slot_hours_s[t] * data.point_capacity[p]) for t in range(T)], data.job_work[data.point_job[p]], True)
    maximised = data.objective.functional == "throughput"
    for w, o, t in np.ndindex(data.demand.shape):
        flows = [(("f", a, t), 1.0) for a in range(A) if (data.arc_workload[a], data.arc_origin[a]) == (w, o)]
        if maximised and data.objective.workload in (-1, w):
            row([*flows, (("factor", 0, 0), -data.demand[w, o, t])], 0.0, True)
        else:
            row(flows, data.demand[w, o, t], True)
    for t in range(T):
        for q in set(data.arc_pool):
            row([(("f", a, t), 1.0) for a in range(A) if data.arc_pool[a] == q]
                + [(("x", p, t), -data.point_capacity[p]) for p in range(P) if data.point_pool[p] == q], 0.0)
        for k in range(len(data.lot_site)):
            row([(c, s) for c in running if c[2] == t for lot, s in uses(c[1]) if lot == k], installed(k, t))
        for r, limit in enumerate(data.site_power_limit_w):
            if np.isfinite(limit):
                idle = sum(n[u] * data.holding_power_w[u] for u in range(len(n))
                           if covers(data, u, t) and data.lot_site[data.holding_lot[u]] == r)
                row([(c, data.point_power_w[c[1]]) for c in running if c[2] == t and site(c[1]) == r], limit - idle)

    def functional(name):
        line = [(("f", a, t), data.arc_cost.get(name, np.zeros((A, T)))[a, t]) for a in range(A) for t in range(T)]
        return line + [(c, data.point_cost[name][c[1], c[2]]) for c in running]

    for limit in data.limits:
        row(functional(limit.functional), limit.upper - fixed[limit.functional])
    if held is not None:
        name, value = held
        if name == "throughput":
            row([(("factor", 0, 0), -1.0)], -value)
        else:
            row(functional(name), value - fixed[name])
    cost = np.zeros(len(columns))
    if target == "throughput":
        cost[at["factor", 0, 0]] = -1.0
    else:
        for column, value in functional(target):
            cost[at[column]] += value
    answer = linprog(cost, np.array(upper_rows) if upper_rows else None, upper_sides or None, np.array(equal_rows) if equal_rows else None,
                     equal_sides or None, list(zip(np.zeros(len(columns)), upper, strict=True)), method="highs")
    if answer.status in (3, 4):
        return math.inf
    if answer.status != 0:
        return None
    return -answer.fun if target == "throughput" else answer.fun + fixed[target]


def enumerate_best(data, target=None, held=None):
    """The best value over all integer plans, None where none is feasible."""
    target = target or data.objective.functional
    plans = []
    for n, host, chosen, free in integer_plans(data):
        fixed = {name: 0.0 for name in data.functionals()} | fixed_costs(data, n, free)
        if all(fixed[limit.functional] <= limit.upper + 1e-9 for limit in data.limits):
            plans.append((fixed.get(target, 0.0), len(plans), n, host, chosen, fixed))
    best = None
    for least, _, n, host, chosen, fixed in sorted(plans, key=lambda plan: plan[:2]):
        if target != "throughput" and best is not None and least >= best:
            break  # running costs are not negative, so no later plan is better
        if hopeless(data, n, host, chosen):
            continue
        value = rest(data, n, host, chosen, fixed, target, held)
        if value == math.inf:
            return value
        if value is not None and (best is None or (value > best if target == "throughput" else value < best)):
            best = value
    return best


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def plans_in_all(data):
    hosts = (data.tree_path[:, :2].tolist(), *(np.argwhere(v > 0).tolist() for v in data.host_cost.values()))
    switched = len({tuple(pair) for part in hosts for pair in part})
    jobs = [int((data.point_job == j).sum()) for j in range(len(data.job_work))]
    return math.prod(int(u) + 1 for u in data.holding_upper) * 2**switched * math.prod(jobs)


# --- the answer obeys its own definition ---------------------------------------------------------------------------


def assert_holds(data, solution):
    """Every limit, from the values alone."""
    n, x, v, f = (solution.values[name] for name in "nxvf")
    T = len(data.slot_window)
    factor = np.ones(data.demand.shape[0])
    if data.objective.functional == "throughput":
        factor = np.where([data.objective.workload in (-1, w) for w in range(len(factor))], float(solution.values["lambda"]), 1.0)
    assert np.array_equal(n, np.round(n)) and (n >= 0).all() and (n <= data.holding_upper).all()
    assert counts_allowed(data, n)
    for w, o, t in np.ndindex(data.demand.shape):
        served = sum(f[a, t] for a in range(len(f)) if (data.arc_workload[a], data.arc_origin[a]) == (w, o))
        assert near(served, factor[w] * data.demand[w, o, t])
    for t in range(T):
        for q in set(data.arc_pool):
            assert f[data.arc_pool == q, t].sum() <= (x[:, t] * data.point_capacity)[data.point_pool == q].sum() + TOLERANCE
        for k in range(len(data.lot_site)):
            busy = sum(s * (x[p, t] + v[p, t]) for (p, lot), s in zip(data.point_uses, data.point_uses_systems, strict=True) if lot == k)
            assert busy <= sum(n[u] for u in range(len(n)) if data.holding_lot[u] == k and covers(data, u, t)) + TOLERANCE
    for j, work in enumerate(data.job_work):
        done = (v * data.slot_hours_s * data.point_capacity[:, None])[data.point_job == j]
        assert near(done.sum(), work) and (done.sum(axis=1) > TOLERANCE).sum() == 1
    for limit in data.limits:
        assert solution.functionals[limit.functional] <= limit.upper * (1 + TOLERANCE)


# --- the tests -----------------------------------------------------------------------------------------------------


def compare(data, solution):
    best = enumerate_best(data)
    if best is None:
        assert solution.status == "infeasible"
        assert solution.value is None and solution.bound is None and solution.gap is None
    elif best == math.inf:
        assert solution.status == "unbounded"
    else:
        assert solution.status == "optimal"
        assert near(solution.value, best)
        assert solution.polished
        assert_holds(data, solution)


@settings(max_examples=200, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    if plans_in_all(data) <= 20_000:
        compare(data, solve(data, Options(gap=0.0)))


@settings(max_examples=150, **SMALL)
@given(problems())
def test_search_over_binaries_equals_the_solvers_own(data):
    direct, branched = (solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch"))
    assert direct.status == branched.status
    assert direct.value is None or near(direct.value, branched.value)


@settings(max_examples=100, **SMALL)
@given(problems())
def test_cbc_through_pulp_agrees(data):
    ours, other = (solve(data, Options(solver=name, gap=0.0)) for name in ("highs", "pulp"))
    assert ours.status == other.status
    assert ours.value is None or near(ours.value, other.value)


@settings(max_examples=40, **SMALL)
@given(problems(objectives=("carbon_kg", "throughput")))
def test_ties_are_broken_by_cost(data):
    if plans_in_all(data) > 2_000:
        return
    solution = solve(data, Options(gap=0.0))
    if solution.status != "optimal":
        return
    slack = 1e-7 * max(1.0, abs(solution.value))  # of linprog, against our 1e-9
    side = solution.value - slack if data.objective.maximises else solution.value + slack
    cheapest = enumerate_best(data, "cost", (data.objective.functional, side))
    assert solution.functionals["cost"] <= cheapest + 1e-4 * max(1.0, cheapest)
    assert solution.functionals["cost"] >= cheapest - 1e-4 * max(1.0, cheapest)


@settings(max_examples=150, **SMALL)
@given(problems(objectives=("cost",)), st.sampled_from(["power", "supply", "limits", "upper"]))
def test_relaxing_a_limit_never_costs_more(data, what):
    relaxed = {
        "power": lambda: replace(data, site_power_limit_w=data.site_power_limit_w + 1),
        "supply": lambda: replace(data, supply_limit=data.supply_limit + 1),
        "limits": lambda: replace(data, limits=tuple(replace(limit, upper=limit.upper + 5) for limit in data.limits)),
        "upper": lambda: replace(data, holding_upper=data.holding_upper + 1),
    }[what]()
    before, after = solve(data, Options(gap=0.0)), solve(relaxed, Options(gap=0.0))
    if before.status == "optimal":
        assert after.status == "optimal"
        assert after.value <= before.value + TOLERANCE * max(1.0, before.value)


@pytest.mark.parametrize("method", ["direct", "branch"])
@settings(max_examples=15, **SMALL)
@given(data=problems())
def test_same_input_and_seed_same_plan(data, method):
    one, two = (solve(data, Options(seed=7, method=method)) for _ in range(2))
    assert one.status == two.status and one.value == two.value
    assert all(np.array_equal(one.values[block], two.values[block]) for block in one.values)
