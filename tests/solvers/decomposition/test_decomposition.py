"""What the way over the slots carries, its numbers near 1, its counts, and that a limit of time is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.decomposition import solve as decomposed
from solvers.interface import ProgressReporter
from solvers.joint import solve
from solvers.mip import Options
from solvers.model.build import build
from solvers.model.data import Limit, Objective, PlanData
from solvers.model.fleet import option_upper
from tests.solvers.test_bruteforce import problem


@pytest.fixture(scope="module")
def data():
    """Found by its number: sites with fixed costs, two slots, a plan that the search finishes."""
    return replace(problem(np.random.default_rng(1), ("cost",)), limits=())


def test_what_ties_slots_together_is_not_carried(data):
    assert decomposed.carries(data)
    assert not decomposed.carries(replace(data, limits=(Limit("limits.cost", "cost", 50.0),)))
    assert not decomposed.carries(replace(data, objective=Objective("throughput")))


def test_small_questions_go_the_whole_way(data):
    assert not decomposed.pays(data)


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

    from solvers.decomposition.root_relaxation import within

    view = SimpleNamespace(reachable=np.array([[1.0, 0.0, 1.0]]), seconds=np.array([10.0, 10.0, 10.0]))
    for work, share, expected in (
        (30.0, [1.0, 1.0, 0.0], [1.0, 0.0, 0.5]),
        (10.0, [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]),
        (50.0, [1.0, 1.0, 1.0], None),
    ):
        data = SimpleNamespace(point_job=np.array([0]), job_work=np.array([work]), point_capacity=np.array([2.0]))
        found = within(SimpleNamespace(view=view, data=data), 0, np.array(share))
        assert found is None if expected is None else np.allclose(found, expected)


def test_a_question_with_nothing_to_decide_has_a_plan():
    data = replace(problem(np.random.default_rng(4280), ("cost",)), limits=())
    assert build(data).column_count == 0
    found = decomposed.solve(data, Options(gap=1e-3, time_limit_s=60), build)
    assert found.value == found.bound == 0.0


def test_there_is_a_bound_where_nothing_was_found_in_time(monkeypatch, data):
    """Any prices have one, also those of systems that are busy throughout."""
    best = solve(data, Options(gap=1e-6, method="direct")).value
    monkeypatch.setattr("solvers.decomposition.root_relaxation.inside", lambda *others: None)
    found = decomposed.solve(data, Options(gap=1e-3, time_limit_s=60), build)
    assert found.value is None and 0 < found.bound <= best


def _counts(data):
    """Over all fleet options and places."""
    from solvers.decomposition.integer_recovery import Counts
    from solvers.decomposition.reformulation import Decomposition

    dec = Decomposition(data, "cost", build, 1, ProgressReporter())
    level = dec.level(np.arange(len(data.option_site)), dec.view.training)
    most = level.master.structure.most
    return Counts(dec, level, np.zeros_like(most), most, 1e-3, 0, lambda: 1e9)


def test_a_plan_near_counts_that_break_a_row_keeps_them(data):
    """Time may end a search before its counts are whole; rounded, they need not keep the rows."""
    from solvers.decomposition.linking import Point

    counts = _counts(data)
    structure = counts.structure.most.copy()
    structure[counts.n] = counts.structure.most[counts.n].max() + 1
    beyond = Point(structure, counts.level.master.reach)
    assert not counts._holds(beyond.structure)
    plan = counts._counted(beyond)
    assert plan is None or counts._holds(plan.point.structure)


@pytest.mark.parametrize("missing, looks", ((0.0, 1), (5e-9, 1), (5e-8, 2)))
def test_what_all_slots_are_short_of_together_may_be_more_than_what_one_is(monkeypatch, data, missing, looks):
    """Each slot's answer holds to 1e-9: a few of these sent the search on where it had its plan."""
    from solvers.decomposition.first_stage import carried
    from solvers.decomposition.linking import Point

    counts, best = _counts(data), solve(data, Options(gap=1e-6))
    whole = counts.dec.whole
    full = np.zeros(whole.size)
    for block, index in whole.columns.items():
        full[index[index >= 0]] = best.values[block][index >= 0]
    lines = []
    monkeypatch.setattr(counts.dec, "say", lines.append)
    monkeypatch.setattr(counts.level.programs, "missing", lambda: (missing, 0.0))
    plan = counts._counted(Point(carried(whole, counts.structure, full), best.values["v"][counts.level.master.places]))
    assert plan is not None and plan.value == pytest.approx(best.value, rel=1e-5)
    assert len(lines) == 1 if looks == 1 else len(lines) >= looks


