"""Plan a large program part by part: a first stage from merged slots, then the parts of the calendar, the busiest first.

first       binaries from merged slots, by a search where they are few, by diving else (`solvers.general.diving`)
counts      whole numbers of the first stage from more groups of slots, with the binaries held
parts       every slot, part by part; the first stage may grow (`solvers.general.rolling`)
refined     counts again, with each slot apart of the parts that needed more of the first stage than merged slots had said
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import NONE, Merged, discounted
from solvers.general.diving import dive
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.merging import Merging
from solvers.general.rolling import Piece, Rolling
from solvers.general.settings import GeneralSettings
from solvers.general.structure import Structure
from solvers.general.swapping import swapped
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.mip import solve as solve_mip


class Planner:
    """The search for a plan of one program."""

    def __init__(
        self,
        merging: Merging,
        structure: Structure,
        options: Options,
        begin: float,
        settings: GeneralSettings,
    ):
        """`begin`: when solving started, on the performance counter."""
        self._merging, self._structure = merging, structure
        self._options, self._begin, self._settings = options, begin, settings
        self._kept: Bools = np.ones(len(structure.cost), dtype=bool)  # columns that a first stage may use
        self._grew: Ints = NONE  # slots of the parts that needed more of the first stage
        self._alone, self._refinements = merging.light.busiest, 0
        self.finer: Merged | None = None
        """The program over more groups of slots, which the counts are taken from."""
        if settings.bound_columns > settings.first_stage_columns:
            self.finer = merging.merged(settings.bound_columns)

    def plan(self, found: MergedLp) -> Floats | None:
        """Choose the first stage on merged slots, then decide each part; again with what the parts could not do, where rows stay wrong."""
        settings, options, begin = self._settings, self._options, self._begin
        kept = _restricted(found, settings)
        self._kept = found.merged.spread(kept)
        arrays = found.merged.arrays
        merged = replace(found.merged, arrays=replace(arrays, upper=np.where(kept, arrays.upper, arrays.lower)))
        finer, chosen = self.finer, None
        for attempt in range(settings.attempts):
            left = options.left_s(begin)
            if left <= 0:
                return None
            if attempt % settings.recounts == 0 or finer is None:
                chosen = _first_stage(merged, found, kept, settings.first_stage_share * left, options, settings)
            expected = merged.spread(found.x if chosen is None else chosen)  # parts choose what the search did not
            x, wrong = self._in_parts(expected, None if chosen is None else finer)
            if x is not None or not wrong.any():
                return x
            say(options, f"{int((wrong > 0).sum())} rows stay wrong in attempt {attempt + 1}")
            merged = discounted(merged, self._structure, wrong)
            finer = None if finer is None else discounted(finer, self._structure, wrong)
        return None

    def refined(self, x: Floats) -> tuple[Floats, Merged | None]:
        """Choose counts again, slots of parts that needed more apart.

        Returns the better plan, and the program over these groups of slots; None where there are no such parts, or no time.
        """
        cost, alone = self._structure.cost, np.union1d(self._alone, self._grew)
        self._refinements += 1
        done = len(alone) == len(self._alone) or self._refinements > self._settings.refinements
        if done or self._options.left_s(self._begin) <= 0:
            return x, None
        self._alone = alone
        merged = self._merging.merged(self._settings.bound_columns, alone)
        other, _ = self._in_parts(x, merged)
        if other is not None:
            say(self._options, f"plan {float(cost @ other) / float(cost @ x) - 1:+.2%} with {len(alone)} slots apart")
            x = other if float(cost @ other) < float(cost @ x) else x
        return x, merged

    def _in_parts(self, expected: Floats, finer: Merged | None) -> tuple[Floats | None, Floats]:
        """Choose counts on a finer merged program, if there is one, and decide each part; returns what `Rolling.plan` does."""
        limit_s = max(self._options.left_s(self._begin), 0.0)
        if finer is not None:
            limit_s *= self._settings.merged_lp_share
            expected = _recounted(finer, self._structure, expected, self._kept, limit_s, self._options, self._settings)
        left = max(self._options.left_s(self._begin), 0.0)
        parts = replace(self._options, gap=self._settings.part_gap, time_limit_s=left)
        rolling = Rolling(self._structure, parts, self._kept)
        found = rolling.plan(expected)
        self._grew = np.unique(self._structure.slot[(self._structure.part >= 0) & rolling.grew[self._structure.part]])
        return found


def _restricted(found: MergedLp, settings: GeneralSettings) -> Bools:
    """Select the merged columns that a first stage may use: those of other stages, and integers with a value or a small reduced cost."""
    integer = np.flatnonzero(found.merged.arrays.integer)
    used = found.x[integer] > settings.used
    rest = found.reduced[integer][~used]
    most = np.quantile(rest, settings.further_share) if len(rest) else 0.0
    kept = np.ones(len(found.x), dtype=bool)
    kept[integer] = used | (found.reduced[integer] <= most)
    return kept


def _recounted(
    finer: Merged,
    structure: Structure,
    expected: Floats,
    kept: Bools,
    limit_s: float,
    options: Options,
    settings: GeneralSettings,
) -> Floats:
    """Choose counts over more groups of slots, with the binaries [columns] as expected; returns all columns.

    By a search over the counts that the LP uses. Where that finds none in time, round after round, counts of the largest fractions are
    rounded up, so that others need less. What is expected stays where the LP has no solution in time.
    """
    arrays, number = structure.arrays, finer.columns.number
    integer = structure.first & arrays.integer
    binary = integer & (arrays.lower >= 0.0) & (arrays.upper <= 1.0)
    counts = np.unique(number[integer & ~binary])
    lower, upper = finer.arrays.lower.copy(), finer.arrays.upper.copy()
    closed = structure.first & ~kept
    upper[number[closed]] = lower[number[closed]]
    lower[number[binary]] = upper[number[binary]] = np.round(expected[binary])
    best, begin = expected, time.perf_counter()
    for i in range(settings.rounds_up):
        left = limit_s - (time.perf_counter() - begin)
        program = replace(finer, arrays=replace(finer.arrays, lower=lower, upper=upper))
        solved = solve_merged_lp(program, left) if left > 0 else None
        if solved is None:
            return best
        best = np.where(binary, expected, finer.spread(solved.x))
        if i == 0:
            left = settings.counts_share * (limit_s - (time.perf_counter() - begin))
            whole = _searched(solved, counts, replace(options, time_limit_s=left), settings)
            if whole is not None:
                return np.where(binary, expected, finer.spread(whole))
        fraction = solved.x[counts] - np.floor(solved.x[counts] + settings.used)
        open_ = counts[(fraction > settings.used) & (np.ceil(solved.x[counts]) <= upper[counts])]
        if not len(open_):
            return best
        order = np.argsort(np.floor(solved.x[open_]) - solved.x[open_], kind="stable")
        up = open_[order[: max(math.ceil(settings.rounded_share * len(open_)), 1)]]
        lower[up] = np.ceil(solved.x[up] - settings.used)
    return best


def _searched(solved: MergedLp, counts: Ints, options: Options, settings: GeneralSettings) -> Floats | None:
    """Search for whole counts [merged columns] near those of an LP whose binaries are fixed; None where none are found in time."""
    if options.time_limit_s <= 0:
        return None
    arrays = solved.merged.arrays
    unused = counts[solved.x[counts] < settings.counted]
    upper = arrays.upper.copy()
    upper[unused] = arrays.lower[unused]
    search = replace(options, gap=settings.counts_gap, progress=None, method="direct", target=None)
    return solve_mip(Piece(replace(arrays, upper=upper)), solved.merged.cost, "min", search, polished=False).x


def _first_stage(
    merged: Merged, found: MergedLp, kept: Bools, limit_s: float, options: Options, settings: GeneralSettings
) -> Floats | None:
    """Choose the first stage of a merged program: by a search where it is small; else by diving, and by other choices where the dive ends far
    above the LP.
    """
    if len(merged.cost) <= settings.searched_columns:
        gap = max(options.gap, settings.first_stage_gap)
        search = replace(options, gap=gap, time_limit_s=limit_s, progress=None, method="direct", target=None)
        return solve_mip(Piece(merged.arrays), merged.cost, "min", search, polished=False).x
    begin = time.perf_counter()
    start, least = replace(found, merged=merged), float(merged.cost @ found.x)
    x = dive(start, kept, lambda: limit_s - (time.perf_counter() - begin))
    if x is None or relative_gap(float(merged.cost @ x), least) <= max(options.gap, settings.first_stage_gap):
        return x
    return swapped(start, kept, x, lambda: limit_s - (time.perf_counter() - begin))


def say(options: Options, line: str) -> None:
    """Report progress."""
    if options.progress is not None:
        options.progress(line)
