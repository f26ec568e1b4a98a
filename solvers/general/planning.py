"""Plan a large program part by part: a first stage from merged slots, then the parts of the calendar, the busiest first.

first       binaries from merged slots, by a search where they are few, by diving else (`solvers.general.diving`)
counts      whole numbers of the first stage from more groups of slots, with the binaries held
parts       every slot, part by part; the first stage may grow (`solvers.general.rolling`)
refined     counts again, with each slot apart of the parts that needed more of the first stage than merged slots had said
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import NONE, Merged, discounted
from solvers.general.copy_prices import copy_prices
from solvers.general.counting import Counting
from solvers.general.diving import Dived, dive
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.merging import Merging
from solvers.general.rolling import GROWS_MUCH, Piece, Rolling
from solvers.general.settings import GeneralSettings
from solvers.general.structure import Structure
from solvers.general.swapping import swapped
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.mip import solve as solve_mip
from solvers.program import Arrays

NAMED, TOLD = 3, 5e-4  # parts that are named, and the share of the first stage from which on one is


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
        self._merging, self.structure = merging, structure
        self._options, self._begin, self._settings = options, begin, settings
        self._kept: Bools = np.ones(len(structure.cost), dtype=bool)  # columns that a first stage may use
        self._price = np.zeros(len(structure.cost))  # price of copies after failures, while parts are decided
        self._grew: Ints = NONE  # slots of the parts that needed more of the first stage
        self._expected: Floats = np.zeros(len(structure.cost))  # what the parts began from
        self._parts_s = 0.0  # time that they took [s]
        self._alone, self._refinements = merging.kept.apart, 0
        self._failures = merging.kept.kept  # [failures, slots] in programs for counts
        self.infeasible = False
        """Whether a part of the calendar has no solution whatever is held."""
        self.finer: Merged | None = None
        """The program over more groups of slots, which the counts are taken from."""
        if settings.bound_columns > settings.first_stage_columns:
            self.finer = merging.finer(merging.kept, settings)

    def plan(self, found: MergedLp) -> Floats | None:
        """Choose the first stage on merged slots, then decide each part; again with what the parts could not do, where rows stay wrong.

        A plan that is far above its own first stage is returned after a second attempt only.
        """
        settings, options, begin = self._settings, self._options, self._begin
        self._price = copy_prices(self.structure, found.merged.spread_duals(found.duals))
        kept = _restricted(found, settings)
        self._kept = found.merged.spread(kept)
        arrays = found.merged.arrays
        merged = replace(found.merged, arrays=replace(arrays, upper=np.where(kept, arrays.upper, arrays.lower)))
        finer, chosen, after = self.finer, None, None
        if (found.merged.deferred & ~self._merging.kept.deferred).any():
            columns, least = settings.first_stage_columns, settings.least_groups
            after = self._merging.merged(columns, self._merging.kept, least=least)
        for attempt in range(settings.attempts):
            left = options.left_s(begin)
            if left <= 0:
                return None
            if attempt % settings.recounts == 0 or finer is None:
                limit_s = settings.first_stage_share * left
                chosen = self._first_stage(replace(found, merged=merged), kept, after, limit_s)
            expected = merged.spread(found.x) if chosen is None else chosen  # parts choose what the search did not
            x, wrong = self._in_parts(expected, None if chosen is None else finer, chosen is not None)
            if self.infeasible:
                return None
            if x is not None or not wrong.any():
                return x if x is None or not self._is_far(x) else self._second(x)
            say(options, f"{int((wrong > 0).sum())} rows stay wrong in attempt {attempt + 1}")
            merged = discounted(merged, self.structure, wrong)
            finer = None if finer is None else discounted(finer, self.structure, wrong)
            after = None if after is None else discounted(after, self.structure, wrong)
        return None

    def _first_stage(self, found: MergedLp, kept: Bools, after: Merged | None, limit_s: float) -> Floats | None:
        """Choose the first stage of a merged program: by a search where it is small, by diving else; returns all columns.

        `after`: the program with rows of failures, where that of `found` has none. Binaries that failures do not touch are decided without them,
        the others with them.
        """
        whole, begin = found.merged if after is None else after, time.perf_counter()
        if len(whole.cost) <= self._settings.searched_columns:
            gap = max(self._options.gap, self._settings.first_stage_gap)
            search = replace(self._options, gap=gap, time_limit_s=limit_s, progress=None, method="direct", target=None)
            x = solve_mip(Piece(_closed(whole, self._kept)), whole.cost, "min", search, polished=False).x
            return None if x is None else whole.spread(x)

        def left_s() -> float:
            return self._options.noted(limit_s - (time.perf_counter() - begin))

        untouched = np.ones(len(found.x), dtype=bool)
        untouched[found.merged.columns.number[self._merging.waiting.touched]] = False
        least, among = float(found.merged.cost @ found.x), None if after is None else untouched
        dived = dive(found, kept, left_s, among)
        if dived is not None and relative_gap(float(found.merged.cost @ dived.found.x), least) > max(
            self._options.gap, self._settings.first_stage_gap
        ):
            dived = swapped(found, kept, dived, left_s, among)
        if dived is not None and after is not None:
            cost = float(found.merged.cost @ dived.found.x)
            say(self._options, f"first stage {cost:,.6g} with binaries whole that failures do not touch")
            solved = solve_merged_lp(_bounded(after, self.structure, dived), max(left_s(), 0.0))
            dived = None if solved is None else dive(solved, np.ones(len(solved.x), dtype=bool), left_s)
        if dived is None:
            return None
        merged = dived.found.merged
        say(self._options, f"first stage {float(merged.cost @ dived.found.x):,.6g} with all of them whole")
        return merged.spread(dived.whole())

    def refined(self, x: Floats) -> tuple[Floats, Merged | None]:
        """Choose counts again, slots of parts that needed more apart.

        Returns the better plan, and the program over these groups of slots; None where there are no such parts, or no time.
        """
        alone = np.union1d(self._alone, self._grew)
        self._refinements += 1
        done = len(alone) == len(self._alone) or self._refinements > self._settings.refinements
        if done or self._options.left_s(self._begin) <= 0:
            return x, None
        return self._again(x, alone)

    def _again(self, x: Floats, alone: Ints) -> tuple[Floats, Merged]:
        """Choose counts and decide parts again with some slots apart; returns the better plan, and the program over these groups of slots."""
        cost, self._alone = self.structure.cost, alone
        light = self._merging.waiting.lighter(self._failures)
        merged = self._merging.finer(light, self._settings, np.union1d(alone, light.apart))
        other, _ = self._in_parts(x, merged, whole=True)
        if other is not None:
            say(self._options, f"plan {float(cost @ other):,.6g} with {len(alone)} slots apart")
            x = other if float(cost @ other) < float(cost @ x) else x
        return x, merged

    def _is_far(self, x: Floats) -> bool:
        """Tell whether a plan costs more than its own first stage said by more than the gap asked and than one part may add."""
        said = float(self.structure.cost @ self._expected)
        return float(self.structure.cost @ x) - said > max(self._options.gap, GROWS_MUCH) * abs(said)

    def _second(self, x: Floats) -> Floats:
        """Make a second attempt at a plan far above its first stage, with the slots apart of parts that grew, or else cost most beyond what was expected.

        Where time is up, it has as much more as the parts took in the first one.
        """
        structure, until_s = self.structure, time.perf_counter() - self._begin + self._parts_s
        self._options = replace(self._options, time_limit_s=max(self._options.time_limit_s, until_s))
        alone = np.union1d(self._alone, self._grew)
        if len(alone) == len(self._alone):
            timed = structure.slot >= 0
            beyond = np.bincount(structure.slot[timed], (structure.cost * (x - self._expected))[timed])
            beyond[alone] = -np.inf
            alone = np.union1d(alone, np.flatnonzero(structure.run == structure.run[int(np.argmax(beyond))]))
        say(self._options, "plan far above its first stage: a second attempt")
        self._refinements += 1
        return self._again(x, alone)[0]

    def _in_parts(self, expected: Floats, finer: Merged | None, whole: bool) -> tuple[Floats | None, Floats]:
        """Choose counts on a finer merged program, if there is one, and decide each part; returns what `Rolling.plan` does.

        `whole`: whether binaries of the first stage are; parts leave those at 0 there then, as far as they can.
        """
        if finer is not None:
            expected = self._counted(expected, finer)
            say(self._options, f"first stage {float(self.structure.cost @ expected):,.6g} with counts from more slots")
        begin, left = time.perf_counter(), max(self._options.left_s(self._begin), 0.0)
        parts = replace(self._options, gap=self._settings.part_gap, time_limit_s=left)
        self._expected = expected
        kept, arrays = self._kept, self.structure.arrays
        if whole:
            kept = kept & ~(self.structure.first & arrays.binary & (expected < 0.5))
        rolling = Rolling(self.structure, parts, kept, self._price)
        found = rolling.plan(expected)
        self.infeasible = rolling.infeasible
        self._parts_s = time.perf_counter() - begin
        say(self._options, _growth(rolling.growth))
        grew = (self.structure.part >= 0) & rolling.grew[self.structure.part]
        self._grew = np.unique(self.structure.slot[grew])
        self._failures = self._failures | self._merging.waiting.of(grew & self.structure.apart)
        return found

    def _counted(self, expected: Floats, finer: Merged) -> Floats:
        """Choose counts on a finer merged program, with the slots in which failures lack something; as expected where that has no solution in time."""
        begin, settings, waiting = time.perf_counter(), self._settings, self._merging.waiting
        limit_s = settings.merged_lp_share * max(self._options.left_s(self._begin), 0.0)

        def left_s() -> float:
            return self._options.noted(limit_s - (time.perf_counter() - begin))

        every = (left_s, lambda: self._options.left_s(self._begin))
        counting = Counting(self.structure, expected, self._kept, every, self._options, settings)
        solved = counting.relaxed(finer)
        if solved is None:
            return expected
        for _ in range(settings.failure_rounds if waiting else 0):
            lack = waiting.lacking(solved.merged.spread(solved.x), left_s)
            lack = np.where(self._failures, 0.0, lack)
            say(
                self._options, f"failures lack something in {int((lack > settings.failures_lack).sum())} of their slots"
            )
            more = (lack > settings.failures_lack) & (lack == lack.max(axis=1, keepdims=True))  # the worst slot of each
            if not more.any():
                break
            self._failures = self._failures | more
            light = waiting.lighter(self._failures)
            again = counting.relaxed(self._merging.finer(light, settings))
            if again is None:
                break
            solved = again
        return counting.whole(solved)


def _restricted(found: MergedLp, settings: GeneralSettings) -> Bools:
    """Select the merged columns that a first stage may use: columns of other stages, and integers with a value or a small reduced cost."""
    integer = np.flatnonzero(found.merged.arrays.integer)
    used = found.x[integer] > settings.used
    rest = found.reduced[integer][~used]
    most = np.quantile(rest, settings.further_share) if len(rest) else 0.0
    kept = np.ones(len(found.x), dtype=bool)
    kept[integer] = used | (found.reduced[integer] <= most)
    return kept


def _closed(merged: Merged, kept: Bools) -> Arrays:
    """Return the arrays of a merged program with columns at their lower bound where those that they stand for are not kept."""
    arrays, closed = merged.arrays, np.zeros(len(merged.cost), dtype=bool)
    closed[merged.columns.number[~kept]] = True
    return replace(arrays, upper=np.where(closed, arrays.lower, arrays.upper))


def _bounded(merged: Merged, structure: Structure, dived: Dived) -> Merged:
    """Give columns of the first stage the bounds that a dive on another merged program left them."""
    first, number = np.flatnonzero(structure.first), merged.columns.number
    lower, upper = merged.arrays.lower.copy(), merged.arrays.upper.copy()
    lower[number[first]] = dived.found.merged.spread(dived.lower)[first]
    upper[number[first]] = dived.found.merged.spread(dived.upper)[first]
    return replace(merged, arrays=replace(merged.arrays, lower=lower, upper=upper))


def _growth(growth: Floats) -> str:
    """Say by how much the parts made the first stage dearer, those that did most by name [parts]."""
    most = np.argsort(-growth, kind="stable")[:NAMED]
    named = [f"part {p + 1} {growth[p]:+.2%}" for p in most.tolist() if growth[p] >= TOLD]
    return f"parts made the first stage {growth.sum():+.2%} dearer" + (": " + ", ".join(named) if named else "")


def say(options: Options, line: str) -> None:
    """Report progress."""
    if options.progress is not None:
        options.progress(line)
