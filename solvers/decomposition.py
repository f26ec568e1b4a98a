"""Large joint programs: what is decided once is searched with cuts from the slots, which are solved one by one.

    coarse   the slots are merged, so that the first rounds cost little; lots that the bound asks for are added
    fine     the same over all slots, started at the coarse answer
    bound    over every column of the full problem, from the prices of the best round (certificate.py)
    whole    see whole.py: the same master with its integers whole, and the slots' answer to it

Each round solves the master within a box around the best point so far (trust region), asks the slots at what it finds, and
adds what they answer as cuts. See master.py and slot_programs.py. Linderoth and Wright, Computational Optimization and
Applications 24 (2003), for the box; Benders, Numerische Mathematik 4 (1962), for the cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.certificate import Bound, Prices, bound
from solvers.coarse import groupings
from solvers.data import Floats, Ints, PlanData
from solvers.hourwise import NOTHING, Slotwise, Structure, carried, structure_of
from solvers.master import Kept, Master, Point
from solvers.program import Program
from solvers.schedule import able
from solvers.slot_programs import SlotAnswer, SlotPrograms

TOLERANCE, COARSE_TOLERANCE = 2e-4, 1e-2  # of the linear part, relative
ROUNDS, COARSE_ROUNDS = 120, 60
FIRST_BOX, LEAST_BOX, LARGEST_BOX = 0.25, 0.01, 4.0
MISSING = 0.4  # price of a missing system in one slot, as a share of what the system costs over the horizon
DEARER, TIMES_DEARER = 5.0, 6  # how much dearer missing gets at once while something is, and how often at most
ENOUGH = 1e-6  # that is missing in all, in systems and the like
FRESH = 0.5  # share of a round's prices in those that are looked at; the rest is of the best so far
UNDONE = 3.0  # price of a job left undone, in its dearest place
STALLED = 6  # rounds without a better bound, the master free, after which a search ends
GROW_EVERY, GROW_BY = 4, 30  # rounds between additions of lots, and how many at once
MOST_GROUPS = 168  # of slots with a cut of their own
PLACES = 40  # points of each job that are looked at, cheapest first
PATTERNS = 3  # new ones of each job in a round

NONE = np.zeros(0, dtype=np.int64)
Say = Callable[[str], None]


@dataclass(slots=True)
class Level:
    """The search at one coarseness: the master with its slots' programs, the best point so far and what is proven."""

    group: Ints  # slot of this level for each slot of the problem
    master: Master
    programs: SlotPrograms
    best: Point
    value: float = np.inf
    proven: float = -np.inf
    bound: Bound | None = None
    prices: Prices | None = None
    dearer: int = 0  # times that missing was made dearer
    unit: float = 1.0  # systems that a box opens even where there are none

    @property
    def view(self) -> Slotwise:
        return self.master.view


