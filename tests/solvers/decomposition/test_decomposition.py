"""What the way over the slots carries, its numbers near 1, its counts, and that a limit of time is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.decomposition import solve as decomposed
from solvers.decomposition.coverage import pays_off, supports
from solvers.interface import ProgressReporter
from solvers.mip import Options
from solvers.model.build import build
from solvers.model.data import Limit, Objective, PlanData
from solvers.model.fleet import option_upper
from solvers.search.joint import solve
from tests.solvers.test_bruteforce import problem


@pytest.fixture(scope="module")
def data():
    """Found by its number: sites with fixed costs, two slots, a plan that the search finishes."""
    return replace(problem(np.random.default_rng(1), ("cost",)), limits=())


def test_what_ties_slots_together_is_not_carried(data):
    assert supports(data)
    assert not supports(replace(data, limits=(Limit("limits.cost", "cost", 50.0),)))
    assert not supports(replace(data, objective=Objective("throughput")))


def test_small_questions_go_the_whole_way(data):
    assert not pays_off(data)


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_those_of_the_whole_program(seed):
    data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    program = build(data)
    found = decomposed.solve(data, Options(gap=0.01, time_limit_s=0.01), build)
    assert (found.rows, found.columns, found.integers) == (
        program.row_count,
        program.column_count,
        int(program.arrays().integer.sum()),
    )


def test_units_are_powers_of_two_near_the_usual_size(data):
    units = decomposed.Units.of(data, "cost")
    for factor in (units.cost / data.slots, units.watt, *units.workload, *units.pool):
        assert np.log2(factor) == round(np.log2(factor))


def test_the_plan_is_the_same_in_other_money(data):
    dearer = replace(data, **{
        name: {functional: values * 1024.0 for functional, values in getattr(data, name).items()}
        for name in ("site_fixed", "holding_cost", "point_cost", "arc_cost", "host_cost", "edge_cost")
    })  # fmt: skip
    one, other = (solve(each, Options(gap=1e-3, method="decomposed")) for each in (data, dearer))
    assert one.status == other.status
    if one.value is not None:
        assert other.value == pytest.approx(1024 * one.value)
        assert all(np.array_equal(values, other.values[block]) for block, values in one.values.items())


def test_a_job_runs_just_where_it_may_and_just_until_it_is_done():
    from types import SimpleNamespace

    from solvers.decomposition.root_relaxation import fit_schedule

    view = SimpleNamespace(reachable=np.array([[1.0, 0.0, 1.0]]), seconds=np.array([10.0, 10.0, 10.0]))
    for work, share, expected in (
        (30.0, [1.0, 1.0, 0.0], [1.0, 0.0, 0.5]),
        (10.0, [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]),
        (50.0, [1.0, 1.0, 1.0], None),
    ):
        data = SimpleNamespace(point_job=np.array([0]), job_work=np.array([work]), point_capacity=np.array([2.0]))
        found = fit_schedule(SimpleNamespace(view=view, data=data), 0, np.array(share))
        assert found is None if expected is None else np.allclose(found, expected)


def test_a_question_with_nothing_to_decide_has_a_plan():
    data = replace(problem(np.random.default_rng(4280), ("cost",)), limits=())
    assert build(data).column_count == 0
    found = decomposed.solve(data, Options(gap=1e-3, time_limit_s=60), build)
    assert found.value == found.bound == 0.0


def test_there_is_a_bound_where_nothing_was_found_in_time(monkeypatch, data):
    """Any prices have one, also those of systems that are busy throughout."""
    best = solve(data, Options(gap=1e-6, method="direct")).value
    monkeypatch.setattr("solvers.decomposition.root_relaxation.solve_interior_point", lambda *others: None)
    found = decomposed.solve(data, Options(gap=1e-3, time_limit_s=60), build)
    assert found.value is None and 0 < found.bound <= best


def _counts(data):
    """Over all fleet options and places."""
    from solvers.decomposition.integer_recovery import IntegerRecovery
    from solvers.decomposition.reformulation import Reformulation

    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    model = dec.recovery_model(np.arange(len(data.option_site)), dec.view.training)
    upper = model.master.first_stage.upper
    return IntegerRecovery(dec, model, np.zeros_like(upper), upper, 1e-3, 0, lambda: 1e9)


def test_a_plan_near_counts_that_break_a_row_keeps_them(data):
    """Time may end a search before its counts are whole; rounded, they need not keep the rows."""
    from solvers.decomposition.linking import FirstStagePoint

    counts = _counts(data)
    first_stage = counts.first_stage.upper.copy()
    first_stage[counts.n] = counts.first_stage.upper[counts.n].max() + 1
    beyond = FirstStagePoint(first_stage, counts.model.master.reach)
    assert not counts._is_feasible(beyond.first_stage)
    plan = counts._recover(beyond)
    assert plan is None or counts._is_feasible(plan.point.first_stage)


@pytest.mark.parametrize("missing, looks", ((0.0, 1), (5e-9, 1), (5e-8, 2)))
def test_what_all_slots_are_short_of_together_may_be_more_than_what_one_is(monkeypatch, data, missing, looks):
    """Each slot's answer holds to 1e-9: a few of these sent the search on where it had its plan."""
    from solvers.decomposition.first_stage import map_columns
    from solvers.decomposition.linking import FirstStagePoint

    counts, best = _counts(data), solve(data, Options(gap=1e-6))
    first_stage = counts.dec.first_stage
    full = np.zeros(first_stage.size)
    for block, index in first_stage.columns.items():
        full[index[index >= 0]] = best.values[block][index >= 0]
    lines = []
    monkeypatch.setattr(counts.dec, "log", lines.append)
    monkeypatch.setattr(counts.model.subproblems, "missing", lambda: (missing, 0.0))
    plan = counts._recover(
        FirstStagePoint(
            map_columns(first_stage, counts.first_stage, full), best.values["v"][counts.model.master.placements]
        )
    )
    assert plan is not None and plan.value == pytest.approx(best.value, rel=1e-5)
    assert len(lines) == 1 if looks == 1 else len(lines) >= looks


