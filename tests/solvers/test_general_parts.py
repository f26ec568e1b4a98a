"""What a part of the calendar may add to the first stage: copies after failures with their day or at its prices, neighbours, second attempts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from solvers.general import planning, rolling, structure
from solvers.general.copy_prices import copy_prices
from solvers.general.rolling import Rolling
from solvers.general.settings import SETTINGS
from solvers.general.solve import solve_general
from solvers.general.structure import copies_after_failures, structure_of
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector
from solvers.program import Program
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES
from tests.solvers.test_all_blocks_bruteforce import problem, problems

LIMITS = Options(gap=1e-3, time_limit_s=60.0)
COARSE = replace(SETTINGS, first_stage_columns=1, bound_columns=2, least_groups=1, least_bound_groups=1)


def surviving(tried):
    """Draw programs of which some workload survives failures in `tried` of the slots, with their structures."""
    for seed in range(60):
        data = problem(np.random.default_rng(seed), ("cost",))
        if data.spread is None or not data.spread.survives.any():
            continue
        data = replace(data, spread=replace(data.spread, tried_slots=np.arange(data.slots)[:tried]))
        program = build(data)
        yield program, structure_of(program, objective_vector(program, data), data.slots)


def test_copies_belong_to_their_day_unless_they_are_more_columns():
    with_their_day = 0
    for program, whole in surviving(1):
        copies = (copies_after_failures(program) >= 0) & (whole.slot >= 0)
        rest = (whole.slot >= 0) & ~copies
        if copies.sum() <= rest.sum():
            assert not whole.apart.any()
            assert (whole.part[copies] == whole.run[whole.slot[copies]]).all()
            with_their_day += copies.any()
    program = Program()
    program.add_columns("v", (2,), upper=1.0)
    program.add_columns("zone 0 h", (3, 2), upper=1.0)
    whole = structure_of(program, np.zeros(program.column_count), 2)
    assert whole.apart.tolist() == [False] * 2 + [True] * 6
    assert whole.part[whole.apart].tolist() == [whole.runs, whole.runs + 1] * 3
    assert with_their_day


def rows_by_index(program, name):
    """Find the rows of some name by their index."""
    return {
        tuple(index): row
        for block in program.row_blocks.get(name, ())
        for row, index in zip(range(block.rows.start, block.rows.stop), block.index, strict=True)
    }


def test_copies_pay_what_their_day_pays_for_its_systems():
    """Against the rows of the day by their names and indices, whatever their duals are."""
    priced = 0
    for program, whole in surviving(3):
        copies = copies_after_failures(program) >= 0
        alone = replace(whole, part=np.where(copies, whole.parts + whole.slot, whole.part), parts=whole.parts + 3)
        of_day, duals = rows_by_index(program, "installed"), np.zeros(program.row_count)
        duals[list(of_day.values())] = -np.random.default_rng(len(copies)).random(len(of_day))
        matrix, paid = whole.arrays.matrix.tocsr(), np.zeros(len(copies))
        for (_, *index), row in rows_by_index(program, "survived installed").items():
            if tuple(index) in of_day and whole.first[matrix[[row]].indices].any():
                paid -= matrix[[row]].toarray()[0] * duals[of_day[tuple(index)]]
        assert copy_prices(alone, duals) == pytest.approx(np.where(copies, paid, 0.0))
        priced += int((paid[copies] > 0).sum())
    assert priced


def two_kinds(scarce):
    """Build one slot with a system of each of two kinds: a job needs one of the kind `scarce`, copies after two failures take either."""
    program, other = Program(), 1 - scarce
    held = program.add_columns("n", (2,), upper=9.0, integer=True, cost={"cost": np.array([100.0, 100.0])})
    run = program.add_columns("v", (2, 1), upper=9.0)[:, 0]
    chosen = program.add_columns("y", (), lower=1.0, upper=1.0)
    program.add_rows(
        "progress",
        0.0,
        np.inf,
        np.zeros(2, dtype=np.int64),
        np.array([run[scarce], chosen]),
        np.array([1.0, -1.0]),
        count=1,
    )
    each = np.arange(2)
    index = np.column_stack([each, np.zeros(2, dtype=np.int64)])
    program.add_rows(
        "installed", -np.inf, 0.0, np.tile(each, 2), np.r_[run, held], np.repeat([1.0, -1.0], 2), index=index
    )
    for zone in range(2):
        copy = program.add_columns(f"zone {zone} h", (2, 1), upper=9.0)[:, 0]
        program.add_rows(
            "survived balance", 1.0, 1.0, np.zeros(2, dtype=np.int64), copy, np.ones(2), index=np.array([[zone, 0]])
        )
        program.add_rows(
            "survived installed",
            -np.inf,
            0.0,
            np.tile(each, 3),
            np.r_[copy, run, held],
            np.repeat([1.0, 1.0, -1.0], 2),
            index=np.column_stack([np.full(2, zone), index]),
        )
    duals = np.zeros(program.row_count)
    (block,) = program.row_blocks["installed"]
    duals[block.rows.start + scarce] = -50.0
    expected = np.zeros(program.column_count)
    expected[held] = expected[chosen] = expected[run[scarce]] = 1.0
    return program, held, other, duals, expected


@pytest.mark.parametrize(("priced", "grows_much"), [(True, np.inf), (False, rolling.GROWS_MUCH)])
@pytest.mark.parametrize("scarce", [0, 1])
def test_copies_apart_leave_the_day_the_systems_that_only_it_can_use(scarce, priced, grows_much):
    """For their price, or since a day that grows for what they took is decided again with them."""
    program, held, other, duals, expected = two_kinds(scarce)
    whole = structure_of(program, program.functional("cost"), 1)
    assert whole.apart.sum() == 4
    price = copy_prices(whole, duals)
    for zone in range(2):
        assert price[program.columns[f"zone {zone} h"][[scarce, other], 0]].tolist() == [50.0, 0.0]
    kept = np.ones(program.column_count, dtype=bool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "GROWS_MUCH", grows_much)
        x, wrong = Rolling(whole, LIMITS, kept, price if priced else None).plan(expected)
    assert not wrong.any()
    assert x[held] == pytest.approx([1.0, 1.0])
    for zone in range(2):
        assert x[program.columns[f"zone {zone} h"][other, 0]] == pytest.approx(1.0)


def job_of_two_days():
    """Build two days of one slot, a job of two systems' days, and the one system that is enough for it."""
    program = Program()
    held = program.add_columns("n", (), upper=9.0, integer=True, cost={"cost": 100.0})
    run = program.add_columns("v", (2,), upper=9.0, cost={"cost": np.array([0.02, 0.01])})
    chosen = program.add_columns("y", (), lower=2.0, upper=2.0, cost={"cost": 90.0})
    day = np.arange(2)
    program.add_rows(
        "capacity",
        -np.inf,
        0.0,
        np.tile(day, 2),
        np.r_[run, np.repeat(held, 2)],
        np.repeat([1.0, -1.0], 2),
        index=day[:, None],
    )
    program.add_rows(
        "progress", 0.0, np.inf, np.zeros(3, dtype=np.int64), np.r_[run, chosen], np.array([1.0, 1.0, -1.0]), count=1
    )
    expected = np.zeros(program.column_count)
    expected[held], expected[chosen] = 1.0, 2.0
    return program, held, expected


