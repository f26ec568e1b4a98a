"""The way over the slots against the reference that tries every whole-numbered plan: bounds never above, values never below the best,
and what is found meets every row of the whole program."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.decomposition import reformulation as decomposition
from solvers.decomposition import solve as decomposed
from solvers.decomposition.coverage import supports
from solvers.decomposition.root_relaxation import ROOT_SETTINGS
from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.build import build
from solvers.model.data import Limit
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, best, near
from tests.solvers.test_bruteforce import problem
from tests.solvers.test_mip import stood

GAP = 1e-3
COMPARED = 12 if TIMES == 1 else 250  # each way


def problems():
    return st.integers(0, 2**32 - 1).map(
        lambda seed: replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
    )


def with_racks(rng, data):
    """The problem with few rack positions at its sites, which some of the holdings take."""
    return replace(
        data,
        site_racks=np.where(rng.random(data.sites) < 0.8, rng.integers(1, 4, data.sites).astype(float), np.inf),
        holding_racks=rng.choice([0.0, 0.5, 1.0, 1.5], len(data.holding_option)),
    )


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_bound_and_value_enclose_the_best_of_all_plans(in_one_piece, monkeypatch):
    """With counts of small questions in one piece and as those of others. Every third question limits what is paid at once, every third the
    rack positions of sites. Counted are those that
    have a best plan and got one, with and without a limit that costs."""
    monkeypatch.setattr(decomposition, "MOST_MIP_COLUMNS", decomposition.MOST_MIP_COLUMNS if in_one_piece else 0)
    compared = bound_by_limit = seed = 0
    while compared < COMPARED:
        rng, seed = np.random.default_rng(seed), seed + 1
        data = free = replace(problem(rng, ("cost",)), limits=())
        if seed % 3 == 1:
            data = with_racks(rng, data)
        elif seed % 3 == 0:
            data = replace(
                data,
                holding_cost=data.holding_cost
                | {"capital": rng.integers(0, 6, len(data.holding_option)).astype(float)},
            )
            paid = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build).functionals.get("capital", 0.0)
            data = replace(data, limits=(Limit("limits.capital", "capital", max(paid - 1.0, 0.0)),))
        if unserved(data) or unfinished(data):
            continue
        assert supports(data)
        found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build)
        encloses(data, found)
        compared += found.value is not None
        bound_by_limit += found.value is not None and data is not free and best(data) > best(free) + 1e-6
    assert seed < 6 * COMPARED and bound_by_limit >= max(COMPARED // 40, 1)


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_most_questions_that_have_a_plan_get_one(in_one_piece, monkeypatch):
    monkeypatch.setattr(decomposition, "MOST_MIP_COLUMNS", decomposition.MOST_MIP_COLUMNS if in_one_piece else 0)
    compared, gaps = 0, []
    for seed in range(45 if TIMES > 1 else 28):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        lower = None if unserved(data) or unfinished(data) else best(data)
        if lower is not None:
            found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build)
            compared += 1
            gaps += [] if found.value is None else [(found.value - lower) / max(lower, 1e-6)]
    assert compared >= 10 and len(gaps) >= 0.9 * compared
    assert np.median(gaps) <= GAP


def test_progress_ends_at_the_plan_and_its_bound_in_the_units_of_the_data():
    told = 0
    for seed in range(30):
        data, lines = replace(problem(np.random.default_rng(seed), ("cost",)), limits=()), []
        if unserved(data) or unfinished(data):
            continue
        data = replace(
            data,
            holding_cost={"cost": 3e5 * data.holding_cost["cost"]},
            point_cost={"cost": 3e5 * data.point_cost["cost"]},
        )
        found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60, progress=lines.append), build)
        values, bounds, _ = stood(lines).T
        if found.value is None or found.value < 1e4:
            continue
        told += 1
        assert np.nanmin(values) == pytest.approx(found.value, rel=1e-4) and np.nanmax(bounds) == pytest.approx(
            found.bound, rel=1e-4
        )
    assert told > 5


def test_a_plan_that_time_cut_short_meets_every_row(monkeypatch):
    plans = 0
    for seed in range(20):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if unserved(data) or unfinished(data) or best(data) is None:
            continue
        for limit in (30.0, 60.0, 120.0):  # looks at the clock
            clock = itertools.count()
            monkeypatch.setattr(decomposed.time, "perf_counter", lambda clock=clock: float(next(clock)))
            found = decomposed.solve(data, Options(gap=GAP, time_limit_s=limit), build)
            monkeypatch.undo()
            encloses(data, found)
            plans += found.value is not None
    assert plans > 10


def test_jobs_that_hardly_run_in_a_slot_leave_the_systems_that_requests_need():
    data = replace(problem(np.random.default_rng(5095), ("cost",)), limits=())
    encloses(data, decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build))


def encloses(data, found) -> None:
    """Bound, best of all plans and value stand in that order, and the plan meets every row."""
    program = build(data)
    arrays = program.arrays()
    assert (found.rows, found.columns, found.integers) == (
        program.row_count,
        program.column_count,
        int(arrays.integer.sum()),
    )
    lower = best(data)
    if lower is None:
        assert found.value is None
        return
    assert found.bound <= lower + 1e-6 * max(1.0, abs(lower))
    if found.value is None:
        return
    assert found.value >= lower - 1e-6 * max(1.0, abs(lower))
    x = np.zeros(program.column_count)
    for block, index in program.columns.items():
        values = np.asarray(found.values[block])
        assert values.shape == index.shape and not values[index < 0].any()
        x[index[index >= 0]] = values[index >= 0]
    assert arrays.violation(x) <= 1e-8
    assert np.array_equal(x[arrays.integer], np.round(x[arrays.integer]))
    assert near(program.functional("cost") @ x, found.value)


def test_there_may_be_more_threads_than_slots_and_an_order_that_nothing_asks_for():
    plans = 0
    for seed in range(12):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if not (unserved(data) or unfinished(data)):
            found = decomposed.solve(
                replace(data, order=Chronology(next=np.roll(np.arange(data.slots), -1), step_s=data.slot_hours_s)),
                Options(gap=GAP, time_limit_s=60, threads=data.slots + 3),
                build,
            )
            encloses(data, found)
            plans += found.value is not None
    assert plans > 3


@settings(max_examples=few_of(10), **SMALL)
@given(problems())
def test_the_same_question_has_the_same_answer(data):
    if not (unserved(data) or unfinished(data)):
        one, other = (decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build) for _ in range(2))
        assert one.value == other.value and one.bound == other.bound
        assert all(np.array_equal(values, other.values[block]) for block, values in one.values.items())


@settings(max_examples=few_of(20), **SMALL)
@given(problems())
def test_within_the_gap_is_only_said_of_plans_that_are(data):
    found = solve(data, Options(gap=GAP, time_limit_s=60, method="decomposed"))
    if found.status in ("optimal", "within_gap"):
        lower = best(data)
        assert lower is not None and found.value <= lower * (1 + 1.1 * GAP) + 1e-6


@pytest.mark.parametrize("groups, pace_groups", ((2, 10), (2, 2), (1, 1)))
def test_groups_of_slots_keep_the_bound_and_the_rows(monkeypatch, groups, pace_groups):
    """Slots that share a cut or a pace of jobs, as they do from some number on."""
    monkeypatch.setattr("solvers.decomposition.reformulation.MOST_CUT_GROUPS", groups)
    monkeypatch.setattr("solvers.decomposition.reformulation.MOST_PACE_GROUPS", pace_groups)
    plans = 0
    for seed in range(12):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build)
        encloses(data, found)
        plans += found.value is not None
    assert plans > 1


def test_choices_made_on_merged_slots_have_plans_that_meet_every_row_of_all_slots(monkeypatch):
    monkeypatch.setattr(
        "solvers.decomposition.root_relaxation.cluster_slots",
        lambda view, clusters: np.unique(view.window, return_inverse=True)[1],
    )  # as few slots as there may be
    compared = plans = 0
    for seed in range(60):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots > 1 and not (unserved(data) or unfinished(data)) and best(data) is not None:
            found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build)
            encloses(data, found)
            compared, plans = compared + 1, plans + (found.value is not None)
    assert compared > 20 and plans >= compared / 2


def test_options_left_out_of_large_questions_weaken_the_bound_and_never_break_it(monkeypatch):
    """The way of very large questions: few merged slots for all fleet options, more for those of which much is held, prices for the rest."""
    settings_of_large = replace(
        ROOT_SETTINGS,
        large_work=0.0,
        large_merged_slots=1,
        large_slots=2,
        large_relevant_systems=10.0,
        relevant_share=0.3,
    )
    monkeypatch.setattr("solvers.decomposition.root_relaxation.ROOT_SETTINGS", settings_of_large)
    compared = bounds = omitted = plans = 0
    for seed in range(60):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or unserved(data) or unfinished(data) or best(data) is None:
            continue
        lines = []
        found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60, progress=lines.append), build)
        encloses(data, found)
        matter = [int(line.split()[0]) for line in lines if "fleet options matter" in line]
        compared, omitted = (
            compared + 1,
            omitted + any(fleet_options < len(data.option_site) for fleet_options in matter),
        )
        bounds, plans = (
            bounds + (found.bound is not None and found.bound > 0.5 * best(data)),
            plans + (found.value is not None),
        )
    assert compared > 12 and omitted > 3 and bounds >= compared / 2 and plans >= 0.75 * compared


def test_hosting_that_costs_next_to_nothing_is_placed_where_it_is_needed_and_counted(monkeypatch):
    """Such hosting is no part of the search: the plan has it all the same, in every row and in its value."""
    searched = []
    original = decomposed.Reformulation
    monkeypatch.setattr(
        decomposed, "Reformulation", lambda data, *others: searched.append(data) or original(data, *others)
    )
    plans = omitted = 0
    for seed in range(45):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if not (data.host_cost or len(data.tree_path)) or unserved(data) or unfinished(data) or best(data) is None:
            continue
        little = lambda part: {name: 1e-6 * values for name, values in part.items()}
        data = replace(data, host_cost=little(data.host_cost), edge_cost=little(data.edge_cost))
        found = decomposed.solve(data, Options(gap=GAP, time_limit_s=60), build)
        encloses(data, found)
        if found.value is not None and not searched[-1].host_cost and not len(searched[-1].tree_path):
            plans, omitted = plans + 1, omitted + bool(found.values["host"].any() or found.values["edge"].any())
    assert plans > 5 and omitted > 5
