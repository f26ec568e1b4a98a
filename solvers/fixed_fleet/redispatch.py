"""A decided fleet asked again and again: whether it can serve all demand and finish all jobs when its points do more or less than thought.

Sets        pools q, arcs a (class of demand c -> pool), points p of a pool, jobs j (one point each), fleet options k, sites r, slots t.
Data        demand_{c,t}, systems held n_{k,t}, uses_{p,k}, room_{r,t} [W], seconds_t; in each world capacity_p (over the growth of demand), rate_j.
Variables   f_{a,t} requests/s, x_{p,t} replicas, v_{j,t} share of a job's width, u_w and u_j shares left undone
Objective   sum u
Constraints demand     sum_{a of c} f_{a,t} + demand_{c,t} u_{w(c)} >= demand_{c,t}
            pool       sum_{p of q} capacity_p x_{p,t} >= sum_{a to q} f_{a,t}
            installed  sum_p uses_{p,k} x_{p,t} + sum_j uses_{j,k} v_{j,t} <= n_{k,t}
            power      sum_p power_p x_{p,t} + sum_j power_j v_{j,t} <= room_{r,t}
            progress   sum_t seconds_t rate_j / work_j v_{j,t} + u_j >= 1
Only the entries of capacity and rate differ between worlds, so each program starts from the basis of the one before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.persistent_lp import CoefficientLp


@dataclass(frozen=True, slots=True)
class FixedFleet:
    """Positions throughout; `uses` of points and of jobs: rows (point or job, fleet option) with systems per replica or at full width."""

    demand: Floats  # [C, T] requests/s
    class_workload: Ints  # [C]
    arcs: Ints  # [A, 2] (class, pool)
    pools: int
    point_pool: Ints  # [P]
    point_uses: Ints  # [., 2]
    point_systems: Floats
    point_power_w: Floats  # [P] against the limit of its site
    point_site: Ints  # [P]
    job_uses: Ints  # [., 2]
    job_systems: Floats
    job_power_w: Floats  # [J]
    job_site: Ints  # [J]
    job_mask: np.ndarray  # [J, T]
    job_work: Floats  # [J]
    option_count: Floats  # [K, T]
    room_w: Floats  # [R, T], inf where nothing limits it
    seconds: Floats  # [T]
    workloads: int

    def without_dominated_slots(self) -> FixedFleet:
        """The same over the slots that count."""
        kept, seconds = undominated_slots(
            self.demand, np.vstack([self.option_count, self.room_w]), self.job_mask, self.seconds
        )
        return replace(
            self,
            demand=self.demand[:, kept],
            job_mask=self.job_mask[:, kept],
            option_count=self.option_count[:, kept],
            room_w=self.room_w[:, kept],
            seconds=seconds,
        )


def undominated_slots(demand: Floats, room: Floats, mask: np.ndarray, seconds: Floats) -> tuple[Ints, Floats]:
    """(slots, the time that each stands for): without those in which less is asked than in another one with no more room.

    `demand` [C, T], `room` [., T], `mask` [J, T] where a job may run. What carries the harder slot carries the easier one, too, so a job
    may be thought to go on in the time of both as in the harder one.
    """
    mask = mask.astype(bool)  # empty tables have no type of their own
    hardest_first = np.lexsort((np.arange(len(seconds)), -mask.sum(axis=0), -demand.sum(axis=0)))
    kept: list[int] = []
    stands = np.zeros(len(seconds))
    for t in hardest_first:
        others = np.array(kept, dtype=np.int64)
        over = (
            (demand[:, [t]] <= demand[:, others]).all(axis=0)
            & (room[:, [t]] >= room[:, others]).all(axis=0)
            & (mask[:, others] | ~mask[:, [t]]).all(axis=0)
        )
        if not over.any():
            kept.append(int(t))
            stands[t] += seconds[t]
            continue
        alike = over & (mask[:, others] == mask[:, [t]]).all(axis=0)
        if alike.any():  # else the jobs of the harder slot may not all run in this one
            stands[others[np.argmax(alike)]] += seconds[t]
    order = np.sort(np.array(kept, dtype=np.int64))
    return order, stands[order]


class Redispatch:
    """The program of one fleet, kept between worlds."""

    def __init__(self, fleet: FixedFleet):
        self.fleet, T = fleet, len(fleet.seconds)
        C, A, P, J, W = len(fleet.demand), len(fleet.arcs), len(fleet.point_pool), len(fleet.job_work), fleet.workloads
        Q, K, R = fleet.pools, len(fleet.option_count), len(fleet.room_w)
        f, x, v, u = (start + np.arange(size).reshape(shape) for start, size, shape in zip(
            np.cumsum([0, A * T, P * T, J * T]), (A * T, P * T, J * T, W + J), ((A, T), (P, T), (J, T), (W + J,)), strict=True))  # fmt: skip
        self._u = u
        rows: list[tuple[Ints, Ints, Floats]] = []

        def add(row: Ints, column: Ints, value) -> None:
            rows.append((np.ravel(row), np.ravel(column), np.ravel(np.broadcast_to(value, np.shape(column)))))

        balance, pool, installed, power, progress = (start + np.arange(size).reshape(shape) for start, size, shape in zip(
            np.cumsum([0, C * T, Q * T, K * T, R * T]), (C * T, Q * T, K * T, R * T, J), ((C, T), (Q, T), (K, T), (R, T), (J,)), strict=True))  # fmt: skip
        add(balance[fleet.arcs[:, 0]], f, 1.0)
        add(balance, np.repeat(u[fleet.class_workload][:, None], T, axis=1), fleet.demand)
        add(pool[fleet.arcs[:, 1]], f, -1.0)
        add(installed[fleet.point_uses[:, 1]], x[fleet.point_uses[:, 0]], fleet.point_systems[:, None])
        add(installed[fleet.job_uses[:, 1]], v[fleet.job_uses[:, 0]], fleet.job_systems[:, None])
        add(power[fleet.point_site], x, fleet.point_power_w[:, None])
        add(power[fleet.job_site], v, fleet.job_power_w[:, None])
        add(progress, u[W:], 1.0)
        fixed = sparse.coo_array(
            (np.concatenate([r[2] for r in rows]), (np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows]))),
            shape=(C * T + Q * T + K * T + R * T + J, A * T + P * T + J * T + W + J),
        )  # fmt: skip
        self._cells = (pool[fleet.point_pool], x), (np.repeat(progress[:, None], T, axis=1), v)
        lower = np.concatenate([fleet.demand.ravel(), np.zeros(Q * T), np.full((K + R) * T, -np.inf), np.ones(J)])
        upper = np.concatenate(
            [np.full((C + Q) * T, np.inf), fleet.option_count.ravel(), fleet.room_w.ravel(), np.full(J, np.inf)]
        )
        width = np.full(fixed.shape[1], np.inf)
        width[v], width[u] = fleet.job_mask, 1.0
        cost = np.zeros(fixed.shape[1])
        cost[u] = 1.0
        self._program = CoefficientLp(fixed.tocsc(), lower, upper, np.zeros(fixed.shape[1]), width, cost)
        self._before: tuple[Floats | None, Floats | None] = (None, None)

    def shortfall(self, capacity: Floats, rate: Floats) -> Floats:
        """[W + J] shares of demand and of work that are left undone at the least, added up."""
        fleet = self.fleet
        pace = (
            rate[:, None] * fleet.seconds / fleet.job_work[:, None] if len(rate) else np.zeros((0, len(fleet.seconds)))
        )
        now = np.repeat(capacity[:, None], len(fleet.seconds), axis=1), pace
        for (row, column), values, before in zip(self._cells, now, self._before, strict=True):
            changed = np.ones(values.shape, dtype=bool) if before is None else values != before
            self._program.change(row[changed], column[changed], values[changed])
        self._before = now
        return self._program.solve()[self._u]
