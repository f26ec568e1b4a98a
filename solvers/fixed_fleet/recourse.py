"""Extend a fleet in a scenario at least cost: what a decision comes to once the scenario is known.

Sets        classes of demand c, ways to serve g (class -> fleet option k), jobs j on options h, supplies s, sites r, slots t.
Data        D_{c,t}; systems held N_k; in each scenario eff_g requests/s and rate_h work units/s of one system.
Variables   n_k >= N_k systems, x_{g,t} and y_{h,t} systems at work, u_w and u_j in [0, 1] shares left undone
Objective   sum_k cost_k n_k + sum u_w undone_w
Constraints demand     sum_{g of c} eff_g x_{g,t} + D_{c,t} u_{w(c)} >= D_{c,t}
            installed  sum_{g of k} x_{g,t} + sum_{h of k} y_{h,t} <= n_k
            power      sum_g power_g x_{g,t} + sum_h power_h y_{h,t} + sum_k idle_k n_k <= room_{r,t}
            supply     sum_{k of s} n_k <= limit_s
            progress   sum_{h of j, t} seconds_t rate_h / work_j y_{h,t} + u_j >= 1

All counts are continuous, and a job may be split over options, so that the value is a bound on what a plan there costs. With N = 0 it is
the cost of the fleet that would be chosen in the scenario.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.persistent_lp import CoefficientLp


@dataclass(frozen=True, slots=True)
class RecourseData:
    """Fleet options and what they can serve; every index is a position."""

    demand: Floats  # [C, T] requests/s
    class_workload: Ints  # [C]
    way_class: Ints  # [G]
    way_option: Ints  # [G]
    way_power_w: Floats  # [G] above idle, of one system at work, at the meter; 0 where it is not ours
    job_work: Floats  # [J]
    job_mask: Bools  # [J, T]
    use_job: Ints  # [H]
    use_option: Ints  # [H]
    use_power_w: Floats  # [H]
    option_site: Ints  # [K]
    option_cost: Floats  # [K] of one system throughout
    option_idle_w: Floats  # [K] at the meter
    supply_limit: Floats  # [S]
    supply_member: Ints  # [., 2] rows (supply, option)
    room_w: Floats  # [R, T], inf: unlimited
    seconds: Floats  # [T]
    undone: Floats  # [W + J] cost of leaving all of it undone

    @property
    def workloads(self) -> int:
        """Number of serving workloads."""
        return len(self.undone) - len(self.job_work)

    def restricted(self, options: Bools) -> RecourseData:
        """Keep some fleet options only."""
        number = np.cumsum(options) - 1
        ways, uses = options[self.way_option], options[self.use_option]
        member = self.supply_member[options[self.supply_member[:, 1]]]
        return RecourseData(
            demand=self.demand, class_workload=self.class_workload, way_class=self.way_class[ways], way_option=number[self.way_option[ways]],
            way_power_w=self.way_power_w[ways], job_work=self.job_work, job_mask=self.job_mask, use_job=self.use_job[uses], use_option=number[self.use_option[uses]],
            use_power_w=self.use_power_w[uses], option_site=self.option_site[options], option_cost=self.option_cost[options], option_idle_w=self.option_idle_w[options],
            supply_limit=self.supply_limit, supply_member=np.column_stack([member[:, 0], number[member[:, 1]]]), room_w=self.room_w, seconds=self.seconds, undone=self.undone,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extended:
    """The fleet of a scenario: systems [K], shares left undone [W + J], and the cost of both."""

    systems: Floats
    undone: Floats
    cost: float


class Recourse:
    """The program of all scenarios and fleets, loaded once."""

    def __init__(self, data: RecourseData):
        self.data, T = data, len(data.seconds)
        G, H, K = len(data.way_class), len(data.use_job), len(data.option_cost)
        C, J, S, R = len(data.demand), len(data.job_work), len(data.supply_limit), len(data.room_w)
        sizes = [G * T, H * T, K, len(data.undone)]
        starts = np.cumsum([0, *sizes])
        x, y = (np.arange(size).reshape(-1, T) + start for size, start in zip(sizes[:2], starts, strict=False))
        self._n, self._u = (np.arange(size) + start for size, start in zip(sizes[2:], starts[2:], strict=False))
        rows = np.cumsum([0, C * T, K * T, R * T, S, J])
        demand, installed, power = (np.arange(n * T).reshape(n, T) + rows[i] for i, n in enumerate((C, K, R)))
        supply, progress = np.arange(S) + rows[3], np.arange(J) + rows[4]
        n = np.repeat(self._n[:, None], T, axis=1)
        entries: list[tuple[Ints, Ints, Floats | float]] = [
            (demand, np.repeat(self._u[data.class_workload][:, None], T, axis=1), data.demand),
            (installed[data.way_option], x, 1.0),
            (installed[data.use_option], y, 1.0),
            (installed, n, -1.0),
            (power[data.option_site[data.way_option]], x, data.way_power_w[:, None]),
            (power[data.option_site[data.use_option]], y, data.use_power_w[:, None]),
            (power[data.option_site], n, data.option_idle_w[:, None]),
            (supply[data.supply_member[:, 0]], self._n[data.supply_member[:, 1]], 1.0),
            (progress, self._u[data.workloads :], 1.0),
        ]
        at = np.concatenate([np.ravel(row) for row, _, _ in entries])
        columns = np.concatenate([np.ravel(column) for _, column, _ in entries])
        values = np.concatenate([np.ravel(np.broadcast_to(value, np.shape(column))) for _, column, value in entries])
        self.columns = int(starts[-1])
        matrix = sparse.coo_array((values, (at, columns)), shape=(int(rows[-1]), self.columns)).tocsc()
        lower = np.concatenate([data.demand.ravel(), np.full((K + R) * T + S, -np.inf), np.ones(J)])
        upper = np.concatenate(
            [np.full(C * T, np.inf), np.zeros(K * T), data.room_w.ravel(), data.supply_limit, np.full(J, np.inf)]
        )
        most = np.full(self.columns, np.inf)
        most[self._u] = 1.0
        most[y] = np.where(data.job_mask[data.use_job], np.inf, 0.0)
        self._unit = max(float(data.option_cost.max(initial=0.0)), 1e-300)
        cost = np.zeros(self.columns)
        cost[self._n], cost[self._u] = data.option_cost / self._unit, data.undone / self._unit
        self._program = CoefficientLp(matrix, lower, upper, np.zeros(self.columns), most, cost)
        self._cells = (demand[data.way_class], x), (np.repeat(progress[data.use_job][:, None], T, axis=1), y)

    def enter(self, efficiency: Floats, rate: Floats) -> None:
        """Enter a scenario: requests/s [G] and work units/s [H] of one system."""
        data = self.data
        now = (
            np.repeat(efficiency[:, None], len(data.seconds), axis=1),
            (rate / data.job_work[data.use_job])[:, None] * data.seconds,
        )
        for (row, column), values in zip(self._cells, now, strict=True):
            self._program.change(row.ravel(), column.ravel(), values.ravel())

    def extend(self, held: Floats, late: float) -> Extended:
        """Find the cheapest fleet in the scenario entered that holds at least `held` [K]; further systems cost `late` times as much."""
        data = self.data
        self._program.bound(self._n, held, np.full(len(held), np.inf))
        price = late * data.option_cost / self._unit
        self._program.price(self._n, price)
        values = self._program.solve()
        systems, undone = np.maximum(values[self._n], held), np.clip(values[self._u], 0.0, 1.0)
        cost = float(data.option_cost @ held + late * data.option_cost @ (systems - held) + data.undone @ undone)
        return Extended(systems, undone, cost)


def outcomes(
    data: RecourseData, efficiency: Floats, rate: Floats, fleets: Floats, late: float
) -> Iterator[list[Extended]]:
    """Yield for each scenario (`efficiency` [G, S], `rate` [H, S]) what each fleet [F, K] comes to there."""
    program = Recourse(data)
    for s in range(efficiency.shape[1]):
        program.enter(efficiency[:, s], rate[:, s])
        yield [program.extend(fleet, late) for fleet in fleets]
