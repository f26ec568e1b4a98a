"""Counts in one piece against the whole program by another copy of HiGHS: with the same choices held no counts cost less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers.decomposition import reformulation as decomposition
from solvers.decomposition import sub_mips
from solvers.decomposition.node_relaxation import count_columns_of
from solvers.decomposition.reformulation import Reformulation
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
        dec, program = Reformulation(data, "cost", build, 1, ProgressReporter()), build(data)
        best = least_cost(program, {}, integral=True)
        if best is None:
            continue
        chosen, free = np.zeros(dec.first_stage.size), count_columns_of(dec)
        for block, here in dec.first_stage.columns.items():
            chosen[here[here >= 0]] = np.append(best.x, 0.0)[program.columns[block][here >= 0]]
        systems_held = dec.first_stage.integer & ~free
        yield (
            dec,
            program,
            np.where(systems_held, np.round(chosen), 0.0),
            np.where(systems_held, np.round(chosen), dec.first_stage.upper),
        )


def least_cost(program, bounds, *, integral):
    """The best answer with blocks of columns between bounds; None without one."""
    arrays = program.arrays()
    column_lower, column_upper = arrays.lower.copy(), arrays.upper.copy()
    for block, (lower, upper) in bounds.items():
        index = program.columns[block]
        column_lower[index[index >= 0]], column_upper[index[index >= 0]] = (
            lower[index >= 0],
            np.minimum(upper[index >= 0], column_upper[index[index >= 0]]),
        )
    found = milp(program.functional("cost"), constraints=LinearConstraint(arrays.matrix, arrays.row_lower, arrays.row_upper), bounds=Bounds(column_lower, column_upper),
                 integrality=arrays.integer.astype(int) if integral else None, options={"mip_rel_gap": 0.0})  # fmt: skip
    return found if found.status == 0 else None


def between(dec, lower, upper):
    """Bounds by block, as the whole program has them."""
    return {
        block: (np.append(lower, 0.0)[here], np.append(upper, np.inf)[here])
        for block, here in dec.first_stage.columns.items()
        if here.size
    }


def test_no_counts_cost_less_with_the_same_choices():
    compared = 0
    for dec, program, lower, upper in questions():
        values = sub_mips.solve_counts(dec, lower, upper, 1e-6, 60.0)
        if values is None:
            assert not (dec.first_stage.integer & (upper > lower)).any()
            continue
        assert (
            np.array_equal(values[dec.first_stage.integer], np.round(values[dec.first_stage.integer]))
            and (values >= lower).all()
            and (values <= upper).all()
        )
        best = least_cost(program, between(dec, lower, upper), integral=True)
        fixed = np.where(dec.first_stage.integer, values, lower), np.where(dec.first_stage.integer, values, upper)
        with_these = least_cost(program, between(dec, *fixed), integral=False)
        assert with_these is not None and with_these.fun == pytest.approx(best.fun, rel=1e-5, abs=1e-6)
        compared += 1
    assert compared > 12


def test_other_programs_are_not_asked_so(monkeypatch):
    monkeypatch.setattr(decomposition, "MOST_MIP_COLUMNS", 0)
    dec, _, lower, upper = next(questions())
    assert sub_mips.solve_counts(dec, lower, upper, 1e-6, 60.0) is None
