"""What is proposed of what is decided once: every whole plan keeps the rows, costs at least what each cut says, and is no better than what is proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.backends.highs import solve_mip
from solvers.decomposition.benders_master import BendersMaster, _demand_cover_rows, job_time_rows
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.node_relaxation import NodeRelaxation
from solvers.decomposition.reformulation import Reformulation
from solvers.decomposition.root_relaxation import solve_root
from solvers.interface import Options, ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.model import test_phases as phases
from tests.solvers.reference import SMALL
from tests.solvers.test_bruteforce import problem


def planned(seed: int):
    """(the problem as slots and what is decided once, its best plan there, what that costs, random numbers); None where there is none."""
    rng = np.random.default_rng(seed)
    data = replace(phases.phased(rng, ("cost",)) if rng.random() < 0.5 else problem(rng, ("cost",)), limits=())
    if unserved(data) or unfinished(data) or not build(data).column_count:
        return None
    found = solve(data, Options(gap=0.0, time_limit_s=60, method="direct"))
    if not found.values:
        return None
    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    best = np.zeros(dec.first_stage.size)
    for block, place in dec.first_stage.columns.items():
        best[place[place >= 0]] = found.values[block][place >= 0]
    return dec, best, found.value, rng


def some_prices(dec: Reformulation, rng: np.random.Generator) -> Duals:
    usual = 2.0 * float(dec.system_slot_cost.mean()) + 1e-9
    shape = {
        "alpha": len(dec.data.option_site),
        "sigma": dec.data.sites,
        "beta": dec.data.pools,
        "delta": len(dec.view.demand),
    }
    return dec.complete_duals(
        Duals(
            *(rng.uniform(0.0, usual, (count, dec.view.slots)) for count in shape.values()),
            rng.uniform(-usual, usual, len(dec.first_stage.keys)),
        )
    )


@settings(max_examples=few_of(60), **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_the_best_plan_keeps_every_row_and_every_cut_and_what_is_proven(seed):
    known = planned(seed)
    if known is None:
        return
    dec, best, value, rng = known
    scale = max(abs(value), 1.0)
    assert (job_time_rows(dec, dec.view, dec.first_stage.upper) @ best >= -1e-6).all()
    assert (_demand_cover_rows(dec) @ best >= 1 - 1e-6).all()
    base = dec.lagrangian_bound(some_prices(dec, rng))
    master, before = BendersMaster(dec, dec.first_stage.integer, base), base.value
    for _ in range(4):
        duals = some_prices(dec, rng)
        cut = dec.lagrangian_bound(duals).cut
        assert cut.constant + float(np.where(best > 0, cut.slope * best, 0.0).sum()) <= value + 1e-6 * scale
        fixed = (
            np.where(dec.first_stage.integer, best, 0.0),
            np.where(dec.first_stage.integer, best, dec.first_stage.upper),
        )
        assert dec.lagrangian_bound(duals, within=fixed).value <= value + 1e-6 * scale
        assert (
            dec.lagrangian_bound(duals, within=(np.zeros(dec.first_stage.size), dec.first_stage.upper)).value
            == dec.lagrangian_bound(duals).value
        )
        master.add_cut(duals)
        goal = master.solve(value + 0.1 * scale, 10.0)
        assert before <= master.lower_bound <= value + 1e-6 * scale
        before = master.lower_bound
        if goal is not None:
            assert (dec.first_stage.matrix @ goal <= dec.first_stage.row_upper + 1e-6).all() and (
                np.abs(goal - np.round(goal))[dec.first_stage.integer] == 0
            ).all()
    master.add_no_good_cut(np.where(dec.first_stage.integer, best, 0.0))
    master.solve(value - 0.1 * scale, 10.0)
    assert master.lower_bound == before  # nothing is proven any more once something is left out


def test_more_cuts_prove_more():
    more = 0
    known = [found for found in map(planned, range(60)) if found is not None]
    for dec, _, value, rng in known:
        master, below = (
            BendersMaster(dec, dec.first_stage.integer, dec.lagrangian_bound(some_prices(dec, rng))),
            value + 0.1 * max(abs(value), 1.0),
        )
        master.solve(below, 10.0)
        before = master.lower_bound
        for _ in range(4):
            master.add_cut(some_prices(dec, rng))
        master.solve(below, 10.0)
        more += master.lower_bound > before + 1e-3 * max(abs(value), 1.0)
    assert len(known) > 20 and more > 0.5 * len(known), (more, len(known))


def test_a_proposal_that_has_no_answer_makes_a_cut_that_says_so():
    """Wherever nothing was held of a kind its price is 0 in that answer, which would let its cut say nothing of other fleets."""
    failed = told = 0
    seeds = range(few_of(240))
    for known in filter(None, map(planned, seeds)):
        dec, _, value, _ = known
        start = solve_root(dec, 1e-4)
        if start is None or not dec.first_stage.integer.all():
            continue
        master = BendersMaster(dec, dec.first_stage.integer, start.bound)
        search = NodeRelaxation(
            dec, dec.view, np.arange(len(dec.data.option_site)), dec.first_stage.integer, 1e-4, lambda: 60.0
        )
        search.master, cutoff = master, value + 0.05 * max(abs(value), 1.0)
        for _ in range(4):
            goal, cuts = master.solve(cutoff, 10.0), len(master._cuts)
            if (
                goal is None
                or search.solve(
                    np.where(dec.first_stage.integer, goal, 0.0),
                    np.where(dec.first_stage.integer, goal, dec.first_stage.upper),
                    start.found,
                    cutoff,
                )
                is not None
            ):
                break
            at = np.where(dec.first_stage.integer, goal, 0.0)
            says = [cut.constant + float(np.where(at > 0, cut.slope * at, 0.0).sum()) for cut in master._cuts[cuts:]]
            failed, told = failed + 1, told + (max(says, default=-np.inf) > cutoff)
    assert failed > len(seeds) / 30, failed
    assert told >= 0.9 * failed, (told, failed)


def test_the_least_whole_point_of_a_knapsack():
    weight, worth = np.array([[3.0, 5.0, 7.0]]), np.array([4.0, 7.0, 9.0])
    free = np.zeros(3), np.ones(3)
    found = solve_mip(
        -worth,
        sparse.csc_array(weight),
        (np.array([-np.inf]), np.array([10.0])),
        free,
        np.ones(3, dtype=bool),
        0.0,
        10.0,
    )
    assert -found.bound == pytest.approx(13.0) and found.x == pytest.approx([1, 0, 1])
    none = solve_mip(
        -worth,
        sparse.csc_array(weight),
        (np.array([16.0]), np.array([np.inf])),
        free,
        np.ones(3, dtype=bool),
        0.0,
        10.0,
    )
    assert none.x is None and none.bound == np.inf
