"""A plan in whole numbers for a program too large to search: choices first, then counts, each where the master says it costs least.

    choices  sites, hosting and places of jobs, the best that the master knows of with linear counts; the slots are asked what a set of
             choices costs, and the master looks for a better one until it knows of none
    counts   the best that the master knows of; the slots are asked what they miss, and the master looks again until they miss nothing

All slots are asked after every step, so that the master learns what it would have overlooked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.data import Floats, Ints
from solvers.decomposition import WHOLE, Decomposition, Level
from solvers.hourwise import carried
from solvers.master import Point
from solvers.start import within
from solvers.whole import WholePlan

TRIES, LEARNING, SURPRISE = 10, 12, 0.02  # sets of choices that are looked at, and rounds of linear counts to learn what each costs, at most; by how much more than was known that ends
CHOOSING, FOUND, COUNTED = 0.5, 0.15, 0.04  # of the time left, after which no other choices are looked for, and that one set of them, and of counts, may take to find
HOPELESS = 0.05  # of its cost, that a set of choices costs more once asked than was known, where it must be missing something
SETTLING, OUT = 24, 0.4  # rounds of linear counts, at most, and how far they go to the master's point
PLACES = 5  # of each job that are kept, beside those where it runs
LATELY = 0  # rounds without weight after which a cut is left behind
COUNTS, FEW = 80, 3  # sets of counts that are looked at, at most, and those before what is missing is only added
USUAL, EXACT, NOTHING_LEFT = 1e-7, 1e-9, 1e-7  # how far rows may be broken, once choices are made, and what may be missing in all
HALFWAY = 0.5  # how far hours of jobs go to those of the master, while the counts stay
NEARBY = 2  # systems more or fewer of a kind than linear counts have that are looked at
SHARE = 0.1  # of the asked gap, that one step may leave


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices that were looked at: their cost with linear counts as far as it was found out, and where the search is with them."""

    cost: float
    level: Level
    least: Floats
    most: Floats
    point: Point


