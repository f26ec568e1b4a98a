"""What is decided once made whole by branch and bound from within: much is decided at once where that costs little, and the search goes on
from a node that it left as long as there is time. Sites, designs and places of jobs are decided on merged slots or over all, counts over all.
Better choices are then looked at as they are proposed (proposals.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from solvers.apart import least_whole
from solvers.blocks import Blocks
from solvers.coarse import APART, APART_LARGE, grouping, groups_for
from solvers.data import Floats, Ints
from solvers.hourwise import NOTHING, Slotwise, carried
from solvers.interior import ITERATIONS, Inside, inside, taken_over
from solvers.proposals import NEARLY_DONE, Proposals, Within, done
from solvers.start import LEAST, PLACES, Linear, blocks, mattering, near_places, nearly

if TYPE_CHECKING:
    from solvers.decomposition import Decomposition

TOLERANCE = 5e-4  # of the value, how far from proven each look on merged slots may be
FINER = 42  # merged slots
FINE, FARTHER = 1e-4, 0.05  # of the value, how far from proven what was proposed is looked at, and beyond the best from where on not
ONE_BY_ONE, MANY_CERTAIN = 4, 5  # steps of large questions that are done one by one after several that were dear together, unless so many are certain
PARTS = 3  # so much of what is not certain is decided at a time, or less where that costs too much
CERTAIN = 0.05  # how near to whole what is certain is
COSTS, COSTS_LARGE = 5e-4, 3e-3  # of the value, that more than one decision may cost together
FEW_JOBS = 3  # that are offered more places where something whole is known
STEEP = 5e-3  # of the value, that a step may cost where questions are large as long as another is left that may cost less
DEEPER = 1e-3  # of the value, that each decision is taken to cost there as long as nothing whole is known
HOPELESS = (0.2, 9.0)  # of the value, that a step may cost, first and where nothing was found: prices of what there is no room for grow beyond
PATIENCE = 50  # iterations of a look, unless nothing is found
AGAIN, AGAIN_LARGE = 1, 4  # times the looks that the first choices took, that better ones on merged slots may take, also where questions are large
MOVED, TRIED = 2, 3  # near the best: jobs that may be elsewhere, and looks that bring nothing better before all is looked at
UNMET = 30.0  # times what a demand pays in its dearest slot, that it costs where nothing carries it: a cut of what has no answer says by how much
LITTLE = 1e-4  # of the value, that this price may come to in an answer
WORTH = 1e-4  # of the value, that other choices must save
LACKING = 10.0  # times the value, that demand costs which nothing can serve
FAR = 1e-3  # of the value, that is as bad as a choice the other way
SHORTEST, LONGEST, LONGER = 0.1, 5.0, 1.5  # seconds that whole choices near by may take, at least and at most; how much longer where the last brought nothing
PROVING = 20.0  # such seconds, from which on nothing is taken to be left where nothing was found
ROUGHLY = 0.01  # how far from proven they may be
WHOLE = 1e-6  # how far from whole a number may be
MORE, DEAR = 0.001, 10.0  # how much more systems are to be worth where counts are rounded together, and how dear it is to lack something
PLACES_LARGE, LEAST_LARGE = 160, 2.0  # places of jobs, about, and systems of a kind from which on it matters, where questions are large


@dataclass(frozen=True, slots=True)
class Chosen:
    """Bounds of the whole structure's columns that fix what was decided, and the linear part within them."""

    least: Floats
    most: Floats
    found: Inside


class Step(NamedTuple):
    """How sure a column is, and what it is to be."""

    sure: float
    column: int
    goal: float


@dataclass(frozen=True, slots=True)
class Node:
    """What is left to be looked at: bounds, at least at this value, from where to start, with so many `undecided`; `at_once`: where that is their
    answer, and more than so many were decided together."""

    value: float
    undecided: int
    least: Floats
    most: Floats
    start: Inside
    at_once: int = 0


@dataclass(slots=True)
class Offered:
    """To which jobs more places were offered."""

    fewest: float = np.inf  # jobs, while nothing whole was known
    decided: set[bytes] = field(default_factory=set)

    def may(self, state: Chosen, jobs: Ints, best: Chosen | None) -> bool:
        """Whether these jobs, that have no place yet, may be: before anything whole is known as long as they are fewer each time, then a few once."""
        if best is None:
            return 0 < len(jobs) < self.fewest
        return 0 < len(jobs) <= FEW_JOBS and state.least.tobytes() not in self.decided

    def note(self, state: Chosen, jobs: Ints) -> None:
        self.fewest = min(self.fewest, len(jobs))
        self.decided.add(state.least.tobytes())


