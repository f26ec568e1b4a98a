"""Counts in one piece against the whole program by another copy of HiGHS: with the same choices held no counts cost less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers.decomposition import reformulation as decomposition
from solvers.decomposition import sub_mips
from solvers.decomposition.node_relaxation import counted
from solvers.decomposition.reformulation import Decomposition
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.solvers.test_bruteforce import problem

SEEDS = range(40)


def questions():
    """(decomposition, the whole program, whole choices that have a plan, as bounds of the structure's columns)."""
    for seed in SEEDS:
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if unserved(data) or unfinished(data) or not build(data).column_count:
            continue
        dec, program = Decomposition(data, "cost", build, 1, ProgressReporter()), build(data)
        best = least_cost(program, {}, whole=True)
        if best is None:
            continue
        chosen, free = np.zeros(dec.whole.size), counted(dec)
        for block, here in dec.whole.columns.items():
            chosen[here[here >= 0]] = np.append(best.x, 0.0)[program.columns[block][here >= 0]]
        held = dec.whole.integer & ~free
        yield dec, program, np.where(held, np.round(chosen), 0.0), np.where(held, np.round(chosen), dec.whole.most)


def least_cost(program, bounds, *, whole):
    """The best answer with blocks of columns between bounds; None without one."""
    arrays = program.arrays()
    lower, upper = arrays.lower.copy(), arrays.upper.copy()
    for block, (least, most) in bounds.items():
        index = program.columns[block]
        lower[index[index >= 0]], upper[index[index >= 0]] = (
            least[index >= 0],
            np.minimum(most[index >= 0], upper[index[index >= 0]]),
        )
    found = milp(program.functional("cost"), constraints=LinearConstraint(arrays.matrix, arrays.row_lower, arrays.row_upper), bounds=Bounds(lower, upper),
                 integrality=arrays.integer.astype(int) if whole else None, options={"mip_rel_gap": 0.0})  # fmt: skip
    return found if found.status == 0 else None


def between(dec, least, most):
    """Bounds by block, as the whole program has them."""
    return {
        block: (np.append(least, 0.0)[here], np.append(most, np.inf)[here])
        for block, here in dec.whole.columns.items()
        if here.size
    }


def test_no_counts_cost_less_with_the_same_choices():
    asked = 0
    for dec, program, least, most in questions():
        values = sub_mips.counts(dec, least, most, 1e-6, 60.0)
        if values is None:
            assert not (dec.whole.integer & (most > least)).any()
            continue
        assert (
            np.array_equal(values[dec.whole.integer], np.round(values[dec.whole.integer]))
            and (values >= least).all()
            and (values <= most).all()
        )
        best = least_cost(program, between(dec, least, most), whole=True)
        fixed = np.where(dec.whole.integer, values, least), np.where(dec.whole.integer, values, most)
        with_these = least_cost(program, between(dec, *fixed), whole=False)
        assert with_these is not None and with_these.fun == pytest.approx(best.fun, rel=1e-5, abs=1e-6)
        asked += 1
    assert asked > 12


def test_other_programs_are_not_asked_so(monkeypatch):
    monkeypatch.setattr(decomposition, "MOST_IN_ONE_PIECE", 0)
    dec, _, least, most = next(questions())
    assert sub_mips.counts(dec, least, most, 1e-6, 60.0) is None
