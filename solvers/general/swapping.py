"""Improve the first stage of a dive: of binaries of which one is chosen, such as the places of a job, another one where that is cheaper.

One set of binaries after the other is freed while the others stay as chosen; the LP, in which all further binaries are relaxed, names the
ones to try. A dive with these choices fixed follows. The dive alone fixes what the LP mixes, and cannot take it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Ints
from solvers.general.diving import Dived, dive
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.program import Arrays

TRIED = 3  # others of a set that are tried, those of the largest values
GAINS = 1e-4  # share of the value by which a choice must be cheaper
USED = 1e-3  # value of a binary in the LP from which on it may be tried


def sets_of_one(arrays: Arrays) -> list[Ints]:
    """Find the sets of binaries of which a row asks for exactly one."""
    binary = arrays.binary
    by_row, found = arrays.matrix.tocsr(), []
    for row in np.flatnonzero((arrays.row_lower == arrays.row_upper) & (arrays.row_lower > 0.0)):
        inside = slice(by_row.indptr[row], by_row.indptr[row + 1])
        columns, values = by_row.indices[inside], by_row.data[inside]
        if len(columns) > 1 and binary[columns].all() and (values == arrays.row_lower[row]).all():
            found.append(columns.astype(np.int64))
    return found


def swapped(
    found: MergedLp, kept: Bools, dived: Dived, left_s: Callable[[], float], among: Bools | None = None
) -> Dived:
    """Return a dive with cheaper choices in sets of one, or the one given, where there are none in time.

    `kept`: which columns may be above their lower bound. `among`: as in `dive`.
    """
    arrays, cost = found.merged.arrays, found.merged.cost
    sets = sets_of_one(arrays)
    sets = [mine for mine in sets if among is None or among[mine].all()]
    chosen = [int(mine[np.argmax(dived.found.x[mine])]) for mine in sets]
    allowed = np.where(kept, arrays.upper, arrays.lower)

    def fixed(choices: list[int], free: int = -1) -> MergedLp:
        """Fix the chosen binaries at 1 and others of their sets at 0, but for one set."""
        lower, upper = arrays.lower.copy(), allowed.copy()
        for s, (mine, choice) in enumerate(zip(sets, choices, strict=True)):
            if s != free:
                upper[mine] = 0.0
                lower[choice] = upper[choice] = 1.0
        return replace(found, merged=replace(found.merged, arrays=replace(arrays, lower=lower, upper=upper)))

    def solved(choices: list[int], free: int = -1) -> MergedLp | None:
        return solve_merged_lp(fixed(choices, free).merged, left_s()) if left_s() > 0 else None

    begin = value = float(cost @ dived.found.x)
    rested, s = 0, 0  # sets in a row without a better choice
    while rested < len(sets):
        mine = sets[s]
        relaxed = solved(chosen, s)
        if relaxed is None:
            break
        rested += 1
        others = mine[np.argsort(-relaxed.x[mine], kind="stable")]
        others = others[(relaxed.x[others] > USED) & (others != chosen[s])][:TRIED]
        for choice in others if float(cost @ relaxed.x) < value * (1 - GAINS) else ():
            trial = solved([*chosen[:s], int(choice), *chosen[s + 1 :]])
            if trial is not None and float(cost @ trial.x) < value * (1 - GAINS):
                value, rested = float(cost @ trial.x), 1
                chosen[s] = int(choice)
        s = (s + 1) % len(sets)
    if value == begin:
        return dived
    better = dive(fixed(chosen), kept, left_s, among) if left_s() > 0 else None
    return dived if better is None or float(cost @ better.found.x) >= begin else better
