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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.general.bounding import Bounding
from solvers.general.deferred_rows import DeferrableRows
from solvers.general.dual_bound import DualBound
from solvers.general.merged_lp import MergedLp
from solvers.general.merging import Merging, merging_of
from solvers.general.planning import Planner, say
from solvers.general.rolling import Rolling
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
    waiting = DeferrableRows(program, structure, slots)
    longest = replace(options.until_found(), longest_s=None)  # options for each of its searches
    bounding = Bounding(DualBound(structure), sign, longest, begin, settings)
    say(options, f"{program.column_count:,} columns, taken apart into {structure.parts} parts")
    merging = merging_of(program, waiting, slots, settings, settings.merged_lp_share * longest.left_s(begin))
    columns = settings.first_stage_columns
    merged = merging.merged(columns, merging.kept, least=settings.least_groups)
    if merging.waiting and merged.occurring() > settings.together_columns:
        merged = merging.merged(columns, merging.bare, least=settings.least_groups)
    solved = bounding.relaxed(merged, rough=True)
    if solved is None:
        solved = bounding.relaxed(merging.merged(columns // settings.coarser, merging.bare), rough=True)
    x, infeasible = None, False
    if solved is not None:
        planner = Planner(merging, structure, longest, begin, settings)
        x = _planned(planner, solved, merging, bounding, options)
        infeasible = planner.infeasible
    else:
        rolling = Rolling(structure, longest, np.ones(len(structure.cost), dtype=bool))
        infeasible = rolling.has_none(range(structure.parts))
    if infeasible:
        return RawSolution("infeasible", None, None, None, None, time.perf_counter() - begin)
    value = math.inf if x is None else float(structure.cost @ x)
    bounding.climb(value, options.gap, options)
    found = None if x is None else sign * value
    proven = sign * bounding.bound if math.isfinite(bounding.bound) else None
    gap = None if found is None or proven is None else relative_gap(found, proven)
    ended = "limit"
    if gap is not None and gap <= options.gap * (1 + OPTIMAL_GAP):
        ended = "optimal" if gap <= OPTIMAL_GAP else "within_gap"
    return RawSolution(ended, found, proven, gap, x, time.perf_counter() - begin)


def _planned(
    planner: Planner, solved: MergedLp, merging: Merging, bounding: Bounding, options: Options
) -> Floats | None:
    """Find a plan, and raise the bound by more groups of slots, beside it where there are two threads; then refine both in turn."""
    cost, finer = planner.structure.cost, planner.finer
    bare = finer
    if finer is not None and merging.waiting and finer.occurring() > bounding.settings.together_columns:
        bare = merging.finer(merging.bare, bounding.settings)

    def proven(more: bool) -> None:
        bounding.raise_by(solved)
        if more and bare is not None:
            bounding.raise_by(bounding.relaxed(bare, rough=False))

    with ThreadPoolExecutor(1) as beside:
        ahead = beside.submit(proven, True) if options.threads > 1 else None
        if ahead is None:
            proven(False)
        x = planner.plan(solved)
        if x is not None:
            say(options, f"plan {bounding.sign * float(cost @ x):,.6g}, every slot decided")
        if ahead is not None:
            ahead.result()
    if x is None:
        return None
    if ahead is None and bare is not None and relative_gap(float(cost @ x), bounding.bound) > options.gap:
        bounding.raise_by(bounding.relaxed(bare, rough=False))
    done = bare
    while finer is not None and relative_gap(float(cost @ x), bounding.bound) > options.gap:
        if finer is not done:
            bounding.raise_by(bounding.relaxed(finer, rough=False))
            if relative_gap(float(cost @ x), bounding.bound) <= options.gap:
                break
        x, finer = planner.refined(x)
    return x
