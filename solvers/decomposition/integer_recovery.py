"""From counts that are whole to a plan that every slot has an answer to: the slots are asked what they miss, and the master finds other hours
for the jobs or adds systems, until they miss nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from solvers.arrays import Floats
from solvers.decomposition.lagrangian_bound import Bound, Prices
from solvers.decomposition.linking import Linked, Point
from solvers.decomposition.reformulation import WHOLE, Decomposition, Level
from solvers.decomposition.root_relaxation import within
from solvers.decomposition.slots import NOTHING
from solvers.decomposition.subproblems import SlotAnswer
from solvers.interface import SolverError

COUNTED, LEAST_S = 0.04, 1.0  # of the time left, that one set of counts may take to find, and seconds that anything may
COUNTS, FEW = 100, 3  # sets of counts that are looked at, at most, and those before what is missing is only added
EXACT, IN_ALL, NOTHING_LEFT = (
    1e-9,
    1e-8,
    1e-7,
)  # how far rows may be broken, what all slots may so be short of, and what may be missing for there to be a plan
CLOSER = 3  # times that other hours are looked for, where next to nothing is missing, with nothing missing
RATHER = 100.0  # times the price of watts and requests that are missing, where systems are added: these can be
DEARER = 5.0  # how much dearer missing gets where it is cheaper than what it takes
HALFWAY = 0.5  # how far hours of jobs go to those of the master, while the counts stay
NEARBY = 2  # systems more or fewer of a kind than linear counts have that are looked at
SHARE = 0.1  # of the asked gap, that one step may leave


class Counts:
    """At a level over what the choices leave, which are fixed by bounds of its structure."""

    def __init__(
        self,
        dec: Decomposition,
        level: Level,
        least: Floats,
        most: Floats,
        gap: float,
        seed: int,
        left: Callable[[], float],
        adding: int = 0,
    ):
        """`adding`: times that systems are added right where they are missing before the master is asked, which costs more and is sooner done."""
        self.adding = adding
        self.left_over = np.zeros(
            (len(level.master.fleet_options), dec.view.slots)
        )  # systems that jobs are to leave, where there is none
        self.price = np.zeros((len(level.master.places), dec.view.slots))  # of a job that runs in a slot
        self.dec, self.level, self.structure, self.least, self.most = (
            dec,
            level,
            level.master.structure,
            least.copy(),
            most.copy(),
        )
        self.gap, self.seed, self.left = gap, seed, left
        place = self.structure.columns["n"]
        self.n = place[place >= 0]
        level.master.hold(EXACT)
        level.programs.hold(EXACT)
        if adding:
            level.programs.raise_missing(RATHER, but_systems=True)

    def run(self, point: Point, prices: Prices, certificate: Bound) -> WholePlan | None:
        """The plan near a point, known at these prices; None where none is found that misses nothing."""
        self._know(prices, certificate)
        return self._counted(point)

    def _know(self, prices: Prices, certificate: Bound) -> None:
        """The prices as cuts of all slots."""
        view, master = self.dec.view, self.level.master
        gate = np.maximum(prices.delta[view.arc_demand] - prices.beta[view.data.arc_pool] - view.arc_cost, 0.0)
        parts = (certificate.estimate.alpha[master.fleet_options], prices.sigma, prices.beta, prices.delta, gate)
        master.add_cuts(master.keep(SlotAnswer(np.zeros(view.slots), *(values.T for values in parts))))
        self.price = master.running_cost + master.uses.T @ parts[0] + master.watts.T @ parts[1]

    def _ask(self, point: Point) -> float:
        return self.dec.ask(self.level, point)

    def _counted(self, point: Point) -> WholePlan | None:
        """The plan near the point: with its counts, where they are whole, or those that cost least by what the master knows, and what is missing
        added."""
        n = point.structure[self.n]
        given = bool((np.abs(n - np.round(n)) <= WHOLE).all())
        near = np.maximum(np.floor(n) - NEARBY, 0.0), np.minimum(np.ceil(n) + NEARBY, self.structure.most[self.n])
        self.least[self.n], self.most[self.n] = (np.round(n), near[1]) if given else near
        found, before, lacked, added_from = (-np.inf, point) if given else None, None, np.inf, 0 if given else FEW
        plan, closer = None, 0
        full = np.zeros(len(self.left_over), dtype=bool)  # kinds with no room for more, which is dearer to miss
        for number in range(COUNTS):
            if number and self.left() <= 0:
                break
            seconds = max(COUNTED * self.left(), LEAST_S), max(self.left(), LEAST_S)
            found = (
                found
                or self._hours(before, near)
                or self.level.master.solve_nearly_whole(
                    (self.least, self.most), self.structure.integer, SHARE * self.gap, seconds, self.seed
                )
            )
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
            model, whole = (
                found[0],
                self._just_done(
                    Point(
                        np.where(self.structure.integer, np.round(found[1].structure), found[1].structure),
                        found[1].running,
                    )
                ),
            )
            if whole is None or not self._holds(whole.structure):
                self.dec.say("counts: jobs not done")
                if not given:
                    break
                given, found, (self.least[self.n], self.most[self.n]) = False, None, near  # those given were cut short
                continue
            given = False
            if number < self.adding:
                filled = self._no_room(whole) & ~full
                self.level.programs.raise_systems(filled, RATHER)
                full |= filled
                whole = (
                    nearest(self.level.master, whole, self.price, self.left_over) or whole
                )  # else what jobs lack is added like the rest
            if (
                plan is None
                and before is not None
                and np.array_equal(before.structure[self.n], whole.structure[self.n])
            ):
                whole = before.towards(whole, HALFWAY)
            value, missing, found = self._ask(whole), self.level.programs.missing()[0], None
            self.dec.say(
                f"counts: {self.dec.amount(model)} by what was known, {self.dec.amount(value)} once asked, {missing:.3g} missing"
            )
            if missing <= NOTHING_LEFT:
                plan = WholePlan(self.level, whole, value)
            closer += plan is not None
            if plan is not None and (missing <= IN_ALL or closer > CLOSER):
                break
            more = self._with_missing(whole) if plan is None and number < self.adding else None
            if more is not None:
                found, before, lacked = (-np.inf, more), whole, missing
                continue
            self._learn_missing(whole)
            if (
                before is None
                or missing < lacked
                or not np.array_equal(before.structure[self.n], whole.structure[self.n])
            ):
                before, lacked = whole, missing
            if number >= added_from:  # what they miss is added, and nothing taken away
                self.least[self.n] = np.minimum(whole.structure[self.n], self.structure.most[self.n])
                self.most[self.n] = np.minimum(
                    np.maximum(near[1], self.least[self.n] + NEARBY), self.structure.most[self.n]
                )
        return plan

    def _with_missing(self, point: Point) -> Point | None:
        """The point with as many systems more of each kind as it had too few of in any slot, where there is room for them; jobs are to leave what
        else was missing. None where that is nothing new."""
        data, fleet_options, window = self.dec.data, self.level.master.fleet_options, self.dec.view.window
        lacking, structure, n = self.level.programs.lacking(), point.structure.copy(), self.structure.columns["n"]
        covers, again = data.covers(), False
        for k in np.flatnonzero((lacking > EXACT).any(axis=1)):
            for v in np.unique(window[lacking[k] > EXACT]):
                short = (window == v) & (lacking[k] > EXACT)
                more = np.ceil(lacking[k, short].max() - EXACT)
                held = np.flatnonzero((data.holding_option == fleet_options[k]) & covers[:, v] & (n >= 0))
                free = self._room(structure)
                room = [column for column in n[held] if free[column] >= more]
                if room:
                    structure[room[0]] += more
                else:
                    again |= (self.left_over[k, short] == 0).any()
                    self.left_over[k, short] += lacking[k, short]
        return Point(structure, point.running) if again or (structure > point.structure).any() else None

    def _no_room(self, point: Point) -> np.ndarray:
        """[fleet options] of which no system more can be held."""
        data, n = self.dec.data, self.structure.columns["n"]
        there = np.flatnonzero(n >= 0)
        full = np.ones(len(data.option_site), dtype=bool)
        full[data.holding_option[there[self._room(point.structure)[n[there]] >= 1]]] = False
        return full[self.level.master.fleet_options]

    def _room(self, structure: Floats) -> Floats:
        """How far each column can go up by itself until a row or its bound stops it."""
        s = self.structure
        matrix, sides = s.matrix.tocoo(), s.matrix @ structure
        left = np.where(
            matrix.data > 0, s.row_upper[matrix.row] - sides[matrix.row], sides[matrix.row] - s.row_lower[matrix.row]
        )
        room = s.most - structure
        np.minimum.at(room, matrix.col, left / np.maximum(np.abs(matrix.data), NOTHING))
        return room + WHOLE

    def _hours(self, point: Point | None, near: tuple[Floats, Floats]) -> tuple[float, Point] | None:
        """(least value, other hours for the jobs with which the master knows of nothing missing), the counts of a point as they are; None
        where there are none, or counts are not yet only added to."""
        if point is None or not (self.least[self.n] > near[0]).any():
            return None
        fixed = self.least.copy(), self.most.copy()
        fixed[0][self.n] = fixed[1][self.n] = point.structure[self.n]
        return self.level.master.solve(fixed, max(self.left(), LEAST_S))

    def _learn_missing(self, point: Point) -> None:
        """The master learns what no slot can do with less, where something is missing at a point; where nothing need be, missing is too cheap."""
        master, programs = self.level.master, self.level.programs
        answer = programs.shortage(master.given(point))
        short = np.unique(master.group[answer.value > EXACT])
        if len(short):
            master.add_cuts(master.keep(answer, short=True), short)
        else:
            programs.raise_missing(DEARER)

    def _just_done(self, point: Point) -> Point | None:
        """The point with every job run just until it is done; None where one cannot be."""
        places = self.level.master.places
        most = self.level.master.most_running(point.structure)
        running = [
            within(self.dec, int(p), share, upper) for p, share, upper in zip(places, point.running, most, strict=True)
        ]
        return (
            None
            if any(share is None for share in running)
            else Point(point.structure, np.array(running).reshape(point.running.shape))
        )

    def _holds(self, values: Floats) -> bool:
        """Whether everything decided once keeps its rows and bounds."""
        s, sides = self.structure, self.structure.matrix @ values
        return bool(
            (values <= s.most + 1e-9).all()
            and (sides <= s.row_upper + 1e-9).all()
            and (sides >= s.row_lower - 1e-9).all()
        )


@dataclass(frozen=True, slots=True)
class WholePlan:
    """Everything decided once, whole, with the running of jobs, and what it costs."""

    level: Level
    point: Point
    value: float


def settle(plan: WholePlan) -> tuple[SlotAnswer, Floats, Floats] | None:
    """(answer of the slots, flows [A, T], replicas [points, T]) with nothing missing; None where a slot has no such answer."""
    level = plan.level
    for tolerance in (1e-9, 1e-7):
        level.programs.forbid_missing(tolerance)
        try:
            answer = level.programs.answer(*level.master.given(plan.point))
        except SolverError:
            continue
        flows, replicas, _ = level.programs.flows()
        return answer, flows, replicas
    return None


NEAR = 1e-7  # how much less than there is may be taken, of 1 and more


def nearest(linked: Linked, point: Point, price: Floats, taken: Floats) -> Point | None:
    """The point with jobs run at hours nearest to its own, so that in every slot they leave `taken` [fleet options, T] systems to others. `price`
    [places, T] of running there for a slot. None where there are none."""
    view, data, before = linked.view, linked.view.data, point.running
    systems, _, _, left = linked.given(point)
    systems, watts = systems - taken, left + linked.watts @ before
    moves = linked.most_running(point.structure)
    place, slot = np.nonzero(moves > 0)
    if not len(place):
        return point
    limits = sparse.vstack([linked.uses, linked.watts]).tocoo()
    most = np.vstack([systems, watts])
    by_slot = sparse.csr_array(
        (np.ones(len(place)), (slot * before.shape[0] + place, np.arange(len(place)))), shape=(before.size, len(place))
    )
    into = sparse.kron(sparse.eye_array(view.slots), limits).tocsr() @ by_slot
    upper = most.T.ravel()
    bound = np.flatnonzero((np.diff(into.indptr) > 0) & np.isfinite(upper))
    into, upper = into[bound], upper[bound]
    work = data.point_capacity[linked.places] / data.job_work[data.point_job[linked.places]]
    done = sparse.csr_array(
        (work[place] * view.seconds[slot], (place, np.arange(len(place)))), shape=(before.shape[0], len(place))
    )
    runs = np.flatnonzero(np.diff(done.indptr))
    now, dear = before[place, slot], price[place, slot]
    high = max(float(dear.max()), 1e-12)
    both = lambda matrix: sparse.hstack([matrix, -matrix])
    wanted = point.structure[linked.structure.columns["y"][linked.places]]
    found = linprog(
        np.concatenate([high + dear, high - dear]), A_ub=both(into), b_ub=upper - NEAR * np.maximum(upper, 1.0) - into @ now, A_eq=both(done)[runs], b_eq=(wanted - done @ now)[runs],
        bounds=np.column_stack([np.zeros(2 * len(place)), np.concatenate([np.maximum(moves[place, slot] - now, 0.0), now])]), method="highs",
        options={"primal_feasibility_tolerance": EXACT},
    )  # fmt: skip
    if found.x is None:
        return None
    running = np.zeros_like(before)
    more, less = np.split(found.x, 2)
    running[place, slot] = now + more - less
    return Point(point.structure, running)