@pytest.mark.parametrize("seed", (5, 13, 17, 19, 28))
def test_what_is_missing_rules_out_counts_that_miss_it_and_no_plan(seed):
    from solvers.decomposition.first_stage import map_columns
    from solvers.decomposition.linking import FirstStagePoint

    data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    best = solve(data, Options(gap=1e-6))
    counts = _counts(data)
    first_stage, first_stage = counts.dec.first_stage, counts.first_stage
    full = np.zeros(first_stage.size)
    for block, index in first_stage.columns.items():
        full[index[index >= 0]] = best.values[block][index >= 0]
    plan = map_columns(first_stage, first_stage, full)
    assert np.allclose(map_columns(first_stage, first_stage, plan), full)
    nothing = plan.copy()
    nothing[counts.n] = 0.0
    point = FirstStagePoint(nothing, np.zeros_like(counts.model.master.reach))
    counts._evaluate(point)
    assert counts.model.subproblems.missing()[0] > 1e-6
    counts._add_feasibility_cuts(point)
    master = counts.model.master
    assert master.solve((nothing, nothing), np.inf) is None
    assert master.solve((plan, plan), np.inf) is not None


def two_jobs(supply):
    """Two jobs that take all of two hours on 2 systems, at 10 each in the first fleet option, of which there are so many, or at 30 in the second."""
    ints, floats = lambda *values: np.array(values, dtype=int), lambda *values: np.array(values, dtype=float)
    return PlanData(
        slot_window=ints(0, 0), slot_hours_s=np.full(2, 3600.0), site_power_limit_w=floats(np.inf), option_site=ints(0, 0), option_group=ints(0, 0), option_fabric=ints(-1, -1),
        holding_option=ints(0, 0, 1), holding_window=ints(-1, -1, -1), holding_upper=floats(9, 9, 9), holding_cost={"cost": floats(10, 10, 30)}, holding_power_w=floats(0, 0, 0),
        supply_limit=floats(supply), supply_member=ints([0, 0], [0, 1]), point_pool=np.full(4, -1), point_job=ints(0, 0, 1, 1),
        point_uses=ints([0, 0], [1, 1], [2, 0], [3, 1]), point_uses_systems=np.full(4, 2.0), point_capacity=np.ones(4), point_power_w=np.zeros(4),
        point_cost={"cost": np.zeros((4, 2))}, demand=np.zeros((0, 0, 2)), job_work=floats(7200, 7200), job_window_mask=np.ones((2, 2), dtype=bool))  # fmt: skip


