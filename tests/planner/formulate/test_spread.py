"""The slots in which the failure of a zone is tried."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.formulate.spread import tried_slots


@given(st.lists(st.floats(0.0, 1e6), min_size=2, max_size=12), st.integers(0, 2**32 - 1))
def test_slots_that_differ_by_rounding_are_equally_busy(demand, seed):
    """The first of them is tried in each window, as `verify` expects it, whichever is larger by a rounding."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.array(demand), 2)
    window = np.repeat([0, 1], len(demand))
    rounded = row * (1 + rng.integers(-2, 3, len(row)) * np.finfo(float).eps)
    problem = SimpleNamespace(calendar=SimpleNamespace(window=window, windows=2))
    expected = {int(np.flatnonzero((window == v) & (row == row[window == v].max()))[0]) for v in (0, 1)}
    near = row[:, None] * (1 - 1e-9) <= row[None, :]  # draws that differ by less are not told apart
    apart = all((row[i] == row[j]) or not (near[i, j] and near[j, i]) for i in range(len(row)) for j in range(len(row)))
    if apart:
        assert set(tried_slots(problem, rounded[None, :]).tolist()) == expected
