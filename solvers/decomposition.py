"""Large joint programs: what is decided once is searched with cuts from the slots, which are solved one by one.

    start    the linear program on merged slots (start.py)
    rounds   over all slots: the master is solved, the slots are asked between the best point so far and the master's, and what they
             answer is added as cuts; lots that the bound asks for are added
    bound    over every column of the full problem, from the prices of the best round (certificate.py)
    whole    see dive.py: choices and counts made whole, with the same master and slots

See master.py and slot_programs.py. Benders, Numerische Mathematik 4 (1962), for the cuts; Ben-Ameur and Neto, Networks 49
(2007), for asking between the two points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.certificate import Bound, Prices, bound
from solvers.data import Floats, Ints, PlanData
from solvers.hourwise import NOTHING, Slotwise, Structure, carried, structure_of
from solvers.master import Kept, Master, Point
from solvers.program import Program
from solvers.schedule import able
from solvers.slot_programs import SlotAnswer, SlotPrograms
from solvers.start import Coarse, coarse, within

TOLERANCE, ROUNDS = 2e-4, 120  # of the linear part, relative; at most
OUT = 0.2  # of the way from the best point to the master's, where the slots are asked
SURE = 1e-3  # by so much a bound must be better for no other to be tried
MISSING = 0.1  # price of a missing system in one slot, as a share of what the system costs over the horizon
DEARER, TIMES_DEARER = 5.0, 6  # how much dearer missing gets at once while something is, and how often at most
FRESH = 0.5  # share of a round's prices in those that are looked at; the rest is of the best so far
UNDONE = 3.0  # price of a job left undone, in its dearest place
GROW_EVERY, GROW_BY = 4, 30  # rounds between additions of lots, and how many at once
MOST_GROUPS, MOST_PACES = 84, 84  # of slots with a cut of their own, and of those in which jobs run at one pace
PLACES = 6  # points of each job that are looked at, cheapest first
NEW_PLACES = 6  # of each job at a time
WHOLE = 1e-6  # how far from whole a number may be

Say = Callable[[str], None]


@dataclass(slots=True)
class Level:
    """The search over some lots and places: the master with its slots' programs, the best point so far and what is proven."""

    master: Master
    programs: SlotPrograms
    best: Point
    value: float = np.inf
    proven: float = -np.inf
    prices: Prices | None = None
    dearer: int = 0  # times that missing was made dearer

    @property
    def view(self) -> Slotwise:
        return self.master.view


