"""A plan in whole numbers for a program too large to search: choices first, then counts, each where the master says it costs least.

    sites    the one most in doubt is tried both ways in the master, and stays the better way
    choices  the best that the master knows of with everything whole; the slots are asked what a set of choices costs with linear counts,
             and the master looks for a better one until it knows of none
    counts   made whole a share at a time, the others making up for it, again while something is missing and less each time
    repair   while a slot misses anything, systems are added; then those go that nothing misses

All slots are asked after every step, so that the master learns what it would have overlooked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.data import Floats, Ints
from solvers.decomposition import Decomposition, Level
from solvers.hourwise import NOTHING, carried
from solvers.master import Point
from solvers.slot_programs import SlotAnswer
from solvers.start import within
from solvers.whole import WholePlan

WHOLE = 1e-6  # how far from whole a number may be
TRIES, LEARNING = 3, 12  # sets of choices that are looked at, and rounds of linear counts to learn what each costs, at most
CHOOSING, FOUND = 0.4, 0.08  # of the time left, after which no other choices are looked for, and that one set may take to find
SETTLING, OUT = 24, 0.4  # rounds of linear counts, at most, and how far they go to the master's point
PLACES = 5  # of each job that are kept, beside those where it runs
LATELY = 0  # rounds without weight after which a cut is left behind
AT_ONCE, LATER = 0.3, 0.5  # share of the counts that are made whole in one step, the first time and then
ADDITIONS, TRIMMED = 60, 40  # rounds of additions and trials of removal, at most
USUAL, EXACT, NOTHING_LEFT = 1e-7, 1e-9, 1e-8  # how far rows may be broken, once choices are made, and what may be missing in all
DEARER, DEAREST = 10.0, 200.0  # how much dearer missing is while counts are made whole, and while what is missing is added
NEARBY = 2  # systems more of a kind that are added at once, at most
ROUNDINGS, COUNTING = 6, 0.3  # of the counts, while something is missing, and the share of the time left after which no other begins
REARRANGED = 5  # trials of other hours for the jobs between two additions
FREE = 1e-4  # rise of the master's value, relative, at which the other way is not tried
SLIGHT = 1e-6  # difference that is none
SHARE = 0.1  # of the asked gap, that one step may leave


class Dive:
    def __init__(self, dec: Decomposition, level: Level, gap: float, seed: int, left: Callable[[], float]):
        self.dec, self.gap, self.seed, self.left = dec, gap, seed, left
        self.linear: tuple[Level, Point] | None = None  # the choices made, with linear counts
        self._on(level)

    def _on(self, level: Level) -> None:
        """From now on at this level."""
        self.level, self.structure = level, level.master.structure
        place = self.structure.columns["n"]
        self.held = np.flatnonzero(place >= 0)
        self.n = place[self.held]
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
        programs = self.level.programs
        programs.raise_missing(DEARER)  # while counts are made whole
        _, value, point = self._settled(point, SETTLING)
        self.dec.say(f"choices made: {value:.6g} with linear counts, {programs.missing()[0]:.3g} missing")
        point = self._counted_best(point)
        programs.raise_missing(DEAREST / DEARER)
        plan = None if point is None else self._repaired(point)
        programs.raise_missing(1 / DEAREST)
        first.programs.hold(USUAL)
        return plan

    def _chosen(self) -> Point | None:
        """The choices that cost least once the slots were asked about them, with linear counts, at a level over what they leave."""
        everywhere = self.level, (self.least, self.most)
        if not self._sited():
            self.dec.say("no sites found")
            return None
        best, least, until = None, np.inf, (1 - CHOOSING) * self.left()
        for thin, bounds in ((self.level, (self.least, self.most)), everywhere):
            for _ in range(TRIES if best is None else 0):
                found = thin.master.solve_nearly_whole(bounds, SHARE * self.gap, FOUND * self.left(), self.seed)
                if found is None or thin.master.left_undone(found[1]).max(initial=0.0) > WHOLE:
                    break  # no place for a job
                if found[0] >= least - SHARE * self.gap * abs(least) or (best is not None and self.left() <= until):
                    break  # nothing better is known of
                self._on(thin)
                known = len(thin.master.kept)
                value, most, point = self._settled(self._only(found[1]), LEARNING)
                self.dec.say(f"choices: {found[0]:.6g} by what was known, {value:.6g} to {most:.6g} once asked")
                self.dec.resumed(thin, self.level, None, known)
                if value < least:
                    best, least = (self.level, self.least, self.most, point), value
                if value - found[0] <= self.gap * abs(value):
                    break  # the master is right about what it knows
        if best is None:
            self.dec.say("no choices found")
            return None
        self._on(best[0])
        self.least, self.most, point = best[1:]
        return point

    def _thin(self, level: Level) -> Level:
        """The level with the cuts alone that had weight lately, and with the places where jobs run or nearly would."""
        master, columns = level.master, level.master.structure.columns
        found = master.solve()
        if found is None:
            return level
        entering = self.dec.certify(level, self.dec.spread(level, found[2])).entering[self.dec.whole.columns["y"][master.places]]
        job, y = self.dec.data.point_job[master.places], columns["y"][master.places]
        stays = np.maximum(found[1].structure, level.best.structure)[y] > WHOLE
        for j in np.unique(job):
            mine = np.flatnonzero(job == j)
            stays[mine[np.argsort(entering[mine], kind="stable")[:PLACES]]] = True
        return self.dec.rebuilt(level, master.lots, master.places[stays], master.unused <= LATELY)

    def _sited(self) -> bool:
        """Opens or closes every site, the one most in doubt first, each the way that costs less by the master, which learns after every
        step; from then on at the level over what is open. Whether there is a way."""
        place = self.structure.columns["open"][self.structure.columns["open"] >= 0]
        centre = self.level.best
        while True:
            found = self.level.master.solve((self.least, self.most))
            if found is None:
                return False
            value, point, _ = found
            doubt = np.where(self.least[place] < self.most[place], np.minimum(point.structure[place], 1 - point.structure[place]), 0.0)
            if (doubt <= WHOLE).all() or self.left() <= 0:
                break
            column = place[int(np.argmax(doubt))]
            ways = sorted(self._both(column), key=lambda way: abs(way[0][column] - point.structure[column]))
            tried = self.level.master.solve(ways[0])
            if tried is None or tried[0] > value + FREE * abs(value):  # dearer: the less likely way may be better
                other = self.level.master.solve(ways[1])
                if tried is None or (other is not None and other[0] < tried[0]):
                    tried, ways = other, ways[::-1]
            if tried is None:
                return False
            self.least, self.most = ways[0]
            centre = centre.towards(tried[1], OUT)
            self._ask(centre)
            self.level.master.purge()
        self.dec.say(f"sites: {value:.6g}")
        self._kept(Point(np.where(np.isin(np.arange(self.structure.size), place), np.round(point.structure), point.structure), point.running), place)
        return True

    def _both(self, column: int) -> list[tuple[Floats, Floats]]:
        """Bounds with a column at 1, and at 0."""
        least, most = self.least.copy(), self.most.copy()
        least[column], most[column] = 1.0, 0.0
        return [(least, self.most.copy()), (self.least.copy(), most)]

    def _kept(self, point: Point, fixed: Ints) -> None:
        """From now on at the level over what these columns, as they are in a point, leave."""
        level, before = self.level, self.structure
        most = before.most.copy()
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

    def _only(self, point: Point) -> Point:
        """The point with its choices fixed, at a level over what they leave."""
        self._kept(Point(np.where(self.choices, np.round(point.structure), point.structure), point.running), np.flatnonzero(self.choices))
        self.level.master.hold(EXACT)
        self.level.programs.hold(EXACT)
        return self.level.best

    def _ask(self, point: Point, *, learn: bool = True) -> tuple[float, SlotAnswer]:
        """(value, the slots' answer); the answer stays as cuts where the master is to learn."""
        master = self.level.master
        answer = self.level.programs.answer(*master.given(point))
        if learn:
            master.add_cuts(master.keep(answer))
        return master.linear_cost(point) + float(answer.value.sum()), answer

    # -- counts ----------------------------------------------------------------------------------------------------

    def _settled(self, point: Point, rounds: int) -> tuple[float, float, Point]:
        """(least value by what is known, value, the point with its choices) with linear counts that miss little."""
        best, value, model = point, self._ask(point)[0], -np.inf
        for _ in range(rounds):
            found = self.level.master.solve((self.least, self.most))
            if found is None:
                return np.inf, value, best
            model, end, _ = found
            if value - model <= SHARE * self.gap * abs(value) or self.left() <= 0:
                break
            middle = best.towards(end, OUT)
            asked, _ = self._ask(middle)
            self.level.master.purge()
            if asked < value:
                best, value = middle, asked
        self.linear = self.level, best
        return model, value, best

    def _counted_best(self, point: Point) -> Point | None:
        """The best of several roundings of the counts, each of which teaches the master what it missed."""
        best, least, bounds, until = None, np.inf, (self.least, self.most), (1 - COUNTING) * self.left()
        for _ in range(ROUNDINGS):
            self.least, self.most = bounds[0].copy(), bounds[1].copy()
            found = self._counted(point, LATER if best else AT_ONCE)
            found = found and self._just_done(found)
            if found is None or not self._holds(found.structure):
                break
            value, missing = self._ask(found)[0], self.level.programs.missing()[0]
            self.dec.say(f"counts: {value:.6g}, {missing:.3g} missing")
            if value >= least:
                break
            best, least = found, value
            if missing <= NOTHING_LEFT or self.left() <= until:
                break
        return best

    def _counted(self, point: Point, at_once: float) -> Point | None:
        """The counts made whole, those first that nearly are."""
        before, share, free = None, at_once, (self.least.copy(), self.most.copy())
        while True:
            found = self.level.master.solve((self.least, self.most))
            if found is None:
                if before is None:
                    self.dec.say("counts: no answer of the master")
                    return None
                (self.least, self.most), pick, n = before
                if len(pick) == 1 and share < 0:
                    self.dec.say("counts: neither way")
                    return None
                share = share / 2 if len(pick) > 1 else -1.0
            else:
                point, share = found[1], abs(share) if share > 0 else at_once
                n = point.structure[self.n]
                self._ask(point)
            off = np.abs(n - np.round(n))
            todo = np.flatnonzero((off > WHOLE) & (self.least[self.n] < self.most[self.n]))
            if not len(todo) or self.left() <= 0:
                break
            pick = todo[np.argsort(off[todo], kind="stable")][: max(1, int(np.ceil(share * len(todo))))]
            before = (self.least.copy(), self.most.copy()), pick, n
            whole = np.round(n[pick]) if share > 0 else np.where(n[pick] > np.round(n[pick]), np.ceil(n[pick]), np.floor(n[pick]))
            whole = np.clip(whole, np.ceil(free[0][self.n[pick]] - WHOLE), np.floor(free[1][self.n[pick]] + WHOLE))
            self.least[self.n[pick]] = self.most[self.n[pick]] = whole
        structure = np.where(self.structure.integer, np.round(point.structure), point.structure)
        return Point(structure, point.running)

    # -- repair ----------------------------------------------------------------------------------------------------

    def _repaired(self, point: Point) -> WholePlan | None:
        """Systems are added until nothing is missing, then taken away where nothing misses them."""
        level, s = self.level, self.structure
        if not self._holds(point.structure):  # rounded when time ended a search
            self.dec.say("choices and counts that break a row")
            return None
        cost, point = s.cost[self.n], self._just_done(point)
        if point is None:
            return None
        value, answer = self._ask(point)
        for _ in range(ADDITIONS):
            point, value, answer, missing = self._rearranged(point, value, answer)
            if missing <= NOTHING_LEFT:
                break
            more = point.structure.copy()
            more[self.n] += self._wanted(point)
            if not (more > point.structure).any() or not self._holds(more):  # the master knows of nothing: by their prices
                more, worth = point.structure.copy(), np.where(self._room(point), self._worth(answer), -np.inf) / np.maximum(cost, NOTHING)
                order = np.argsort(-worth, kind="stable")[: max(1, min(10, int(missing / 4)))]
                if not len(order) or worth[order[0]] <= 0 or self.left() <= 0:
                    self.dec.say(f"repair: {missing:.3g} missing and nothing that helps" if self.left() > 0 else f"repair: {missing:.3g} missing at the time limit")
                    return None
                for u in order[worth[order] > 0]:
                    more[self.n[u]] += 1.0
                    if not self._holds(more):
                        more[self.n[u]] -= 1.0
            if not (more > point.structure).any():
                return None
            point = Point(more, point.running)
            value, answer = self._ask(point)
            self.dec.say(f"systems added: {value:.6g}, {level.programs.missing()[0]:.3g} missing")
        else:
            return None
        self.dec.say(f"repaired: {value:.6g}")
        needed = np.zeros(len(self.n), dtype=bool)
        for _ in range(TRIMMED):  # the dearest for what its price says it saves goes first
            spare = np.where(~needed & (point.structure[self.n] > 0.5), cost - self._worth(answer), -np.inf)
            u = int(np.argmax(spare)) if len(spare) else -1
            if u < 0 or spare[u] <= 0 or self.left() <= 0:
                break
            fewer = point.structure.copy()
            fewer[self.n[u]] -= 1.0
            needed[u] = True
            if not self._holds(fewer):
                continue
            tried, found = self._ask(Point(fewer, point.running), learn=False)
            if level.programs.missing()[0] <= NOTHING_LEFT and tried < value:
                point, value, answer, needed[u] = Point(fewer, point.running), tried, found, False
        self.dec.say(f"trimmed: {value:.6g}")
        return WholePlan(level, point, value)

    def _wanted(self, point: Point) -> Floats:
        """[counts]: how many systems more the master would hold, in whole numbers."""
        least, most, n = self.least.copy(), self.structure.most.copy(), point.structure[self.n]
        least[self.n], most[self.n] = n, np.minimum(n + NEARBY, most[self.n])
        least[self.choices] = most[self.choices] = point.structure[self.choices]
        found = self.level.master.solve_nearly_whole((least, most), SHARE * self.gap, FOUND * self.left(), self.seed)
        return np.zeros(len(n)) if found is None else np.round(found[1].structure[self.n] - n)

    def _rearranged(self, point: Point, value: float, answer: SlotAnswer) -> tuple[Point, float, SlotAnswer, float]:
        """(point, value, answer, what is missing) with the jobs run where the slots miss least, the counts as they are."""
        level, missing = self.level, self.level.programs.missing()[0]
        self.least[self.n] = self.most[self.n] = point.structure[self.n]
        for _ in range(REARRANGED):
            found = self.level.master.solve((self.least, self.most)) if missing > NOTHING_LEFT else None
            if found is None:
                break
            other = self._just_done(Point(point.structure, found[1].running))
            if other is None:
                break
            asked, fresh = self._ask(other)
            if asked < value + SLIGHT * abs(value) and (asked < value or level.programs.missing()[0] < missing):
                point, value, answer, missing = other, asked, fresh, level.programs.missing()[0]
        return point, value, answer, missing

    def _just_done(self, point: Point) -> Point | None:
        """The point with every job run just until it is done; None where one cannot be."""
        places = self.level.master.places
        most = self.level.master.most_running(point.structure)
        running = [within(self.dec, int(p), share, upper) for p, share, upper in zip(places, point.running, most, strict=True)]
        return None if any(share is None for share in running) else Point(point.structure, np.array(running).reshape(point.running.shape))

    def _worth(self, answer: SlotAnswer) -> Floats:
        """[counts]: what one system more would save in the slots, less what its idle power takes of the site's."""
        data, alpha = self.dec.data, np.zeros(len(self.dec.data.lot_site))
        window, covers = self.level.view.window, data.covers()[self.held]
        per_window = np.zeros((data.windows, len(alpha)))
        sigma = np.zeros((data.windows, data.sites))
        for w in range(data.windows):
            per_window[w, self.level.master.lots] = answer.alpha[window == w].sum(axis=0)
            sigma[w] = answer.sigma[window == w].sum(axis=0)
        lot = data.holding_lot[self.held]
        return (covers * (per_window[:, lot] - data.holding_power_w[self.held] * sigma[:, data.lot_site[lot]]).T).sum(axis=1)

    def _room(self, point: Point) -> np.ndarray:
        """[counts]: where one more keeps every row."""
        s = self.structure
        sides = (s.matrix @ point.structure)[:, None] + s.matrix[:, self.n].toarray()
        return (sides <= s.row_upper[:, None] + 1e-9).all(axis=0) & (sides >= s.row_lower[:, None] - 1e-9).all(axis=0) & (point.structure[self.n] + 1 <= s.most[self.n] + 1e-9)

    def _holds(self, values: Floats) -> bool:
        """Whether everything decided once keeps its rows and bounds."""
        s, sides = self.structure, self.structure.matrix @ values
        return bool((values <= s.most + 1e-9).all() and (sides <= s.row_upper + 1e-9).all() and (sides >= s.row_lower - 1e-9).all())
