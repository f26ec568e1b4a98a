"""The master of the decomposition: the structure, the running of jobs, and cuts that stand for what the slots cost.

Columns     m structure; theta_g cost of the slots of a group g; undone_j; v_{p,g} share in which a job runs at p, of what it may of the
            group's slots: v_{p,t} = reach_{j,t} v_{p,g}.
Rows        the structure's;  idle power;  progress  sum cap_p seconds_t v_{p,t} = work_j y_p;  running  v_{p,g} <= run_p;
            cuts  theta_g >= sum_t [constant - alpha N(m) - sigma (limit - idle power N) + (alpha uses + sigma watts) v - gates];
            of what is missing, with 0 for theta_g.
A cut is what the slots' programs answered at one point, or what prices of the linear part say of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.persistent_lp import RowGenerationLp
from solvers.decomposition.first_stage import FirstStage
from solvers.decomposition.linking import FirstStagePoint, Linking
from solvers.decomposition.slots import NOTHING, SlotView
from solvers.decomposition.subproblems import SlotSolution

LITTLE, SPARE = 0.02, 0.5  # a cut about so little that is missing asks for that share of it beyond it
ALIKE = 1e-6  # how near numbers are that count as the same


@dataclass(frozen=True, slots=True)
class CutDuals:
    """What one answer of the slots left behind."""

    alpha: Floats  # [T, fleet options]
    sigma: Floats  # [T, R]
    gate: Floats  # [T, W x R]: what serving a workload at a site saves
    constant: Floats  # [T]
    short: bool = (
        False  # the prices are of what is missing, which may be nothing: the cuts say what no slot can do with less
    )


class RecoveryMaster(Linking):
    """The program of what is decided once, and of jobs, over the fleet options and the view's points of jobs."""

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
        self.undone_price = undone_price[[job for _, job in assigned]]  # prices of a job that is left undone
        self.kept: list[CutDuals] = []
        self.spare = SPARE
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
        """[places, F]: what belongs to the slots in which jobs run at one pace, added up."""
        return (self._paced @ of_places.T).T

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
        self.cut_of = np.zeros((0, 2), dtype=np.int64)  # (answer, group)
        running_cost = self._at_pace(self.running_cost * self.reach)[self._column_positions, self._pace]
        cost = np.concatenate([s.cost, np.ones(self.groups), self.undone_price, running_cost])
        return RowGenerationLp(matrix, lower, upper, self.lower, self.upper, cost)

    # -- cuts ------------------------------------------------------------------------------------------------------

    def keep(self, answer: SlotSolution, *, short: bool = False) -> CutDuals:
        """The prices of an answer, with the savings of arcs added up by workload and site; `short`: it says what is missing."""
        view = self.view
        gate = np.zeros((len(self.first_stage.pair_gate), view.slots))
        np.add.at(gate, self.first_stage.arc_pair, answer.gate.T * view.demand[view.arc_demand])
        limit = np.where(np.isfinite(self.ungated_limit), self.ungated_limit, 0.0)[:, view.window]
        constant = (answer.delta * view.demand.T).sum(axis=1) - (answer.sigma * limit.T).sum(axis=1)
        if short:
            constant += np.where(answer.value <= LITTLE, self.spare * answer.value, 0.0)
        return CutDuals(answer.alpha, answer.sigma, gate.T, constant, short)

    def add_cuts(self, kept: CutDuals, groups: Ints | None = None) -> None:
        """One cut for each of these groups of slots, or for all."""
        groups = np.arange(self.groups) if groups is None else groups
        index = len(self.kept)
        self.kept.append(kept)
        fresh = np.column_stack([np.full(len(groups), index), groups])
        self.cut_of = np.concatenate([self.cut_of, fresh])
        self._program.add_rows(*self._rows(fresh))

    def _rows(self, cuts: Ints) -> tuple[Floats, sparse.csr_array]:
        """(least sides, rows) of cuts [cuts, (answer, group)]."""
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
            cells = np.flatnonzero((where[self._cell_group] >= 0) & (np.abs(price) > NOTHING))
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
        rows_of_cuts.data[np.abs(rows_of_cuts.data) < NOTHING] = 0.0
        rows_of_cuts.eliminate_zeros()
        return lower, rows_of_cuts

    def drop_feasibility_cuts(self) -> None:
        """Nothing is known of what is missing any more, and what will be is asked for without anything beyond it."""
        gone = np.array([self.kept[answer].short for answer in self.cut_of[:, 0]], dtype=bool)
        self._program.delete_rows(self.fixed_rows + np.flatnonzero(gone))
        self.cut_of, self.spare = self.cut_of[~gone], 0.0

    def hold(self, tolerance: float) -> None:
        """Rows hold to the tolerance from now on."""
        self._program.set_tolerance(tolerance)

    # -- solving ---------------------------------------------------------------------------------------------------

    def solve(self, within: tuple[Floats, Floats], seconds: float) -> tuple[float, FirstStagePoint] | None:
        """(value, point) within bounds of the structure; None where nothing is within them, or not found in time."""
        self._bound(within)
        found = self._program.solve(seconds)
        if found is None:
            return None
        return found[0], self._point(found[1])

    def solve_mip(
        self, within: tuple[Floats, Floats], which: np.ndarray, gap: float, seconds: tuple[float, float], seed: int
    ) -> tuple[float, FirstStagePoint] | None:
        """(value, point) within bounds of the structure, of its columns `which` whole; what is none, or of choices one, in the linear answer stays
        so, unless that leaves nothing. `seconds`: for the whole answer, and for the linear one before. None where none was found."""
        self._bound(within)
        found = self._program.solve(seconds[1])
        if found is None:
            return None
        size, integer = self.first_stage.size, np.flatnonzero(which)
        x = found[1][integer]
        fixed_columns = integer[
            (x <= ALIKE) | ((np.abs(x - 1) <= ALIKE) & ~np.isin(integer, self.first_stage.columns["n"]))
        ]
        fixed_lower, fixed_upper = within[0].copy(), within[1].copy()
        fixed_lower[fixed_columns] = fixed_upper[fixed_columns] = np.round(found[1][fixed_columns])
        for bounds in ((fixed_lower, fixed_upper), within):
            self._bound(bounds)
            found_mip = self._program.solve_mip(integer, gap, seconds[0], seed)
            if (
                found_mip is not None
                and found_mip[1][size + self.groups : self.first_running].max(initial=0.0) <= ALIKE
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
        """What a point costs beside the slots."""
        return float(
            self.first_stage.cost @ point.first_stage
            + self.undone_price @ self.undone_share(point)
            + (self.running_cost * point.running).sum()
        )

    def undone_share(self, point: FirstStagePoint) -> Floats:
        """Share of each job that has no place."""
        return np.maximum(1.0 - self.first_stage.matrix[self.assigned] @ point.first_stage, 0.0)