class Decomposition:
    """One problem, in numbers near 1."""

    def __init__(self, data: PlanData, functional: str, build: Callable[[PlanData], Program], threads: int, say: Say,
                 left: Callable[[], float] = lambda: np.inf):  # fmt: skip
        self.data, self.functional, self.build, self.threads, self.say, self.left = data, functional, build, threads, say, left
        self.view = Slotwise.of(data, functional, np.flatnonzero(able(data)))
        self.groups, self.paces = self._together(MOST_GROUPS), self._together(MOST_PACES)
        self.power_limit = data.power_limit()[0]
        self.whole = structure(data, self.view, functional, build)
        self.row_of = {key: row for row, key in enumerate(self.whole.keys)}
        cost = data.holding_cost.get(functional, np.zeros(len(data.holding_lot)))
        self.lot_cost = np.zeros(len(data.lot_site))
        np.maximum.at(self.lot_cost, data.holding_lot, cost)
        each = np.tile((np.maximum(self.lot_cost, NOTHING) / self.view.slots)[:, None], (1, self.view.slots))
        self.alone = self.view.cheapest(self.view.training, each, np.zeros((self.data.sites, self.view.slots)))  # cost of each point's job at what systems cost
        self.undone = self._undone(self.alone)

    def _together(self, most: int) -> Ints:
        """[T]: group of each slot, of one window and so many in all or little more."""
        slots = self.data.slots
        return np.unique(self.data.slot_window * slots + np.arange(slots) * min(most, slots) // max(slots, 1), return_inverse=True)[1]

    def _undone(self, cost: Floats) -> Floats:
        """Prices of jobs left undone, so that the master always has an answer: far above what the dearest place costs."""
        price, there = np.zeros(len(self.data.job_work)), np.isfinite(cost)
        width = np.zeros(len(self.data.point_job))
        np.add.at(width, self.view.use_point, self.view.use_systems * self.lot_cost[self.view.use_lot])
        np.maximum.at(price, self.data.point_job[self.view.training[there]], UNDONE * (cost[there] + width[self.view.training[there]]))
        once = self.whole.cost[np.concatenate([self.whole.columns[block][self.whole.columns[block] >= 0].ravel() for block in ("open", "host", "z")])]
        return price + float(once.max(initial=0.0)) + NOTHING

    # -- the linear part -------------------------------------------------------------------------------------------

    def relax(self, tolerance: float = TOLERANCE, rounds: int = ROUNDS) -> Level | None:
        """The linear part over all slots; `proven` holds for the full problem. None where its merged form has no answer in time."""
        start = coarse(self)
        if start is None:
            return None
        self.say(f"{start.slots} merged slots: linear {start.value:.6g}, proven {start.bound.value:.6g}")
        return self.search(self._first(start), tolerance, rounds)

    def level(self, lots: Ints, places: Ints, programs: SlotPrograms | None = None) -> Level:
        """A level over these lots and these points of jobs, with nothing known yet; `programs` of just these lots are used again."""
        inside = self._inside(lots)
        view = replace(self.view, training=places[inside[places]])
        part = self.whole.part(self.data, lots, view.training)
        master = Master(view, part, lots, self.groups, self.paces, self.power_limit, self.undone)
        programs = programs or SlotPrograms(view, lots, self.power_limit, self._missing(lots), self.threads)
        return Level(master, programs, Point(np.zeros(part.size), np.zeros(master.reach.shape)))

    def _inside(self, lots: Ints) -> np.ndarray:
        """[P]: points that use none but these lots."""
        kept = np.zeros(len(self.data.lot_site), dtype=bool)
        kept[lots] = True
        inside = np.ones(len(self.data.point_pool), dtype=bool)
        inside[self.view.use_point[~kept[self.view.use_lot]]] = False
        return inside

    def _missing(self, lots: Ints) -> tuple[Floats, Floats, Floats]:
        """Prices of demand not served, systems too few and watts too many in a slot: high enough that none is at the best point."""
        data, view = self.data, self.view
        usual = np.median(self.lot_cost[self.lot_cost > 0]) if (self.lot_cost > 0).any() else float(view.slots)
        each = np.maximum(self.lot_cost, usual)
        serving = np.isin(view.use_point, view.serving)
        dear = np.median(each[view.use_lot[serving]] * view.use_systems[serving] / data.point_capacity[view.use_point[serving]]) if serving.any() else usual
        powered = data.holding_power_w > 0
        watt = np.median(each[data.holding_lot[powered]] / data.holding_power_w[powered]) if powered.any() else usual
        return np.full(len(view.demand), MISSING * max(dear, usual)), 0.6 * MISSING * each[lots], np.full(data.sites, 0.6 * MISSING * watt)

    def _first(self, start: Coarse) -> Level:
        """All slots, over what the merged answer holds or nearly would; its prices are the first cuts."""
        data, view, found = self.data, self.view, start.bound
        taken = np.flatnonzero(start.share > NOTHING)
        job, kept = data.point_job[view.training], taken.tolist()
        charged = found.entering[self.whole.columns["y"][view.training]] if len(view.training) else np.zeros(0)
        for j in np.unique(job):
            mine = np.flatnonzero((job == j) & np.isfinite(charged))
            kept += view.training[mine[np.argsort(charged[mine], kind="stable")][:PLACES]].tolist()
        places = np.unique(np.array(kept, dtype=np.int64))
        lots = start.near.copy()
        lots[view.use_lot[np.isin(view.use_point, places)]] = True
        level = self.level(np.flatnonzero(lots), places)
        level.prices, level.proven = start.prices, found.value
        gate = np.maximum(start.prices.delta[view.arc_demand] - start.prices.beta[data.arc_pool] - view.arc_cost, 0.0)
        prices = (found.estimate.alpha[level.master.lots], start.prices.sigma, start.prices.beta, start.prices.delta, gate)
        level.master.add_cuts(level.master.keep(SlotAnswer(np.zeros(view.slots), *(values.T for values in prices))))
        running = np.zeros(level.master.reach.shape)
        for i, p in enumerate(level.master.places.tolist()):
            if start.share[p] > NOTHING and (done := within(self, p, start.running[p] / start.share[p])) is not None:
                running[i] = start.share[p] * done
        level.best = Point(carried(self.whole, level.master.structure, start.structure), running)
        self.ask(level, level.best)
        return level

    def search(self, level: Level, tolerance: float, rounds: int, enough: float = np.inf) -> Level:
        """Rounds until value and bound are within the tolerance of each other, or the bound is enough: the slots are asked on the
        way from the best point to the master's."""
        for number in range(rounds):
            found = level.master.solve()
            if found is None:
                break
            model, point, prices = found
            prices = self.spread(level, prices)
            certificate = self.keep_bound(level, prices)
            if number % 5 == 0:
                self.say(
                    f"round {number}: value {level.value:.6g}, least {model:.6g}, proven {level.proven:.6g}, {len(level.master.cut_of)} cuts, "
                    f"{len(level.master.places)} places, {len(level.master.lots)} lots"
                )
            if level.value - level.proven <= tolerance * abs(level.value):
                if level.dearer == TIMES_DEARER or not self._still_missing(level, tolerance):
                    break
                level.dearer += 1
                level.programs.raise_missing(DEARER)
                level.value = np.inf
                self.ask(level, level.best)
                continue
            if self.left() <= 0 or level.proven >= enough:
                break
            if number % GROW_EVERY == 0:
                wanted, places = self.wanted(certificate, level), self.wanted_places(certificate, level)
                if len(wanted) or len(places):
                    level = self.grown(level, np.union1d(wanted, self.view.use_lot[np.isin(self.view.use_point, places)]), places)
                    continue
            self.ask(level, level.best.towards(point, OUT))
            level.master.purge()
        return level

    def resumed(self, level: Level, other: Level, point: Point | None, known: int, *, missing: bool = False) -> None:
        """The level learns the cuts that had weight at another one over the same slots, but for the first answers, which it gave, and goes on
        from a point of that; what it knows of what is missing where `missing`."""
        new = np.setdiff1d(level.master.lots, other.master.lots)
        among = level.programs.points[np.isin(level.programs.points, self.view.use_point[np.isin(self.view.use_lot, new)])]
        short = np.array([other.master.kept[answer].short for answer in other.master.cut_of[:, 0]], dtype=bool)
        used = np.where(short, missing, other.master.unused == 0) & (other.master.cut_of[:, 0] >= known)
        for answer in np.unique(other.master.cut_of[used, 0]):
            kept = self._widened(other, level, other.master.kept[answer], among)
            level.master.add_cuts(kept, other.master.cut_of[used & (other.master.cut_of[:, 0] == answer), 1])
        if point is not None:
            level.value = np.inf
            self.ask(level, self.moved(other, level, point))

    def _widened(self, old: Level, new: Level, kept: Kept, among: Ints) -> Kept:
        """The prices of an answer over another level's lots, those that are new the least that its points among these allow."""
        alpha = np.zeros((len(self.data.lot_site), old.view.slots))
        alpha[old.master.lots] = kept.alpha.T
        if len(among):
            view = replace(old.view, point_cost=np.zeros_like(old.view.point_cost)) if kept.short else old.view
            alpha = view.least_alpha(kept.beta.T, kept.sigma.T, alpha, among)
        return replace(kept, alpha=alpha[new.master.lots].T)

    def moved(self, old: Level, new: Level, point: Point) -> Point:
        """A point of one level as one of another, which knows no less of the places that run."""
        before = np.full(len(self.data.point_job), len(old.master.places))
        before[old.master.places] = np.arange(len(old.master.places))
        running = np.vstack([point.running, np.zeros((1, self.view.slots))])[before[new.master.places]]
        return Point(carried(old.master.structure, new.master.structure, point.structure), running)

    def keep_bound(self, level: Level, prices: Prices) -> Bound:
        """The bound at the master's prices, which is returned, and at prices between these and the best known; the better is kept."""
        certificate = best = self.certify(level, prices)
        if level.prices is not None and certificate.value < level.proven + SURE * abs(level.proven):
            mixed = prices.mixed(level.prices, FRESH)
            other = self.certify(level, mixed)
            if other.value > best.value:
                best, prices = other, mixed
        if best.value > level.proven:
            level.proven, level.prices = best.value, prices
        return certificate

    def _still_missing(self, level: Level, tolerance: float) -> bool:
        """Whether what the slots miss at the best point matters."""
        self.ask(level, level.best)
        return level.programs.missing()[1] > 0.5 * tolerance * abs(level.value)

    def ask(self, level: Level, point: Point) -> float:
        """The slots' answer at a point, kept as cuts; the point is the best where it is."""
        answer = level.programs.answer(*level.master.given(point))
        value = level.master.linear_cost(point) + float(answer.value.sum())
        level.master.add_cuts(level.master.keep(answer))
        if value < level.value:
            level.value, level.best = value, point
        return value

    def spread(self, level: Level, prices: Prices) -> Prices:
        """The prices of a level's master with those of the rows in the places of the whole structure."""
        rows = np.zeros(len(self.whole.keys))
        rows[[self.row_of[key] for key in level.master.structure.keys]] = prices.rows
        return replace(prices, rows=rows)

    def certify(self, level: Level, prices: Prices) -> Bound:
        """The bound of the level's own problem, over all of its columns, at the master's average prices; see `bound`."""
        return bound(replace(level.view, training=self.view.training), self.whole, self.power_limit, prices)

    def _worth(self, found: Bound) -> Floats:
        """[K]: the least reduced cost of the holdings of each lot."""
        place = self.whole.columns["n"]
        worth = np.full(len(self.data.lot_site), np.inf)
        held = place >= 0
        np.minimum.at(worth, self.data.holding_lot[held], found.reduced[place[held]])
        return worth

    def wanted(self, found: Bound, level: Level) -> Ints:
        """Lots left out that would pay at these prices, those that the bound suffers most from first."""
        worth = self._worth(found)
        place = self.whole.columns["n"]
        most = np.zeros(len(worth))
        np.maximum.at(most, self.data.holding_lot[place >= 0], self.whole.most[place[place >= 0]])
        worth[level.master.lots] = 0.0
        pays = np.flatnonzero(worth < -1e-7 * np.maximum(self.lot_cost, NOTHING))
        return pays[np.argsort(worth[pays] * most[pays], kind="stable")][:GROW_BY]

    def wanted_places(self, found: Bound, level: Level) -> Ints:
        """Points of jobs left out whose jobs would be done there for less than anywhere known."""
        points, job = self.view.training, self.data.point_job[self.view.training]
        charged = np.where(np.isin(points, level.master.places), 0.0, found.entering[self.whole.columns["y"][points]])
        result = []
        for j in np.unique(job):
            mine = np.flatnonzero((job == j) & (charged < -1e-6 * max(abs(level.proven), NOTHING)))
            result += points[mine[np.argsort(charged[mine], kind="stable")][:NEW_PLACES]].tolist()
        return np.array(sorted(result), dtype=np.int64)

    def lasting(self, level: Level, found: Bound, point: Point, most: int) -> Ints:
        """The places where jobs run, at the point or the best one, and the so many of each job that come nearest to being worth it."""
        places = level.master.places
        entering, job, y = found.entering[self.whole.columns["y"][places]], self.data.point_job[places], level.master.structure.columns["y"][places]
        stays = np.maximum(point.structure, level.best.structure)[y] > WHOLE
        for j in np.unique(job):
            mine = np.flatnonzero(job == j)
            stays[mine[np.argsort(entering[mine], kind="stable")[:most]]] = True
        return places[stays]

    def grown(self, level: Level, more: Ints, points: Ints) -> Level:
        """The level with more lots and points of jobs."""
        old = level.master
        return self.rebuilt(level, np.union1d(old.lots, more), np.union1d(old.places, points), np.ones(len(old.cut_of), dtype=bool))

    def rebuilt(self, level: Level, lots: Ints, places: Ints, cuts: np.ndarray) -> Level:
        """The level over other lots and points, with these of its cuts; new lots get the least prices that the cuts allow."""
        old = level.master
        fresh = self.level(lots, places, level.programs if np.array_equal(lots, old.lots) else None)
        if fresh.programs is not level.programs:
            fresh.programs.go_on(level.programs)
        new = np.setdiff1d(lots, old.lots)
        among = fresh.programs.points[np.isin(fresh.programs.points, self.view.use_point[np.isin(self.view.use_lot, new)])]
        used = np.isin(np.arange(len(old.kept)), old.cut_of[cuts, 0])
        for kept, wanted in zip(old.kept, used, strict=True):
            if kept is not None and wanted:
                kept = self._widened(level, fresh, kept, among)
            fresh.master.kept.append(kept if wanted else None)
        fresh.master.restore(old.cut_of[cuts], old.unused[cuts])
        fresh.master.go_on(old, cuts)
        fresh.best = self.moved(level, fresh, level.best)
        fresh.value, fresh.proven, fresh.prices, fresh.dearer = level.value, level.proven, level.prices, level.dearer
        for _ in range(level.dearer if fresh.programs is not level.programs else 0):
            fresh.programs.raise_missing(DEARER)
        return fresh


def structure(data: PlanData, view: Slotwise, functional: str, build: Callable[[PlanData], Program]) -> Structure:
    """What is decided once, from the program on one slot per window."""
    windows = data.windows
    into = np.zeros((data.slots, windows))
    into[np.arange(data.slots), data.slot_window] = 1.0
    peak = np.zeros((*data.demand.shape[:2], windows))
    for w in range(windows):
        peak[:, :, w] = data.demand[:, :, data.slot_window == w].max(axis=2, initial=0.0)
    capacity, able = np.zeros(len(data.point_pool)), np.concatenate([view.serving, view.training])
    capacity[able] = data.point_capacity[able]
    short = replace(
        data, slot_window=np.arange(windows), slot_hours_s=data.slot_hours_s @ into, demand=peak, point_capacity=capacity,
        point_cost={name: values @ into for name, values in data.point_cost.items()},
        arc_cost={name: values @ into for name, values in data.arc_cost.items()},
        job_window_mask=(data.job_window_mask @ into) > 0 if len(data.job_work) else np.zeros((0, windows), dtype=bool),
    )  # fmt: skip
    return structure_of(build(short), short, functional)
