"""What the dispatch of a fleet costs in scenarios where an API sells tokens, against programs written down a second time."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from solvers.fixed_fleet.redispatch import FixedFleet, OperatingCost, Redispatch
from solvers.interface import Options
from solvers.model.block_data.choice import ChoiceData
from solvers.model.block_data.scenarios import Operation, Risk, Scenario, ScenarioData
from solvers.model.data import PlanData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES

CASES = few_of(20) * TIMES
seeds = st.integers(0, 2**32 - 1)


def draw_fleet(rng) -> FixedFleet:
    """One or two classes of one workload each; two kinds of own systems and an API, a pool each; four slots, of which some repeat."""
    C, kinds = int(rng.integers(1, 3)), 3
    T, pattern = 4, rng.integers(0, 2, 4)
    by_slot = lambda values: values[..., pattern]
    arcs = np.array([(c, q) for c in range(C) for q in range(kinds) if rng.random() < 0.8] or [(0, 0)])
    job = rng.random() < 0.5
    J = int(job)
    seconds = rng.integers(1, 4, T) * 1.0
    whole = np.arange(kinds)
    return FixedFleet(
        demand=by_slot(rng.integers(0, 9, (C, 2)) * 1.0), class_workload=np.arange(C), arcs=arcs, pools=kinds, point_pool=whole,
        point_uses=np.column_stack([whole, whole]), point_systems=np.array([1.0, 0.5, 2.0]), point_power_w=np.array([1.0, 2.0, 0.0]), point_site=np.array([0, 0, 1]),
        job_uses=np.array([(0, 0)] * J, dtype=np.int64).reshape(-1, 2), job_systems=np.ones(J), job_power_w=np.ones(J), job_site=np.zeros(J, dtype=np.int64),
        job_mask=np.ones((J, T), dtype=bool), job_work=np.full(J, 4.0), option_count=np.array([[3.0], [2.0], [np.inf if rng.random() < 0.5 else 8.0]]) * np.ones(T),
        room_w=np.array([[9.0 if rng.random() < 0.5 else np.inf], [np.inf]]) * np.ones(T), seconds=seconds, workloads=C,
        operating=OperatingCost(by_slot(rng.integers(0, 3, (kinds, 2)) * 1.0) * seconds, by_slot(rng.integers(0, 2, (len(arcs), 2)) * 1.0) * seconds,
                                {"tokens": (arcs[:, 1] == 2)[:, None] * by_slot(rng.integers(1, 9, (1, 2)) * 1.0) * seconds}),
    )  # fmt: skip


def by_hand(fleet: FixedFleet, capacity, rate, growth, price) -> tuple[float, float]:
    """All slots one by one: the least sum of shares undone, by what they cost the program, then the least cost of operation."""
    A, P, J, T = len(fleet.arcs), len(fleet.point_pool), len(fleet.job_work), len(fleet.seconds)
    C, W = len(fleet.demand), fleet.workloads
    names = [("f", a, t) for a in range(A) for t in range(T)] + [("x", p, t) for p in range(P) for t in range(T)]
    names += [("v", j, t) for j in range(J) for t in range(T)] + [("u", i, 0) for i in range(W + J)]
    at = {name: i for i, name in enumerate(names)}
    rows, sides = [], []

    def at_most(entries, side):
        line = np.zeros(len(names))
        for name, value in entries:
            line[at[name]] += value
        rows.append(line)
        sides.append(side)

    for t in range(T):
        for c in range(C):
            lack = (("u", int(fleet.class_workload[c]), 0), -fleet.demand[c, t])
            at_most([lack, *((("f", a, t), -1.0) for a in range(A) if fleet.arcs[a, 0] == c)], -fleet.demand[c, t])
        for p in range(P):
            flows = [(("f", a, t), 1.0) for a in range(A) if fleet.arcs[a, 1] == p]
            at_most([*flows, (("x", p, t), -capacity[p])], 0.0)
            jobs = [(("v", j, t), 1.0) for j in range(J) if p == 0]
            if np.isfinite(fleet.option_count[p, t]):
                at_most([(("x", p, t), fleet.point_systems[p]), *jobs], fleet.option_count[p, t])
        if np.isfinite(fleet.room_w[0, t]):
            watts = [(("x", p, t), fleet.point_power_w[p]) for p in range(P) if fleet.point_site[p] == 0]
            at_most([*watts, *((("v", j, t), 1.0) for j in range(J))], fleet.room_w[0, t])
    for j in range(J):
        done = [(("v", j, t), -fleet.seconds[t] * rate[j] / fleet.job_work[j]) for t in range(T)]
        at_most([*done, (("u", W + j, 0), -1.0)], -1.0)
    undone, cost = np.zeros(len(names)), np.zeros(len(names))
    for i in range(W + J):
        undone[at["u", i, 0]] = 1.0 + 1e-3 * i
    operating = fleet.operating
    for a, t in itertools.product(range(A), range(T)):
        each = operating.arc[a, t] + price * operating.by_price["tokens"][a, t]
        cost[at["f", a, t]] = growth[fleet.arcs[a, 0]] * each
    for p, t in itertools.product(range(P), range(T)):
        cost[at["x", p, t]] = operating.point[p, t]
    bounds = [(0.0, 1.0 if name[0] in "uv" else None) for name in names]
    first = linprog(undone, np.array(rows), np.array(sides), bounds=bounds)
    rows.append(undone)
    sides.append(first.fun + 1e-9)
    second = linprog(cost, np.array(rows), np.array(sides), bounds=bounds)
    return float(first.fun), float(second.fun)


@settings(max_examples=CASES, **SMALL)
@given(seeds)
def test_what_operation_costs_equals_the_program_of_all_slots(seed):
    rng = np.random.default_rng(seed)
    fleet = draw_fleet(rng)
    program = Redispatch(fleet.without_dominated_slots())
    for _ in range(2):  # the scenario before leaves nothing behind
        capacity, growth = rng.integers(0, 4, 3) * 1.0, rng.choice([0.8, 1.0, 1.2], len(fleet.demand))
        rate, price = rng.integers(1, 4, len(fleet.job_work)) * 1.0, float(rng.choice([0.5, 1.0, 2.0]))
        undone, cost = by_hand(fleet, capacity, rate, growth, price)
        shares = program.shortfall(capacity, rate)
        assert shares @ (1.0 + 1e-3 * np.arange(len(shares))) == pytest.approx(undone, abs=1e-6)
        assert program.operate(growth, {"tokens": price}) == pytest.approx(cost, rel=1e-5, abs=1e-5)


# -- the scenario block ------------------------------------------------------------------------------------------------


def own_and_api(rng) -> tuple[PlanData, dict]:
    """Own systems of one kind and an API; requests of two slots; scenarios of prices, each with its growth, capacity and price of tokens."""
    T, S = 2, int(rng.integers(2, 6))
    supply = float(rng.choice([3.0, 6.0, 40.0]))
    demand, tokens = rng.integers(1, 9, T) * 1.0, float(rng.integers(1, 4))
    facts = {
        "growth": rng.choice([0.8, 1.0, 1.25], S),
        "able": rng.choice([0.0, 0.5, 1.0, 1.5], S),
        "price": rng.choice([0.5, 1.0, 3.0], S),
        "system": rng.integers(1, 8, S) * 1.0,
        "demand": demand,
        "tokens": tokens,
        "supply": supply,
        "share": float(rng.choice([0.0, 0.5, 0.75])),
        "hard": bool(rng.random() < 0.5),
        "missing": 10.0 * tokens,
    }
    whole, one = np.arange(2), np.zeros(1, dtype=int)
    scenarios = []
    for s in range(S):
        growth, price = facts["growth"][s], tokens * facts["price"][s]
        operation = Operation(
            s,
            np.zeros((2, T)),
            growth * np.array([[0.0] * T, [price] * T]),
            None if facts["hard"] and s == 0 else np.full((1, T), facts["missing"]),
        )
        able = np.array([facts["able"][s], 1.0]) / growth
        scenarios.append(
            Scenario(
                whole, np.column_stack([whole, whole]), np.ones(2), np.zeros(2), able, np.zeros(2), operation=operation
            )
        )
    data = PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.ones(T), site_power_limit_w=np.full(2, np.inf), option_site=whole, option_group=whole,
        option_fabric=np.full(2, -1), holding_option=whole, holding_window=np.full(2, -1), holding_upper=np.array([40.0, supply]),
        holding_cost={"cost": np.zeros(2)}, holding_power_w=np.zeros(2), point_pool=whole, point_job=np.full(2, -1),
        point_uses=np.column_stack([whole, whole]), point_uses_systems=np.ones(2), point_capacity=np.ones(2), point_power_w=np.zeros(2),
        point_cost={"cost": np.zeros((2, T))}, arc_workload=np.zeros(2, dtype=int), arc_origin=np.zeros(2, dtype=int), arc_site=whole,
        arc_pool=whole, arc_cost={"cost": np.array([[0.0] * T, [tokens] * T])}, demand=demand[None, None], job_window_mask=np.zeros((0, T), dtype=bool),
        scenarios=ScenarioData(scenarios, np.arange(T), np.ones(T), Risk(np.column_stack([facts["system"], np.zeros(S)]), facts["share"])),
    )  # fmt: skip
    return data, facts | {"scenarios": S, "one": one}


@settings(max_examples=CASES, **SMALL)
@given(seeds)
def test_the_risk_of_tokens_equals_enumeration_of_fleets(seed):
    """Own systems first, then tokens up to the supply; what is missing counts as stated, and may not be missing where all must be served."""
    data, facts = own_and_api(np.random.default_rng(seed))
    S, best = facts["scenarios"], np.inf
    tail = (1.0 - facts["share"]) * S
    for n in range(41):
        cost, possible = [], bool((np.maximum(facts["demand"] - n, 0.0) <= facts["supply"]).all())
        for s in range(S):
            growth, price = facts["growth"][s], facts["tokens"] * facts["price"][s]
            short = np.maximum(facts["demand"] * growth - n * facts["able"][s], 0.0)
            tokens = np.minimum(short, facts["supply"])
            lacking = (short - tokens) / growth
            possible &= not (facts["hard"] and s == 0 and lacking.any())
            cost.append(facts["system"][s] * n + price * tokens.sum() + facts["missing"] * lacking.sum())
        ranked, left, mean = sorted(cost, reverse=True), tail, 0.0
        for value in ranked:  # the dearest scenarios, the last of them in part
            mean += value * min(left, 1.0) / tail
            left -= min(left, 1.0)
        best = min(best, mean if possible else np.inf)
    found = solve(data, Options(gap=0.0))
    assert found.value == pytest.approx(best, rel=1e-6) if np.isfinite(best) else found.status == "infeasible"


@settings(max_examples=CASES, **SMALL)
@given(seeds)
def test_workloads_that_share_a_demand_keep_their_split_in_every_scenario(seed):
    """Two architectures, a kind of system for each; fleets and splits in steps that contain the best one."""
    rng = np.random.default_rng(seed)
    S, steps = int(rng.integers(1, 4)), 12
    score, least = np.array([1.0, 3.0]), float(rng.choice([1.0, 1.5, 2.0, 3.0]))
    price, able = rng.integers(1, 6, 2) * 1.0, rng.choice([0.5, 1.0, 2.0], (S, 2))
    whole = np.arange(2)
    scenarios = [
        Scenario(whole, np.column_stack([whole, whole]), np.ones(2), np.zeros(2), row, np.zeros(2)) for row in able
    ]
    data = PlanData(
        slot_window=np.zeros(1, dtype=int), slot_hours_s=np.ones(1), site_power_limit_w=np.array([np.inf]), option_site=np.zeros(2, dtype=int), option_group=whole,
        option_fabric=np.full(2, -1), holding_option=whole, holding_window=np.full(2, -1), holding_upper=np.full(2, 50.0),
        holding_cost={"cost": price}, holding_power_w=np.zeros(2), point_pool=whole, point_job=np.full(2, -1),
        point_uses=np.column_stack([whole, whole]), point_uses_systems=np.ones(2), point_capacity=np.ones(2), point_power_w=np.zeros(2),
        point_cost={"cost": np.zeros((2, 1))}, arc_workload=whole, arc_origin=np.zeros(2, dtype=int), arc_site=np.zeros(2, dtype=int),
        arc_pool=whole, arc_cost={"cost": np.zeros((2, 1))}, demand=np.array([[[float(steps)]], [[0.0]]]), job_window_mask=np.zeros((0, 1), dtype=bool),
        choice=ChoiceData(group=np.zeros(2, dtype=int), one=np.array([False]), able=np.ones(2, dtype=bool), score=score, least=np.array([least]), hourly=np.array([False])),
        scenarios=ScenarioData(scenarios, np.zeros(1, dtype=int), np.ones(1)),
    )  # fmt: skip
    worst = np.maximum(1.0 / able.min(axis=0), 1.0)  # systems per request
    best = np.inf
    for second in np.arange(0, steps + 0.25, 0.25):  # a system serves a multiple of half a request
        if score[0] * (steps - second) + score[1] * second >= least * steps - 1e-9:
            fleet = np.ceil(np.array([steps - second, second]) * worst - 1e-9)
            best = min(best, float(price @ fleet))
    assert solve(data, Options(gap=0.0)).value == pytest.approx(best)
    free = solve(replace(data, scenarios=None), Options(gap=0.0)).value
    assert free <= best + 1e-9
