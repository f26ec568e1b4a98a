"""Solve the LP of a merged program for its duals, by the interior point without crossover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats
from solvers.backends.plain_lp import INTERIOR, ROUGH_INTERIOR, solve_lp
from solvers.general.aggregation import Merged


@dataclass(frozen=True, slots=True)
class MergedLp:
    """Solution of the LP of a merged program."""

    merged: Merged
    x: Floats  # by merged column
    duals: Floats  # by merged row
    reduced: Floats  # reduced costs, by merged column


def solve_merged_lp(merged: Merged, limit_s: float, *, rough: bool = True) -> MergedLp | None:
    """Solve the LP of the merged program by the interior point without crossover; None where time is up first.

    `rough`: whether it may end at `ROUGH_GAP`, which is enough to choose a first stage. The bound asks for better duals.
    """
    scaled = merged.arrays.scaled(merged.cost)
    arrays = scaled.arrays
    there = (np.diff(arrays.matrix.indptr) > 0) | (scaled.cost != 0)  # others are nowhere but in deferred rows
    found = solve_lp(
        scaled.cost[there],
        arrays.matrix[:, there],
        (arrays.row_lower, arrays.row_upper),
        (arrays.lower[there], arrays.upper[there]),
        seconds=limit_s,
        settings=ROUGH_INTERIOR if rough else INTERIOR,
    )
    if found.x is None or found.duals is None:
        return None
    duals: Floats = found.duals * scaled.row / scaled.objective
    x = np.clip(0.0, arrays.lower, arrays.upper)
    x[there] = found.x
    return MergedLp(merged, x * scaled.column, duals, merged.cost - merged.arrays.matrix.T @ duals)