@pytest.mark.parametrize(("grows_much", "systems"), [(np.inf, 2.0), (rolling.GROWS_MUCH, 1.0)])
def test_a_part_that_grows_much_is_decided_again_with_its_neighbours(grows_much, systems):
    """The first day alone buys a second system for work that the other day can do."""
    program, held, expected = job_of_two_days()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", 1)
        patch.setattr(rolling, "GROWS_MUCH", grows_much)
        whole = structure_of(program, program.functional("cost"), 2)
        parts = Rolling(whole, LIMITS, np.ones(program.column_count, dtype=bool))
        x, wrong = parts.plan(expected)
    assert not wrong.any()
    assert x[held] == pytest.approx(systems)
    assert parts.growth.sum() == pytest.approx((systems - 1.0) * 100.0 / (100.0 + 2 * 90.0))


def test_a_part_leaves_the_first_stage_of_others_as_it_is():
    """What has no cost would be chosen at random and paid for by the parts that use it; what rows of the first stage need stays."""
    program = Program()
    host = program.add_columns("host", (), upper=1.0, integer=True)
    send = program.add_columns("send", (3,), upper=1.0)
    run = program.add_columns("v", (2,), upper=1.0, cost={"cost": np.ones(2)})
    program.add_rows(
        "hosted",
        -np.inf,
        0.0,
        np.zeros(2, dtype=np.int64),
        np.r_[run[0], host],
        np.array([1.0, -1.0]),
        index=np.array([[0]]),
    )
    program.add_rows(
        "line", -np.inf, 2.0, np.zeros(4, dtype=np.int64), np.r_[run[1], send], np.ones(4), index=np.array([[1]])
    )
    program.add_rows(
        "arriving", 0.0, np.inf, np.zeros(2, dtype=np.int64), np.r_[send[0], host], np.array([1.0, -1.0]), count=1
    )
    program.add_rows("relayed", -np.inf, 1.0, np.zeros(2, dtype=np.int64), send[1:], np.ones(2), count=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", 1)
        parts = Rolling(
            structure_of(program, program.functional("cost"), 2), LIMITS, np.ones(program.column_count, dtype=bool)
        )
    x = np.zeros(program.column_count)
    x[[host, *send, run[0]]] = 1.0, 1.0, 0.5, 0.5, 1.0
    first = np.r_[host, send]
    found = parts._without_needless(x, first, np.zeros(4), parts._rows_of(np.array([0])))
    assert found[first].tolist() == [1.0, 1.0, 0.0, 0.0]
    x[host] = 0.0
    assert parts._without_needless(x, first, np.zeros(4), parts._rows_of(np.array([0])))[first].tolist() == [0.0] * 4


@settings(max_examples=few_of(8) * TIMES, **SMALL)
@given(problems(("cost",)))
def test_no_plan_far_above_its_first_stage_is_returned_without_a_second_attempt(data):
    """Also where the time is up when the first one ends."""
    program, tried = build(data), []
    cost = objective_vector(program, data)
    inner = Rolling.plan

    def plan(self, expected):
        x, wrong = inner(self, expected)
        tried.append((float(cost @ expected), None if x is None else float(cost @ x), self.structure))
        return x, wrong

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "MOST_SLOTS", 1)
        patch.setattr(Rolling, "plan", plan)
        patch.setattr(planning.Planner, "_second", _late(planning.Planner._second))
        found = solve_general(program, cost, "min", data.slots, LIMITS, replace(COARSE, refinements=0))
    first = next((i for i, (_, value, _) in enumerate(tried) if value is not None), None)
    if found.x is None or first is None:
        return
    said, value, whole = tried[first]
    if value > said + max(LIMITS.gap, rolling.GROWS_MUCH) * abs(said) and whole.runs > 1:
        assert len(tried) > first + 1
    assert found.objective <= value + 1e-9 * abs(value)


def _late(second):
    """Let a second attempt begin when the time is up."""

    def late(self, x):
        self._options = replace(self._options, time_limit_s=0.0)
        return second(self, x)

    return late


def test_that_there_is_no_plan_is_said_only_where_there_is_none():
    """By the linear program of a part and the first stage: demand of up to a thousand times what systems can do."""
    said = 0
    for seed in range(40):
        drawn = problem(np.random.default_rng(seed), ("cost",))
        data = replace(drawn, demand=drawn.demand * 10.0 ** (seed % 4))
        program = build(data)
        cost = objective_vector(program, data)
        found = solve_general(program, cost, "min", data.slots, Options(gap=1e-3, time_limit_s=60.0))
        if found.status == "infeasible":
            assert solve_mip(program, cost, "min", Options(method="direct")).status == "infeasible"
            said += 1
    assert said > 3