@pytest.mark.parametrize(("supply", "cost"), [(4, 40), (3, 80), (2, 80), (1, 120)])
def test_jobs_that_each_fit_are_not_put_where_both_do_not(supply, cost):
    data = two_jobs(supply)  # at 3 the linear part has three quarters of each job in the first fleet option
    found = decomposed.solve(data, Options(gap=1e-4, time_limit_s=60), build)
    assert found.value == pytest.approx(cost) and found.bound <= cost * (1 + 1e-9)
    assert option_upper(data).ravel().tolist() == [supply, 9]


def test_a_program_in_which_nothing_is_left_to_be_decided_has_an_answer():
    """Found by its number: two counts over one slot; with both held no column is left, and that was taken for no answer."""
    found = decomposed.solve(
        replace(problem(np.random.default_rng(1007), ("cost",)), limits=()), Options(gap=1e-3, time_limit_s=60), build
    )
    assert found.value == pytest.approx(60 / 7, rel=1e-6)


def _search(dec):
    """Choices over all slots, fleet options and places, and the linear answer."""
    from solvers.decomposition.dive_and_branch import SETTINGS, DiveAndBranch
    from solvers.decomposition.node_relaxation import count_columns_of
    from solvers.decomposition.root_relaxation import solve_root

    search = DiveAndBranch(
        dec,
        dec.view,
        np.arange(len(dec.data.option_site)),
        dec.first_stage.integer & ~count_columns_of(dec),
        1e-6,
        SETTINGS.joint_cost,
        1,
        lambda: 1e9,
    )
    return search, search.solve(np.zeros(dec.first_stage.size), dec.first_stage.upper, solve_root(dec, 1e-6).found)


@pytest.mark.parametrize("seed", [0, 15, 23, 43, 47, 51])
def test_a_job_at_a_dear_place_is_proposed_at_the_best_one(seed):
    """Found by their numbers: questions with one job that costs more at one of its places than at another."""
    from solvers.decomposition.benders_loop import BendersLoop
    from solvers.decomposition.benders_master import BendersMaster
    from solvers.decomposition.reformulation import Reformulation
    from solvers.decomposition.root_relaxation import solve_root

    data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    search, root = _search(dec)
    placements, nodes = dec.first_stage.columns["y"], []
    for place in placements[placements >= 0]:
        upper = root.upper.copy()
        upper[placements[placements >= 0]] = 0.0
        upper[place] = 1.0
        nodes.append(search._dive(search.solve(root.lower, upper, root.found), 0.0, 9.0))
    best = min(node.found.value for node in nodes)
    assert max(node.found.value for node in nodes) > best * 1.01
    for node in nodes:
        proposing = BendersLoop(
            dec, dec.view, search.fleet_options, search.integer_columns, search.tolerance, search.seconds_left
        )
        better = proposing.improve(
            BendersMaster(dec, search.integer_columns, solve_root(dec, 1e-6).bound), node, lambda value: np.inf
        )
        assert better.found.value == pytest.approx(best, rel=1e-4) and search.open_columns(better) == []


def test_counts_that_are_not_all_decided_in_time_are_rounded_together_with_hours_of_their_own(monkeypatch):
    from solvers.decomposition import search as driver

    compared, some = [], 0
    reschedule, run = driver._reschedule_jobs, driver.DiveAndBranch.run
    monkeypatch.setattr(driver, "_counts_by_full_mip", lambda *_: None)
    monkeypatch.setattr(driver, "_reschedule_jobs", lambda *given: compared.append(given) or reschedule(*given))
    monkeypatch.setattr(
        driver.DiveAndBranch,
        "run",
        lambda search, root: (
            search.round_remaining(root) if (search.integer_columns & search.count_columns).any() else run(search, root)
        ),
    )
    for seed in range(40):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or not supports(data) or (best := solve(data, Options(gap=1e-6))).value is None:
            continue
        before = len(compared)
        found = decomposed.solve(data, Options(gap=1e-3), build)
        if len(compared) == before:  # nothing was open, or linear counts are whole
            continue
        assert found.value is None or found.value >= best.value * (1 - 1e-6)
        some += found.value is not None
    assert some > 2
