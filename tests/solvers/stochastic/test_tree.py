"""The program over a scenario tree against an enumeration of all decisions, and against its own relaxations."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.interface import Options
from solvers.stochastic.data import Aim, FleetData, Leaves, UseCosts, dearer
from solvers.stochastic.outcomes import outcomes
from solvers.stochastic.promise import PRICES, promised
from solvers.stochastic.tree import solved

EXACT = Options(gap=1e-9, time_limit_s=20.0)
MOST = 2  # units of a holding
DATES = 3


def few(values):
    return st.sampled_from(values)


@st.composite
def cases(draw):
    """Draw a workload on two options that are held and one paid by use, over two windows: some holdings come later, one may be returned."""
    windows, leaves = 2, draw(st.integers(1, 3))
    ways = 3
    notice = draw(few([1, 2]))  # date at which a holding of the second window is decided
    bought, rented, late = 0, 1, 2
    covers = np.array([[True, True], [True, True], [False, True], [False, True]])
    data = FleetData(
        option=np.array([bought, rented, bought, rented]),
        stage=np.array([0, 0, notice, draw(few([1, 2]))]),
        covers=covers,
        parent=np.array([-1, -1, -1, 1]),
        lower=np.zeros(4),
        upper=np.array([MOST, MOST, draw(few([0, MOST])), draw(few([0, MOST]))], dtype=float),
        whole=np.ones(4, dtype=bool),
        power_w=np.array([1.0, 0.0, 1.0, 0.0]),
        option_site=np.zeros(3, dtype=np.int64),
        by_use=np.array([False, False, True]),
        supply_limit=np.array([draw(few([1.0, 3.0, 9.0]))]),
        supply_member=np.array([[0, draw(few([bought, late]))]]),
        window=np.arange(windows),
        seconds=np.array([2.0, 3.0]),
        room_w=np.full((1, windows), draw(few([2.0, 5.0, np.inf]))),
        demand=np.array([[draw(few([1.0, 2.0, 3.5])), draw(few([1.0, 2.0, 4.0]))]]),
        class_workload=np.array([0]),
        arc_class=np.array([0]),
        arc_pool=np.array([0]),
        arc_cost=np.array([[0.25, 0.5]]),
        way_pool=np.zeros(ways, dtype=np.int64),
        way_option=np.arange(ways),
        way_power_w=np.array([0.5, 0.0, 0.0]),
        way_cost=np.array([[0.5, 0.75], [0.0, 0.0], [0.0, 0.0]]),
        use_price=np.array([[0.0, 0.0], [0.0, 0.0], [draw(few([4.0, 9.0])), draw(few([5.0, 11.0]))]]),
        lack_cost=draw(few([1.0, 6.0, 40.0])) * np.array([[2.0, 3.0]]),
    )
    weight = np.array(draw(st.lists(few([1.0, 2.0]), min_size=leaves, max_size=leaves)))
    known = np.array(draw(st.lists(st.integers(0, 1), min_size=leaves, max_size=leaves)), dtype=np.int64)
    costs = [[6.0, 5.0, 4.5, -2.0], [7.0, 5.0, 3.0, -2.5]]
    tree = Leaves(
        weight=weight / weight.sum(),
        efficiency=np.array([[draw(few([0.0, 0.7, 1.0, 1.3])) for _ in range(ways)] for _ in range(leaves)]),
        rate=np.zeros((leaves, 0)),
        growth=np.array([[[1.0, draw(few([0.6, 1.0, 1.5]))]] for _ in range(leaves)]),
        cost=np.array([draw(few(costs)) for _ in range(leaves)]),
        use_factor=np.array([[1.0, 1.0, draw(few([1.0, 1.5]))] for _ in range(leaves)]),
        node=np.array([np.zeros(leaves, dtype=np.int64), known, np.arange(leaves)]),
    )
    if draw(st.booleans()):  # the system bought at the start may come in the second window, the later ones never
        there = np.repeat(covers[None], leaves, axis=0)
        for s in range(leaves):
            there[s, 0, 0] = draw(st.booleans())
            there[s, 2, 1] = draw(st.booleans())
        tree = replace(tree, covers=there)
    if draw(st.booleans()):  # prices of traffic, electricity and rents by use
        factor = np.array([[draw(few([0.5, 1.0, 2.0])) for _ in range(3)] for _ in range(leaves)])
        arc, way, use = (
            factor[:, i, None, None] * values[None]
            for i, values in enumerate((data.arc_cost, data.way_cost, data.use_price))
        )
        tree = replace(tree, costs=UseCosts(arc=arc, way=way, job=np.zeros((leaves, 0, windows)), use=use))
    return data, tree


def dispatch(data: FleetData, tree: Leaves, s: int, units: tuple[int, ...], may_lack: bool) -> float:
    """Return the least cost of a leaf with given units, infinite where there is none; by the cheapest way first, in each window."""
    if units[3] > units[1]:
        return np.inf
    total = float(tree.cost[s] @ np.array(units))
    covers = data.covers if tree.covers is None else tree.covers[s]
    by_arc, by_way, by_use = data.arc_cost, data.way_cost, data.use_price
    if tree.costs is not None:
        by_arc, by_way, by_use = tree.costs.arc[s], tree.costs.way[s], tree.costs.use[s]
    for t in range(2):
        count = [units[0] * covers[0, t] + units[2] * covers[2, t], units[1] - (units[3] if t else 0)]
        room = data.room_w[0, t] - count[0]
        if room < -1e-12:
            return np.inf
        limit, scarce = data.supply_limit[0], int(data.supply_member[0, 1])
        most = [count[0], count[1], np.inf]
        if scarce == 2:
            most[2] = limit
        elif count[0] > limit:
            return np.inf
        most[0] = min(most[0], room / 0.5)
        price = [by_way[0, t], by_way[1, t], by_use[2, t] * tree.use_factor[s, 2]]
        able = [(price[g] / e, e, most[g]) for g, e in enumerate(tree.efficiency[s]) if e > 0]
        left, arc = data.demand[0, t] * tree.growth[s, 0, t], by_arc[0, t]
        lack = data.lack_cost[0, t]
        for each, efficiency, systems in sorted(able):
            if may_lack and each + arc >= lack:
                continue
            served = min(left, efficiency * systems)
            total += served * (each + arc)
            left -= served
        if left > 1e-12 and not may_lack:
            return np.inf
        total += left * lack
    return total


def enumerated(data: FleetData, tree: Leaves, aim: Aim, promise: float = 0.0) -> float:
    """Try every first stage, every decision of every later node, and every set of leaves that need not be kept."""
    pairs = sorted({(u, int(tree.node[data.stage[u], s])) for u in range(4) for s in range(tree.count)})
    ranges = [range(int(data.upper[u]) + 1) for u, _ in pairs]
    every = [
        lost
        for lost in product([False, True], repeat=tree.count)
        if promise == 0 or tree.weight @ np.array(lost) <= 1 - promise + 1e-9
    ]
    known: dict[tuple[object, ...], float] = {}
    best = np.inf
    for choice in product(*ranges):
        chosen = dict(zip(pairs, choice, strict=True))
        units = [tuple(chosen[u, int(tree.node[data.stage[u], s])] for u in range(4)) for s in range(tree.count)]
        for lost in every:
            costs = []
            for s in range(tree.count):
                key = (s, units[s], promise == 0 or lost[s])
                if key not in known:
                    known[key] = dispatch(data, tree, s, units[s], bool(key[2]))
                costs.append(known[key])
            best = min(best, measured(np.array(costs), tree.weight, aim.tail))
    return best


def measured(costs: np.ndarray, weight: np.ndarray, tail: float | None) -> float:
    """Return the mean, or the mean over the dearest part of the weight."""
    if not np.isfinite(costs).all():
        return np.inf
    if tail is None:
        return float(costs @ weight)
    left, total = 1.0 - tail, 0.0
    for s in np.argsort(-costs):
        part = min(left, weight[s])
        total, left = total + part * costs[s], left - part
    return total / (1.0 - tail)


@given(cases(), few([None, 0.5]))
def test_enumeration(case, tail):
    data, tree = case
    aim = Aim(tail=tail)
    expected, found = enumerated(data, tree, aim), solved(data, tree, aim, EXACT)
    assert found.status == "optimal"
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert measured(found.cost, tree.weight, tail) <= expected * (1 + 1e-6) + 1e-6
    assert found.divisible - 1e-6 * (1 + expected) <= found.bound <= expected * (1 + 1e-6) + 1e-6


@given(cases(), few([0.5, 1.0]), few([None, 0.5]))
def test_promise(case, promise, tail):
    """What is found at a price is the best of all decisions at that price, keeps the promise, and costs no less than the cheapest that keeps it."""
    data, tree = case
    aim = Aim(tail=tail)
    found = promised(data, tree, promise, aim, EXACT)
    assert found.solution.value == pytest.approx(enumerated(dearer(data, found.factor), tree, aim), rel=1e-6, abs=1e-6)
    least = enumerated(data, tree, aim, promise)
    if not np.isfinite(least):
        assert not found.reached
    if found.reached:
        assert tree.weight @ found.solution.kept >= promise - 1e-6
        cost = found.solution.cost - found.solution.lack * (1 - 1 / found.factor)
        assert measured(cost, tree.weight, tail) >= least - 1e-6 * (1 + least)
        before = [price for price in PRICES if price < found.factor][-1:]
        for price in before:
            assert tree.weight @ solved(dearer(data, price), tree, aim, EXACT).kept < promise


def test_no_time_is_no_error():
    """Without time there is no solution and no outcome, and nothing is raised."""
    data, tree = late()
    none = replace(EXACT, time_limit_s=0.0)
    found = solved(data, tree, Aim(), none)
    assert (found.found, found.status) == (False, "limit")
    assert not promised(data, tree, 1.0, Aim(), none).reached
    assert list(outcomes(data, tree, np.full((1, 1), np.nan), none)) == []


def late():
    """One system of one option on one slot, at 2 requests/s each."""
    data = FleetData(
        option=np.array([0]), stage=np.array([0]), covers=np.array([[True]]), parent=np.array([-1]), lower=np.zeros(1), upper=np.array([9.0]),
        whole=np.array([True]), power_w=np.zeros(1), option_site=np.array([0]), by_use=np.array([False]), window=np.array([0]), seconds=np.ones(1),
        room_w=np.full((1, 1), np.inf), demand=np.array([[3.0]]), class_workload=np.array([0]), arc_class=np.array([0]), arc_pool=np.array([0]),
        arc_cost=np.zeros((1, 1)), way_pool=np.array([0]), way_option=np.array([0]), way_power_w=np.zeros(1), way_cost=np.zeros((1, 1)),
        use_price=np.zeros((1, 1)), lack_cost=np.full((1, 1), 0.4),
    )  # fmt: skip
    tree = Leaves(
        weight=np.ones(1), efficiency=np.array([[2.0]]), rate=np.zeros((1, 0)), growth=np.ones((1, 1, 1)), cost=np.ones((1, 1)),
        use_factor=np.ones((1, 1)), node=np.zeros((1, 1), dtype=np.int64),
    )  # fmt: skip
    return data, tree


def test_promise_by_hand():
    """3 requests/s take 2 systems at 1 each; the second serves 1 request/s, so that it takes a price of 1, which is 2.5 times the stated 0.4."""
    found = promised(*late(), 1.0, Aim(), EXACT)
    assert found.reached and found.solution.held.tolist() == [[2.0]]
    assert found.factor == min(price for price in PRICES if price > 2.5)


@given(cases())
def test_order_of_what_is_known(case):
    """Knowing more is never dearer; hiring at the start what is paid by use never cheaper; fewer options never cheaper."""
    data, tree = case
    aim = Aim()

    def value(leaves, other=data, how=aim):
        found = solved(other, leaves, how, EXACT)
        return found.value if found.found else np.inf

    adaptive, slack = value(tree), 1e-6 * (1 + abs(value(tree.knowing_nothing())))
    assert value(tree.knowing_everything()) <= adaptive + slack
    assert adaptive <= value(tree.knowing_nothing()) + slack
    assert adaptive <= value(tree, how=replace(aim, fixed_use=True)) + slack
    assert adaptive <= value(tree, replace(data, upper=np.where(data.stage > 0, 0.0, data.upper))) + slack
    some = np.arange(tree.count) % 2
    assert value(tree.knowing_everything()) <= value(tree.knowing(some)) + slack
    assert value(tree.knowing(some)) <= adaptive + slack


@given(cases())
def test_fresh_scenarios_with_divisible_later_holdings(case):
    """Where all is known after the start, the outcomes of the best first stage are those of the program, if later holdings are divisible."""
    data, tree = case
    data = replace(data, whole=data.stage == 0)
    tree = replace(tree, node=np.array([np.zeros(tree.count, dtype=np.int64), *[np.arange(tree.count)] * (DATES - 1)]))
    found = solved(data, tree, Aim(), EXACT)
    given = np.where(data.stage == 0, found.held.T, np.nan)
    costs = [each.cost for each in outcomes(data, tree, given, EXACT)]
    assert float(np.array(costs) @ tree.weight) == pytest.approx(found.value, rel=1e-6, abs=1e-6)


def test_jobs_by_hand():
    """A job of 6 units at 1 unit/s a system: in 2 s at most 3 systems by use at 5 a slot are cheaper than leaving it at 20."""
    data = FleetData(
        option=np.zeros(0, dtype=np.int64), stage=np.zeros(0, dtype=np.int64), covers=np.zeros((0, 1), dtype=bool), parent=np.zeros(0, dtype=np.int64),
        lower=np.zeros(0), upper=np.zeros(0), whole=np.zeros(0, dtype=bool), power_w=np.zeros(0), option_site=np.array([0]), by_use=np.array([True]),
        window=np.array([0]), seconds=np.array([2.0]), room_w=np.full((1, 1), np.inf), demand=np.zeros((0, 1)),
        class_workload=np.zeros(0, dtype=np.int64), arc_class=np.zeros(0, dtype=np.int64), arc_pool=np.zeros(0, dtype=np.int64), arc_cost=np.zeros((0, 1)),
        way_pool=np.zeros(0, dtype=np.int64), way_option=np.zeros(0, dtype=np.int64), way_power_w=np.zeros(0), way_cost=np.zeros((0, 1)),
        use_price=np.array([[5.0]]), lack_cost=np.zeros((0, 1)), job_work=np.array([6.0]), job_mask=np.ones((1, 1), dtype=bool),
        job_option=np.array([0]), job_of=np.array([0]), job_power_w=np.array([0.0]), job_cost=np.array([[1.0]]), job_undone=np.array([20.0]),
    )  # fmt: skip
    tree = Leaves(
        weight=np.array([0.5, 0.5]), efficiency=np.zeros((2, 0)), rate=np.array([[1.0], [0.5]]), growth=np.ones((2, 0, 1)),
        cost=np.zeros((2, 0)), use_factor=np.ones((2, 1)), node=np.zeros((1, 2), dtype=np.int64),
    )  # fmt: skip
    free = solved(data, tree, Aim(), EXACT)
    assert free.cost == pytest.approx([18.0, 20.0])  # 3 systems at 6; 6 systems at 6 would be 36
    assert free.kept.tolist() == [1.0, 0.0]
    kept = promised(data, tree, 1.0, Aim(), EXACT).solution
    assert kept.cost == pytest.approx([18.0, 36.0])
