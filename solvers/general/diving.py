"""Choose the first stage by diving: solve the LP of the merged program, fix binaries near 1 or 0, and solve it again until none is fractional.

Each fixing is propagated through the rows (`solvers.general.propagation`), so that alternatives fall to 0 with the one that is chosen. Counts
stay as the LP has them: the parts of the calendar make them whole (`solvers.general.rolling`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import Merged
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.propagation import Propagation

NEAR_ONE, NEAR_ZERO = 0.7, 0.02  # values of a binary from which on, and up to which, it is fixed
AT_ONCE = 0.3  # share of the binaries above 0, those fixed at 1 in the first round, besides those near 1; twice the share in each further one
AT_LEAST = 3  # number among them, where there are as many
WHOLE_TOL = 1e-5


@dataclass(frozen=True, slots=True)
class Dived:
    """The last LP of a dive, and the bounds [merged columns] that it was solved with."""

    found: MergedLp
    lower: Floats
    upper: Floats

    def whole(self) -> Floats:
        """Return the columns, binaries that are still fractional at 0."""
        return np.where(binaries(self.found.merged), np.floor(self.found.x + WHOLE_TOL), self.found.x)


def binaries(merged: Merged) -> Bools:
    """Select the integers between 0 and 1 [merged columns]."""
    arrays = merged.arrays
    return arrays.integer & (arrays.lower >= -WHOLE_TOL) & (arrays.upper <= 1 + WHOLE_TOL)


def dive(found: MergedLp, kept: Bools, left_s: Callable[[], float], among: Bools | None = None) -> Dived | None:
    """Fix binaries until all are whole; None where nothing is left.

    `kept`: which columns may be above their lower bound. `among`: the binaries to decide, the others left as they are; none of them is
    then fixed at 0 for a small value, since others may need it. Where time is up first, binaries stay fractional.
    """
    arrays = found.merged.arrays
    bounds = Propagation(arrays, arrays.lower, np.where(kept, arrays.upper, arrays.lower))
    binary = binaries(found.merged) if among is None else binaries(found.merged) & among
    last, tol = found, WHOLE_TOL if among is None else NEAR_ZERO
    share = AT_ONCE
    while left_s() > 0:
        open_ = binary & (bounds.lower < bounds.upper)
        fractional = open_ & (np.abs(last.x - np.round(last.x)) > tol)
        if not fractional.any():
            return Dived(last, bounds.lower, bounds.upper)
        large = open_ & (last.x > NEAR_ZERO)
        order = np.flatnonzero(large if large.any() else fractional)
        order = order[np.argsort(-last.x[order], kind="stable")]
        down = np.flatnonzero(open_ & (last.x <= NEAR_ZERO)) if among is None else order[:0]
        solved = _round(bounds, last, order, down, share, left_s)
        if solved is None:
            return None
        last, share = solved, min(2 * share, 1.0)
    return Dived(last, bounds.lower, bounds.upper)


def _round(
    bounds: Propagation, last: MergedLp, order: Ints, down: Ints, share: float, left_s: Callable[[], float]
) -> MergedLp | None:
    """Fix a share of the binaries of `order` at 1, the binaries of `down` at 0; returns the LP, None where nothing is left.

    Where that has no solution, those at 0 are freed, then half of those at 1 in turn; a single one goes to 0.
    """
    most = max(int((last.x[order] >= NEAR_ONE).sum()), int(share * len(order)), AT_LEAST)
    before, solved = (bounds.lower, bounds.upper), None
    while left_s() > 0:
        bounds.lower, bounds.upper = before[0].copy(), before[1].copy()
        bounds.upper[down] = bounds.lower[down]
        done = _fixed(bounds, order, most)
        solved = None if done is None else _lp(last, bounds, left_s())
        if solved is not None or left_s() <= 0:
            break
        if len(down):
            down = down[:0]
        elif most > 1:
            most = max((most if done is None else min(most, done)) // 2, 1)
        else:
            bounds.lower, bounds.upper = before[0].copy(), before[1].copy()
            if not len(order) or not bounds.fix(int(order[0]), 0.0):
                return None
            before, order = (bounds.lower, bounds.upper), order[1:]
    if solved is None:
        bounds.lower, bounds.upper = before
    return last if solved is None else solved


def _fixed(bounds: Propagation, order: Ints, most: int) -> int | None:
    """Fix a number of binaries at 1, the first ones that are open and can be, those before that cannot at 0; returns how many, None where nothing is left."""
    done = 0
    for column in order.tolist():
        if done >= most:
            break
        if bounds.lower[column] == bounds.upper[column]:
            continue
        if bounds.fix(column, 1.0):
            done += 1
        elif not bounds.fix(column, 0.0):
            return None
    return done


def _lp(last: MergedLp, bounds: Propagation, left_s: float) -> MergedLp | None:
    arrays = replace(last.merged.arrays, lower=bounds.lower.copy(), upper=bounds.upper.copy())
    solved = solve_merged_lp(replace(last.merged, arrays=arrays), left_s)
    return None if solved is None else replace(solved, merged=last.merged)