class Decomposition:
    """One problem, in numbers near 1."""

    def __init__(self, data: PlanData, functional: str, build: Callable[[PlanData], Program], threads: int, say: Say,
                 left: Callable[[], float] = lambda: np.inf):  # fmt: skip
        self.data, self.functional, self.build, self.threads, self.say, self.left = data, functional, build, threads, say, left
        self.view = Slotwise.of(data, functional, np.flatnonzero(able(data)))
        self.power_limit = data.site_power_limit_w
        self.whole = structure(data, self.view, functional, build)
        self.row_of = {key: row for row, key in enumerate(self.whole.keys)}
        cost = data.holding_cost.get(functional, np.zeros(len(data.holding_lot)))
        self.lot_cost = np.zeros(len(data.lot_site))
        np.maximum.at(self.lot_cost, data.holding_lot, cost)
        self.undone = self._undone()

    def _undone(self) -> Floats:
        """Prices of jobs left undone, so that the master always has an answer: far above what the dearest place costs."""
        alpha = np.tile((np.maximum(self.lot_cost, NOTHING) / self.view.slots)[:, None], (1, self.view.slots))
        cost, _ = self.view.cheapest(self.view.training, alpha, np.zeros((self.data.sites, self.view.slots)))
        price, there = np.zeros(len(self.data.job_work)), np.isfinite(cost)
        width = np.zeros(len(self.data.point_job))
        np.add.at(width, self.view.use_point, self.view.use_systems * self.lot_cost[self.view.use_lot])
        np.maximum.at(price, self.data.point_job[self.view.training[there]], UNDONE * (cost[there] + width[self.view.training[there]]))
        return price + NOTHING

    # -- the way from coarse to fine -------------------------------------------------------------------------------

    def relax(self, tolerance: float = TOLERANCE) -> Level:
        """The linear part over all slots; `proven` holds for the full problem."""
        level = None
        for group in groupings(self.view):
            last = int(group.max()) + 1 == self.view.slots
            level = self._first(group) if level is None else self._finer(level, group)
            level = self.search(level, tolerance if last else max(tolerance, COARSE_TOLERANCE), ROUNDS if last else COARSE_ROUNDS, f"{int(group.max()) + 1} slots", exact=last)
        return level

    def level(self, group: Ints, lots: Ints, places: Ints) -> Level:
        """A level over these lots and these points of jobs, with nothing known yet."""
        view = self.view if int(group.max()) + 1 == self.view.slots else self.view.merged(group)
        inside = self._inside(lots)
        view = replace(view, training=places[inside[places]])
        part = self.whole.part(self.data, lots, view.training)
        groups = np.arange(view.slots) * min(MOST_GROUPS, view.slots) // view.slots
        master = Master(view, part, lots, groups, self.power_limit, self.undone)
        return Level(group, master, SlotPrograms(view, lots, self.power_limit, self._missing(lots), self.threads), Point(np.zeros(part.size), np.zeros(0)))

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

    def _first(self, group: Ints) -> Level:
        """The coarsest level, started with the lots that are cheapest for what they can do."""
        data, view = self.data, self.view
        rate = np.zeros(len(data.lot_site))
        mine = np.isin(view.use_point, view.serving) & (view.use_systems > 0)
        np.maximum.at(rate, view.use_lot[mine], data.point_capacity[view.use_point[mine]] / view.use_systems[mine])
        crude = self.lot_cost / np.maximum(rate, NOTHING)
        lots = set(np.argsort(crude, kind="stable")[: max(24, len(crude) // 4)].tolist())
        for site in range(data.sites):
            here = np.flatnonzero(data.lot_site == site)
            lots |= set(here[np.argsort(crude[here], kind="stable")][:3].tolist())
        alpha = np.tile((self.lot_cost / view.slots)[:, None], (1, view.slots))
        places = self._places(view, alpha, np.zeros((data.sites, view.slots)))
        lots |= set(view.use_lot[np.isin(view.use_point, places)].tolist())
        level = self.level(group, np.array(sorted(lots)), places)
        merged = level.view
        here = merged.seconds / view.seconds.sum()
        self.price(level, np.tile(self.lot_cost[:, None], (1, merged.slots)) * here, np.zeros((data.sites, merged.slots)), None)
        level.unit = float(data.demand.sum(axis=(0, 1)).max(initial=1.0) / np.median(rate[rate > 0]) / len(lots)) if (rate > 0).any() else 1.0
        level.best = Point(level.best.structure, self._any_patterns(level))
        return level

    def _places(self, view: Slotwise, alpha: Floats, sigma: Floats) -> Ints:
        """The cheapest points of each job at these prices."""
        cost, _ = view.cheapest(self.view.training, alpha, sigma)
        job, kept = self.data.point_job[self.view.training], []
        for j in np.unique(job):
            mine = np.flatnonzero((job == j) & np.isfinite(cost))
            kept += self.view.training[mine[np.argsort(cost[mine], kind="stable")][:PLACES]].tolist()
        return np.array(sorted(kept), dtype=np.int64)

    def _any_patterns(self, level: Level) -> Floats:
        """One pattern of each job taken whole."""
        shares, seen = np.zeros(len(level.master.patterns)), set()
        for i, (point, _) in enumerate(level.master.patterns):
            if (job := int(self.data.point_job[point])) not in seen:
                seen.add(job)
                shares[i] = 1.0
        return shares

    def _finer(self, level: Level, group: Ints) -> Level:
        """A level with more slots, started at a coarser one's point, patterns and prices."""
        view, master, found = self.view, level.master, level.bound
        held = np.zeros(len(self.data.lot_site))
        n = master.structure.columns["n"]
        np.add.at(held, self.data.holding_lot[n >= 0], level.best.structure[n[n >= 0]])
        used = [p for share, (p, _) in zip(level.best.patterns, master.patterns, strict=True) if share > NOTHING]
        cost = np.where(np.isin(self.view.training, used), -np.inf, found.estimate.job_cost)
        job, kept = self.data.point_job[view.training], []
        for j in np.unique(job):
            mine = np.flatnonzero((job == j) & (cost < np.inf))
            kept += view.training[mine[np.argsort(cost[mine], kind="stable")][:PLACES]].tolist()
        places = np.array(sorted(kept), dtype=np.int64)
        near = self._worth(found) < 0.03 * self.lot_cost
        lots = np.flatnonzero((held > NOTHING) | near | np.isin(np.arange(len(held)), view.use_lot[np.isin(view.use_point, places[: PLACES * len(np.unique(job))])]))
        finer = self.level(group, lots, places)
        first = np.array([level.group[np.flatnonzero(group == t)[0]] for t in range(finer.view.slots)])
        share = finer.view.seconds / level.view.seconds[first]
        reach_before, reach = level.view.reachable, finer.view.reachable
        patterns = []
        for weight, (point, pattern) in zip(level.best.patterns, master.patterns, strict=True):
            if weight > NOTHING and point in finer.master.places:
                j = self.data.point_job[point]
                whole = np.divide(pattern, reach_before[j], out=np.zeros_like(pattern), where=reach_before[j] > 0)
                finer.master.add_pattern(point, whole[first] * reach[j])
                patterns.append(weight)
        finer.best = Point(carried(master.structure, finer.master.structure, level.best.structure), np.array(patterns))
        finer.unit = level.unit
        self._hand_down(level, finer, first, share)
        self.price(finer, finer.bound.estimate.alpha, finer.prices.sigma, None)
        finer.best = Point(finer.best.structure, longer(finer.best.patterns, len(finer.master.patterns)))
        return finer

    def _hand_down(self, level: Level, finer: Level, first: Ints, share: Floats) -> None:
        """Prices and the cuts in use of a coarser level, spread over its slots and made to fit the costs of each."""
        view, master = finer.view, level.master
        prices = level.prices
        finer.prices = Prices(*(values[:, first] * share for values in (prices.alpha, prices.sigma, prices.beta, prices.delta)), prices.rows)
        finer.bound = self.certify(finer, finer.prices)
        finer.proven = finer.bound.value
        used = master.unused <= 1
        for answer in np.unique(master.cut_of[used, 0]):
            kept = master.kept[answer]
            here = np.isin(first, master.cut_of[used & (master.cut_of[:, 0] == answer), 1])
            sigma, beta, delta = (values[first].T * share for values in (kept.sigma, kept.beta, kept.delta))
            alpha = np.zeros((len(self.data.lot_site), view.slots))
            alpha[master.lots] = kept.alpha[first].T * share
            alpha = view.least_alpha(beta, sigma, alpha)
            gate = np.maximum(delta[view.arc_demand] - beta[self.data.arc_pool] - view.arc_cost, 0.0)
            answered = SlotAnswer(np.zeros(view.slots), alpha[finer.master.lots].T, sigma.T, beta.T, delta.T, gate.T)
            finer.master.add_cuts(finer.master.keep(answered), np.unique(finer.master.group[here]))

    # -- one level -------------------------------------------------------------------------------------------------

    def search(self, level: Level, tolerance: float, rounds: int, name: str, *, exact: bool = False) -> Level:
        """Rounds until value and bound are within the tolerance of each other."""
        box = FIRST_BOX
        self.ask(level, level.best)
        still = 0
        for number in range(rounds):
            before_proven = level.proven
            found = level.master.solve(self._box(level, box))
            if found is None:  # nothing within the box meets the structure's rows
                box = max(2 * box, 0.3)
                continue
            model, point, prices = found
            prices = self.spread(level, prices)
            if level.prices is not None:
                prices = prices.mixed(level.prices, FRESH)
            certificate = self.certify(level, prices)
            if certificate.value > level.proven:
                level.proven, level.bound, level.prices = certificate.value, certificate, prices
            close = level.value - model < tolerance * abs(level.value)
            if number % 5 == 0 or close:
                self.say(
                    f"{name}, round {number}: value {level.value:.6g}, proven {level.proven:.6g}, {len(level.master.cut_of)} cuts, "
                    f"{len(level.master.patterns)} patterns, {len(level.master.lots)} lots, box {box:.2g}"
                )
            if level.value - level.proven <= tolerance * abs(level.value):
                if not exact or level.dearer == TIMES_DEARER or not self._still_missing(level, tolerance):
                    break
                level.dearer += 1
                level.programs.raise_missing(DEARER)
                level.value = np.inf
                self.ask(level, level.best)
                continue
            still = still + 1 if close and box >= LARGEST_BOX and level.proven <= before_proven else 0
            if self.left() <= 0 or still >= STALLED:
                break
            wanted = self.wanted(certificate, level)
            if len(wanted) and (number % GROW_EVERY == 0 or close):
                level = self.grown(level, wanted)
                continue
            if close:
                box = min(4 * box, LARGEST_BOX)
            self.price(level, certificate.estimate.alpha, prices.sigma, certificate)
            level.master.purge()
            before, point = level.value, Point(point.structure, longer(point.patterns, len(level.master.patterns)))
            level.best = Point(level.best.structure, longer(level.best.patterns, len(level.master.patterns)))
            gain = (before - self.ask(level, point)) / max(before - model, NOTHING)
            box = min(1.5 * box, LARGEST_BOX) if gain > 0.5 else max(0.6 * box, LEAST_BOX) if gain < 0 else box
        return level

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

    def _box(self, level: Level, box: float) -> tuple[Floats, Floats] | None:
        if box >= 3:
            return None
        structure, centre = level.master.structure, level.best
        reach = np.full(structure.size, 2 * box)
        n = structure.columns["n"]
        n = n[n >= 0]
        reach[n] = box * (centre.structure[n] + level.unit)
        place = np.concatenate([centre.structure, longer(centre.patterns, len(level.master.patterns))])
        reach = np.concatenate([reach, np.full(len(level.master.patterns), 2 * box)])
        return np.maximum(place - reach, 0.0), place + reach

    def spread(self, level: Level, prices: Prices) -> Prices:
        """The prices of a level's master with those of the rows in the places of the whole structure."""
        rows = np.zeros(len(self.whole.keys))
        rows[[self.row_of[key] for key in level.master.structure.keys]] = prices.rows
        return replace(prices, rows=rows)

    def certify(self, level: Level, prices: Prices, least: Floats | float = 0.0, most: Floats | None = None) -> Bound:
        """The bound of the level's own problem, over all of its columns, at the master's average prices; see `bound`."""
        return bound(replace(level.view, training=self.view.training), self.whole, self.power_limit, prices, least, most)

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
        return pays[np.argsort((worth * most)[pays], kind="stable")][:GROW_BY]

    def grown(self, level: Level, more: Ints, points: Ints = NONE) -> Level:
        """The level with more lots and points of jobs; cuts keep their prices, and new lots the least prices that they allow."""
        old = level.master
        lots = np.union1d(old.lots, more)
        inside = self._inside(lots)
        cheap = self._places(level.view, level.bound.estimate.alpha, level.prices.sigma) if level.bound else self.view.training
        places = np.union1d(old.places_array, np.union1d(cheap[inside[cheap]], points))
        grown = self.level(level.group, lots, places)
        for point, pattern in old.patterns:
            grown.master.add_pattern(point, pattern)
        place, new = np.searchsorted(lots, old.lots), np.setdiff1d(lots, old.lots)
        touched = np.zeros(len(self.data.point_pool), dtype=bool)
        touched[self.view.use_point[np.isin(self.view.use_lot, new)]] = True
        among = self.view.serving[touched[self.view.serving] & inside[self.view.serving]]
        for kept in old.kept:
            alpha = np.zeros((len(self.data.lot_site), level.view.slots))
            if kept is not None:
                alpha[old.lots] = kept.alpha.T
                alpha = level.view.least_alpha(kept.beta.T, kept.sigma.T, alpha, among)
                kept = Kept(alpha[lots].T, kept.sigma, kept.beta, kept.delta, kept.gate, kept.constant)
            grown.master.kept.append(kept)
        grown.master.restore(old.cut_of, old.unused)
        del place
        grown.best = Point(carried(old.structure, grown.master.structure, level.best.structure), level.best.patterns)
        grown.value, grown.proven, grown.bound, grown.prices, grown.unit, grown.dearer = level.value, level.proven, level.bound, level.prices, level.unit, level.dearer
        for _ in range(level.dearer):
            grown.programs.raise_missing(DEARER)
        return grown

    def price_at(self, level: Level, prices: Prices, points: Ints) -> None:
        """Adds the cheapest pattern of each of these points at the master's prices."""
        if len(points):
            alpha = level.view.least_alpha(prices.beta, prices.sigma, prices.alpha)
            _, patterns = level.view.cheapest(points, alpha, prices.sigma, patterns=True)
            for point, pattern in zip(points, patterns, strict=True):
                level.master.add_pattern(int(point), pattern)

    def price(self, level: Level, alpha: Floats, sigma: Floats, found: Bound | None, among: Ints | None = None) -> None:
        """Adds the cheapest patterns of each job at these prices, where they are cheaper than those that are known."""
        master, places = level.master, level.view.training if among is None else among
        if not len(places):
            return
        cost, patterns = level.view.cheapest(places, alpha, sigma, patterns=True)
        order = cost
        if found is not None:  # with what the structure's rows charge the place
            order = found.entering[self.whole.columns["y"][places]]
            cost = np.where(order < -1e-7 * np.maximum(np.abs(cost), 1.0), cost, np.inf)
        job = self.data.point_job[places]
        for j in np.unique(job):
            mine = np.flatnonzero((job == j) & np.isfinite(cost))
            for i in mine[np.argsort(order[mine], kind="stable")][:PATTERNS]:
                master.add_pattern(int(places[i]), patterns[i])


def longer(values: Floats, size: int) -> Floats:
    return np.concatenate([values, np.zeros(size - len(values))])


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
