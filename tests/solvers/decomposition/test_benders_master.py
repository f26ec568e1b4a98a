"""What is proposed of what is decided once: every whole plan keeps the rows, costs at least what each cut says, and is no better than what is proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.backends.highs import solve_mip
from solvers.decomposition.benders_master import Proposals, _reached, done
from solvers.decomposition.lagrangian_bound import Prices
from solvers.decomposition.node_relaxation import Looks
from solvers.decomposition.reformulation import Decomposition
from solvers.decomposition.root_relaxation import linear
from solvers.interface import Options, ProgressReporter
from solvers.joint import solve
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
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
    dec = Decomposition(data, "cost", build, 1, ProgressReporter())
    best = np.zeros(dec.whole.size)
    for block, place in dec.whole.columns.items():
        best[place[place >= 0]] = found.values[block][place >= 0]
    return dec, best, found.value, rng


def some_prices(dec: Decomposition, rng: np.random.Generator) -> Prices:
    usual = 2.0 * float(dec.each.mean()) + 1e-9
    shape = {
        "alpha": len(dec.data.option_site),
        "sigma": dec.data.sites,
        "beta": dec.data.pools,
        "delta": len(dec.view.demand),
    }
    return dec.fitted(
        Prices(
            *(rng.uniform(0.0, usual, (count, dec.view.slots)) for count in shape.values()),
            rng.uniform(-usual, usual, len(dec.whole.keys)),
        )
    )


@settings(max_examples=60, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_the_best_plan_keeps_every_row_and_every_cut_and_what_is_proven(seed):
    known = planned(seed)
    if known is None:
        return
    dec, best, value, rng = known
    scale = max(abs(value), 1.0)
    assert (done(dec, dec.view, dec.whole.most) @ best >= -1e-6).all()
    assert (_reached(dec) @ best >= 1 - 1e-6).all()
    base = dec.certify(some_prices(dec, rng))
    proposals, before = Proposals(dec, dec.whole.integer, base), base.value
    for _ in range(4):
        prices = some_prices(dec, rng)
        cut = dec.certify(prices).estimate
        assert cut.constant + float(np.where(best > 0, cut.slope * best, 0.0).sum()) <= value + 1e-6 * scale
        fixed = np.where(dec.whole.integer, best, 0.0), np.where(dec.whole.integer, best, dec.whole.most)
        assert dec.certify(prices, within=fixed).value <= value + 1e-6 * scale
        assert dec.certify(prices, within=(np.zeros(dec.whole.size), dec.whole.most)).value == dec.certify(prices).value
        proposals.know(prices)
        goal = proposals.propose(value + 0.1 * scale, 10.0)
        assert before <= proposals.proven <= value + 1e-6 * scale
        before = proposals.proven
        if goal is not None:
            assert (dec.whole.matrix @ goal <= dec.whole.row_upper + 1e-6).all() and (
                np.abs(goal - np.round(goal))[dec.whole.integer] == 0
            ).all()
    proposals.exclude(np.where(dec.whole.integer, best, 0.0))
    proposals.propose(value - 0.1 * scale, 10.0)
    assert proposals.proven == before  # nothing is proven any more once something is left out


def test_more_cuts_prove_more():
    more = 0
    known = [found for found in map(planned, range(60)) if found is not None]
    for dec, _, value, rng in known:
        proposals, below = (
            Proposals(dec, dec.whole.integer, dec.certify(some_prices(dec, rng))),
            value + 0.1 * max(abs(value), 1.0),
        )
        proposals.propose(below, 10.0)
        before = proposals.proven
        for _ in range(4):
            proposals.know(some_prices(dec, rng))
        proposals.propose(below, 10.0)
        more += proposals.proven > before + 1e-3 * max(abs(value), 1.0)
    assert len(known) > 20 and more > 0.5 * len(known), (more, len(known))


def test_a_proposal_that_has_no_answer_makes_a_cut_that_says_so():
    """Wherever nothing was held of a kind its price is 0 in that answer, which would let its cut say nothing of other fleets."""
    failed = told = 0
    for known in filter(None, map(planned, range(120))):
        dec, _, value, _ = known
        start = linear(dec, 1e-4)
        if start is None or not dec.whole.integer.all():
            continue
        proposals = Proposals(dec, dec.whole.integer, start.bound)
        search = Looks(dec, dec.view, np.arange(len(dec.data.option_site)), dec.whole.integer, 1e-4, lambda: 60.0)
        search.proposals, cutoff = proposals, value + 0.05 * max(abs(value), 1.0)
        for _ in range(4):
            goal, cuts = proposals.propose(cutoff, 10.0), len(proposals._cuts)
            if (
                goal is None
                or search.look(
                    np.where(dec.whole.integer, goal, 0.0),
                    np.where(dec.whole.integer, goal, dec.whole.most),
                    start.found,
                    cutoff,
                )
                is not None
            ):
                break
            at = np.where(dec.whole.integer, goal, 0.0)
            says = [cut.constant + float(np.where(at > 0, cut.slope * at, 0.0).sum()) for cut in proposals._cuts[cuts:]]
            failed, told = failed + 1, told + (max(says, default=-np.inf) > cutoff)
    assert failed > 10 and told >= 0.9 * failed, (told, failed)


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