@pytest.mark.parametrize("seed", (5, 13, 17, 19, 28))
def test_what_is_missing_rules_out_counts_that_miss_it_and_no_plan(seed):
    from solvers.decomposition.first_stage import carried
    from solvers.decomposition.linking import Point

    data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    best = solve(data, Options(gap=1e-6))
    counts = _counts(data)
    whole, structure = counts.dec.whole, counts.structure
    full = np.zeros(whole.size)
    for block, index in whole.columns.items():
        full[index[index >= 0]] = best.values[block][index >= 0]
    plan = carried(whole, structure, full)
    assert np.allclose(carried(structure, whole, plan), full)
    nothing = plan.copy()
    nothing[counts.n] = 0.0
    point = Point(nothing, np.zeros_like(counts.level.master.reach))
    counts._ask(point)
    assert counts.level.programs.missing()[0] > 1e-6
    counts._learn_missing(point)
    master = counts.level.master
    assert master.solve((nothing, nothing), np.inf) is None
    assert master.solve((plan, plan), np.inf) is not None


def two_jobs(supply):
    """Two jobs that take all of two hours on 2 systems, at 10 each in the first fleet option, of which there are so many, or at 30 in the second."""
    whole, real = lambda *values: np.array(values, dtype=int), lambda *values: np.array(values, dtype=float)
    return PlanData(
        slot_window=whole(0, 0), slot_hours_s=np.full(2, 3600.0), site_power_limit_w=real(np.inf), option_site=whole(0, 0), option_group=whole(0, 0), option_fabric=whole(-1, -1),
        holding_option=whole(0, 0, 1), holding_window=whole(-1, -1, -1), holding_upper=real(9, 9, 9), holding_cost={"cost": real(10, 10, 30)}, holding_power_w=real(0, 0, 0),
        supply_limit=real(supply), supply_member=whole([0, 0], [0, 1]), point_pool=np.full(4, -1), point_job=whole(0, 0, 1, 1),
        point_uses=whole([0, 0], [1, 1], [2, 0], [3, 1]), point_uses_systems=np.full(4, 2.0), point_capacity=np.ones(4), point_power_w=np.zeros(4),
        point_cost={"cost": np.zeros((4, 2))}, demand=np.zeros((0, 0, 2)), job_work=real(7200, 7200), job_window_mask=np.ones((2, 2), dtype=bool))  # fmt: skip


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
    from solvers.decomposition.dive_and_branch import COSTS, Search
    from solvers.decomposition.node_relaxation import counted
    from solvers.decomposition.root_relaxation import linear

    search = Search(
        dec,
        dec.view,
        np.arange(len(dec.data.option_site)),
        dec.whole.integer & ~counted(dec),
        1e-6,
        COSTS,
        1,
        lambda: 1e9,
    )
    return search, search.look(np.zeros(dec.whole.size), dec.whole.most, linear(dec, 1e-6).found)


@pytest.mark.parametrize("seed", [0, 15, 23, 43, 47, 51])
def test_a_job_at_a_dear_place_is_proposed_at_the_best_one(seed):
    """Found by their numbers: questions with one job that costs more at one of its places than at another."""
    from solvers.decomposition.benders_loop import Proposing
    from solvers.decomposition.benders_master import Proposals
    from solvers.decomposition.reformulation import Decomposition
    from solvers.decomposition.root_relaxation import linear

    data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    dec = Decomposition(data, "cost", build, 1, ProgressReporter())
    search, root = _search(dec)
    places, wholes = dec.whole.columns["y"], []
    for place in places[places >= 0]:
        most = root.most.copy()
        most[places[places >= 0]] = 0.0
        most[place] = 1.0
        wholes.append(search._searched(search.look(root.least, most, root.found), 0.0, 9.0))
    best = min(whole.found.value for whole in wholes)
    assert max(whole.found.value for whole in wholes) > best * 1.01
    for whole in wholes:
        proposing = Proposing(dec, dec.view, search.fleet_options, search.fixing, search.tolerance, search.left)
        better = proposing.proposed(Proposals(dec, search.fixing, linear(dec, 1e-6).bound), whole, lambda value: np.inf)
        assert better.found.value == pytest.approx(best, rel=1e-4) and search.open(better) == []


def test_counts_that_are_not_all_decided_in_time_are_rounded_together_with_hours_of_their_own(monkeypatch):
    from solvers.decomposition import search as sketch

    asked, some = [], 0
    hours, run = sketch._hours, sketch.Search.run
    monkeypatch.setattr(sketch, "_in_one_piece", lambda *_: None)
    monkeypatch.setattr(sketch, "_hours", lambda *given: asked.append(given) or hours(*given))
    monkeypatch.setattr(
        sketch.Search,
        "run",
        lambda search, root: search.rounded(root) if (search.fixing & search.counts).any() else run(search, root),
    )
    for seed in range(40):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or not decomposed.carries(data) or (best := solve(data, Options(gap=1e-6))).value is None:
            continue
        before = len(asked)
        found = decomposed.solve(data, Options(gap=1e-3), build)
        if len(asked) == before:  # nothing was open, or linear counts are whole
            continue
        assert found.value is None or found.value >= best.value * (1 - 1e-6)
        some += found.value is not None
    assert some > 2
