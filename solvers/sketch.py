"""A plan and a bound for a program too large to be searched: the linear part over all slots, plans drawn from it, and the linear part
again from where the best of them is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.certificate import Prices, bound
from solvers.coarse import grouping, merged
from solvers.data import Ints
from solvers.decomposition import ROUNDS, WHOLE, Decomposition
from solvers.dive import Dive
from solvers.outcome import Options
from solvers.whole import WholePlan

FIRST, AGAIN = 32, 10  # rounds of the linear part before the first plan is drawn, and before each further one
LINEAR = 0.35  # of the time, that may pass before
DRAWN = 6  # plans, at most
LONGER = 1.3  # times what the longest plan took must be left for another
LARGE, MERGED = 4_000_000, 600_000  # slots times what each decides, from which on plans are made on merged slots, and about what is decided on these
BEFORE, ROUGH = 0.7, 0.01  # share of the time for that, and the gap asked for there
SHARE = 0.1  # of the asked gap, that the linear part may leave


@dataclass(slots=True)
class Sketch:
    """`proven` holds for the full problem, at these prices."""

    proven: float = -np.inf
    plan: WholePlan | None = None
    prices: Prices | None = None

    def near(self, proven: float, gap: float) -> bool:
        return self.plan is not None and self.plan.value - proven <= gap * abs(self.plan.value)


def sketch(dec: Decomposition, options: Options, left: Callable[[], float]) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used."""
    each = len(dec.view.serving) + len(dec.view.arc_demand)
    if dec.view.slots * each <= LARGE:
        return _slot_by_slot(dec, options, left)
    return _on_merged_slots(dec, options, left, grouping(dec.view, max(MERGED // each, 1)))


def _on_merged_slots(dec: Decomposition, options: Options, left: Callable[[], float], group: Ints) -> Sketch:
    """Planned on merged slots; then over all slots, with the choices made."""
    began, capacity = left(), dec.data.point_capacity.copy()
    capacity[np.setdiff1d(np.flatnonzero(dec.data.point_job >= 0), dec.view.training)] = 0.0
    data = replace(merged(dec.data, group), point_capacity=capacity)
    few = Decomposition(data, dec.functional, dec.build, dec.threads, dec.say, lambda: left() - (1 - BEFORE) * began)
    dec.say(f"{dec.view.slots} slots merged to {few.view.slots}")
    drawn = _slot_by_slot(few, replace(options, time_limit_s=BEFORE * began, gap=max(options.gap, ROUGH)), few.left)
    found = Sketch()
    if drawn.prices is not None:
        rows = np.array([drawn.prices.rows[few.row_of[key]] if key in few.row_of else 0.0 for key in dec.whole.keys])
        found.prices = drawn.prices.spread(group, dec.view.seconds, rows)
        found.proven = bound(dec.view, dec.whole, dec.power_limit, found.prices).value
        dec.say(f"over all slots: proven {found.proven:.6g}")
    if drawn.plan is not None:
        master, point = drawn.plan.level.master, drawn.plan.point
        level = dec.level(master.lots, master.places[point.structure[master.structure.columns["y"][master.places]] > WHOLE])
        found.plan = Dive(dec, level, options.gap, options.seed, left).over_all_slots(drawn.plan, group)
    return found


def _slot_by_slot(dec: Decomposition, options: Options, left: Callable[[], float]) -> Sketch:
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
    found.proven, found.prices = level.proven, level.prices
    return found
