"""Recovery master: the first stage with running jobs, and Benders cuts from the subproblems, for the recovery of integer counts.

Columns     m first stage; theta_g cost of the slots of a group g; undone_j; v_{p,g} share of the slots of g open to the job in which it
            runs at placement p: v_{p,t} = reach_{j,t} v_{p,g}.
Rows as in the first stage;  idle power;  progress  sum cap_p seconds_t v_{p,t} = work_j y_p;  running  v_{p,g} <= run_p;
            cuts  theta_g >= sum_t [constant - alpha N(m) - sigma (limit - idle power N) + (alpha uses + sigma watts) v - gates];
            feasibility cuts have 0 for theta_g.
A cut comes from the duals of the subproblems at one point, or from the duals of the LP relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.persistent_lp import RowGenerationLp
from solvers.decomposition.first_stage import FirstStage
from solvers.decomposition.linking import FirstStagePoint, Linking
from solvers.decomposition.slots import VALUE_TOL, SlotView
from solvers.decomposition.subproblems import SlotSolution

SMALL_SHORTAGE = (
    0.02  # shortage of a slot, in units of the search, up to which its feasibility cut asks for more than it lacks
)
SHORTAGE_MARGIN = 0.5  # share of a small shortage that its feasibility cut asks for beyond it
EQUALITY_TOL = 1e-6  # difference up to which two column values are equal


@dataclass(frozen=True, slots=True)
class CutDuals:
    """Duals of one solution of the subproblems, from which cuts are built."""

    alpha: Floats  # [T, fleet options]
    sigma: Floats  # [T, R]
    gate: Floats  # [T, W x R]: saving from serving a workload at a site
    constant: Floats  # [T]
    short: bool = False  # duals of the least slack: the cuts are feasibility cuts


class RecoveryMaster(Linking):
    """The first stage with running jobs, over some fleet options and the placements of the view."""

    def __init__(
        self,
        view: SlotView,
        first_stage: FirstStage,
        fleet_options: Ints,
        group: Ints,
        pace: Ints,
        power_limit: Floats,
        undone_price: Floats,
    ):
        super().__init__(view, first_stage, fleet_options, power_limit)
        self.group, self.groups = group, int(group.max()) + 1
        assigned = [(row, key[1][0]) for row, key in enumerate(first_stage.keys) if key[0] == "assigned"]
        self.assigned = np.array([row for row, _ in assigned], dtype=np.int64)
        self.undone_price = undone_price[[job for _, job in assigned]]  # penalty on a job left undone
        self.kept: list[CutDuals] = []
        self.spare = SHORTAGE_MARGIN
        self._into, self._paced = (
            sparse.csr_array(
                (np.ones(view.slots), (which, np.arange(view.slots))), shape=(int(which.max()) + 1, view.slots)
            )
            for which in (group, pace)
        )
        self._column_positions, self._pace = np.nonzero(self._at_pace(self.reach) > 0)
        self._pace_of = pace
        self._cell_group = np.zeros(self._paced.shape[0], dtype=np.int64)
        self._cell_group[pace] = group
        self._cell_group = self._cell_group[self._pace]
        self._program = self._build()

    def _at_pace(self, of_places: Floats) -> Floats:
        """Sum values [placements, T] over the slots in which jobs run at one pace: [placements, F]."""
        return np.asarray((self._paced @ of_places.T).T)

    def _build(self) -> RowGenerationLp:
        s, data, view = self.first_stage, self.view.data, self.view
        self.first_running = s.size + self.groups + len(self.undone_price)
        limit, cells = self.ungated_limit.ravel(), len(self._column_positions)
        self._idle_kept = np.flatnonzero(np.isfinite(limit) & (np.diff(self.idle.indptr) > 0))
        y = s.columns["y"][self.placements]
        rate = (
            data.point_capacity[self.placements] / data.job_work[data.point_job[self.placements]]
            if cells
            else np.zeros(len(self.placements))
        )
        work = (self._at_pace(self.reach * view.seconds) * rate[:, None])[self._column_positions, self._pace]
        window = np.zeros(self._paced.shape[0], dtype=np.int64)
        window[self._pace_of] = view.window
        cell, place = np.arange(cells), np.arange(len(self.placements))
        decided = sparse.vstack([
            s.matrix, self.idle[self._idle_kept],
            sparse.csr_array((-np.ones(len(place)), (place, y)), shape=(len(place), s.size)),
            sparse.csr_array((-np.ones(cells), (cell, self.switch[self._column_positions, window[self._pace]])), shape=(cells, s.size)),
        ])  # fmt: skip
        above = s.matrix.shape[0] + len(self._idle_kept)
        running = sparse.vstack([
            sparse.csr_array((above, cells)), sparse.csr_array((work, (self._column_positions, cell)), shape=(len(place), cells)),
            sparse.eye_array(cells, format="csr"),
        ])  # fmt: skip
        self.fixed_rows, jobs = decided.shape[0], len(self.undone_price)
        undone_columns = sparse.csr_array(
            (np.ones(jobs), (self.assigned, np.arange(jobs))), shape=(self.fixed_rows, jobs)
        )
        matrix = sparse.hstack(
            [decided, sparse.csr_array((self.fixed_rows, self.groups)), undone_columns, running]
        ).tocsc()
        lower = np.concatenate(
            [s.row_lower, np.full(len(self._idle_kept), -np.inf), np.zeros(len(place)), np.full(cells, -np.inf)]
        )
        upper = np.concatenate([s.row_upper, limit[self._idle_kept], np.zeros(len(place) + cells)])
        self.lower = np.concatenate([np.zeros(s.size), np.full(self.groups, -np.inf), np.zeros(jobs + cells)])
        self.upper = np.concatenate([s.upper, np.full(self.groups + jobs + cells, np.inf)])
        self.lower[s.size : s.size + self.groups] = (
            0.0 if (view.arc_cost >= 0).all() and (view.point_cost >= 0).all() else -np.inf
        )
        self.cut_of = np.zeros((0, 2), dtype=np.int64)  # (index of the duals, group)
        running_cost = self._at_pace(self.running_cost * self.reach)[self._column_positions, self._pace]
        cost = np.concatenate([s.cost, np.ones(self.groups), self.undone_price, running_cost])
        return RowGenerationLp(matrix, lower, upper, self.lower, self.upper, cost)

    # -- cuts ------------------------------------------------------------------------------------------------------

    def keep(self, answer: SlotSolution, *, short: bool = False) -> CutDuals:
        """Turn a solution of the subproblems into duals for cuts, savings summed by workload and site; `short`: of the least slack."""
        view = self.view
        gate = np.zeros((len(self.first_stage.pair_gate), view.slots))
        np.add.at(gate, self.first_stage.arc_pair, answer.gate.T * view.demand[view.arc_demand])
        limit = np.where(np.isfinite(self.ungated_limit), self.ungated_limit, 0.0)[:, view.window]
        constant = (answer.delta * view.demand.T).sum(axis=1) - (answer.sigma * limit.T).sum(axis=1)
        if short:
            constant += np.where(answer.value <= SMALL_SHORTAGE, self.spare * answer.value, 0.0)
        return CutDuals(answer.alpha, answer.sigma, gate.T, constant, short)

    def add_cuts(self, kept: CutDuals, groups: Ints | None = None) -> None:
        """Add one cut for each of these groups of slots, or for all."""
        groups = np.arange(self.groups) if groups is None else groups
        index = len(self.kept)
        self.kept.append(kept)
        fresh = np.column_stack([np.full(len(groups), index), groups])
        self.cut_of = np.concatenate([self.cut_of, fresh])
        self._program.add_rows(*self._rows(fresh))

    def _rows(self, cuts: Ints) -> tuple[Floats, sparse.csr_array]:
        """Build (lower sides, rows) of the cuts [cuts, (index of the duals, group)]."""
        view, s = self.view, self.first_stage
        into, lower, order, parts = self._into, np.empty(len(cuts)), [], []
        never = s.pair_gate < 0
        gated = np.flatnonzero(~never)
        place = sparse.csr_array((np.ones(len(gated)), (gated, s.pair_gate[gated])), shape=(len(never), s.size))
        sum_by_window = [into @ sparse.diags_array((view.window == w).astype(float)) for w in range(self.windows)]
        jobs = len(self.undone_price)
        for answer in np.unique(cuts[:, 0]):
            kept, mine = self.kept[answer], np.flatnonzero(cuts[:, 0] == answer)
            groups = cuts[mine, 1]
            gate = into @ kept.gate
            lower[mine] = (into @ kept.constant - gate[:, never].sum(axis=1))[groups]
            systems, watts = (
                np.stack([part @ duals for part in sum_by_window], axis=2).reshape(self.groups, -1)[groups]
                for duals in (kept.alpha, kept.sigma)
            )
            row = sparse.csr_array(systems) @ self.systems - sparse.csr_array(watts) @ self.idle
            row = row + sparse.csr_array(gate[groups]) @ place
            where = np.full(self.groups, -1)
            where[groups] = np.arange(len(groups))
            price = -self._at_pace((kept.alpha @ self.uses + kept.sigma @ self.watts).T * self.reach)[
                self._column_positions, self._pace
            ]
            cells = np.flatnonzero((where[self._cell_group] >= 0) & (np.abs(price) > VALUE_TOL))
            taken = sparse.csr_array(
                (price[cells], (where[self._cell_group[cells]], cells)),
                shape=(len(groups), len(self._column_positions)),
            )
            theta = sparse.csr_array(
                (np.full(len(groups), 0.0 if kept.short else 1.0), (np.arange(len(groups)), groups)),
                shape=(len(groups), self.groups),
            )
            parts.append(sparse.hstack([row, theta, sparse.csr_array((len(groups), jobs)), taken]))
            order.append(mine)
        rows_of_cuts = sparse.vstack(parts).tocsr()[np.argsort(np.concatenate(order), kind="stable")]
        rows_of_cuts.data[np.abs(rows_of_cuts.data) < VALUE_TOL] = 0.0
        rows_of_cuts.eliminate_zeros()
        return lower, rows_of_cuts

    def drop_feasibility_cuts(self) -> None:
        """Delete all feasibility cuts, and ask for no margin in those to come."""
        gone = np.array([self.kept[answer].short for answer in self.cut_of[:, 0]], dtype=bool)
        self._program.delete_rows(self.fixed_rows + np.flatnonzero(gone))
        self.cut_of, self.spare = self.cut_of[~gone], 0.0

    def hold(self, tolerance: float) -> None:
        """Set the feasibility tolerance of the rows."""
        self._program.set_tolerance(tolerance)

    # -- solving ---------------------------------------------------------------------------------------------------

    def solve(self, within: tuple[Floats, Floats], seconds: float) -> tuple[float, FirstStagePoint] | None:
        """Solve the LP within bounds of the first stage; return (value, point), or None where infeasible or out of time."""
        self._bound(within)
        found = self._program.solve(seconds)
        if found is None:
            return None
        return found[0], self._point(found[1])

    def solve_mip(
        self, within: tuple[Floats, Floats], which: np.ndarray, gap: float, seconds: tuple[float, float], seed: int
    ) -> tuple[float, FirstStagePoint] | None:
        """Solve the MIP with the columns `which` integer; return (value, point), or None where none was found.

        Integer columns at 0 in the LP relaxation, and binaries at 1, are fixed there at first (diving in one step), then freed if that
        is infeasible. `seconds`: time limits of the MIP and of the LP."""
        self._bound(within)
        found = self._program.solve(seconds[1])
        if found is None:
            return None
        size, integer = self.first_stage.size, np.flatnonzero(which)
        x = found[1][integer]
        fixed_columns = integer[
            (x <= EQUALITY_TOL) | ((np.abs(x - 1) <= EQUALITY_TOL) & ~np.isin(integer, self.first_stage.columns["n"]))
        ]
        fixed_lower, fixed_upper = within[0].copy(), within[1].copy()
        fixed_lower[fixed_columns] = fixed_upper[fixed_columns] = np.round(found[1][fixed_columns])
        for bounds in ((fixed_lower, fixed_upper), within):
            self._bound(bounds)
            found_mip = self._program.solve_mip(integer, gap, seconds[0], seed)
            if (
                found_mip is not None
                and found_mip[1][size + self.groups : self.first_running].max(initial=0.0) <= EQUALITY_TOL
            ):
                return found_mip[0], self._point(found_mip[1])
        return None

    def _bound(self, within: tuple[Floats, Floats]) -> None:
        lower, upper, size = self.lower.copy(), self.upper.copy(), self.first_stage.size
        lower[:size], upper[:size] = np.maximum(lower[:size], within[0]), np.minimum(upper[:size], within[1])
        upper[:size] = np.maximum(upper[:size], lower[:size])
        self._program.set_bounds(lower, upper)

    def _point(self, x: Floats) -> FirstStagePoint:
        share = np.zeros((len(self.placements), self._paced.shape[0]))
        share[self._column_positions, self._pace] = x[self.first_running :]
        return FirstStagePoint(x[: self.first_stage.size], share[:, self._pace_of] * self.reach)

    def first_stage_cost(self, point: FirstStagePoint) -> float:
        """Return the cost of a point without that of the slots."""
        return float(
            self.first_stage.cost @ point.first_stage
            + self.undone_price @ self.undone_share(point)
            + (self.running_cost * point.running).sum()
        )

    def undone_share(self, point: FirstStagePoint) -> Floats:
        """Return the share of each job that has no placement."""
        return np.asarray(np.maximum(1.0 - self.first_stage.matrix[self.assigned] @ point.first_stage, 0.0))
