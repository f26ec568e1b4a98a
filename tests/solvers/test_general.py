"""Programs taken apart by merged slots and parts: the bound is never above the optimum, and a plan keeps every row."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.general import deferred_rows, dual_bound, planning, rolling, structure
from solvers.general.aggregation import groups_of, merge
from solvers.general.counting import Counting
from solvers.general.deferred_rows import DeferrableRows
from solvers.general.diving import dive
from solvers.general.dual_bound import DualBound
from solvers.general.dual_placement import holding_rows, placed
from solvers.general.merged_lp import solve_merged_lp
from solvers.general.propagation import Propagation
from solvers.general.rolling import Piece, Rolling
from solvers.general.settings import SETTINGS
from solvers.general.solve import solve_general
from solvers.general.structure import FIRST, LINK, implied_upper, structure_of, sufficient_upper
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector
from solvers.program import Arrays, Program
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES
from tests.solvers.test_all_blocks_bruteforce import OBJECTIVES, problem, problems

LIMITS = Options(gap=1e-3, time_limit_s=60.0)
COARSE = replace(
    SETTINGS, first_stage_columns=1, bound_columns=1, least_groups=1, least_bound_groups=1
)  # one group of slots for each part


def signed(data):
    return -1.0 if data.objective.maximises else 1.0


def best(data):
    """Optimum of the whole program, as a minimum; None where there is none."""
    found = solve(data, Options(gap=0.0))
    return None if found.value is None else signed(data) * found.value


@pytest.mark.parametrize("slots_of_a_part", [1, 2, 24])
@settings(max_examples=few_of(25) * TIMES, **SMALL)
@given(problems(OBJECTIVES))
def test_bound_and_plan_enclose_the_optimum(slots_of_a_part, data):
    optimum = best(data)
    program, sense = build(data), "max" if data.objective.maximises else "min"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", slots_of_a_part)
        patch.setattr(deferred_rows, "BUSIEST", slots_of_a_part - 1)  # none, one, all
        if slots_of_a_part == 2:
            patch.setattr(rolling, "QUICK_SHARE", 0.0)  # counts are rounded up, not searched
        asked = replace(COARSE, searched_columns=0) if slots_of_a_part == 2 else COARSE  # dived for, not searched
        found = solve_general(program, objective_vector(program, data), sense, data.slots, LIMITS, asked)
    tolerance = 1e-6 * max(abs(optimum or 0.0), 1.0)
    if optimum is None:
        assert found.x is None
        return
    if found.bound is not None:
        assert signed(data) * found.bound <= optimum + 1e-9 * max(abs(optimum), 1.0) + 1e-9
    if found.x is not None:
        arrays = program.arrays()
        assert arrays.violation(found.x) <= 1e-6
        assert np.abs(found.x - np.round(found.x))[arrays.integer].max(initial=0.0) <= 1e-5
        assert signed(data) * found.objective >= optimum - tolerance


@pytest.mark.parametrize("interior_columns", [0, dual_bound.INTERIOR_COLUMNS])
@settings(max_examples=few_of(20) * TIMES, **SMALL)
@given(problems(("cost",)))
def test_any_duals_bound_the_optimum(interior_columns, data):
    """Also wild ones, of either sign, and with blocks that the interior point solves roughly."""
    optimum = best(data)
    if optimum is None:
        return
    program = build(data)
    whole = structure_of(program, objective_vector(program, data), data.slots)
    rng = np.random.default_rng(len(whole.cost))
    relaxation = DualBound(whole)
    for scale in (0.0, 0.1, 10.0):
        duals = scale * rng.standard_normal(program.row_count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dual_bound, "INTERIOR_COLUMNS", interior_columns)
            bound, _ = relaxation.at(duals, lambda: 60.0)
        assert bound <= optimum + 1e-9 * max(abs(optimum), 1.0)


def test_placed_duals_keep_single_slots_from_earning():
    """Duals spread evenly over the slots of a group let single slots earn, those placed do not where the first stage can bear it."""
    spreads, places = [], []
    for seed in range(8):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        relaxation = DualBound(whole)
        solved = solve_merged_lp(merge(program, whole, groups_of(whole, data.slots, 1)), 60.0)
        if best(data) is None or solved is None:  # the draw has no solution
            continue
        spread = solved.merged.spread_duals(solved.duals)
        duals = placed(whole, spread, np.ones_like(whole.cost))  # no column is without an upper bound
        reduced = whole.cost - whole.arrays.matrix.T @ duals
        held = (abs(whole.arrays.matrix[holding_rows(whole)]).sum(axis=0) > 0) & ~whole.first
        assert (reduced[held] >= -1e-9 * np.abs(whole.cost).max()).all()
        spreads.append(relaxation.at(spread, lambda: 60.0)[0])
        places.append(relaxation.at(placed(whole, spread, relaxation.upper), lambda: 60.0)[0])
    assert np.isfinite(places).all()
    assert np.maximum(spreads, places).sum() > np.sum(spreads)


def test_sufficient_upper_bounds_keep_an_optimum():
    """Columns such as peaks of power get one; the program with them is as good."""
    bounded = 0
    for seed in range(10):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        arrays, cost = program.arrays(), objective_vector(program, data)
        implied = implied_upper(arrays)
        upper = sufficient_upper(arrays, cost, implied)
        bounded += int((np.isfinite(upper) & np.isinf(implied)).sum())
        found = solve_mip(Piece(replace(arrays, upper=upper)), cost, "min", Options(gap=0.0))
        optimum = best(data)
        assert (found.objective is None) == (optimum is None)
        assert optimum is None or found.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert bounded


def test_a_dive_ends_with_whole_binaries():
    """Also where time is up before it begins: what is fractional then stays closed."""
    ended = 0
    for seed in range(6):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        found = solve_merged_lp(merge(program, whole, groups_of(whole, data.slots, 1)), 60.0)
        if found is None:  # the draw has no solution
            continue
        arrays = found.merged.arrays
        binary = arrays.integer & (arrays.lower >= 0) & (arrays.upper <= 1)
        at_once, in_time = (dive(found, np.ones(len(found.x), dtype=bool), lambda s=s: s) for s in (0.0, 60.0))
        assert (at_once.whole()[binary] <= found.x[binary] + 1e-5).all()
        for dived in (at_once, in_time):
            x = None if dived is None else dived.whole()
            assert x is None or (x[binary] == np.round(x[binary])).all()
        ended += in_time is not None
    assert ended


@settings(max_examples=few_of(100) * TIMES, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_propagation_keeps_every_solution(seed):
    """Of random rows over binaries: what holds with a binary fixed is within the bounds that follow, and a contradiction has none."""
    rng = np.random.default_rng(seed)
    matrix = sparse.csc_array(rng.integers(-2, 3, (4, 6)).astype(float))
    low, high = (
        np.where(rng.random(4) < 0.5, -np.inf, -1.0),
        np.where(rng.random(4) < 0.3, np.inf, rng.integers(0, 3, 4)),
    )
    zeros, ones = np.zeros(6), np.ones(6)
    bounds = Propagation(Arrays(matrix, low, high, zeros, ones, ones > 0, ones), zeros, ones)
    every = np.array(list(product([0.0, 1.0], repeat=6)))
    activity = (matrix @ every.T).T
    left = every[(activity >= low - 1e-9).all(axis=1) & (activity <= high + 1e-9).all(axis=1)]
    for column in rng.permutation(6)[:3]:
        value = float(rng.integers(0, 2))
        if not bounds.lower[column] <= value <= bounds.upper[column]:
            assert not (left[:, column] == value).any()
            continue
        before = bounds.lower.copy()
        if not bounds.fix(int(column), value):
            assert not (left[:, column] == value).any()
            assert (bounds.lower == before).all()
            return
        left = left[left[:, column] == value]
        assert ((left >= bounds.lower) & (left <= bounds.upper)).all()


def test_rows_of_failures_are_deferred_but_for_the_busiest_slots():
    found = 0
    for seed in range(40):
        data = problem(np.random.default_rng(seed), ("cost",))
        if data.spread is None or not data.spread.survives.any() or data.slots < 2:
            continue
        data = replace(data, spread=replace(data.spread, tried_slots=np.arange(2)))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        waiting = DeferrableRows(program, whole, data.slots)
        light = waiting.lighter(waiting.busiest(1))
        width = np.diff(whole.arrays.matrix.tocsr().indptr)
        for zone in range(data.spread.zone_count):
            asked = {}
            for block in program.row_blocks["survived balance"]:
                for row, (of, _, _, slot) in zip(range(block.rows.start, block.rows.stop), block.index, strict=True):
                    if of == zone and width[row]:
                        kept, total = asked.get(slot, (True, 0.0))
                        asked[slot] = kept and not light.deferred[row], total + whole.arrays.row_upper[row]
            if len(asked) == 2:
                (first, most), (second, other) = asked.values()
                assert first != second and (first == (most >= other) or most == pytest.approx(other))
                found += 1
        assert (np.diff(light.structure.arrays.matrix.tocsr().indptr)[light.deferred] == 0).all()
    assert found


def test_failures_lack_nothing_beside_a_plan_and_all_without_systems():
    """Beside the columns of an optimum every copy has a solution; where nothing is held, each lacks each demand that must survive."""
    asked = 0
    for seed in range(40):
        data = problem(np.random.default_rng(seed), ("cost",))
        if data.spread is None or not data.spread.survives.any() or data.slots < 2:
            continue
        program = build(data)
        found = solve_mip(program, objective_vector(program, data), "min", Options(gap=0.0))
        if found.x is None:
            continue
        waiting = DeferrableRows(
            program, structure_of(program, objective_vector(program, data), data.slots), data.slots
        )
        assert waiting.lacking(found.x, lambda: 60.0) == pytest.approx(0.0, abs=1e-6)
        nothing = waiting.lacking(np.zeros(program.column_count), lambda: 60.0)
        demands = np.zeros_like(nothing)
        for block in program.row_blocks.get("survived balance", ()):
            upper = program.arrays().row_upper[block.rows]
            np.add.at(demands, (block.index[:, 0], block.index[:, 3]), upper > 0)
        assert nothing == pytest.approx(demands)
        asked += int(demands.sum())
    assert asked


def test_slots_stay_apart_where_parts_needed_more():
    """Counts chosen again with such slots apart never make the plan dearer, and the bound stays below."""
    asked, better = replace(SETTINGS, first_stage_columns=1, bound_columns=2, searched_columns=0), 0
    for seed in range(36):
        data = problem(np.random.default_rng(seed), ("cost",))
        optimum = best(data)
        program = build(data)
        cost = objective_vector(program, data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rolling, "GROWS_MUCH", np.inf)  # neither neighbours nor a second attempt before
            patch.setattr(planning, "GROWS_MUCH", np.inf)
            plans = [
                solve_general(program, cost, "min", data.slots, LIMITS, replace(asked, refinements=times)).objective
                for times in (0, 2)
            ]
        if optimum is None:
            assert plans == [None, None]
            continue
        assert (plans[0] is None) == (plans[1] is None)
        if plans[0] is not None:
            assert optimum * (1 - 1e-6) - 1e-6 <= plans[1] <= plans[0] * (1 + 1e-9)
            better += plans[1] < plans[0] * (1 - 1e-6)
    assert better


def test_counts_are_rounded_to_the_end_where_their_share_of_the_time_is_up_and_the_plan_has_more():
    """Parts of fractional counts lack what the fractions would have done, and find no plan."""
    settings, rounded = replace(SETTINGS, searched_counts_columns=0), 0
    for seed in range(30):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        merged = merge(program, whole, groups_of(whole, data.slots, 1))
        found = solve_mip(Piece(merged.arrays), merged.cost, "min", LIMITS, polished=False).x
        if found is None:
            continue
        counts = []
        for share_s in (60.0, 0.0):
            share = iter([60.0] * 4)  # as long as the LP asks for it
            left_s = (lambda share=share, then=share_s: next(share, then), lambda: 60.0)
            kept = np.ones(len(whole.cost), dtype=bool)
            counting = Counting(whole, merged.spread(found), kept, left_s, LIMITS, settings)
            solved = counting.relaxed(merged)
            counts.append(counting.whole(solved)[whole.first & whole.arrays.integer])
        assert counts[0] == pytest.approx(counts[1])
        before = merged.spread(solved.x)[whole.first & whole.arrays.integer]
        rounded += np.abs(before - np.round(before)).sum() > np.abs(counts[1] - np.round(counts[1])).sum() + 1e-3
    assert rounded > 3


def test_fewer_slots_of_failures_are_kept_where_copies_are_many():
    kept = []
    for seed in range(40):
        data = problem(np.random.default_rng(seed), ("cost",))
        if data.spread is None or not data.spread.survives.any() or data.slots < 2:
            continue
        program = build(replace(data, spread=replace(data.spread, tried_slots=np.arange(2))))
        whole = structure_of(program, objective_vector(program, data), data.slots)
        with pytest.MonkeyPatch.context() as patch:
            waiting = DeferrableRows(program, whole, data.slots)
            several = int(waiting.lighter(waiting.busiest()).deferred.sum())
            patch.setattr(deferred_rows, "MOST_COPIES", 0)
            kept.append((several, int(waiting.lighter(waiting.busiest()).deferred.sum())))
    assert kept and all(few > several for several, few in kept)


def test_merged_slots_keep_what_all_slots_do_alike():
    """A solution that is the same in all slots of a group keeps the merged rows, at the same cost."""
    for seed in range(12):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        whole = structure_of(program, objective_vector(program, data), data.slots)
        merged = merge(program, whole, groups_of(whole, data.slots, 1))
        z = np.random.default_rng(seed).random(merged.columns.count)
        x = merged.spread(z)
        activity = np.bincount(merged.rows.number, whole.arrays.matrix @ x, merged.rows.count)
        assert merged.arrays.matrix @ z == pytest.approx(activity, abs=1e-9)
        assert merged.cost @ z == pytest.approx(whole.cost @ x)


def test_a_part_is_a_run_of_slots_that_storage_joins():
    data = problem(np.random.default_rng(0), ("cost",))
    program = build(data)
    whole = structure_of(program, objective_vector(program, data), data.slots)
    assert set(np.unique(whole.row_part)) <= {LINK, FIRST, *range(whole.parts)}
    entries = whole.arrays.matrix.tocoo()
    inside = whole.row_part[entries.row] >= 0
    assert (whole.part[entries.col[inside]] == whole.row_part[entries.row[inside]]).all()


def test_the_method_general_plans_small_questions_too():
    """Through the whole way of a solve, where the search in one piece follows from the plan of the parts on: the optimum, whatever the method."""
    for seed in range(6):
        data = problem(np.random.default_rng(seed), ("cost",))
        optimum = best(data)
        found = solve(data, replace(LIMITS, method="general"))
        assert (found.value is None) == (optimum is None)
        assert optimum is None or found.value == pytest.approx(optimum, rel=2 * LIMITS.gap, abs=1e-6)


def test_what_a_row_over_many_parts_lacks_is_shared_among_them():
    """A job of one and a half systems on each of many slots gets two systems, not as many as one slot would need to make up for all."""
    slots = 10
    program = Program()
    held = program.add_columns("n", (), upper=100.0, integer=True, cost={"cost": 10.0})
    run = program.add_columns("v", (slots,), upper=100.0, cost={"cost": 0.01})
    each = np.arange(slots)
    program.add_rows(
        "capacity",
        -np.inf,
        0.0,
        np.tile(each, 2),
        np.concatenate([run, np.repeat(held, slots)]),
        np.repeat([1.0, -1.0], slots),
        index=each[:, None],
    )
    chosen = program.add_columns("y", (), lower=1.0, upper=1.0, cost={"cost": 90.0})
    work = np.append(np.ones(slots), -1.5 * slots)
    program.add_rows(
        "progress", 0.0, np.inf, np.zeros(slots + 1, dtype=np.int64), np.append(run, chosen), work, count=1
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", 1)
        whole = structure_of(program, program.functional("cost"), slots)
    expected = np.full(program.column_count, 1.5)
    expected[held] = expected[chosen] = 1.0
    x, wrong = Rolling(whole, LIMITS, np.ones(program.column_count, dtype=bool)).plan(expected)
    assert not wrong.any()
    assert x[held] == pytest.approx(2.0)
    assert x[run].sum() >= 1.5 * slots * (1 - 1e-6)
