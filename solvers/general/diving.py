"""Choose the first stage by diving: solve the LP of the merged program, fix binaries near 1 or 0, and solve it again until none is fractional.

Counts stay as the LP has them: the parts of the calendar make them whole (`solvers.general.rolling`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.general.merged_lp import MergedLp, solve_merged_lp

NEAR_ONE, NEAR_ZERO = 0.7, 0.02  # values of a binary from which on, and up to which, it is fixed
AT_ONCE = 0.3  # of the binaries above 0, those fixed at 1 in a round, besides those near 1
AT_LEAST = 3  # of them, where there are so many
WHOLE_TOL = 1e-5


def dive(found: MergedLp, kept: Bools, left_s: Callable[[], float]) -> Floats | None:
    """Return the columns of the merged program with all binaries whole; None where a fixing has no solution.

    `kept`: which columns may be above their lower bound. A binary whose fixing at 1 leaves no solution is fixed at 0, once in a row. Where
    time is up first, binaries that are fractional then stay at 0, so that the parts choose among them.
    """
    arrays = found.merged.arrays
    lower, upper = arrays.lower.copy(), np.where(kept, arrays.upper, arrays.lower)
    binary = arrays.integer & (arrays.lower >= -WHOLE_TOL) & (arrays.upper <= 1 + WHOLE_TOL)
    last: Bools | None = None  # binaries fixed at 1 last
    x = found.x
    while left_s() > 0:
        solved = solve_merged_lp(replace(found.merged, arrays=replace(arrays, lower=lower, upper=upper)), left_s())
        if solved is None:
            if left_s() <= 0:
                break
            if last is None:
                return None
            few = np.flatnonzero(last)
            if len(few) > 1:  # take back all but the largest
                few = few[np.argsort(-x[few], kind="stable")[1:]]
                lower[few], last[few] = arrays.lower[few], False
                continue
            lower[few], upper[few], last = arrays.lower[few], arrays.lower[few], None
            continue
        x = solved.x
        open_ = binary & (lower < upper)
        if not (open_ & (np.abs(x - np.round(x)) > WHOLE_TOL)).any():
            return np.where(binary, np.round(x), x)
        up, down = open_ & (x >= NEAR_ONE), open_ & (x <= NEAR_ZERO)
        fractional = np.flatnonzero(open_ & (x > NEAR_ZERO))
        most = max(int(AT_ONCE * len(fractional)), AT_LEAST)
        up[fractional[np.argsort(-x[fractional], kind="stable")[:most]]] = True
        lower[up], upper[down], last = 1.0, 0.0, up
    return np.where(binary, np.floor(x + WHOLE_TOL), x)