def _doubtful(ranked: list[Step]) -> int:
    """How many steps are not certain."""
    return max(sum(step.sure < 1 - CERTAIN for step in ranked), 1)


def counted(dec: Decomposition) -> np.ndarray:
    """Which of the whole structure's columns are counts of systems."""
    result, place = np.zeros(dec.whole.size, dtype=bool), dec.whole.columns["n"]
    result[place[place >= 0]] = True
    return result


def choices(dec: Decomposition, linear: Linear, left: Callable[[], float], proposals: Proposals | None = None) -> tuple[Chosen, Ints, Ints] | None:
    """(the best choices found, group of each slot, lots that were looked at); None where none were found. On merged slots, or where there are
    `proposals` to know of it the first ones over all slots."""
    whole, y = dec.whole, dec.whole.columns["y"]
    places = nearly(dec, linear.found, linear.at, PLACES_LARGE if linear.large else PLACES)
    most = whole.most.copy()
    most[y[np.setdiff1d(np.flatnonzero(y >= 0), places)]] = 0.0
    group = np.arange(dec.view.slots) if proposals is not None else grouping(dec.view, groups_for(dec.view, FINER), APART_LARGE if linear.large else APART)
    costs = COSTS_LARGE if linear.large else COSTS
    lots = mattering(dec, linear.found, places, LEAST_LARGE if linear.large else LEAST)
    search = Search(dec, dec.view.merged(group), lots, whole.integer & ~counted(dec), TOLERANCE, costs, 0 if proposals is not None else AGAIN_LARGE if linear.large else AGAIN, left, linear.large)
    search.proposals = proposals
    start, onto = (linear.found, None) if proposals is not None else (linear.merged, linear.group[np.unique(group, return_index=True)[1]])
    root = search.look(np.zeros(whole.size), most, start, onto=onto)
    if root is not None:
        dec.say(f"choices: {dec.amount(root.found.value)} before any, {len(search.lots)} lots, {len(places)} places")
    found = None if root is None else search.run(root)
    return None if found is None else (found, group, search.lots)


