"""Columns that rows leave no choice: whatever satisfies the rows is within what is left, and rows that are told to be broken are."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from solvers.decomposition.first_stage import FirstStage
from tests.conftest import few_of
from tests.solvers.reference import SMALL


def first_stage(rng: np.random.Generator) -> FirstStage:
    """A few rows over a few columns; nothing else of it is asked for."""
    rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    matrix = sparse.csr_array(rng.integers(-2, 3, (rows, columns)).astype(float))
    lower = np.where(rng.random(rows) < 0.5, -np.inf, rng.integers(-3, 3, rows).astype(float))
    upper = np.where(rng.random(rows) < 0.3, np.inf, np.maximum(rng.integers(-3, 3, rows), lower).astype(float))
    none = np.zeros(0, dtype=np.int64)
    return FirstStage(
        matrix,
        lower,
        upper,
        rng.integers(0, 4, columns).astype(float),
        np.zeros(columns),
        np.ones(columns, dtype=bool),
        {},
        (),
        none,
        none,
    )


@settings(max_examples=few_of(300), **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_what_satisfies_the_rows_is_within_what_is_left(seed):
    once = first_stage(np.random.default_rng(seed))
    lower, upper, broken = once.propagate_bounds(np.zeros(len(once.upper)), once.upper)
    assert (lower >= 0).all() and (upper <= once.upper).all()
    for point in itertools.product(*(range(int(m) + 1) for m in once.upper)):
        sides = once.matrix @ np.array(point, dtype=float)
        if (sides >= once.row_lower).all() and (sides <= once.row_upper).all():
            assert not broken and (lower <= point).all() and (point <= upper).all()


def test_rows_that_leave_no_choice_fix_columns_at_either_end():
    up = down = 0
    for seed in range(400):
        once = first_stage(np.random.default_rng(seed))
        lower, upper, broken = once.propagate_bounds(np.zeros(len(once.upper)), once.upper)
        up, down = up + (not broken and (lower > 0).any()), down + (not broken and (upper < once.upper).any())
    assert up > 5 and down > 10
