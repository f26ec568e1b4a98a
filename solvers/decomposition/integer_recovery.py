"""Integer recovery: from a first-stage point to a plan with integer counts that every slot can be dispatched with.

The subproblems say what each slot misses; the recovery master reschedules jobs or adds systems, until nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from solvers.arrays import Bools, Floats
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.linking import FirstStagePoint, Linking
from solvers.decomposition.reformulation import INTEGRALITY_TOL, RecoveryModel, Reformulation
from solvers.decomposition.root_relaxation import fit_schedule
from solvers.decomposition.slots import VALUE_TOL
from solvers.decomposition.subproblems import SlotSolution
from solvers.interface import SolverError

CountBounds = tuple[Floats, Floats]  # (lower, upper) of the counts of systems


@dataclass(frozen=True, slots=True)
class IntegerRecoverySettings:
    """Tuning constants of integer recovery; slack is in requests/s, systems and watts of the scaled units."""

    master_time_share: float = 0.04  # time limit of one solve of the master, as a share of the time left
    min_time_s: float = 1.0  # time limit [s] of one solve, at least
    max_rounds: int = 100  # vectors of counts that are evaluated
    free_rounds: int = 3  # rounds before systems are only added, and none removed
    row_tol: float = 1e-9  # feasibility tolerance of rows
    total_slack_tol: float = 1e-8  # slack over all slots up to which nothing is missing
    plan_slack_tol: float = 1e-7  # slack over all slots up to which a point is a plan
    polishing_rounds: int = 3  # rounds that a plan with some slack may take to lose it
    unavailable_factor: float = 100.0  # factor on penalties of what cannot be added, where systems can
    penalty_growth: float = 5.0  # factor on all penalties where slack is cheaper than avoiding it
    schedule_step: float = 0.5  # share of the way that jobs move to the hours of the master, counts unchanged
    count_neighbourhood: int = 2  # systems of each holding that a count may differ from the LP relaxation
    gap_share: float = 0.1  # MIP gap of the master, as a share of the asked gap
    tightening: float = 1e-7  # share of a limit (at least 1 unit) by which a new schedule stays below it


SETTINGS = IntegerRecoverySettings()


class IntegerRecovery:
    """Recovery within bounds of the first stage, which fix its binaries."""

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
        """`adding`: rounds in which missing systems are added directly, which is dearer than asking the master, and faster."""
        self.adding = adding
        # systems that jobs are to leave free, where none can be added
        self.left_over = np.zeros((len(model.master.fleet_options), dec.view.slots))
        self.price = np.zeros((len(model.master.placements), dec.view.slots))  # cost of running a job in a slot
        self.dec, self.model, self.first_stage = dec, model, model.master.first_stage
        self.lower, self.upper = lower.copy(), upper.copy()
        self.gap, self.seed, self.seconds_left = gap, seed, seconds_left
        place = self.first_stage.columns["n"]
        self.n = place[place >= 0]
        model.master.hold(SETTINGS.row_tol)
        model.subproblems.hold(SETTINGS.row_tol)
        if adding:
            model.subproblems.raise_slack_prices(SETTINGS.unavailable_factor, but_systems=True)

    def run(self, point: FirstStagePoint, duals: Duals, certificate: LagrangianBound) -> Incumbent | None:
        """Find a plan near a point of the LP relaxation with these duals; None where none is found without anything missing."""
        self._add_dual_cuts(duals, certificate)
        return self._recover(point)

    def _add_dual_cuts(self, duals: Duals, certificate: LagrangianBound) -> None:
        """Add the duals of the LP relaxation as cuts of all slots."""
        view, master = self.dec.view, self.model.master
        gate = np.maximum(duals.delta[view.arc_demand] - duals.beta[view.data.arc_pool] - view.arc_cost, 0.0)
        parts = (certificate.cut.alpha[master.fleet_options], duals.sigma, duals.beta, duals.delta, gate)
        master.add_cuts(master.keep(SlotSolution(np.zeros(view.slots), *(values.T for values in parts))))
        self.price = master.running_cost + master.uses.T @ parts[0] + master.watts.T @ parts[1]

    def _evaluate(self, point: FirstStagePoint) -> float:
        return self.dec.evaluate(self.model, point)

    def _recover(self, point: FirstStagePoint) -> Incumbent | None:
        """Find a plan near a point: fix integer counts, evaluate the subproblems, cut off or add what they miss, and repeat.

        Starts from the counts of the point where these are integer, otherwise from the counts of least cost by the cuts known so far."""
        n = point.first_stage[self.n]
        given = bool((np.abs(n - np.round(n)) <= INTEGRALITY_TOL).all())
        near = (
            np.maximum(np.floor(n) - SETTINGS.count_neighbourhood, 0.0),
            np.minimum(np.ceil(n) + SETTINGS.count_neighbourhood, self.first_stage.upper[self.n]),
        )
        self.lower[self.n], self.upper[self.n] = (np.round(n), near[1]) if given else near
        found = (-np.inf, point) if given else None
        before, lacked, only_add_from = None, np.inf, 0 if given else SETTINGS.free_rounds
        plan, rounds_with_plan = None, 0
        full = np.zeros(len(self.left_over), dtype=bool)  # fleet options without room, whose shortage costs more
        for number in range(SETTINGS.max_rounds):
            if number and self.seconds_left() <= 0:
                break
            found = found or self._reschedule(before, near) or self._solve_master()
            if found is None:
                widened = self._widen_bounds(near)
                if widened is None:
                    self.dec.log("counts: none that the master knows of")
                    break
                near = widened
                continue
            master_value, rounded = found[0], self._round(found[1])
            if rounded is None:
                self.dec.log("counts: jobs not done")
                if not given:
                    break
                given, found = False, None  # with the given counts jobs are too short: let the master choose
                self.lower[self.n], self.upper[self.n] = near
                continue
            given = False
            if number < self.adding:
                rounded = self._price_exhausted_options(rounded, full)
            if plan is None and before is not None and self._same_counts(before, rounded):
                rounded = before.interpolate(rounded, SETTINGS.schedule_step)
            value, missing, found = self._evaluate(rounded), self.model.subproblems.missing()[0], None
            self.dec.log(
                f"counts: {self.dec.format_value(master_value)} by what was known, {self.dec.format_value(value)} once asked, {missing:.3g} missing"
            )
            if missing <= SETTINGS.plan_slack_tol:
                plan = Incumbent(self.model, rounded, value)
            rounds_with_plan += plan is not None
            done = missing <= SETTINGS.total_slack_tol or rounds_with_plan > SETTINGS.polishing_rounds
            if plan is not None and done:
                break
            more = self._add_missing_systems(rounded) if plan is None and number < self.adding else None
            if more is not None:
                found, before, lacked = (-np.inf, more), rounded, missing
                continue
            self._add_feasibility_cuts(rounded)
            if missing < lacked or before is None or not self._same_counts(before, rounded):
                before, lacked = rounded, missing
            if number >= only_add_from:
                self._forbid_removal(rounded, near[1])
        return plan

    def _solve_master(self) -> tuple[float, FirstStagePoint] | None:
        """Solve the master for integer counts within the bounds; return (value, point), or None where it finds none."""
        left = self.seconds_left()
        seconds = max(SETTINGS.master_time_share * left, SETTINGS.min_time_s), max(left, SETTINGS.min_time_s)
        return self.model.master.solve_mip(
            (self.lower, self.upper), self.first_stage.integer, SETTINGS.gap_share * self.gap, seconds, self.seed
        )

    def _widen_bounds(self, near: CountBounds) -> CountBounds | None:
        """Take back one restriction of the master that may have made it infeasible; return the bounds of counts, or None without any."""
        if (self.lower[self.n] > near[0]).any():  # no count may fall
            self.lower[self.n], self.upper[self.n] = near
            return near
        if self.model.master.spare:  # feasibility cuts ask for a margin
            self.model.master.drop_feasibility_cuts()
            return near
        if (self.upper[self.n] < self.first_stage.upper[self.n]).any():  # counts stay near the point
            self.upper[self.n] = self.first_stage.upper[self.n]
            return near[0], self.upper[self.n].copy()
        return None

    def _round(self, point: FirstStagePoint) -> FirstStagePoint | None:
        """Round the integer columns and run each job just until it is done; None where that breaks a row."""
        integer = np.where(self.first_stage.integer, np.round(point.first_stage), point.first_stage)
        rounded = self._complete_jobs(FirstStagePoint(integer, point.running))
        return None if rounded is None or not self._is_feasible(rounded.first_stage) else rounded

    def _same_counts(self, point: FirstStagePoint, other: FirstStagePoint) -> bool:
        """Whether two points have the same counts of systems."""
        return np.array_equal(point.first_stage[self.n], other.first_stage[self.n])

    def _price_exhausted_options(self, point: FirstStagePoint, full: Bools) -> FirstStagePoint:
        """Raise the penalty on systems of fleet options without room, add these to `full`, and move jobs away from them if possible."""
        filled = self._exhausted_options(point) & ~full
        self.model.subproblems.raise_system_slack_prices(filled, SETTINGS.unavailable_factor)
        full |= filled
        return nearest_schedule(self.model.master, point, self.price, self.left_over) or point

    def _forbid_removal(self, point: FirstStagePoint, upper: Floats) -> None:
        """Bound counts below by the counts of a point, and above by `upper` or a few systems more."""
        most = self.first_stage.upper[self.n]
        self.lower[self.n] = np.minimum(point.first_stage[self.n], most)
        self.upper[self.n] = np.minimum(np.maximum(upper, self.lower[self.n] + SETTINGS.count_neighbourhood), most)

    def _add_missing_systems(self, point: FirstStagePoint) -> FirstStagePoint | None:
        """Add the systems that a point lacks in any slot, where there is room for them; jobs are to leave the others free.

        None where that changes nothing."""
        data, fleet_options, window = self.dec.data, self.model.master.fleet_options, self.dec.view.window
        lacking, first_stage, n = (
            self.model.subproblems.lacking(),
            point.first_stage.copy(),
            self.first_stage.columns["n"],
        )
        covers, again = data.covers(), False
        for k in np.flatnonzero((lacking > SETTINGS.row_tol).any(axis=1)):
            for v in np.unique(window[lacking[k] > SETTINGS.row_tol]):
                short = (window == v) & (lacking[k] > SETTINGS.row_tol)
                more = np.ceil(lacking[k, short].max() - SETTINGS.row_tol)
                held = np.flatnonzero((data.holding_option == fleet_options[k]) & covers[:, v] & (n >= 0))
                free = self._column_slack(first_stage)
                room = [column for column in n[held] if free[column] >= more]
                if room:
                    first_stage[room[0]] += more
                else:
                    again |= (self.left_over[k, short] == 0).any()
                    self.left_over[k, short] += lacking[k, short]
        return FirstStagePoint(first_stage, point.running) if again or (first_stage > point.first_stage).any() else None

    def _exhausted_options(self, point: FirstStagePoint) -> Bools:
        """Mark the fleet options of which no further system can be held."""
        data, n = self.dec.data, self.first_stage.columns["n"]
        there = np.flatnonzero(n >= 0)
        full = np.ones(len(data.option_site), dtype=bool)
        full[data.holding_option[there[self._column_slack(point.first_stage)[n[there]] >= 1]]] = False
        return full[self.model.master.fleet_options]

    def _column_slack(self, first_stage: Floats) -> Floats:
        """Return how far each column can rise alone before a row or its bound stops it."""
        s = self.first_stage
        matrix, sides = s.matrix.tocoo(), s.matrix @ first_stage
        slack = np.where(
            matrix.data > 0, s.row_upper[matrix.row] - sides[matrix.row], sides[matrix.row] - s.row_lower[matrix.row]
        )
        room = s.upper - first_stage
        np.minimum.at(room, matrix.col, slack / np.maximum(np.abs(matrix.data), VALUE_TOL))
        return room + INTEGRALITY_TOL

    def _reschedule(
        self, point: FirstStagePoint | None, near: tuple[Floats, Floats]
    ) -> tuple[float, FirstStagePoint] | None:
        """Reschedule the jobs of a point by the master with its counts fixed; return (value, point).

        None where the cuts rule that out, or while counts may still fall."""
        if point is None or not (self.lower[self.n] > near[0]).any():
            return None
        fixed = self.lower.copy(), self.upper.copy()
        fixed[0][self.n] = fixed[1][self.n] = point.first_stage[self.n]
        return self.model.master.solve(fixed, max(self.seconds_left(), SETTINGS.min_time_s))

    def _add_feasibility_cuts(self, point: FirstStagePoint) -> None:
        """Add feasibility cuts of the slots that lack something at a point; raise all penalties where none needs to."""
        master, subproblems = self.model.master, self.model.subproblems
        answer = subproblems.shortage(master.slot_inputs(point))
        short = np.unique(master.group[answer.value > SETTINGS.row_tol])
        if len(short):
            master.add_cuts(master.keep(answer, short=True), short)
        else:
            subproblems.raise_slack_prices(SETTINGS.penalty_growth)

    def _complete_jobs(self, point: FirstStagePoint) -> FirstStagePoint | None:
        """Run every job just until it is done; None where one cannot be."""
        placements = self.model.master.placements
        max_running = self.model.master.max_running(point.first_stage)
        running = [
            fit_schedule(self.dec, int(p), share, limit)
            for p, share, limit in zip(placements, point.running, max_running, strict=True)
        ]
        return (
            None
            if any(share is None for share in running)
            else FirstStagePoint(point.first_stage, np.array(running).reshape(point.running.shape))
        )

    def _is_feasible(self, values: Floats) -> bool:
        """Whether first-stage values satisfy their rows and bounds."""
        s, sides = self.first_stage, self.first_stage.matrix @ values
        return bool(
            (values <= s.upper + 1e-9).all()
            and (sides <= s.row_upper + 1e-9).all()
            and (sides >= s.row_lower - 1e-9).all()
        )


@dataclass(frozen=True, slots=True)
class Incumbent:
    """Plan found: an integer first-stage point with running jobs, and its objective."""

    model: RecoveryModel
    point: FirstStagePoint
    value: float


def solve_slots(plan: Incumbent) -> tuple[SlotSolution, Floats, Floats] | None:
    """Solve the subproblems of a plan without slack; return (solution, flows [A, T], replicas [points, T]), or None where infeasible."""
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


def nearest_schedule(linking: Linking, point: FirstStagePoint, price: Floats, taken: Floats) -> FirstStagePoint | None:
    """Move jobs to the nearest hours at which they leave `taken` [fleet options, T] systems free in every slot, by a linear program.

    `price` [placements, T]: cost of running there in a slot. None where there are none."""
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
    wanted = point.first_stage[linking.first_stage.columns["y"][linking.placements]]
    above: Any = sparse.hstack([into, -into])  # the stubs of scipy know no sparse matrix here
    equal: Any = sparse.hstack([done, -done])[runs]
    found = linprog(
        np.concatenate([high + dear, high - dear]),
        A_ub=above,
        b_ub=row_upper - SETTINGS.tightening * np.maximum(row_upper, 1.0) - into @ now,
        A_eq=equal,
        b_eq=(wanted - done @ now)[runs],
        bounds=[(0.0, most) for most in np.concatenate([np.maximum(moves[place, slot] - now, 0.0), now]).tolist()],
        method="highs",
        options={"primal_feasibility_tolerance": SETTINGS.row_tol},
    )
    if found.x is None:
        return None
    running = np.zeros_like(before)
    more, less = np.split(found.x, 2)
    running[place, slot] = now + more - less
    return FirstStagePoint(point.first_stage, running)
