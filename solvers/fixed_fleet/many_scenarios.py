"""Redispatch a fixed fleet in many scenarios at once: one program settles all scenarios that its answer carries over to.

Order       A scenario in which no point and no job does less than in a kept one is kept; one in which none does more than in a lost one
            is lost.
Dispatch    The dispatch x of a kept scenario, scaled in each slot, serves another one with capacities cap' if it fits there:
            class c takes the share r_c = D_c / sum_p cap'_p x_p of every point p that it reaches, and
            sum_c r_c sum_p uses_{p,k} x_p <= n_k; jobs take the rest.

Both are arrays over scenarios and slots. Only a scenario that neither settles has a program of its own (`redispatch.Redispatch`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.fixed_fleet.redispatch import FixedFleet, Redispatch

UNDONE_TOL = 1e-6  # share of a demand or of a job's work; less counts as solver rounding
FITS_TOL = 1e-9  # relative, on systems, power and work
MOST_COLUMNS = 200_000  # columns of all programs together; scenarios that need more stay open
MOST_CELLS = 20_000_000  # cells of the arrays by which a dispatch is carried over


@dataclass(frozen=True, slots=True)
class Settled:
    """What a fleet does in each scenario: whether all is done, and which workloads and jobs are.

    `done` [scenario, W + J] is False where it is unknown. `open` [scenario]: neither shown to be kept nor to be lost.
    """

    kept: Bools
    done: Bools
    open: Bools
    programs: int


def settle(fleet: FixedFleet, capacity: Floats, rate: Floats, most_columns: int = MOST_COLUMNS) -> Settled:
    """Tell which work is done in every scenario, at capacities [P, scenario] and rates [J, scenario]."""
    return _Settling(fleet, capacity, rate, most_columns).run()


class _Settling:
    """The state of `settle`."""

    def __init__(self, fleet: FixedFleet, capacity: Floats, rate: Floats, most_columns: int):
        self.fleet, self.capacity, self.rate = fleet.without_idle_options(), capacity, rate
        self.program = Redispatch(self.fleet)
        self.works = np.vstack([capacity, rate])  # [P + J, scenario]
        self.count = self.works.shape[1]
        parts = fleet.workloads + len(fleet.job_work)
        self.kept = np.zeros(self.count, dtype=bool)
        self.lost = np.zeros(self.count, dtype=bool)
        self.solved = np.zeros(self.count, dtype=bool)
        self.done = np.zeros((self.count, parts), dtype=bool)
        self.left = most_columns // max(self.program.columns, 1)
        self.programs = 0
        self.carried = _Carried(self.fleet) if _Carried.cells(self.fleet, self.count) <= MOST_CELLS else None

    def run(self) -> Settled:
        """Solve the program of the open scenario in the middle, carry its answer over, and so on."""
        while self.left > 0 and (unsettled := np.flatnonzero(~self.kept & ~self.lost)).size:
            middle = np.argsort(self.works[:, unsettled].sum(axis=0), kind="stable")[len(unsettled) // 2]
            self._solve(int(unsettled[middle]))
        if self.done.shape[1] > 1:  # which part of a lost scenario is done
            for s in np.flatnonzero(self.lost & ~self.solved)[: max(self.left, 0)].tolist():
                self._solve(s)
        return Settled(self.kept, self.done, ~self.kept & ~self.lost, self.programs)

    def _solve(self, s: int) -> None:
        undone = self.program.shortfall(self.capacity[:, s], self.rate[:, s])
        self.left, self.programs, self.solved[s] = self.left - 1, self.programs + 1, True
        self.done[s] = undone <= UNDONE_TOL
        here = self.works[:, [s]]
        if self.done[s].all():
            alike = ~self.lost & (self.works >= here).all(axis=0)
            if self.carried is not None:
                among = np.flatnonzero(~self.lost & ~self.kept & ~alike)
                replicas = self.program.replicas()
                alike[among] = self.carried.serves(replicas, self.capacity[:, among], self.rate[:, among])
            alike[s] = True
            self.kept |= alike
            self.done[alike] = True
        else:
            self.lost |= ~self.kept & (self.works <= here).all(axis=0)
            self.lost[s] = True


class _Carried:
    """The test whether a dispatch, scaled, serves other scenarios."""

    def __init__(self, fleet: FixedFleet):
        self.fleet = fleet
        points, options, sites = len(fleet.point_pool), len(fleet.option_count), len(fleet.room_w)
        self.rows = np.concatenate([fleet.point_uses[:, 0], np.arange(points)])  # rows (point, what it takes, how much)
        self.taken = np.concatenate([fleet.point_uses[:, 1], options + fleet.point_site])
        self.amount = np.concatenate([fleet.point_systems, fleet.point_power_w])
        self.limit = np.vstack([fleet.option_count, fleet.room_w])  # [K + R, T]
        jobs = np.zeros((len(fleet.job_work), options + sites))
        np.add.at(jobs, (fleet.job_uses[:, 0], fleet.job_uses[:, 1]), fleet.job_systems)
        np.add.at(jobs, (np.arange(len(fleet.job_work)), options + fleet.job_site), fleet.job_power_w)
        self.job_uses = jobs
        reach = np.zeros((len(fleet.demand), fleet.pools), dtype=bool)
        reach[fleet.arcs[:, 0], fleet.arcs[:, 1]] = True
        self.reached = [row[fleet.point_pool] for row in reach]  # points by class

    @staticmethod
    def cells(fleet: FixedFleet, scenarios: int) -> int:
        """Count the cells of the largest array."""
        return scenarios * len(fleet.seconds) * (len(fleet.option_count) + len(fleet.room_w))

    def serves(self, replicas: Floats, capacity: Floats, rate: Floats) -> Bools:
        """[scenario]: whether the replicas [P, T], scaled, serve the demand there, and leave room for the jobs."""
        fleet, slots = self.fleet, np.arange(len(self.fleet.seconds))
        able = np.ones(capacity.shape[1], dtype=bool)
        need = np.zeros((capacity.shape[1], *self.limit.shape))
        running = (capacity > 0).T * 1.0
        columns = self.taken[:, None] * len(slots) + slots  # columns (what is taken, slot)
        for c, points in enumerate(self.reached):
            offered = capacity[points].T @ replicas[points]  # [scenario, T]
            demand = np.broadcast_to(fleet.demand[c], offered.shape)
            able &= (offered > 0).all(axis=1, where=demand > 0)
            share = np.divide(demand, offered, out=np.zeros(offered.shape), where=offered > 0)
            e = np.flatnonzero(points[self.rows])
            taken = self.amount[e, None] * replicas[self.rows[e]]  # [entry, T]
            places = np.repeat(self.rows[e], len(slots)), columns[e].ravel()
            matrix = sparse.csr_array((taken.ravel(), places), shape=(len(points), self.limit.size))
            used = (running @ matrix).reshape(need.shape)
            used *= share[:, None, :]
            need += used
        able &= (need <= self.limit * (1 + FITS_TOL)).all(axis=(1, 2))
        return able & self._work_is_done(np.maximum(self.limit - need, 0.0), rate)

    def _work_is_done(self, room: Floats, rate: Floats) -> Bools:
        """[scenario]: whether the jobs, one after another, end in the rest [scenario, K + R, T]."""
        fleet, able = self.fleet, np.ones(len(room), dtype=bool)
        for j, uses in enumerate(self.job_uses):
            taken = np.flatnonzero(uses)
            width = np.minimum((room[:, taken] / uses[taken, None]).min(axis=1, initial=1.0), 1.0) * fleet.job_mask[j]
            able &= (width @ fleet.seconds) * rate[j] >= fleet.job_work[j] * (1 - FITS_TOL)
            room = room - uses[:, None] * width[:, None, :]
        return able