class Dive:
    def __init__(self, dec: Decomposition, level: Level, gap: float, seed: int, left: Callable[[], float]):
        self.dec, self.gap, self.seed, self.left = dec, gap, seed, left
        self.linear: tuple[Level, Point] | None = None  # the choices made, with linear counts
        self._on(level)

    def _on(self, level: Level) -> None:
        """From now on at this level."""
        self.level, self.structure = level, level.master.structure
        place = self.structure.columns["n"]
        self.n = place[place >= 0]
        counted = np.zeros(self.structure.size, dtype=bool)
        counted[self.n] = True
        self.choices = self.structure.integer & ~counted
        self.least, self.most = np.zeros(self.structure.size), self.structure.most.copy()

    def run(self) -> WholePlan | None:
        """The plan, None where nothing is found that misses nothing."""
        first = self.level
        self._on(self._thin(first))
        point = self._chosen()
        if point is None:
            first.programs.hold(USUAL)
            return None
        _, value, point = self._settled(point, SETTLING, missing=True)
        self.dec.say(f"choices made: {value:.6g} with linear counts, {self.level.programs.missing()[0]:.3g} missing")
        plan = self._counted(point)
        first.programs.hold(USUAL)
        return plan

    def _chosen(self) -> Point | None:
        """The choices that cost least once the slots were asked about them, with linear counts, at a level over what they leave."""
        thin, bounds, cheap, until = self.level, (self.least, self.most), self._cheap(), (1 - CHOOSING) * self.left()
        looked: list[Choices] = []
        for _ in range(TRIES):
            self._on(thin)
            least = min((choices.cost for choices in looked), default=np.inf)
            found = self._best_known(bounds, cheap)
            if found is None or found[0] >= least - SHARE * self.gap * abs(least) or (looked and self.left() <= until):
                break  # nothing better is known of
            looked.append(self._look_at(thin, *found, least))
        if not looked:
            self.dec.say("no choices found")
            return None
        best = min(looked, key=lambda choices: choices.cost)
        self._on(best.level)
        self.least, self.most = best.least, best.most
        return best.point

    def _best_known(self, bounds: tuple[Floats, Floats], cheap: np.ndarray) -> tuple[float, Point] | None:
        """(value, point) with the choices that cost least by what the master knows, and with linear counts."""
        for rounded in (cheap, np.zeros_like(cheap)) if cheap.any() else (cheap,):  # a limit may not let hosting be rounded up
            found = self.level.master.solve_nearly_whole(bounds, self.choices & ~rounded, SHARE * self.gap, FOUND * self.left(), self.seed)
            if found is None:
                return None
            point = Point(np.where(rounded, np.ceil(found[1].structure - WHOLE), found[1].structure), found[1].running)
            if self._holds(point.structure) and self.level.master.left_undone(point).max(initial=0.0) <= WHOLE:
                return found[0], point
        return None

    def _look_at(self, thin: Level, value: float, point: Point, least: float) -> Choices:
        """What choices cost once the slots were asked, unless it is more than `least`; the level learns from it. `value`: what was known."""
        known = len(thin.master.kept)
        learnt, most, point = self._settled(self._only(point), LEARNING, missing=False, enough=min(least, value + SURPRISE * abs(value)))
        self.dec.say(f"choices: {value:.6g} by what was known, {learnt:.6g} to {most:.6g} once asked")
        hopeless = most - value > HOPELESS * abs(most)
        if hopeless:
            self._ask(point)
            self._learn_missing(point)
        self.dec.resumed(thin, self.level, None, known, missing=hopeless)
        return Choices(most, self.level, self.least, self.most, point)

    def over_all_slots(self, plan: WholePlan, group: Ints) -> WholePlan | None:
        """A plan made on merged slots as one over all: its choices, and counts found anew from its own; the dive is at a level over its lots and places."""
        old, master = plan.level.master, self.level.master
        row = np.full(len(self.dec.data.point_job), -1)
        row[old.places] = np.arange(len(old.places))
        running = [within(self.dec, int(p), plan.point.running[row[p], group]) for p in master.places]
        if any(share is None for share in running):
            self.dec.say("over all slots: a job has too little time")
            return None
        structure = carried(old.structure, self.structure, np.round(plan.point.structure))
        point = Point(structure, np.array(running).reshape(master.reach.shape))
        master.hold(EXACT)
        self.level.programs.hold(EXACT)
        self.least[self.choices] = self.most[self.choices] = structure[self.choices]
        first, value, missing = None, self._ask(point), self.level.programs.missing()[0]
        self.dec.say(f"over all slots: {value:.6g} once asked, {missing:.3g} missing")
        if missing <= NOTHING_LEFT:
            first = WholePlan(self.level, point, value)
        else:
            self._learn_missing(point)
        _, value, point = self._settled(point, SETTLING, missing=True)
        self.dec.say(f"over all slots: {value:.6g} with linear counts, {self.level.programs.missing()[0]:.3g} missing")
        found = self._counted(point)
        return min((plan for plan in (first, found) if plan is not None), key=lambda plan: plan.value, default=None)

    def _cheap(self) -> np.ndarray:
        """Which columns of the structure are of hosting (a workload at a site, and the ways that its weights take), where all that could be
        hosted costs next to nothing: these are rounded up."""
        hosting = np.zeros(self.structure.size, dtype=bool)
        for block in ("host", "edge"):
            place = self.structure.columns[block]
            hosting[place[place >= 0]] = True
        return hosting & (self.structure.cost[hosting].sum() <= SHARE * self.gap * abs(self.level.value))

    def _thin(self, level: Level) -> Level:
        """The level with the cuts alone that had weight lately, and with the places where jobs run or nearly would."""
        master, found = level.master, level.master.solve()
        if found is None:
            return level
        places = self.dec.lasting(level, self.dec.certify(level, self.dec.spread(level, found[2])), found[1], PLACES)
        return self.dec.rebuilt(level, master.lots, places, master.unused <= LATELY)

    def _only(self, point: Point) -> Point:
        """The point with its choices fixed; from now on at a level over what they leave."""
        level, before, fixed = self.level, self.structure, np.flatnonzero(self.choices)
        point, most = Point(np.where(self.choices, np.round(point.structure), point.structure), point.running), before.most.copy()
        most[fixed] = point.structure[fixed]
        opened = np.append(most, 1.0)[before.columns["open"]] > 0
        lots = level.master.lots[opened[self.dec.data.lot_site[level.master.lots]]]
        there = opened[self.dec.view.site[level.master.places]] & (most[before.columns["y"][level.master.places]] > 0)
        before_best, level.best = level.best, point
        marked = np.zeros(before.size)
        marked[fixed] = 1.0
        self._on(self.dec.rebuilt(level, lots, level.master.places[there], level.master.unused <= LATELY))
        level.best = before_best
        fixed = np.flatnonzero(carried(before, self.structure, marked))
        self.least[fixed] = self.most[fixed] = self.level.best.structure[fixed]
        self.level.master.hold(EXACT)
        self.level.programs.hold(EXACT)
        return self.level.best

    def _ask(self, point: Point) -> float:
        """The value of a point by the slots, whose answer stays as cuts."""
        master = self.level.master
        answer = self.level.programs.answer(*master.given(point))
        master.add_cuts(master.keep(answer))
        return master.linear_cost(point) + float(answer.value.sum())

    # -- counts ----------------------------------------------------------------------------------------------------

    def _settled(self, point: Point, rounds: int, *, missing: bool, enough: float = np.inf) -> tuple[float, float, Point]:
        """(least value by what is known, value, the point with its choices) with linear counts; where `missing`, of what they miss the
        master learns all."""
        best, value, model = point, self._ask(point), -np.inf
        for _ in range(rounds):
            found = self.level.master.solve((self.least, self.most))
            if found is None:
                return np.inf, value, best
            model, end, _ = found
            if value - model <= SHARE * self.gap * abs(value) or model >= enough or self.left() <= 0:
                break
            middle = best.towards(end, OUT)
            asked = self._ask(middle)
            if missing and self.level.programs.missing()[0] > NOTHING_LEFT:
                self._learn_missing(middle)
            self.level.master.purge()
            if asked < value:
                best, value = middle, asked
        self.linear = self.level, best
        return model, value, best

    def _counted(self, point: Point) -> WholePlan | None:
        """The best plan with whole counts near the point's: those that cost least by the master, which learns what they miss until they
        miss nothing, and then what they cost."""
        best, n, until = None, point.structure[self.n], self.left() / 2
        self.least[self.choices] = self.most[self.choices] = np.round(point.structure[self.choices])
        near = np.maximum(np.floor(n) - NEARBY, 0.0), np.minimum(np.ceil(n) + NEARBY, self.structure.most[self.n])
        self.least[self.n], self.most[self.n] = near
        before, lacked = None, np.inf
        for number in range(COUNTS):
            found = self._hours(before, near) or self.level.master.solve_nearly_whole((self.least, self.most), self.structure.integer, SHARE * self.gap, max(COUNTED * self.left(), 1.0), self.seed)
            if found is None and (self.least[self.n] > near[0]).any():  # nothing that may be added is enough
                self.least[self.n], self.most[self.n] = near
                continue
            if found is None and self.level.master.spare:  # what was asked for beyond what is missing is not there
                self.level.master.forget_missing()
                continue
            if found is None and (self.most[self.n] < self.structure.most[self.n]).any():  # as many as there may be
                self.most[self.n] = self.structure.most[self.n]
                near = near[0], self.most[self.n].copy()
                continue
            if found is None:
                self.dec.say("counts: none that the master knows of")
                break
            model, whole = found[0], self._just_done(Point(np.where(self.structure.integer, np.round(found[1].structure), found[1].structure), found[1].running))
            if whole is None or not self._holds(whole.structure):
                self.dec.say("counts: jobs not done")
                break
            if before is not None and np.array_equal(before.structure[self.n], whole.structure[self.n]):
                whole = before.towards(whole, HALFWAY)
            value, missing = self._ask(whole), self.level.programs.missing()[0]
            self.dec.say(f"counts: {model:.6g} by what was known, {value:.6g} once asked, {missing:.3g} missing")
            if missing <= NOTHING_LEFT:
                if best is None or value < best.value:
                    best = WholePlan(self.level, whole, value)
                if best.value - model <= SHARE * self.gap * abs(best.value):
                    break
            else:
                self._learn_missing(whole)
            if before is None or missing < lacked or not np.array_equal(before.structure[self.n], whole.structure[self.n]):
                before, lacked = whole, missing
            if self.left() <= 0 or (best is not None and number >= FEW):
                break
            if best is None and (number >= FEW or self.left() <= until):  # what they miss is added, and nothing taken away
                self.least[self.n] = np.minimum(whole.structure[self.n], self.structure.most[self.n])
                self.most[self.n] = np.minimum(np.maximum(near[1], self.least[self.n] + NEARBY), self.structure.most[self.n])
        return best

    def _hours(self, point: Point | None, near: tuple[Floats, Floats]) -> tuple[float, Point] | None:
        """(least value, other hours for the jobs with which the master knows of nothing missing), the counts of a point as they are; None
        where there are none, or counts are not yet only added to."""
        if point is None or not (self.least[self.n] > near[0]).any():
            return None
        fixed = self.least.copy(), self.most.copy()
        fixed[0][self.n] = fixed[1][self.n] = point.structure[self.n]
        found = self.level.master.solve(fixed)
        return None if found is None else found[:2]

    def _learn_missing(self, point: Point) -> None:
        """The master learns what no slot can do with less, where something is missing at a point."""
        master, programs = self.level.master, self.level.programs
        answer = programs.shortage(master.given(point))
        short = np.unique(master.group[answer.value > 0])
        if len(short):
            master.add_cuts(master.keep(answer, short=True), short)

    def _just_done(self, point: Point) -> Point | None:
        """The point with every job run just until it is done; None where one cannot be."""
        places = self.level.master.places
        most = self.level.master.most_running(point.structure)
        running = [within(self.dec, int(p), share, upper) for p, share, upper in zip(places, point.running, most, strict=True)]
        return None if any(share is None for share in running) else Point(point.structure, np.array(running).reshape(point.running.shape))

    def _holds(self, values: Floats) -> bool:
        """Whether everything decided once keeps its rows and bounds."""
        s, sides = self.structure, self.structure.matrix @ values
        return bool((values <= s.most + 1e-9).all() and (sides <= s.row_upper + 1e-9).all() and (sides >= s.row_lower - 1e-9).all())
