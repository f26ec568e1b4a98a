"""Sites, designs and places of jobs made whole on merged slots: step by step what the linear part nearly says, then exchanges that its
prices promise to be worth it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from solvers.certificate import Bound
from solvers.coarse import grouping
from solvers.data import Floats, Ints
from solvers.hourwise import carried
from solvers.interior import Inside, inside, taken_over
from solvers.start import ROUGH_LARGE, Linear, blocks, nearly

if TYPE_CHECKING:
    from solvers.decomposition import Decomposition

TOLERANCE = 5e-4  # of the value, how far from proven each look may be
FINER = 42  # merged slots
PARTS = 3  # of large questions: so much of what is open is decided at a time
CERTAIN = 0.05  # how near to whole what is taken as it is must be
SECOND = 0.1  # share of a job from which on its second place is tried as well
HOPELESS = 9.0  # of the value, that a step may cost: prices of what there is no room for grow beyond that soon
EXCHANGES = 12  # that are looked at before the choices are taken as they are
WORTH = 1e-4  # of the value, that an exchange must promise


@dataclass(frozen=True, slots=True)
class Chosen:
    """Bounds of the whole structure's columns that fix the choices, and the linear part on merged slots within them."""

    least: Floats
    most: Floats
    found: Inside


class Choices:
    def __init__(self, dec: Decomposition, linear: Linear, left: Callable[[], float]):
        self.dec, self.linear, self.left = dec, linear, left
        self.group = linear.group if linear.large else grouping(dec.view, FINER)
        self.view = dec.view.merged(self.group)
        whole = dec.whole
        counted = np.zeros(whole.size, dtype=bool)
        place = whole.columns["n"]
        counted[place[place >= 0]] = True
        self.integer = whole.integer & ~counted
        self.assigned = np.zeros(whole.size, dtype=np.int64) - 1  # job of each choice of a place
        y = whole.columns["y"]
        self.assigned[y[y >= 0]] = dec.data.point_job[y >= 0]
        self.lots = np.arange(len(dec.data.lot_site))

    def run(self, free: np.ndarray) -> Chosen | None:
        """The choices made but for those that are `free` to stay linear; None where none were found."""
        whole = self.dec.whole
        self.fixing = self.integer & ~free
        values = carried(self.linear.found.blocks.structure, whole, self.linear.found.point().structure)
        self.unsure = (values > CERTAIN / 5) & (values < 1 - CERTAIN / 5)
        places = nearly(self.dec, self.linear.found, self.linear.at)
        most = whole.most.copy()
        y = whole.columns["y"]
        left_out = np.setdiff1d(np.flatnonzero(y >= 0), places)
        most[y[left_out]] = 0.0
        first, least = np.unique(self.group, return_index=True)[1], np.zeros(whole.size)
        state = Chosen(least, most, self.linear.found) if self.linear.large else self._look(least, most, self.linear.merged, onto=self.linear.group[first])
        while state is not None:
            decided, options = self._next(state)
            if decided is None:
                break
            cutoff, better = state.found.value + HOPELESS * max(abs(state.found.value), 1.0), None
            for bounds in options:
                look = self._look(*bounds, state.found, cutoff)
                if look is not None and look.found.value < cutoff:
                    better, cutoff = look, look.found.value
            if better is None:  # not there
                self.dec.say(f"choices: no room, {decided} open")
                least, most = self._without(state, options)
                better = None if np.array_equal(most, state.most) else self._look(least, most, state.found)
            state = better
            if state is not None:
                self.dec.say(f"choices: {state.found.value:.6g}, {decided} open")
        return state if state is None or self.linear.large else self._exchanged(state)

    def values(self, chosen: Chosen) -> Floats:
        """Of the whole structure's columns."""
        return carried(chosen.found.blocks.structure, self.dec.whole, chosen.found.point().structure)

    def _look(self, least: Floats, most: Floats, start: Inside, cutoff: float = np.inf, onto: Ints | None = None) -> Chosen | None:
        """The linear part within bounds; `onto` [slots]: those of the start, if it has others."""
        dec, opened = self.dec, np.append(most, 1.0)[self.dec.whole.columns["open"]] > 0
        least, most = least.copy(), most.copy()
        y = dec.whole.columns["y"]
        shut = np.flatnonzero((y >= 0) & ~opened[dec.view.site])
        most[y[shut]] = 0.0
        lots = self.lots[opened[dec.data.lot_site]]
        places = dec.view.training[most[y[dec.view.training]] > 0]
        count = np.bincount(dec.data.point_job[places], minlength=len(dec.data.job_work))
        if (count == 0).any() or self.left() <= 0:
            return None
        program = blocks(dec, self.view, lots, places, least, most)
        same = np.arange(self.view.slots) if onto is None else onto
        found = inside(program, ROUGH_LARGE if self.linear.large else TOLERANCE, self.left, taken_over(start.blocks, start.warm, program, same), cutoff)
        return None if found is None else Chosen(least, most, found)

    def _next(self, state: Chosen) -> tuple[int | None, list[tuple[Floats, Floats]]]:
        """(how many choices are open, the bounds to look at next): what is certain as it is, and of what is not the most certain both ways."""
        values, least, most = self.values(state), state.least.copy(), state.most.copy()
        free = self.fixing & (least < most)
        jobs, single = self.assigned, free & (self.assigned < 0)
        up, down = free & (values >= 1 - CERTAIN), single & (values <= CERTAIN)
        least[up], most[down] = 1.0, 0.0
        for column in np.flatnonzero(up & (jobs >= 0)):
            rivals = free & (jobs == jobs[column]) & ~up
            most[rivals] = 0.0
        free = self.fixing & (least < most)
        if not free.any():
            return (None, []) if not (up | down).any() else (0, [(least, most)])
        at = np.flatnonzero(free)
        if self.linear.large:
            return len(at), [self._many(values, least, most, at)]
        surest = at[np.argmax(np.where(jobs[at] >= 0, values[at], np.abs(values[at] - 0.5) + 0.5))]
        if jobs[surest] < 0:
            return len(at), [self._set(least, most, surest, 1.0), self._set(least, most, surest, 0.0)]
        rivals = at[jobs[at] == jobs[surest]]
        ranked = rivals[np.argsort(-values[rivals], kind="stable")]
        tried = [column for i, column in enumerate(ranked[:2]) if i == 0 or values[column] >= SECOND]
        return len(at), [self._at(least, most, column) for column in tried]

    def _many(self, values: Floats, least: Floats, most: Floats, at: Ints) -> tuple[Floats, Floats]:
        """The more certain part of what is open as it nearly is, where there is no time to look at each."""
        jobs = self.assigned[at]
        single = at[jobs < 0]
        best = [mine[np.argmax(values[mine])] for j in np.unique(jobs[jobs >= 0]) for mine in [at[jobs == j]]]
        ranked = sorted([(abs(values[c] - 0.5) + 0.5, c) for c in single.tolist()] + [(values[c], int(c)) for c in best], reverse=True)
        for _, column in ranked[: -(-len(ranked) // PARTS)]:
            least, most = self._at(least, most, column) if self.assigned[column] >= 0 else self._set(least, most, column, float(np.round(values[column])))
        return least, most

    def _without(self, state: Chosen, options: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        """The bounds of a state without what the options set."""
        most = state.most.copy()
        for least, _ in options:
            most[(least > state.least) & (self.assigned >= 0)] = 0.0
        return state.least, most

    def _set(self, least: Floats, most: Floats, column: int, value: float) -> tuple[Floats, Floats]:
        least, most = least.copy(), most.copy()
        least[column] = most[column] = value
        return least, most

    def _at(self, least: Floats, most: Floats, column: int) -> tuple[Floats, Floats]:
        """A job at one place only."""
        least, most = self._set(least, most, column, 1.0)
        others = (self.assigned == self.assigned[column]) & (np.arange(len(most)) != column)
        least[others] = most[others] = 0.0
        return least, most

    # -- exchanges -------------------------------------------------------------------------------------------------

    def _exchanged(self, state: Chosen) -> Chosen:
        """Better choices, one exchange at a time, as long as prices promise any and there is time."""
        failed: set[tuple[int, ...]] = set()
        while True:
            tried = 0
            made = tuple(np.flatnonzero(state.least[self.fixing] > 0))
            better = None
            for promised, bounds in self._promising(state):
                key = tuple(np.flatnonzero(bounds[0][self.fixing] > 0))
                if key in failed or key == made or self.left() <= 0 or tried == EXCHANGES:
                    continue
                failed.add(key)
                tried += 1
                cutoff = state.found.value * (1 - WORTH)
                better = self._look(*bounds, state.found, cutoff)
                self.dec.say(f"exchange: promised {promised:.6g}, {'no better' if better is None else format(better.found.value, '.6g')}")
                if better is not None and better.found.value < cutoff:
                    break
                better = None
            if better is None:
                return state
            state = better

    def _promising(self, state: Chosen) -> list[tuple[float, tuple[Floats, Floats]]]:
        """(what the choices would cost at least, their bounds) of those that prices do not rule out, least first."""
        dec, value = self.dec, state.found.value
        certificate: Bound = dec.certify(dec.spread(state.found), self.view)
        y, points, job = dec.whole.columns["y"], dec.view.training, dec.data.point_job[dec.view.training]
        entering = certificate.entering[y[points]]
        now = np.zeros(len(dec.data.job_work))
        chosen = points[state.least[y[points]] > 0]
        now[dec.data.point_job[chosen]] = certificate.entering[y[chosen]]
        opened = np.append(state.most, 1.0)[dec.whole.columns["open"]] > 0
        result = []
        for p, j, cost in zip(points.tolist(), job.tolist(), entering.tolist(), strict=True):
            if cost - now[j] < -WORTH * abs(value) and opened[dec.view.site[p]]:
                result.append((value + cost - now[j], self._at(state.least, state.most, int(y[p]))))
        for r, column in enumerate(dec.whole.columns["open"].tolist()):
            if column >= 0 and self.fixing[column] and self.unsure[column] and not np.isin(r, dec.view.site[chosen]):
                result.append((value * (1 - WORTH), self._opened(state, r, column) if not opened[r] else self._set(state.least, state.most, column, 0.0)))
        return sorted(result, key=lambda item: item[0])

    def _opened(self, state: Chosen, r: int, column: int) -> tuple[Floats, Floats]:
        """With the site open, and what was shut with it free."""
        least, most = self._set(state.least, state.most, column, 1.0)
        free = np.zeros(len(most), dtype=bool)
        host = self.dec.whole.columns["host"][:, r]
        free[host[host >= 0]] = True
        free &= ~self.fixing
        most[free] = self.dec.whole.most[free]
        return least, most
