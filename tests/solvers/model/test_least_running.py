"""Whole systems that the demand of a slot takes: by hand, against enumeration, and the bound that they raise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from solvers.interface import Options
from solvers.model import build as building
from solvers.model import hourly
from solvers.model.block_data.hourly import HourlyData
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.search.joint import solve
from tests.conftest import few_of

MOST = 3  # systems of a fleet option
CASES = 100


def serving(demand, points, prices, hourly=None, pools=None, upper=MOST, apart=True):
    """Workloads `demand` [W, T]; `points` lists (pool, requests/s, {fleet option: systems}); `pools[w]` are those of a workload.

    `apart`: each fleet option is at a site of its own.
    """
    demand = np.asarray(demand, dtype=float)
    W, T = demand.shape
    K, P = len(prices), len(points)
    uses = [(p, k, systems) for p, (_, _, each) in enumerate(points) for k, systems in each.items()]
    arcs = [(w, q) for w, of_one in enumerate(pools or [[w] for w in range(W)]) for q in of_one]
    sites = np.arange(K) * apart
    by_slot = np.ones(K, dtype=bool) if hourly is None else np.asarray(hourly)
    costs = np.asarray(prices, dtype=float)
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.full(T, 3600.0), site_power_limit_w=np.full(K, np.inf),
        option_site=sites, option_group=np.arange(K), option_fabric=np.full(K, -1),
        holding_option=np.arange(K), holding_window=np.full(K, -1), holding_upper=np.full(K, float(upper)),
        holding_cost={"cost": np.where(by_slot, 0.0, costs * T)}, holding_power_w=np.zeros(K),
        hourly=HourlyData(holding=by_slot, least_slots=np.ones(K, dtype=int), cost={"cost": np.where(by_slot, costs, 0.0)[:, None] * np.ones(T)}),
        point_pool=np.array([q for q, _, _ in points]), point_job=np.full(P, -1), point_uses=np.array([(p, k) for p, k, _ in uses]),
        point_uses_systems=np.array([s for _, _, s in uses]), point_capacity=np.array([c for _, c, _ in points]), point_power_w=np.zeros(P),
        point_cost={"cost": np.zeros((P, T))}, arc_workload=np.array([w for w, _ in arcs]), arc_origin=np.zeros(len(arcs), dtype=int),
        arc_site=np.array([sites[next(k for at, _, each in points for k in each if at == q)] for _, q in arcs]),
        arc_pool=np.array([q for _, q in arcs]), arc_cost={"cost": np.zeros((len(arcs), T))}, demand=demand[:, None, :],
    )  # fmt: skip


def rows_of(data):
    """Return [(slot, coefficients of the columns `on` or `n` by fleet option, least)]."""
    program = build(data)
    arrays = program.arrays()
    on, held = program.columns["on"], program.columns["n"]
    found = []
    for block in program.row_blocks.get("least running", ()):
        matrix = arrays.matrix.tocsr()[block.rows].toarray()
        for row, (_, t) in enumerate(block.index.tolist()):
            columns = np.where(data.hourly.holding, on[:, t], held)
            assert matrix[row].sum() == pytest.approx(
                matrix[row, columns].sum()
            )  # nothing beside the systems of the slot
            found.append((t, matrix[row, columns], arrays.row_lower[block.start + row]))
    return found


def test_systems_that_are_alike_are_counted_together():
    """2.5 systems carry the demand of the first slot, so that 3 run; 2 carry the second exactly."""
    data = serving([[5.0, 4.0]], [(0, 2.0, {0: 1.0}), (1, 2.0, {1: 1.0})], (1.0, 1.0), pools=[[0, 1]])
    assert [(t, factors.tolist(), least) for t, factors, least in rows_of(data)] == [
        (0, [1.0, 1.0], 3.0),
        (1, [1.0, 1.0], 2.0),
    ]


def test_a_system_held_throughout_counts_in_every_slot():
    data = serving([[5.0, 5.0]], [(0, 2.0, {0: 1.0}), (1, 2.0, {1: 1.0})], (1.0, 1.0), [True, False], pools=[[0, 1]])
    assert [(t, factors.tolist(), least) for t, factors, least in rows_of(data)] == [
        (0, [1.0, 1.0], 3.0),
        (1, [1.0, 1.0], 3.0),
    ]


def test_systems_of_two_sizes_by_hand():
    """3.25 a + 1 b >= 4.5 gives 3 + 0.25 / 0.5 of a; in units of a, 1 a + b / 3.25 >= 1.385 gives 1 a + (0.308 / 0.385) b >= 2."""
    data = serving([[4.5]], [(0, 3.25, {0: 1.0}), (1, 1.0, {1: 1.0})], (1.0, 1.0), pools=[[0, 1]])
    found = sorted((least, *factors.round(4).tolist()) for _, factors, least in rows_of(data))
    assert found == [(2.0, 1.0, 0.8), (5.0, 3.5, 1.0)]


def test_workloads_share_systems():
    """0.4 of a system for each of two workloads fit on one; 0.6 of each take two."""
    points = [(0, 10.0, {0: 1.0}), (1, 5.0, {0: 1.0})]
    ((_, factors, least),) = rows_of(serving([[4.0], [2.0]], points, (1.0,)))
    assert (factors.tolist(), least) == ([1.0], 1.0)
    ((_, factors, least),) = rows_of(serving([[6.0], [3.0]], points, (1.0,)))
    assert (factors.tolist(), least) == ([1.0], 2.0)


def test_rows_have_no_more_entries_than_are_allowed(monkeypatch):
    """Of two kinds of systems on three fleet options the kind of two comes first; with no room for it there are no rows."""
    points = [(0, 2.0, {0: 1.0}), (1, 3.0, {1: 1.0}), (2, 2.0, {2: 1.0})]
    data = serving([[5.0, 7.0]], points, (1.0, 1.0, 1.0), pools=[[0, 1, 2]])
    assert [least for _, _, least in rows_of(data)] == [3.0, 4.0, 2.0, 3.0]
    monkeypatch.setattr(hourly, "MOST_ENTRIES", 11)
    assert [least for _, _, least in rows_of(data)] == [3.0, 4.0]
    monkeypatch.setattr(hourly, "MOST_ENTRIES", 5)
    assert not rows_of(data)


def drawn(seed):
    """One to three workloads on two fleet options, whose points take systems of one or of both; workloads may share a pool."""
    rng = np.random.default_rng(seed)
    W, K = int(rng.integers(1, 4)), 2
    shared = W > 1 and rng.random() < 0.4
    pools = [[0, 1] if shared and w < 2 else [2 * w, 2 * w + 1] for w in range(W)]
    points = []
    for q in sorted({q for of_one in pools for q in of_one}):
        for _ in range(int(rng.integers(1, 3))):
            both = rng.random() < 0.3
            uses = (
                {0: float(rng.choice([0.5, 1.0])), 1: float(rng.choice([0.25, 1.0]))}
                if both
                else {q % 2: float(rng.choice([0.5, 1, 2]))}
            )
            points.append((q, float(rng.integers(1, 9)), uses))
    demand = rng.uniform(0.2, 6.0, (W, 2))
    return serving(
        demand,
        points,
        rng.uniform(1.0, 4.0, K),
        rng.random(K) < 0.7 if rng.random() < 0.5 else None,
        pools=pools,
        apart=False,
    )


def carries(data, slot, systems):
    """Tell whether so many systems of each fleet option carry the demand of a slot, by a linear program of its own."""
    P, arcs = len(data.point_pool), len(data.arc_pool)
    rows, least = [], []
    for w in range(len(data.demand)):
        rows.append(np.concatenate([np.zeros(P), -(data.arc_workload == w).astype(float)]))
        least.append(-data.demand[w, 0, slot])
    for q in range(data.pools):
        rows.append(np.concatenate([-data.point_capacity * (data.point_pool == q), (data.arc_pool == q).astype(float)]))
        least.append(0.0)
    for k, count in enumerate(systems):
        taken = np.zeros(P + arcs)
        for (p, option), each in zip(data.point_uses.tolist(), data.point_uses_systems.tolist(), strict=True):
            taken[p] += each * (option == k)
        rows.append(taken)
        least.append(float(count))
    return linprog(np.zeros(P + arcs), np.array(rows), np.array(least), method="highs").status == 0


def test_no_number_of_systems_that_carries_the_demand_is_cut_off():
    cut = 0
    for seed in range(few_of(CASES)):
        data = drawn(seed)
        rows = rows_of(data)
        for slot in range(data.slots):
            mine = [(factors, least) for t, factors, least in rows if t == slot]
            for systems in itertools.product(range(MOST + 1), repeat=2):
                broken = any(factors @ systems < least - 1e-9 for factors, least in mine)
                assert not (broken and carries(data, slot, systems)), (seed, slot, systems)
                cut += broken
    assert cut  # some numbers of systems are too few


def test_the_value_stays(monkeypatch):
    for seed in range(few_of(30)):
        data = drawn(seed)
        with_rows = solve(data, Options(gap=0.0))
        with monkeypatch.context() as plain:
            plain.setattr(building, "add_least_running", lambda program, data: None)
            without = solve(data, Options(gap=0.0))
        assert with_rows.status == without.status, seed
        assert with_rows.value is None or with_rows.value == pytest.approx(without.value, rel=1e-7), seed


def test_four_sites_with_a_cost_of_opening_are_solved_to_the_end():
    """30 systems run at noon, on one site that opens; fractions of systems cost 3 % less, and a search over 400 columns does not close that."""
    regions = ("us-virginia", "us-texas", "us-oregon", "us-california")
    noon = (1.15 - 0.95 * np.cos(2 * np.pi * np.arange(24) / 24)).round(2).tolist()
    spec = {
        "name": "four", "horizon": {"start": "2027-01-01", "years": 1, "discount_rate": 0},
        "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-70B", "demand": {"requests_per_s": 1000, "profile": noon},
            "lengths": {"input": 500, "output": 100}, "origins": [{"region": region, "share": 0.25} for region in regions],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "100 ms"}}, "precision": ["fp8"], "disaggregation": "never",
        }],
        "sites": [{"region": r, "power": "1 MW", "fixed_cost": f"{fixed}k USD/year"} for r, fixed in zip(regions, (50, 60, 55, 52), strict=True)],
        "offers": [{"system": "DGX H100", "how": "on_demand", "price": "27 USD/h"}],
    }  # fmt: skip
    problem = resolve_document(spec)
    found = solve(formulate(problem, find_candidates(problem)).data, Options(gap=1e-4))
    assert found.status == "optimal" and np.count_nonzero(found.values["open"]) == 1