class Search:
    """Over the slots of a view and these lots, for the columns `fixing` of the whole structure."""

    def __init__(self, dec: Decomposition, view: Slotwise, lots: Ints, fixing: np.ndarray, tolerance: float, costs: float, again: int, left: Callable[[], float], large: bool = False):
        """`costs`: of the value, that more than one decision may cost together; `again`: times the looks that the first whole answer took, that
        better ones may take."""
        self.dec, self.view, self.lots, self.fixing, self.tolerance, self.costs, self.again, self.left, self.large = dec, view, lots, fixing, tolerance, costs, again, left, large
        self.looks, self.iterations, self.counts, self.paced = 0, ITERATIONS, counted(dec), False
        self.one_by_one = 0  # steps that are done one by one, since several were dear together
        self.proposals: Proposals | None = None
        self.unmet: Floats | None = None  # what demand costs that nothing carries, where some may be left so
        self.job, self.site = np.full(dec.whole.size, -1), np.full(dec.whole.size, -1)  # of each choice of a place
        y = dec.whole.columns["y"]
        self.job[y[y >= 0]], self.site[y[y >= 0]] = dec.data.point_job[y >= 0], dec.view.site[y >= 0]
        self.place_of = np.full(dec.whole.size, -1)  # of a window in which a job may run somewhere: the choice of the place
        run = dec.whole.columns["run"]
        self.place_of[run[run >= 0]] = np.broadcast_to(y[:, None], run.shape)[run >= 0]

    def run(self, root: Chosen) -> Chosen | None:
        """The best that is whole; what takes long to tell is passed over, unless nothing is found."""
        self.iterations = PATIENCE
        found = self._searched(root, self.costs, HOPELESS[0])
        self.iterations = ITERATIONS
        return found or self._searched(root, 0.0, HOPELESS[1])

    def look(self, least: Floats, most: Floats, start: Inside, cutoff: float = np.inf, onto: Ints | None = None) -> Chosen | None:
        """The linear part within bounds; `onto` [slots]: those of the start, if it has others."""
        dec, opened = self.dec, np.append(most, 1.0)[self.dec.whole.columns["open"]] > 0
        least, most, self.looks = least.copy(), most.copy(), self.looks + 1
        y = dec.whole.columns["y"]
        most[y[np.flatnonzero((y >= 0) & ~opened[dec.view.site])]] = 0.0
        least, most, broken = dec.whole.forced(least, np.maximum(least, most))
        lots = self.lots[opened[dec.data.lot_site[self.lots]]]
        places = dec.view.training[most[y[dec.view.training]] > 0]
        count = np.bincount(dec.data.point_job[places], minlength=len(dec.data.job_work))
        if broken or (count == 0).any() or self.left() <= 0:
            return None
        program = blocks(dec, self.view, lots, places, least, most, self.unmet)
        same = np.arange(self.view.slots) if onto is None else onto
        if self.proposals is not None and program.impossible:
            self._know_lacking(program, start, cutoff)
        told = None if self.proposals is None else lambda found, above: self.proposals.know(dec.spread(found), (least, most), above)
        found = inside(program, self.tolerance, self.left, taken_over(start.blocks, start.warm, program, same, self.paced), cutoff, self.iterations, told)
        if found is None:
            return None
        if told is not None:
            told(found, -np.inf)
        if found.lacking > LITTLE:
            dec.say(f"{dec.amount(found.value)}, of which {found.lacking:.2%} is the price of what nothing carries")
            return None
        return Chosen(least, most, found)

    def _know_lacking(self, program: Blocks, start: Inside, cutoff: float) -> None:
        """A cut where demand is left that nothing at all can serve: it alone is dearer than the best, and so is what would serve it."""
        prices, demand = self.dec.spread(start), self.view.demand
        lacking = ~program.carrying & (demand > 0)
        if not lacking.any() or prices.delta.shape != demand.shape:
            return
        dear = prices.delta + np.where(lacking, LACKING * max(abs(cutoff), abs(start.value), 1.0) / np.where(lacking, demand, 1.0), 0.0)
        beta, demands = prices.beta.copy(), self.view.arc_demand
        np.maximum.at(beta, self.dec.data.arc_pool, np.where(lacking[demands], dear[demands] - self.view.arc_cost, 0.0))
        absent = np.ones_like(prices.alpha, dtype=bool)
        absent[program.linked.lots] = ~program.there
        self.proposals.know(replace(prices, delta=dear, beta=beta, alpha=self.dec.view.alpha_of(absent, beta, prices.sigma, prices.alpha)))

    def proposed(self, proposals: Proposals, best: Chosen, enough: Callable[[float], float], within: Within | None = None, near: bool = False, worth: float = -np.inf) -> Chosen:
        """The best of what is proposed, or proposed `within` a part of all there is, until it is below what is of `worth`, or so much is proven as is
        `enough` for its value, or nothing better is known of. `near`: first of what is near the best, and again wherever that is a better one."""
        self.fixing, self.proposals, self.iterations, self.tolerance = proposals.fixing, proposals, PATIENCE, min(self.tolerance, FINE)
        dear = None if (self.fixing & self.counts).any() else self._dear(best)  # a system more may cost more than any price of what is left
        times: dict[bytes, int] = {}
        longest, before, tried = LONGEST, (best.found.value, proposals.proven), 0 if near else TRIED
        while self.left() > 0 and best.found.value > worth and proposals.proven < enough(best.found.value):
            now = best.found.value, proposals.proven
            longest, before = LONGEST if now != before else LONGER * longest, now
            part = self._near_by(best) if tried < TRIED else None
            below = best.found.value if part or within else min(enough(best.found.value), best.found.value)  # what leaves no more than that is not looked for
            goal = proposals.propose(below, min(self.left(), longest), part or within)
            if goal is None and part is not None:
                tried = TRIED
                continue
            if goal is None and not within and longest < PROVING and proposals.proven < below and not proposals.excluded:  # not in time
                continue
            if goal is None:
                self.dec.say(f"nothing better proposed than {self.dec.amount(best.found.value)}")
                self.dec.standing.tell(bound=proposals.proven)
                break
            chosen = np.where(self.fixing, goal, 0.0)
            key = chosen.tobytes()
            times[key] = times.get(key, 0) + 1
            if times[key] > 2 and part is not None:
                tried = TRIED
                continue
            if times[key] > 2 and (self.fixing & self.counts).any():
                break
            if times[key] > 2:
                proposals.exclude(chosen)
                continue
            every, lots = np.arange(len(self.dec.data.lot_site)), self._with_lots_of(goal)
            self.lots, self.unmet = (lots, dear) if times[key] == 1 else (every, None)  # what kinds that are left out would save weakens a cut, and a price of what is left
            state = self.look(chosen, np.where(self.fixing, goal, self.dec.whole.most), best.found, best.found.value + FARTHER * abs(best.found.value))
            self.lots = lots
            better = state is not None and state.found.value < self._worth(best)
            tried = 0 if better and near else tried + 1
            best = best if state is None or state.found.value >= best.found.value else state
            self.dec.say(f"proposed: {self.dec.amount(np.inf if state is None else state.found.value)}, best choices {self.dec.amount(best.found.value)}")
            self.dec.standing.tell(bound=proposals.proven)
        self.proposals = self.unmet = None
        return best

    def _dear(self, best: Chosen) -> Floats | None:
        """[D, T]: UNMET times what each demand pays in its dearest slot of an answer, at the slots' lengths; None where that answer is of other slots."""
        delta = self.dec.spread(best.found).delta
        if delta.shape != self.view.demand.shape:
            return None
        dearest = delta.max(axis=1, initial=0.0)
        return np.repeat(UNMET * np.maximum(dearest, NOTHING * dearest.max(initial=1.0))[:, None], self.view.slots, axis=1)

    def _near_by(self, best: Chosen) -> Within | None:
        """The same sites and designs, and all but MOVED jobs at the places where they are; None without jobs."""
        y, run, n = (self.dec.whole.columns[block].ravel() for block in ("y", "run", "n"))
        values = np.where(self.fixing, np.round(self.values(best)), 0.0)
        ones = y[y >= 0][values[y[y >= 0]] > 0.5]
        free = ~self.fixing
        for block in (y, run, n):
            free[block[block >= 0]] = True
        return Within(np.where(free, 0.0, values), np.where(free, self.dec.whole.most, values), ones, MOVED) if len(ones) else None

    def _with_lots_of(self, values: Floats) -> Ints:
        """The lots, and those that these values hold or run jobs on."""
        y, n = (np.append(values, 0.0)[self.dec.whole.columns[block]] for block in ("y", "n"))
        used = self.dec.view.use_lot[np.isin(self.dec.view.use_point, np.flatnonzero(y > 0.5))]
        return np.unique(np.concatenate([self.lots, self.dec.data.holding_lot[n >= LEAST], used]))

    def values(self, chosen: Chosen) -> Floats:
        """Of the whole structure's columns."""
        return carried(chosen.found.blocks.structure, self.dec.whole, chosen.found.point().structure)

    def _searched(self, root: Chosen, costs: float, hopeless: float) -> Chosen | None:
        """The best that is whole under a node, depth first until there is any; as it nearly is where time ends before."""
        best, state, last, nodes, at_once, most, fewest = None, root, root, [], self.fixing.size, 1, np.inf
        stuck, enough, offered = None, np.inf, Offered()
        while True:
            if best is None and self.left() <= 0:
                self.dec.say(f"no time for {len(self.open(last) or [])} that are open")
                return self.rounded(last)
            ranked = [] if state is None else self.open(state)
            if ranked and len(ranked) < fewest:
                last, fewest = state, len(ranked)
            if ranked is None:
                self.dec.say("no whole choices near by, or not in time")
                stuck, state = state, None
            if ranked:
                most = max(most, _doubtful(ranked))
                further = self._further(state, ranked, nodes, costs, self._cutoff(state.found.value, best, hopeless), at_once)
                stuck, state, at_once = state, further, self.fixing.size
                continue
            if state is not None:
                self.dec.say(f"whole: {self.dec.amount(state.found.value)}")
                best, enough, stuck = state, min(enough, (1 + self.again) * self.looks), None
                if best.found.value - root.found.value <= self.tolerance * abs(best.found.value):  # looks say no more
                    return best
            lacking = last if best is None else stuck if self.large else None
            if lacking is not None and not (self.fixing & self.counts).any() and self.left() > 0:
                homeless = self._homeless(lacking)
                if offered.may(lacking, homeless, best):
                    offered.note(lacking, homeless)
                    state = self._widened(lacking, homeless, self._cutoff(lacking.found.value, best, hopeless))
                    if state is not None:
                        continue
            stuck = None
            nodes = [node for node in nodes if best is None or (node.value < self._worth(best) and not node.at_once)]
            if not nodes or self.left() <= 0 or self.looks >= enough:
                return best
            each = ((best or last).found.value - root.found.value) / most  # that deciding may cost
            if best is None and self.large:
                each = max(each, DEEPER * abs(root.found.value))
            deep = best is None and (self.fixing & self.counts).any()  # counts have no end of nodes that are as good
            node = nodes.pop() if deep else nodes.pop(min(range(len(nodes)), key=lambda i: (nodes[i].at_once > 0, nodes[i].value + each * nodes[i].undecided)))
            at_once = node.at_once or at_once
            state = Chosen(node.least, node.most, node.start) if node.at_once else self.look(node.least, node.most, node.start, self._cutoff(node.value, best, hopeless))

    def rounded(self, state: Chosen) -> Chosen:
        """With all that is open as it nearly is."""
        while left_open := self.open(state, up=True):
            state = Chosen(*self._as_it_is(state, left_open), state.found)
        return state

    def _homeless(self, state: Chosen) -> Ints:
        """The jobs that have no place yet."""
        return np.setdiff1d(np.arange(len(self.dec.data.job_work)), self.job[(self.job >= 0) & (state.least > 0.5)])

    def _widened(self, state: Chosen, jobs: Ints, cutoff: float) -> Chosen | None:
        """With more places for these jobs: of those near the linear answer there is room for none."""
        dec, y = self.dec, self.dec.whole.columns["y"]
        opened = np.append(state.most, 1.0)[dec.whole.columns["open"]] > 0
        more = near_places(dec, dec.certify(dec.spread(state.found), self.view).entering, jobs, opened)
        self.lots = np.union1d(self.lots, dec.view.use_lot[np.isin(dec.view.use_point, more)])
        most = state.most.copy()
        most[y[more]] = dec.whole.most[y[more]]
        dec.say(f"{len(more)} places for the {len(jobs)} jobs that have none")
        return self.look(state.least, most, state.found, cutoff)

    def _worth(self, best: Chosen) -> float:
        """Below which others are better."""
        return best.found.value - WORTH * abs(best.found.value)

    def _cutoff(self, value: float, best: Chosen | None, hopeless: float) -> float:
        return value + hopeless * max(abs(value), 1.0) if best is None else self._worth(best)

    def open(self, state: Chosen, up: bool = False) -> list[Step] | None:
        """What is not decided, surest first: counts where nothing else is left, as they follow, `up` where rows allow if asked; else what whole
        choices near by have, of a job its place, windows after it. None where there are no whole choices."""
        values, free = self.values(state), self.fixing & (state.least < state.most)
        if not (free & ~self.counts).any():
            at, goal = np.flatnonzero(free), self._counts_near(state, values) if up else None
            goal = np.round(values) if goal is None else goal
            return sorted((Step(1 - abs(values[c] - np.round(values[c])), int(c), float(goal[c])) for c in at), reverse=True)
        goal = self._near(state, values)
        if goal is None:
            return None
        at = np.flatnonzero(free & ~self.counts & ~((self.place_of >= 0) & free[self.place_of]) & ((self.job < 0) | (goal > 0.5)))
        return sorted((Step(1 - abs(values[c] - goal[c]), int(c), float(goal[c])) for c in at), reverse=True)

    def _near(self, state: Chosen, values: Floats) -> Floats | None:
        """Whole choices that the rows of what is decided once allow, with every job done in the windows in which it runs, least far from these
        values and from paying,  min sum |x - v| + reduced cost x / FAR of the value.  None where there are none."""
        cost = np.where(self.counts, 0.0, 1 - 2 * values) + self._reduced(state.found) / (FAR * max(abs(state.found.value), 1.0))
        enough = done(self.dec, self.view, state.most)
        return self._cheapest(cost, self.fixing & ~self.counts, state.least, state.most, enough, np.full(enough.shape[0], -NEARLY_DONE))

    def _counts_near(self, state: Chosen, values: Floats) -> Floats | None:
        """Whole counts next to these values that cost least, with systems at each site in each window worth what they were and a little more, that
        leave the power that was used and jobs their systems: what they lack of that costs DEAR times as much. None where there are none in time."""
        (worth, idle, slack), (used, peak), dec = self._worth_and_idle(state.found), self._used_by_jobs(state.found), self.dec
        wanted = self.fixing & self.counts
        down, up = np.clip(np.floor(values + WHOLE), state.least, state.most), np.clip(np.ceil(values - WHOLE), state.least, state.most)
        least, most = np.where(wanted, down, state.least), np.where(wanted, up, state.most)
        watts = dec.data.holding_power_w > 0
        watt = np.median(dec.lot_cost[dec.data.holding_lot[watts]] / dec.data.holding_power_w[watts]) if watts.any() else 0.0
        system = np.where(used.indptr[1:] > used.indptr[:-1], used @ dec.whole.cost / np.maximum(used.sum(axis=1), 1.0), 0.0)
        at_least = np.concatenate([(1 + MORE) * (worth @ values), -(idle @ values) - slack, np.ceil(peak - WHOLE)])
        price = DEAR * np.concatenate([np.ones(worth.shape[0]), np.full(idle.shape[0], watt), system])
        return self._cheapest(dec.whole.cost, wanted, least, most, sparse.vstack([worth, -idle, used]).tocsr(), at_least, price)

    def _cheapest(
        self, cost: Floats, wanted: np.ndarray, least: Floats, most: Floats, others: sparse.csr_array, at_least: Floats, price: Floats | None = None
    ) -> Floats | None:
        """The point between bounds that costs least with what is wanted whole, by the rows of what is decided once and other ones, which may lack
        something at a price if there is one; None where there is none, or not in time."""
        whole, moves = self.dec.whole, np.flatnonzero(most > least)
        if not len(moves):
            return least
        matrix = sparse.vstack([whole.matrix, others]).tocsr()
        lower, upper = np.append(whole.row_lower, at_least), np.append(whole.row_upper, np.full(len(at_least), np.inf))
        given, part = matrix @ least, matrix[:, moves]
        rows, lacks = np.flatnonzero(np.diff(part.indptr)), 0 if price is None else len(price)
        short = sparse.csr_array((np.ones(lacks), (whole.matrix.shape[0] + np.arange(lacks), np.arange(lacks))), shape=(matrix.shape[0], lacks))
        program = sparse.hstack([part, short]).tocsr()[rows].tocsc()
        found = least_whole(np.append(cost[moves], price if lacks else []), program, ((lower - given)[rows], (upper - given)[rows]),
                            (np.zeros(len(moves) + lacks), np.append((most - least)[moves], np.full(lacks, np.inf))),
                            np.append(wanted[moves], np.zeros(lacks, dtype=bool)), ROUGHLY, min(max(self.left(), SHORTEST), LONGEST))  # fmt: skip
        if found.x is None:
            return None
        result = least.copy()
        result[moves] += found.x[: len(moves)]
        return np.where(wanted, np.round(result), result)

    def _reduced(self, found: Inside) -> Floats:
        """Reduced costs of the whole structure's columns, 0 for those that do not move."""
        reduced = np.zeros(found.blocks.structure.size)
        reduced[found.blocks.moving] = found.at.w["m"]
        return carried(found.blocks.structure, self.dec.whole, reduced)

    def _worth_and_idle(self, found: Inside) -> tuple[sparse.csr_array, sparse.csr_array, Floats]:
        """([site window, columns] what systems are worth there at the prices of an answer, and what they draw idling; half the power that jobs
        leave in every slot there)."""
        o, whole, sites, place = found.blocks, self.dec.whole, self.dec.data.lot_site, self._place(found)
        held, worth = o.linked.systems.tocoo(), (found.at.w["installed"] @ o.in_window).ravel()
        lot, window = np.divmod(held.row, o.windows)
        row = sites[o.linked.lots[lot]] * o.windows + window
        idle, shape = o.linked.idle.tocoo(), (o.sites * o.windows, whole.size)
        slack = np.full((o.windows, o.sites), np.inf)
        np.minimum.at(slack, o.window, np.where(o.limited[:, None], found.at.z["power"] + o.watts @ found.at.z["x"], np.inf).T)
        known = sparse.csr_array((held.data * worth[held.row], (row, place[held.col])), shape=shape)
        return known, sparse.csr_array((idle.data, (idle.row, place[idle.col])), shape=shape), np.where(np.isfinite(slack), slack / 2, np.inf).T.ravel()

    def _used_by_jobs(self, found: Inside) -> tuple[sparse.csr_array, Floats]:
        """([lot window, columns] systems held there, the most of them that jobs take in a slot of an answer), where jobs take any."""
        o, place = found.blocks, self._place(found)
        taken = np.zeros((o.windows, o.lots))
        np.maximum.at(taken, o.window, (o.job_uses @ found.point().running).T)
        rows, held = np.flatnonzero(taken.T > WHOLE), o.linked.systems.tocoo()
        every = sparse.csr_array((held.data, (held.row, place[held.col])), shape=(held.shape[0], self.dec.whole.size))
        return every[rows], taken.T.ravel()[rows]

    def _place(self, found: Inside) -> Ints:
        """Of each column of the structure of an answer, that of the whole one."""
        part = found.blocks.structure
        place, position = np.full(part.size, -1), carried(part, self.dec.whole, 1.0 + np.arange(part.size)).astype(np.int64) - 1
        place[position[position >= 0]] = np.flatnonzero(position >= 0)
        return place

    def _further(self, state: Chosen, ranked: list[Step], nodes: list[Node], costs: float, cutoff: float, at_once: int) -> Chosen | None:
        """The state with as many of the surest decided, `at_once` at most, as cost little together, which is then a node for fewer; or with one,
        which is then a node the other way."""
        certain = min(sum(step.sure >= 1 - CERTAIN for step in ranked), at_once)
        rest = min(-(-(len(ranked) - certain) // PARTS), at_once - certain)
        self.one_by_one = max(self.one_by_one - 1, 0) if certain < MANY_CERTAIN else 0
        while costs and certain + rest > 1 and self.left() > 0 and not self.one_by_one:
            little = min(state.found.value + costs * abs(state.found.value), cutoff)
            look = self.look(*self._as_it_is(state, ranked[: certain + rest]), state.found, little)
            if look is not None and look.found.value < little:
                self.dec.say(f"{self.dec.amount(look.found.value)}, {certain + rest} of {len(ranked)} decided")
                nodes.append(Node(state.found.value, _doubtful(ranked), state.least, state.most, state.found, (certain + rest) // 2))
                return look
            certain, rest = (certain, rest // 2) if rest else (certain // 2, 0)
            if self.large and certain < MANY_CERTAIN:
                self.one_by_one = ONE_BY_ONE
        column, goal = ranked[0].column, ranked[0].goal
        value, least, most = self.values(state)[column], state.least.copy(), state.most.copy()
        if self.job[column] >= 0:
            most[column] = 0.0
        elif value < goal:
            most[column] = goal - 1
        else:
            least[column] = goal + 1
        nodes.append(Node(state.found.value, _doubtful(ranked), least, np.maximum(least, most), state.found))
        steep = min(state.found.value + STEEP * max(abs(state.found.value), 1.0), cutoff) if self.large else cutoff
        decided = self._as_it_is(state, ranked[:1])
        look = self.look(*decided, state.found, steep)
        if look is None or look.found.value >= steep:
            nodes += [Node(steep, _doubtful(ranked), *decided, state.found)] if steep < cutoff else []
            return None
        self.dec.say(f"{self.dec.amount(look.found.value)}, 1 of {len(ranked)} decided")
        return look

    def _as_it_is(self, state: Chosen, ranked: list[Step]) -> tuple[Floats, Floats]:
        """Bounds with these steps done, and sites open where jobs are to run."""
        least, most = state.least.copy(), state.most.copy()
        opened = self.dec.whole.columns["open"]
        for _, column, goal in ranked:
            if self.job[column] < 0:
                least[column] = most[column] = np.clip(goal, least[column], most[column])
        for _, column, _ in ranked:
            if self.job[column] < 0:
                continue
            mine = self.job == self.job[column]
            least[mine] = most[mine] = 0.0
            least[column] = most[column] = 1.0
            gate = opened[self.site[column]]
            if gate >= 0 and self.fixing[gate] and state.most[gate] > 0:
                least[gate] = most[gate] = 1.0
        return least, most
