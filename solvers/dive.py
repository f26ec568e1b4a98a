"""A plan in whole numbers for a program too large to search: choices first, then counts, each where the master says it costs least.

    choices  sites, designs, places of jobs: what is least decided is tried both ways in the master, and stays the better way
    counts   linear until the slots miss little, then made whole a share at a time, the others making up for it
    repair   while a slot misses anything, systems that their prices pay for best are added; then those go that nothing misses

All slots are asked after every step, so that the master learns what it would have overlooked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvers.certificate import Prices
from solvers.data import Floats, Ints
from solvers.decomposition import DEARER, Decomposition, Level, longer
from solvers.hourwise import NOTHING
from solvers.master import Point
from solvers.slot_programs import SlotAnswer
from solvers.whole import WholePlan, shares_of

WHOLE = 1e-6  # how far from whole a number may be
SETTLING, OUT = 24, 0.4  # rounds of linear counts, at most, and how far they go to the master's point
PATTERNS = 2  # new ones of each job in a step
LATELY = 0  # rounds without weight after which a cut is left behind
AT_ONCE = 0.3  # share of the counts that are made whole in one step
ADDITIONS, TRIMMED = 60, 40  # rounds of additions and trials of removal, at most
EXACT, NOTHING_LEFT = 1e-9, 1e-8  # how far rows may be broken once choices are made, and what may be missing in all
FREE = 1e-4  # rise of the master's value, relative, at which the other way is not tried
REARRANGED = 5  # trials of other patterns between two additions
SLIGHT = 1e-6  # difference that is none
SHARE = 0.1  # of the asked gap, that one step may leave


class Dive:
    def __init__(self, dec: Decomposition, level: Level, gap: float, left: Callable[[], float], lost: float | None = None):
        """`lost`: how much dearer than the linear answer, as a share, choices may become before they are given up; None: never."""
        self.dec, self.gap, self.left, self.lost = dec, gap, left, lost
        self.value = 0.0  # of the master when it was asked last
        self.most_worth = np.inf  # value of the master from which on choices are given up
        self.linear: tuple[Level, Point] | None = None  # the choices made, with linear counts
        self._on(level)
        self.least, self.most = np.zeros(self.structure.size), self.structure.most.copy()

    def _on(self, level: Level) -> None:
        """From now on at this level."""
        self.level, self.structure = level, level.master.structure
        place = self.structure.columns["n"]
        self.held = np.flatnonzero(place >= 0)
        self.n = place[self.held]
        counted = np.zeros(self.structure.size, dtype=bool)
        counted[self.n] = True
        self.choices = self.structure.integer & ~counted

    def run(self) -> WholePlan | None:
        """The plan, None where nothing is found that misses nothing."""
        first = self.level
        first.programs.raise_missing(DEARER)
        first.dearer += 1  # while a plan is made
        self._on(self._thin(first))
        self.centre = self.level.best
        start = self._within((self.least, self.most))
        if self.lost is not None and start is not None:
            self.most_worth = start[0] + self.lost * abs(start[0])
        point = self._chosen()
        if point is not None and self.level.master.left_undone(point).max(initial=0.0) > WHOLE:
            point = None  # no place for a job
        if point is not None:
            point = self._counted(self._settled(self._only(point)))
        plan = None if point is None else self._repaired(point)
        first.programs.raise_missing(1 / DEARER)
        first.dearer -= 1
        return plan

    def _thin(self, level: Level) -> Level:
        """The level with the cuts and patterns alone that had weight lately, and one pattern of each place."""
        patterns = level.master.patterns
        stays = longer(level.best.patterns, len(patterns)) > NOTHING
        found = level.master.solve(None)
        if found is not None:
            stays |= found[1].patterns > NOTHING
        stays[list({point: i for i, (point, _) in enumerate(patterns)}.values())] = True
        level.best = Point(level.best.structure, longer(level.best.patterns, len(patterns)))
        return self.dec.rebuilt(level, level.master.lots, level.master.places_array, stays, level.master.unused <= LATELY)

    def _only(self, point: Point) -> Point:
        """The point with its choices fixed, at a level over what they leave."""
        level, before = self.level, self.structure
        made = np.where(self.choices, np.round(point.structure), point.structure)
        most = np.where(self.choices, made, before.most)
        opened = np.append(most, 1.0)[before.columns["open"]] > 0
        lots = level.master.lots[opened[self.dec.data.lot_site[level.master.lots]]]
        places = np.array([p for p in level.master.places if most[before.columns["y"][p]] > 0], dtype=np.int64)
        known = np.array([p for p, _ in level.master.patterns], dtype=np.int64)
        n, centre = self.n, self.dec.between(level, self.centre, point, 0.0)
        made[n] = centre.structure[n]
        shares = np.where(np.isin(known, places), np.maximum(centre.patterns, longer(point.patterns, len(known)) * NOTHING), 0.0)
        shares /= np.maximum(np.bincount(known, weights=shares, minlength=len(self.dec.data.point_job)), NOTHING**2)[known]
        level.best = Point(made, shares)
        self._on(self.dec.rebuilt(level, lots, places, np.isin(known, places), level.master.unused <= LATELY))
        self.level.master.hold(EXACT)
        self.level.programs.hold(EXACT)
        self.least, self.most = np.zeros(self.structure.size), self.structure.most.copy()
        self.least[self.choices] = self.most[self.choices] = self.level.best.structure[self.choices]
        return self.level.best

    # -- choices ---------------------------------------------------------------------------------------------------

    def _chosen(self) -> Point | None:
        """The master's point with every choice made."""
        columns, data, view = self.structure.columns, self.dec.data, self.dec.view
        open_sites, designs, runs = ([np.array([c]) for c in columns[block][columns[block] >= 0].ravel().tolist()] for block in ("open", "z", "run"))
        places = np.flatnonzero(columns["y"] >= 0)
        job = data.point_job[places]
        by_site = [columns["y"][places[(job == j) & (view.site[places] == r)]] for j in np.unique(job) for r in np.unique(view.site[places[job == j]])]
        point = self._decided(open_sites)
        for groups in (by_site, [columns["y"][[p]] for p in places]):
            point = point and self._decided(groups, one_of_a_job=True)
        point = point and self._decided(designs)
        point = point and self._hosted()
        return point and self._decided(runs)

    def _decided(self, groups: Sequence[Ints], *, one_of_a_job: bool = False) -> Point | None:
        """Every group all in or all out, the least decided one first; None where that cannot be."""
        point = self._asked()
        while point is not None and len(groups):
            share = np.array([point.structure[group].sum() for group in groups])
            free = np.array([self._free(group, one_of_a_job) for group in groups], dtype=bool)
            off = np.where(free, np.minimum(share, 1 - share), 0.0)
            if (off <= WHOLE).all() or self.left() <= 0:
                break
            # of a job the likeliest place first; of the others, the one that is most in doubt
            pick = int(np.argmax(np.where(free & (share < 1 - WHOLE), share, -1.0))) if one_of_a_job else int(np.argmax(off))
            group = groups[pick]
            ways = [self._in(group, one_of_a_job), self._out(group)]
            if share[pick] < 0.5:
                ways.reverse()
            found = self._within(ways[0])
            if found is None or found[0] > self.value + FREE * abs(self.value):  # dearer: the less likely way may be better
                other = self._within(ways[1])
                if found is None or (other is not None and other[0] < found[0]):
                    found = other
                    ways.reverse()
            if found is None or found[0] > self.most_worth:
                self.dec.say("choices given up" + ("" if found is None else f" at {found[0]:.6g}"))
                return None
            self.least, self.most = ways[0]
            point = self._learnt(found)
        if point is None:
            return None
        for group in groups:  # stays as it is from now on
            inside = point.structure[group].sum() > 0.5
            if not inside:
                self.most[group] = 0.0
            elif len(group) == 1:
                self.least[group] = 1.0
        return point

    def _free(self, group: Ints, of_a_job: bool) -> bool:
        """Whether a group may still be in or out."""
        if self.most[group].max(initial=0.0) <= 0:
            return False
        return bool(self.most[self._others(group)].any() if of_a_job else self.least[group].max(initial=0.0) < 1)

    def _others(self, group: Ints) -> Ints:
        """The columns of all other places of a job."""
        y = self.structure.columns["y"]
        points = np.flatnonzero(y >= 0)
        job = self.dec.data.point_job[points]
        return np.setdiff1d(y[points[job == job[np.isin(y[points], group)][0]]], group)

    def _in(self, group: Ints, of_a_job: bool) -> tuple[Floats, Floats]:
        least, most = self.least.copy(), self.most.copy()
        if of_a_job:  # nowhere else
            most[self._others(group)] = 0.0
        else:
            least[group] = 1.0
        return least, most

    def _out(self, group: Ints) -> tuple[Floats, Floats]:
        most = self.most.copy()
        most[group] = 0.0
        return self.least.copy(), most

    def _hosted(self) -> Point | None:
        """Hosts wherever a site is open, if that costs next to nothing; only where the master has any if it does."""
        columns = self.structure.columns
        host = columns["host"]
        there = host >= 0
        free = host[there]
        if not len(free):
            return self._asked()
        opened = np.broadcast_to(columns["open"], host.shape)[there]
        upper = np.minimum(self.most[free], np.where(opened >= 0, np.append(self.most, 1.0)[opened], 1.0))
        every = self.least.copy()
        every[free] = np.floor(upper + WHOLE)
        found = self._within((every, self.most))
        if found is not None and found[0] <= self.value + SHARE * self.gap * abs(self.value):
            self.least = every
            return self._learnt(found)
        return self._decided([np.array([c]) for c in free.tolist()])

    # -- the master within what is decided -------------------------------------------------------------------------

    def _bounds(self, bounds: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        size = len(self.level.master.patterns)
        return np.concatenate([bounds[0], np.zeros(size)]), np.concatenate([bounds[1], np.full(size, np.inf)])

    def _within(self, bounds: tuple[Floats, Floats]) -> tuple[float, Point, Prices] | None:
        """The master's answer within these bounds."""
        return self.level.master.solve(self._bounds(bounds))

    def _asked(self) -> Point | None:
        """The master's point within what is decided, after the slots were asked on the way to it; None where there is none."""
        found = self._within((self.least, self.most))
        return None if found is None else self._learnt(found)

    def _learnt(self, found: tuple[float, Point, Prices]) -> Point:
        """The point of an answer of the master, after jobs were priced and the slots were asked on the way to it."""
        level = self.level
        self.value, point, prices = found
        self._price(prices)
        self.centre = self.dec.between(level, self.centre, point, OUT)
        self._ask(self.centre)
        level.master.purge()
        return Point(point.structure, longer(point.patterns, len(level.master.patterns)))

    def _price(self, prices: Prices) -> None:
        """Adds patterns that pay, of places that are left, and one of each of these that has none."""
        level, prices = self.level, self.dec.spread(self.level, prices)
        places = level.master.places_array
        if not len(places):
            return
        places = places[self.most[self.structure.columns["y"][places]] > 0]
        found = self.dec.certify(level, prices)
        self.dec.price(level, found.estimate.alpha, prices.sigma, found, places, PATTERNS)
        self.dec.price_at(level, prices, np.setdiff1d(places, [p for p, _ in level.master.patterns]))

    def _ask(self, point: Point, *, learn: bool = True) -> tuple[float, SlotAnswer]:
        """(value, the slots' answer); the answer stays as cuts where the master is to learn."""
        master = self.level.master
        answer = self.level.programs.answer(*master.given(point))
        if learn:
            master.add_cuts(master.keep(answer))
        return master.linear_cost(point) + float(answer.value.sum()), answer

    # -- counts ----------------------------------------------------------------------------------------------------

    def _settled(self, point: Point) -> Point:
        """The choices made, with linear counts that miss little."""
        best, value = point, self._ask(point)[0]
        for _ in range(SETTLING):
            found = self._within((self.least, self.most))
            if found is None or self.left() <= 0:
                break
            model, end, prices = found
            if value - model <= SHARE * self.gap * abs(value):
                break
            self._price(prices)
            middle = self.dec.between(self.level, best, end, OUT)
            asked, _ = self._ask(middle)
            self.level.master.purge()
            if asked < value:
                best, value = middle, asked
        self.dec.say(f"choices made: {value:.6g} with linear counts, {self.level.programs.missing()[0]:.3g} missing")
        self.linear = self.level, Point(best.structure, longer(best.patterns, len(self.level.master.patterns)))
        return best

    def _counted(self, point: Point) -> Point | None:
        """The counts made whole, those first that nearly are."""
        before, share, free = None, AT_ONCE, (self.least.copy(), self.most.copy())
        while True:
            found = self._within((self.least, self.most))
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
                point, share = found[1], abs(share) if share > 0 else AT_ONCE
                n = point.structure[self.n]
                self._ask(point)
                self.level.master.purge()
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
        return Point(structure, point.patterns)

    # -- repair ----------------------------------------------------------------------------------------------------

    def _repaired(self, point: Point) -> WholePlan | None:
        """Systems are added until nothing is missing, then taken away where nothing misses them."""
        level, s = self.level, self.structure
        if not self._holds(point.structure):  # rounded when time ended a search
            self.dec.say("choices and counts that break a row")
            return None
        cost, point = s.cost[self.n], Point(point.structure, shares_of(level, point))
        value, answer = self._ask(point)
        for _ in range(ADDITIONS):
            point, value, answer, missing = self._rearranged(point, value, answer)
            if missing <= NOTHING_LEFT:
                break
            worth = np.where(self._room(point), self._worth(answer), -np.inf) / np.maximum(cost, NOTHING)
            order = np.argsort(-worth, kind="stable")[: max(1, min(10, int(missing / 4)))]
            if not len(order) or worth[order[0]] <= 0 or self.left() <= 0:
                self.dec.say(f"repair: {missing:.3g} missing and nothing that helps" if self.left() > 0 else f"repair: {missing:.3g} missing at the time limit")
                return None
            more = point.structure.copy()
            for u in order[worth[order] > 0]:
                more[self.n[u]] += 1.0
                if not self._holds(more):
                    more[self.n[u]] -= 1.0
            point = Point(more, longer(point.patterns, len(level.master.patterns)))
            value, answer = self._ask(point)
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
            tried, found = self._ask(Point(fewer, point.patterns), learn=False)
            if level.programs.missing()[0] <= NOTHING_LEFT and tried < value:
                point, value, answer, needed[u] = Point(fewer, point.patterns), tried, found, False
        self.dec.say(f"trimmed: {value:.6g}")
        return WholePlan(level, point, value)

    def _rearranged(self, point: Point, value: float, answer: SlotAnswer) -> tuple[Point, float, SlotAnswer, float]:
        """(point, value, answer, what is missing) with the jobs run where the slots miss least, the counts as they are."""
        level, missing = self.level, self.level.programs.missing()[0]
        self.least[self.n] = self.most[self.n] = point.structure[self.n]
        for _ in range(REARRANGED):
            found = self._within((self.least, self.most)) if missing > NOTHING_LEFT else None
            if found is None:
                break
            self._price(found[2])
            other = Point(point.structure, shares_of(level, found[1]))
            asked, fresh = self._ask(other)
            level.master.purge()
            if asked < value + SLIGHT * abs(value) and (asked < value or level.programs.missing()[0] < missing):
                point, value, answer, missing = other, asked, fresh, level.programs.missing()[0]
        return Point(point.structure, longer(point.patterns, len(level.master.patterns))), value, answer, missing

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
