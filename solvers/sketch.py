"""A plan and a bound for a program too large to be searched: the linear part over all slots, plans drawn from it, and the linear part
again from where the best of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.decomposition import Decomposition
from solvers.dive import Dive
from solvers.outcome import Options
from solvers.whole import WholePlan

FIRST, AGAIN = 12, 10  # rounds of the linear part before the first plan is drawn, and before each further one
DRAWN = 6  # plans, at most
LOST = 0.01  # how much dearer than the linear answer choices may become before they are given up, but for the last
SHARE = 0.1  # of the asked gap, that the linear part may leave


@dataclass(slots=True)
class Sketch:
    """`proven` holds for the full problem."""

    proven: float = -np.inf
    plan: WholePlan | None = None


def sketch(dec: Decomposition, options: Options, left: Callable[[], float]) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used."""
    found = Sketch()
    level = dec.relax(SHARE * options.gap, FIRST)
    if level is None:
        return found
    for number in range(DRAWN):
        found.proven = level.proven
        before = left()
        drawn = Dive(dec, level, options.gap, left, LOST if number < DRAWN - 1 else None)
        plan = drawn.run()
        took = before - left()
        better = plan is not None and (found.plan is None or plan.value < found.plan.value)
        if better:
            found.plan = plan
        value = np.inf if found.plan is None else found.plan.value
        dec.say(f"plan {number + 1}: value {value:.6g}, proven {level.proven:.6g}, {took:.1f} s")
        if (found.plan is not None and value - level.proven <= options.gap * abs(value)) or left() <= 0:
            break
        dec.resumed(level, *(drawn.linear or (drawn.level, None)))
        level = dec.search(level, SHARE * options.gap, AGAIN)
        found.proven = level.proven
        if (found.plan is not None and value - level.proven <= options.gap * abs(value)) or left() <= took:
            break
    return found
