"""Choose whole counts of the first stage on a merged program whose binaries are held: by a search, by rounding up where it finds none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import Merged
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.rolling import Piece
from solvers.general.settings import GeneralSettings
from solvers.general.structure import Structure
from solvers.interface import Options
from solvers.mip import solve as solve_mip


class Counting:
    """The choice of counts for binaries that are held."""

    def __init__(
        self,
        structure: Structure,
        expected: Floats,
        kept: Bools,
        left_s: tuple[Callable[[], float], Callable[[], float]],
        options: Options,
        settings: GeneralSettings,
    ):
        """`expected` [columns]: binaries as they are held. `kept` [columns]: which columns of the first stage may be used. `left_s`: time left to the choice, and to the plan."""
        arrays = structure.arrays
        integer = structure.first & arrays.integer
        self._expected, self._closed = expected, structure.first & ~kept
        self._left_s, self._plan_left_s = left_s
        self._binary = structure.first & arrays.binary
        self._count = integer & ~self._binary
        self._options, self._settings = options, settings
        self._little: Bools | None = None  # [columns] counts of which the LP of a program used little

    def relaxed(self, merged: Merged) -> MergedLp | None:
        """Solve the LP of a merged program without the counts of which it uses little; None where it has no solution in time.

        A further program leaves out the same counts first.
        """
        number, binary = merged.columns.number, self._binary
        lower, upper = merged.arrays.lower.copy(), merged.arrays.upper.copy()
        upper[number[self._closed]] = lower[number[self._closed]]
        lower[number[binary]] = upper[number[binary]] = np.round(self._expected[binary])
        if self._little is not None:
            closed = upper.copy()
            closed[number[self._little]] = lower[number[self._little]]
            solved = self._lp(merged, lower, closed)
            if solved is not None:
                return solved
        solved = self._lp(merged, lower, upper)
        if solved is None:
            return None
        self._little = self._count & (merged.spread(solved.x) < self._settings.counted)
        upper[number[self._little]] = lower[number[self._little]]
        return self._lp(merged, lower, upper) or solved

    def whole(self, solved: MergedLp) -> Floats:
        """Choose whole counts near an LP's: by a search, where the program is not too large for it, else by rounding up; returns all columns.

        Rounding may take all the time that is left to the plan, since parts of fractional counts hardly ever find one; they stay fractional where
        that is up too.
        """
        merged, settings, left, x = solved.merged, self._settings, self._left_s(), None
        if merged.occurring() <= settings.searched_counts_columns and left > 0:
            search = replace(
                self._options,
                gap=settings.counts_gap,
                time_limit_s=settings.counts_share * left,
                progress=None,
                method="direct",
                target=None,
            )
            x = solve_mip(Piece(merged.arrays), merged.cost, "min", search, polished=False).x
        if x is None:
            x = _rounded_up(solved, self._counts(merged), self._plan_left_s, settings)
        return np.where(self._binary, self._expected, merged.spread(x))

    def _counts(self, merged: Merged) -> Ints:
        return np.unique(merged.columns.number[self._count])

    def _lp(self, merged: Merged, lower: Floats, upper: Floats) -> MergedLp | None:
        bounded = replace(merged, arrays=replace(merged.arrays, lower=lower, upper=upper))
        return solve_merged_lp(bounded, self._left_s()) if self._left_s() > 0 else None


def _rounded_up(solved: MergedLp, counts: Ints, left_s: Callable[[], float], settings: GeneralSettings) -> Floats:
    """Round counts of the largest fractions up, round after round, so that others need less; returns the last LP's columns.

    Where that has no solution, half of them in turn; a single one is rounded down.
    """
    arrays = solved.merged.arrays
    lower, upper, share = arrays.lower.copy(), arrays.upper.copy(), settings.rounded_share
    while left_s() > 0:
        x = solved.x[counts]
        fraction = x - np.floor(x + settings.used)
        open_ = (fraction > settings.used) & (np.ceil(x) <= upper[counts])
        if not open_.any():
            break
        up = counts[open_][np.argsort(-fraction[open_], kind="stable")]
        up = up[: max(math.ceil(share * len(up)), 1)]
        found = None
        while found is None and len(up) and left_s() > 0:
            raised = lower.copy()
            raised[up] = np.ceil(solved.x[up] - settings.used)
            found = solve_merged_lp(replace(solved.merged, arrays=replace(arrays, lower=raised, upper=upper)), left_s())
            if found is None and len(up) == 1:
                upper[up] = np.maximum(np.floor(solved.x[up]), lower[up])
            up = up if found is not None else up[: len(up) // 2]
        if found is not None:
            lower, solved, share = raised, found, min(2 * len(up) / int(open_.sum()), 1.0)
    return solved.x
