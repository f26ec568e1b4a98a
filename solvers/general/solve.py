"""Solve a large program of any blocks: merged slots for duals and the first stage, then its parts one by one, then better duals.

groups      which slots to merge, from the LP of few groups (`solvers.general.grouping`)
bound       Lagrangian relaxation of the whole program at the duals of merged slots (`solvers.general.dual_bound`), placed on single
            slots (`solvers.general.dual_placement`)
plan        a first stage from merged slots, then the parts of the calendar one by one (`solvers.general.planning`)
finer       the bound again, from more groups of slots
ascent      steps along the supergradient, after Polyak (1969), for as long as time is left and the gap is wider than asked
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.general.aggregation import Merged
from solvers.general.deferred_rows import lighter
from solvers.general.dual_bound import DualBound
from solvers.general.dual_placement import placed
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.merging import merging_of
from solvers.general.planning import Planner, say
from solvers.general.settings import SETTINGS, GeneralSettings
from solvers.general.structure import structure_of
from solvers.interface import Options, RawSolution
from solvers.mip import relative_gap
from solvers.program import Program


def solve_general(
    program: Program, objective: Floats, sense: str, slots: int, options: Options, settings: GeneralSettings = SETTINGS
) -> RawSolution:
    """Find a plan and a bound; either may be missing where time is up first. `slots`: number of slots of the program's columns."""
    begin = time.perf_counter()
    sign = -1.0 if sense == "max" else 1.0
    structure = structure_of(program, sign * np.asarray(objective, dtype=float), slots)
    relaxation, light = DualBound(structure), lighter(program, structure, slots)
    longest = replace(options.until_found(), longest_s=None)  # of each of its searches

    def bounded(merged: Merged, rough: bool) -> tuple[float, Floats | None, MergedLp | None]:
        solved = solve_merged_lp(merged, settings.merged_lp_share * longest.left_s(begin), rough=rough)
        if solved is None:
            return -math.inf, None, None
        spread = light.without(merged.spread_duals(solved.duals))
        both = (placed(structure, spread, relaxation.upper), spread)
        found, y = max(((relaxation.at(y, lambda: longest.left_s(begin))[0], y) for y in both), key=lambda one: one[0])
        say(options, f"bound {sign * found:,.6g} by {len(merged.cost):,} columns of merged slots")
        return found, y, solved

    say(options, f"{program.column_count:,} columns, taken apart into {structure.parts} parts")
    merging = merging_of(program, light, slots, settings, settings.merged_lp_share * longest.left_s(begin))
    columns = settings.first_stage_columns
    bound, y, solved = bounded(merging.merged(columns), rough=True)
    if solved is None:
        bound, y, solved = bounded(merging.merged(columns // settings.coarser), rough=True)
    x = None
    if solved is not None:
        planner = Planner(merging, structure, longest, begin, settings)
        x = planner.plan(solved)
        if x is not None:
            say(options, f"plan {sign * float(structure.cost @ x):,.6g}, every slot decided")
        finer = planner.finer if x is not None else None
        while x is not None and finer is not None and relative_gap(float(structure.cost @ x), bound) > options.gap:
            better, other, _ = bounded(finer, rough=False)
            bound, y = (better, other) if better > bound else (bound, y)
            if relative_gap(float(structure.cost @ x), bound) <= options.gap:
                break
            x, finer = planner.refined(x)
    value = math.inf if x is None else float(structure.cost @ x)
    if y is not None:
        bound = _ascent(relaxation, y, bound, value, options, begin, settings)
    found = None if x is None else sign * value
    proven = sign * bound if math.isfinite(bound) else None
    gap = None if found is None or proven is None else relative_gap(found, proven)
    ended = "limit"
    if gap is not None and gap <= options.gap * (1 + OPTIMAL_GAP):
        ended = "optimal" if gap <= OPTIMAL_GAP else "within_gap"
    return RawSolution(ended, found, proven, gap, x, time.perf_counter() - begin)


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
