"""From counts that are whole to a plan that every slot has an answer to: the slots are asked what they miss, and the master finds other hours
for the jobs or adds systems, until they miss nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from solvers.arrays import Floats
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import FirstStagePoint, Linking
from solvers.decomposition.reformulation import WHOLE, RecoveryModel, Reformulation
from solvers.decomposition.root_relaxation import within
from solvers.decomposition.slots import NOTHING
from solvers.decomposition.subproblems import SlotSolution
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


class IntegerRecovery:
    """At a level over what the choices leave, which are fixed by bounds of its structure."""

    def __init__(
        self,
        dec: Reformulation,
        model: RecoveryModel,
        lower: Floats,
        upper: Floats,
        gap: float,
        seed: int,
        seconds_left: Callable[[], float],
        adding: int = 0,
    ):
        """`adding`: times that systems are added right where they are missing before the master is asked, which costs more and is sooner done."""
        self.adding = adding
        self.left_over = np.zeros(
            (len(model.master.fleet_options), dec.view.slots)
        )  # systems that jobs are to leave, where there is none
        self.price = np.zeros((len(model.master.placements), dec.view.slots))  # of a job that runs in a slot
        self.dec, self.model, self.first_stage, self.lower, self.upper = (
            dec,
            model,
            model.master.first_stage,
            lower.copy(),
            upper.copy(),
        )
        self.gap, self.seed, self.seconds_left = gap, seed, seconds_left
        place = self.first_stage.columns["n"]
        self.n = place[place >= 0]
        model.master.hold(EXACT)
        model.subproblems.hold(EXACT)
        if adding:
            model.subproblems.raise_slack_prices(RATHER, but_systems=True)

    def run(self, point: FirstStagePoint, duals: Duals, certificate: LagrangianBound) -> Incumbent | None:
        """The plan near a point, known at these prices; None where none is found that misses nothing."""
        self._add_dual_cuts(duals, certificate)
        return self._recover(point)

    def _add_dual_cuts(self, duals: Duals, certificate: LagrangianBound) -> None:
        """The prices as cuts of all slots."""
        view, master = self.dec.view, self.model.master
        gate = np.maximum(duals.delta[view.arc_demand] - duals.beta[view.data.arc_pool] - view.arc_cost, 0.0)
        parts = (certificate.cut.alpha[master.fleet_options], duals.sigma, duals.beta, duals.delta, gate)
        master.add_cuts(master.keep(SlotSolution(np.zeros(view.slots), *(values.T for values in parts))))
        self.price = master.running_cost + master.uses.T @ parts[0] + master.watts.T @ parts[1]

    def _evaluate(self, point: FirstStagePoint) -> float:
        return self.dec.evaluate(self.model, point)

    def _recover(self, point: FirstStagePoint) -> Incumbent | None:
        """The plan near the point: with its counts, where they are whole, or those that cost least by what the master knows, and what is missing
        added."""
        n = point.first_stage[self.n]
        given = bool((np.abs(n - np.round(n)) <= WHOLE).all())
        near = np.maximum(np.floor(n) - NEARBY, 0.0), np.minimum(np.ceil(n) + NEARBY, self.first_stage.upper[self.n])
        self.lower[self.n], self.upper[self.n] = (np.round(n), near[1]) if given else near
        found, before, lacked, added_from = (-np.inf, point) if given else None, None, np.inf, 0 if given else FEW
        plan, closer = None, 0
        full = np.zeros(len(self.left_over), dtype=bool)  # kinds with no room for more, which is dearer to miss
        for number in range(COUNTS):
            if number and self.seconds_left() <= 0:
                break
            seconds = max(COUNTED * self.seconds_left(), LEAST_S), max(self.seconds_left(), LEAST_S)
            found = (
                found
                or self._reschedule(before, near)
                or self.model.master.solve_mip(
                    (self.lower, self.upper), self.first_stage.integer, SHARE * self.gap, seconds, self.seed
                )
            )
            if found is None and (self.lower[self.n] > near[0]).any():  # nothing that may be added is enough
                self.lower[self.n], self.upper[self.n] = near
                continue
            if found is None and self.model.master.spare:  # what was asked for beyond what is missing is not there
                self.model.master.drop_feasibility_cuts()
                continue
            if found is None and (self.upper[self.n] < self.first_stage.upper[self.n]).any():  # as many as there may be
                self.upper[self.n] = self.first_stage.upper[self.n]
                near = near[0], self.upper[self.n].copy()
                continue
            if found is None:
                self.dec.log("counts: none that the master knows of")
                break
            master_value, rounded = (
                found[0],
                self._complete_jobs(
                    FirstStagePoint(
                        np.where(self.first_stage.integer, np.round(found[1].first_stage), found[1].first_stage),
                        found[1].running,
                    )
                ),
            )
            if rounded is None or not self._is_feasible(rounded.first_stage):
                self.dec.log("counts: jobs not done")
                if not given:
                    break
                given, found, (self.lower[self.n], self.upper[self.n]) = False, None, near  # those given were cut short
                continue
            given = False
            if number < self.adding:
                filled = self._exhausted_options(rounded) & ~full
                self.model.subproblems.raise_system_slack_prices(filled, RATHER)
                full |= filled
                rounded = (
                    nearest_schedule(self.model.master, rounded, self.price, self.left_over) or rounded
                )  # else what jobs lack is added like the rest
            if (
                plan is None
                and before is not None
                and np.array_equal(before.first_stage[self.n], rounded.first_stage[self.n])
            ):
                rounded = before.interpolate(rounded, HALFWAY)
            value, missing, found = self._evaluate(rounded), self.model.subproblems.missing()[0], None
            self.dec.log(
                f"counts: {self.dec.format_value(master_value)} by what was known, {self.dec.format_value(value)} once asked, {missing:.3g} missing"
            )
            if missing <= NOTHING_LEFT:
                plan = Incumbent(self.model, rounded, value)
            closer += plan is not None
            if plan is not None and (missing <= IN_ALL or closer > CLOSER):
                break
            more = self._add_missing_systems(rounded) if plan is None and number < self.adding else None
            if more is not None:
                found, before, lacked = (-np.inf, more), rounded, missing
                continue
            self._add_feasibility_cuts(rounded)
            if (
                before is None
                or missing < lacked
                or not np.array_equal(before.first_stage[self.n], rounded.first_stage[self.n])
            ):
                before, lacked = rounded, missing
            if number >= added_from:  # what they miss is added, and nothing taken away
                self.lower[self.n] = np.minimum(rounded.first_stage[self.n], self.first_stage.upper[self.n])
                self.upper[self.n] = np.minimum(
                    np.maximum(near[1], self.lower[self.n] + NEARBY), self.first_stage.upper[self.n]
                )
        return plan

    def _add_missing_systems(self, point: FirstStagePoint) -> FirstStagePoint | None:
        """The point with as many systems more of each kind as it had too few of in any slot, where there is room for them; jobs are to leave what
        else was missing. None where that is nothing new."""
        data, fleet_options, window = self.dec.data, self.model.master.fleet_options, self.dec.view.window
        lacking, first_stage, n = (
            self.model.subproblems.lacking(),
            point.first_stage.copy(),
            self.first_stage.columns["n"],
        )
        covers, again = data.covers(), False
        for k in np.flatnonzero((lacking > EXACT).any(axis=1)):
            for v in np.unique(window[lacking[k] > EXACT]):
                short = (window == v) & (lacking[k] > EXACT)
                more = np.ceil(lacking[k, short].max() - EXACT)
                held = np.flatnonzero((data.holding_option == fleet_options[k]) & covers[:, v] & (n >= 0))
                free = self._column_slack(first_stage)
                room = [column for column in n[held] if free[column] >= more]
                if room:
                    first_stage[room[0]] += more
                else:
                    again |= (self.left_over[k, short] == 0).any()
                    self.left_over[k, short] += lacking[k, short]
        return FirstStagePoint(first_stage, point.running) if again or (first_stage > point.first_stage).any() else None

    def _exhausted_options(self, point: FirstStagePoint) -> np.ndarray:
        """[fleet options] of which no system more can be held."""
        data, n = self.dec.data, self.first_stage.columns["n"]
        there = np.flatnonzero(n >= 0)
        full = np.ones(len(data.option_site), dtype=bool)
        full[data.holding_option[there[self._column_slack(point.first_stage)[n[there]] >= 1]]] = False
        return full[self.model.master.fleet_options]

    def _column_slack(self, first_stage: Floats) -> Floats:
        """How far each column can go up by itself until a row or its bound stops it."""
        s = self.first_stage
        matrix, sides = s.matrix.tocoo(), s.matrix @ first_stage
        slack = np.where(
            matrix.data > 0, s.row_upper[matrix.row] - sides[matrix.row], sides[matrix.row] - s.row_lower[matrix.row]
        )
        room = s.upper - first_stage
        np.minimum.at(room, matrix.col, slack / np.maximum(np.abs(matrix.data), NOTHING))
        return room + WHOLE

    def _reschedule(
        self, point: FirstStagePoint | None, near: tuple[Floats, Floats]
    ) -> tuple[float, FirstStagePoint] | None:
        """(least value, other hours for the jobs with which the master knows of nothing missing), the counts of a point as they are; None
        where there are none, or counts are not yet only added to."""
        if point is None or not (self.lower[self.n] > near[0]).any():
            return None
        fixed = self.lower.copy(), self.upper.copy()
        fixed[0][self.n] = fixed[1][self.n] = point.first_stage[self.n]
        return self.model.master.solve(fixed, max(self.seconds_left(), LEAST_S))

    def _add_feasibility_cuts(self, point: FirstStagePoint) -> None:
        """The master learns what no slot can do with less, where something is missing at a point; where nothing need be, missing is too cheap."""
        master, subproblems = self.model.master, self.model.subproblems
        answer = subproblems.shortage(master.slot_inputs(point))
        short = np.unique(master.group[answer.value > EXACT])
        if len(short):
            master.add_cuts(master.keep(answer, short=True), short)
        else:
            subproblems.raise_slack_prices(DEARER)

    def _complete_jobs(self, point: FirstStagePoint) -> FirstStagePoint | None:
        """The point with every job run just until it is done; None where one cannot be."""
        placements = self.model.master.placements
        max_running = self.model.master.max_running(point.first_stage)
        running = [
            within(self.dec, int(p), share, limit)
            for p, share, limit in zip(placements, point.running, max_running, strict=True)
        ]
        return (
            None
            if any(share is None for share in running)
            else FirstStagePoint(point.first_stage, np.array(running).reshape(point.running.shape))
        )

    def _is_feasible(self, values: Floats) -> bool:
        """Whether everything decided once keeps its rows and bounds."""
        s, sides = self.first_stage, self.first_stage.matrix @ values
        return bool(
            (values <= s.upper + 1e-9).all()
            and (sides <= s.row_upper + 1e-9).all()
            and (sides >= s.row_lower - 1e-9).all()
        )


@dataclass(frozen=True, slots=True)
class Incumbent:
    """Everything decided once, whole, with the running of jobs, and what it costs."""

    model: RecoveryModel
    point: FirstStagePoint
    value: float


def solve_slots(plan: Incumbent) -> tuple[SlotSolution, Floats, Floats] | None:
    """(answer of the slots, flows [A, T], replicas [points, T]) with nothing missing; None where a slot has no such answer."""
    model = plan.model
    for tolerance in (1e-9, 1e-7):
        model.subproblems.forbid_slack(tolerance)
        try:
            answer = model.subproblems.answer(*model.master.slot_inputs(plan.point))
        except SolverError:
            continue
        flows, replicas, _ = model.subproblems.flows()
        return answer, flows, replicas
    return None


NEAR = 1e-7  # how much less than there is may be taken, of 1 and more


def nearest_schedule(linking: Linking, point: FirstStagePoint, price: Floats, taken: Floats) -> FirstStagePoint | None:
    """The point with jobs run at hours nearest to its own, so that in every slot they leave `taken` [fleet options, T] systems to others. `price`
    [places, T] of running there for a slot. None where there are none."""
    view, data, before = linking.view, linking.view.data, point.running
    systems, _, _, free_watts = linking.slot_inputs(point)
    systems, watts = systems - taken, free_watts + linking.watts @ before
    moves = linking.max_running(point.first_stage)
    place, slot = np.nonzero(moves > 0)
    if not len(place):
        return point
    limits = sparse.vstack([linking.uses, linking.watts]).tocoo()
    available = np.vstack([systems, watts])
    by_slot = sparse.csr_array(
        (np.ones(len(place)), (slot * before.shape[0] + place, np.arange(len(place)))), shape=(before.size, len(place))
    )
    into = sparse.kron(sparse.eye_array(view.slots), limits).tocsr() @ by_slot
    row_upper = available.T.ravel()
    bound = np.flatnonzero((np.diff(into.indptr) > 0) & np.isfinite(row_upper))
    into, row_upper = into[bound], row_upper[bound]
    work = data.point_capacity[linking.placements] / data.job_work[data.point_job[linking.placements]]
    done = sparse.csr_array(
        (work[place] * view.seconds[slot], (place, np.arange(len(place)))), shape=(before.shape[0], len(place))
    )
    runs = np.flatnonzero(np.diff(done.indptr))
    now, dear = before[place, slot], price[place, slot]
    high = max(float(dear.max()), 1e-12)
    both = lambda matrix: sparse.hstack([matrix, -matrix])
    wanted = point.first_stage[linking.first_stage.columns["y"][linking.placements]]
    found = linprog(
        np.concatenate([high + dear, high - dear]), A_ub=both(into), b_ub=row_upper - NEAR * np.maximum(row_upper, 1.0) - into @ now, A_eq=both(done)[runs], b_eq=(wanted - done @ now)[runs],
        bounds=np.column_stack([np.zeros(2 * len(place)), np.concatenate([np.maximum(moves[place, slot] - now, 0.0), now])]), method="highs",
        options={"primal_feasibility_tolerance": EXACT},
    )  # fmt: skip
    if found.x is None:
        return None
    running = np.zeros_like(before)
    more, less = np.split(found.x, 2)
    running[place, slot] = now + more - less
    return FirstStagePoint(point.first_stage, running)
