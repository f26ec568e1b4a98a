"""Solve a large program of any blocks: merged slots for duals and the first stage, then its parts one by one, then better duals.

bound       Lagrangian relaxation of the whole program at the duals of merged slots (`solvers.general.dual_bound`), placed on single
            slots (`solvers.general.dual_placement`)
plan        binaries from merged slots, counts from more groups of slots, then the parts of the calendar one by one
            (`solvers.general.rolling`)
finer       the bound again, from more groups of slots
ascent      steps along the supergradient, after Polyak (1969), for as long as time is left and the gap is wider than asked
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.general.aggregation import NONE, Merged, discounted, groups_of, merge
from solvers.general.deferred_rows import Lighter, lighter
from solvers.general.diving import dive
from solvers.general.dual_bound import DualBound
from solvers.general.dual_placement import placed
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.rolling import Piece, Rolling
from solvers.general.structure import Structure, structure_of
from solvers.interface import Options, RawSolution
from solvers.mip import relative_gap
from solvers.mip import solve as solve_mip
from solvers.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralSettings:
    """Sizes and shares of time of the steps."""

    first_stage_columns: int = 16_000
    """Columns of the merged program that the first stage is chosen on, about."""
    bound_columns: int = 40_000
    """The same, of the one that the duals come from, once there is a plan."""
    merged_lp_share: float = 0.3
    """Of the time left, for the LP of a merged program."""
    first_stage_share: float = 0.35
    """Of the time left then, for its first stage."""
    searched_columns: int = 3_000
    """Columns up to which the first stage is searched for, not dived for."""
    used: float = 1e-3
    """Value of an integer in the LP from which on a first stage may use it."""
    further_share: float = 0.2
    """Of the other integers, those of the smallest reduced costs, which it may use too."""
    attempts: int = 6
    """First stages that are tried, with less said of what slots can do each time."""
    recounts: int = 3
    """Of them, those for which binaries stay as they were chosen, one after the other."""
    rounds_up: int = 5
    """LPs over more groups of slots, after each of which counts are rounded up."""
    rounded_share: float = 0.4
    """Of the fractional counts, those that are rounded up in a round."""
    first_stage_gap: float = 0.005
    """Gap to which the first stage is searched for."""
    coarser: int = 4
    """By how much fewer columns the first stage is chosen on where the LP of a merged program does not end."""
    part_gap: float = 0.001
    """Gap to which each part is solved."""
    step: float = 0.1
    """First factor of a step of the ascent; halved where a step fails, longer by half where one succeeds."""
    least_step: float = 0.002
    """Factor at which the ascent ends."""


SETTINGS = GeneralSettings()


def solve_general(
    program: Program, objective: Floats, sense: str, slots: int, options: Options, settings: GeneralSettings = SETTINGS
) -> RawSolution:
    """Find a plan and a bound; either may be missing where time is up first. `slots`: number of slots of the program's columns."""
    begin = time.perf_counter()
    sign = -1.0 if sense == "max" else 1.0
    structure = structure_of(program, sign * np.asarray(objective, dtype=float), slots)
    relaxation, longest, light = DualBound(structure), options.until_found(), lighter(program, structure, slots)
    options = replace(options, longest_s=None)  # of each of its searches

    def bounded(columns: int) -> tuple[float, Floats | None, MergedLp | None]:
        merged = _merged(program, light, slots, columns)
        solved = solve_merged_lp(merged, settings.merged_lp_share * longest.left_s(begin))
        if solved is None:
            return -math.inf, None, None
        spread = light.without(merged.spread_duals(solved.duals))
        both = (placed(structure, spread, relaxation.upper), spread)
        found, y = max(((relaxation.at(y, lambda: longest.left_s(begin))[0], y) for y in both), key=lambda one: one[0])
        _say(options, f"bound {sign * found:,.6g} by {len(merged.cost):,} columns of merged slots")
        return found, y, solved

    _say(options, f"{program.column_count:,} columns, taken apart into {structure.parts} parts")
    bound, y, solved = bounded(settings.first_stage_columns)
    if solved is None:
        bound, y, solved = bounded(settings.first_stage_columns // settings.coarser)
    x = None
    if solved is not None:
        finer = None
        if settings.bound_columns > settings.first_stage_columns:
            finer = _merged(program, light, slots, settings.bound_columns)
        x = _plan(solved, finer, structure, longest, begin, settings)
    value = math.inf if x is None else float(structure.cost @ x)
    if x is not None:
        _say(options, f"plan {sign * value:,.6g}, every slot decided")
        if settings.bound_columns > settings.first_stage_columns and relative_gap(value, bound) > options.gap:
            better, other, _ = bounded(settings.bound_columns)
            bound, y = (better, other) if better > bound else (bound, y)
    if y is not None:
        bound = _ascent(relaxation, y, bound, value, options, begin, settings)
    found = None if x is None else sign * value
    proven = sign * bound if math.isfinite(bound) else None
    gap = None if found is None or proven is None else relative_gap(found, proven)
    ended = "limit"
    if gap is not None and gap <= options.gap * (1 + OPTIMAL_GAP):
        ended = "optimal" if gap <= OPTIMAL_GAP else "within_gap"
    return RawSolution(ended, found, proven, gap, x, time.perf_counter() - begin)


def _merged(program: Program, light: Lighter, slots: int, columns: int) -> Merged:
    """Merge slots to a program of about so many columns."""
    structure = light.structure
    timed = max(int(((structure.slot >= 0) & (np.diff(structure.arrays.matrix.indptr) > 0)).sum()), 1)
    most = max(columns * slots // timed, 1)
    return merge(program, structure, groups_of(structure, slots, most, light.busiest if most > 1 else NONE))


def _restricted(found: MergedLp, settings: GeneralSettings) -> Bools:
    """Select the merged columns that a first stage may use: those of other stages, and integers with a value or a small reduced cost."""
    integer = np.flatnonzero(found.merged.arrays.integer)
    used = found.x[integer] > settings.used
    rest = found.reduced[integer][~used]
    most = np.quantile(rest, settings.further_share) if len(rest) else 0.0
    kept = np.ones(len(found.x), dtype=bool)
    kept[integer] = used | (found.reduced[integer] <= most)
    return kept


def _plan(
    found: MergedLp,
    finer: Merged | None,
    structure: Structure,
    options: Options,
    begin: float,
    settings: GeneralSettings,
) -> Floats | None:
    """Choose the first stage on merged slots, then decide each part; again with what the parts could not do, where rows stay wrong.

    `finer`: the program over more groups of slots, which the counts are taken from.
    """
    kept = _restricted(found, settings)
    arrays = found.merged.arrays
    merged = replace(found.merged, arrays=replace(arrays, upper=np.where(kept, arrays.upper, arrays.lower)))
    chosen: Floats | None = None
    for attempt in range(settings.attempts):
        left = options.left_s(begin)
        if left <= 0:
            return None
        if attempt % settings.recounts == 0 or finer is None:
            chosen = _first_stage(merged, found, kept, settings.first_stage_share * left, options, settings)
        expected = merged.spread(found.x if chosen is None else chosen)  # parts choose what the search did not
        limit_s = max(options.left_s(begin), 0.0)
        if finer is not None and chosen is not None:
            limit_s *= settings.merged_lp_share
            expected = _recounted(finer, structure, expected, merged.spread(kept), limit_s, settings)
        parts = replace(options, gap=settings.part_gap, time_limit_s=max(options.left_s(begin), 0.0))
        x, wrong = Rolling(structure, parts, merged.spread(kept)).plan(expected)
        if x is not None or not wrong.any():
            return x
        _say(options, f"{int((wrong > 0).sum())} rows stay wrong in attempt {attempt + 1}")
        merged = discounted(merged, structure, wrong)
        finer = None if finer is None else discounted(finer, structure, wrong)
    return None


def _recounted(
    finer: Merged, structure: Structure, expected: Floats, kept: Bools, limit_s: float, settings: GeneralSettings
) -> Floats:
    """Choose counts by the LP over more groups of slots, with the binaries [columns] as expected; returns all columns.

    Round after round, counts of the largest fractions are rounded up, so that others need less. What is expected stays where the LP has no
    solution in time.
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
    for _ in range(settings.rounds_up):
        left = limit_s - (time.perf_counter() - begin)
        program = replace(finer, arrays=replace(finer.arrays, lower=lower, upper=upper))
        solved = solve_merged_lp(program, left) if left > 0 else None
        if solved is None:
            return best
        best = np.where(binary, expected, finer.spread(solved.x))
        fraction = solved.x[counts] - np.floor(solved.x[counts] + settings.used)
        open_ = counts[(fraction > settings.used) & (np.ceil(solved.x[counts]) <= upper[counts])]
        if not len(open_):
            return best
        order = np.argsort(np.floor(solved.x[open_]) - solved.x[open_], kind="stable")
        up = open_[order[: max(math.ceil(settings.rounded_share * len(open_)), 1)]]
        lower[up] = np.ceil(solved.x[up] - settings.used)
    return best


def _first_stage(
    merged: Merged, found: MergedLp, kept: Bools, limit_s: float, options: Options, settings: GeneralSettings
) -> Floats | None:
    """Choose the first stage of a merged program: by a search where it is small, by diving else."""
    if len(merged.cost) <= settings.searched_columns:
        gap = max(options.gap, settings.first_stage_gap)
        search = replace(options, gap=gap, time_limit_s=limit_s, progress=None, method="direct", target=None)
        return solve_mip(Piece(merged.arrays), merged.cost, "min", search, polished=False).x
    begin = time.perf_counter()
    return dive(replace(found, merged=merged), kept, lambda: limit_s - (time.perf_counter() - begin))


def _ascent(
    relaxation: DualBound,
    y: Floats,
    bound: float,
    value: float,
    options: Options,
    begin: float,
    settings: GeneralSettings,
) -> float:
    """Raise the bound by supergradient steps towards the value of the plan; returns the best bound."""
    if not math.isfinite(bound) or not math.isfinite(value):
        return bound
    best, centre, factor = bound, y, settings.step
    slope: tuple[Floats, float] | None = None
    while options.left_s(begin) > 0 and relative_gap(value, best) > options.gap and factor > settings.least_step:
        if slope is None:
            _, x = relaxation.at(centre, lambda: options.left_s(begin))
            slope = relaxation.slope(centre, x)
        direction, norm = slope
        if norm <= 0:
            break
        trial = relaxation.projected(centre + factor * (value - best) / norm * direction)
        found, x = relaxation.at(trial, lambda: options.left_s(begin))
        if found > best:
            best, centre, slope, factor = found, trial, relaxation.slope(trial, x), 1.5 * factor
            continue
        factor *= 0.5
    return best


def _say(options: Options, line: str) -> None:
    if options.progress is not None:
        options.progress(line)
