"""A plan and a bound for a program too large to be searched: the linear part over all slots, plans drawn from it, and the linear part
again from where the best of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.decomposition import ROUNDS, Decomposition
from solvers.dive import Dive
from solvers.outcome import Options
from solvers.whole import WholePlan

FIRST, AGAIN = 32, 10  # rounds of the linear part before the first plan is drawn, and before each further one
LINEAR = 0.35  # of the time, that may pass before
DRAWN = 6  # plans, at most
LONGER = 1.3  # times what the longest plan took must be left for another
SHARE = 0.1  # of the asked gap, that the linear part may leave


@dataclass(slots=True)
class Sketch:
    """`proven` holds for the full problem."""

    proven: float = -np.inf
    plan: WholePlan | None = None

    def near(self, proven: float, gap: float) -> bool:
        return self.plan is not None and self.plan.value - proven <= gap * abs(self.plan.value)


def sketch(dec: Decomposition, options: Options, left: Callable[[], float]) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used."""
    found, until = Sketch(), dec.left
    dec.left = lambda: until() - (1 - LINEAR) * options.time_limit_s
    level = dec.relax(SHARE * options.gap, FIRST)
    dec.left = until
    if level is None:
        return found
    took = 0.0
    for number in range(DRAWN):
        before, known = left(), len(level.master.kept)
        drawn = Dive(dec, level, options.gap, options.seed, left)
        plan = drawn.run()
        took = max(took, before - left())
        if plan is not None and (found.plan is None or plan.value < found.plan.value):
            found.plan = plan
        dec.say(f"plan {number + 1}: value {np.inf if found.plan is None else found.plan.value:.6g}, proven {level.proven:.6g}")
        if found.near(level.proven, options.gap) or left() <= 0:
            break
        dec.resumed(level, *(drawn.linear or (drawn.level, None)), known)
        last = found.plan is not None and left() <= LONGER * took  # no time for another: all that is left for the bound
        level = dec.search(level, SHARE * options.gap, ROUNDS if last else AGAIN, found.plan.value * (1 - options.gap) if found.plan else np.inf)
        if last or found.near(level.proven, options.gap):
            break
    found.proven = level.proven
    return found
