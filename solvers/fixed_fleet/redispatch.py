"""Redispatch a fixed fleet in many scenarios: how much demand and work it cannot serve when points do more or less than predicted.

Sets        pools q, arcs a (class of demand c -> pool), operating points p of a pool, jobs j (one point each), fleet options k, sites r, slots t.
Data        D_{c,t}, systems held n_{k,t}, uses_{p,k}, room_{r,t} [W], seconds_t; in each scenario cap_p (over the growth of demand), rate_j.
Variables   f_{a,t} requests/s, x_{p,t} replicas, v_{j,t} share of a job's width, u_w and u_j in [0, 1] shares left undone
Objective   sum u
Constraints demand     sum_{a of c} f_{a,t} + D_{c,t} u_{w(c)} >= D_{c,t}
            pool       sum_{p of q} cap_p x_{p,t} >= sum_{a into q} f_{a,t}
            installed  sum_p uses_{p,k} x_{p,t} + sum_j uses_{j,k} v_{j,t} <= n_{k,t}
            power      sum_p power_p x_{p,t} + sum_j power_j v_{j,t} <= room_{r,t}
            progress   sum_t seconds_t rate_j / work_j v_{j,t} + u_j >= 1
Extension   columns e_k <= most_k of further systems, on the left of `installed` with -1 and of `power` with their idle power;
            objective sum_k cost_k e_k + M sum u

Operation   where dispatch is priced, a second objective with u held: sum_{a,t} g_{c(a)} cost_{a,t} f_{a,t} + sum_{p,t} cost_{p,t} x_{p,t},
            with g_c the growth of a class's demand, by which the requests of the scenario are f times g.

Only the coefficients of capacity and rate, and the prices, differ between scenarios, so each program starts from the basis of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.backends.persistent_lp import CoefficientLp


@dataclass(frozen=True, slots=True)
class OperatingCost:
    """What a dispatch costs over each slot: a replica of a point at work, and a request per second on an arc.

    `by_price`: parts of the cost of arcs that are proportional to a price, by its name; `arc`: the rest.
    """

    point: Floats  # [P, T]
    arc: Floats  # [A, T]
    by_price: Mapping[str, Floats] = field(default_factory=dict)  # each [A, T]

    def of_arcs(self, factors: Mapping[str, float]) -> Floats:
        """Compute the cost of arcs [A, T] where prices are `factors` times what they are typically."""
        total: Floats = self.arc + sum(
            (part * factors.get(name, 1.0) for name, part in self.by_price.items()), np.zeros(self.arc.shape)
        )
        return total

    def merged(self, groups: Sequence[Ints]) -> OperatingCost:
        """Add up the costs of slots that one slot stands for."""

        def added(values: Floats) -> Floats:
            columns = [values[:, group].sum(axis=1) for group in groups]
            return np.array(columns).reshape(len(groups), len(values)).T

        return OperatingCost(added(self.point), added(self.arc), {n: added(v) for n, v in self.by_price.items()})


@dataclass(frozen=True, slots=True)
class FixedFleet:
    """A fleet with its operating points and jobs; every index is a position.

    `point_uses`, `job_uses`: rows (point or job, fleet option), with systems per replica or at full width.
    """

    demand: Floats  # [C, T] requests/s
    class_workload: Ints  # [C]
    arcs: Ints  # [A, 2] (class, pool)
    pools: int
    point_pool: Ints  # [P]
    point_uses: Ints  # [., 2]
    point_systems: Floats
    point_power_w: Floats  # [P] counted against the limit of its site
    point_site: Ints  # [P]
    job_uses: Ints  # [., 2]
    job_systems: Floats
    job_power_w: Floats  # [J]
    job_site: Ints  # [J]
    job_mask: Bools  # [J, T]
    job_work: Floats  # [J]
    option_count: Floats  # [K, T]
    room_w: Floats  # [R, T], inf: unlimited
    seconds: Floats  # [T]
    workloads: int
    operating: OperatingCost | None = None  # None: dispatch is not priced

    def without_dominated_slots(self) -> FixedFleet:
        """Restrict it to undominated slots; where dispatch is priced, to one of each group of slots alike."""
        if self.operating is not None:
            return self._without_repeated_slots(self.operating)
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

    def without_idle_options(self) -> FixedFleet:
        """Restrict it to the fleet options that a point or a job uses; the others bound nothing."""
        used, place = np.unique(np.concatenate([self.point_uses[:, 1], self.job_uses[:, 1]]), return_inverse=True)
        points, jobs = np.split(place, [len(self.point_uses)])
        return replace(
            self,
            point_uses=np.stack([self.point_uses[:, 0], points], axis=1),
            job_uses=np.stack([self.job_uses[:, 0], jobs], axis=1),
            option_count=self.option_count[used],
        )

    def _without_repeated_slots(self, operating: OperatingCost) -> FixedFleet:
        costs = (operating.point, operating.arc, *operating.by_price.values())
        groups = alike_slots(
            (self.demand, self.option_count, self.room_w, self.job_mask, *(cost / self.seconds for cost in costs))
        )
        first = np.array([group[0] for group in groups], dtype=np.int64)
        return replace(
            self,
            demand=self.demand[:, first],
            job_mask=self.job_mask[:, first],
            option_count=self.option_count[:, first],
            room_w=self.room_w[:, first],
            seconds=np.array([self.seconds[group].sum() for group in groups]),
            operating=operating.merged(groups),
        )


@dataclass(frozen=True, slots=True)
class Extension:
    """Further systems that a fleet could get throughout, one row for each kind."""

    option: Ints  # [E] fleet option
    cost: Floats  # [E] of one
    most: Floats  # [E] inf: any number
    power_w: Floats  # [E] of one that is idle, against the limit of its site
    site: Ints  # [E]


NO_EXTENSION = Extension(*(np.zeros(0, dtype=kind) for kind in (np.int64, float, float, float, np.int64)))
TIE_WEIGHT = 1e-3  # by which leaving a workload undone costs more than the one before
HELD_TOL = (
    1e-9  # share of a demand or of a job's work: more may be left undone where the cost of operation is minimised
)
UNDONE_PRICE = 1e3  # price of all work left undone, in multiples of the cost of as many systems as are held


ALIKE_DIGITS = 12  # significant digits in which figures of slots alike agree


def alike_slots(tables: Sequence[Floats | Bools]) -> list[Ints]:
    """Group the slots in which all `tables` [., T] have the same columns."""
    rows = np.vstack([np.asarray(table, dtype=float) for table in tables])
    largest = np.abs(np.where(np.isfinite(rows), rows, 0.0)).max(axis=1, initial=0.0)[:, None]
    rounded = np.round(np.divide(rows, largest, out=np.array(rows), where=largest > 0), ALIKE_DIGITS)
    _, group = np.unique(rounded, axis=1, return_inverse=True)
    numbers = dict.fromkeys(group.ravel().tolist())  # in the order of the slots
    return [np.flatnonzero(group.ravel() == number) for number in numbers]


def undominated_slots(demand: Floats, room: Floats, mask: Bools, seconds: Floats) -> tuple[Ints, Floats]:
    """Drop slots in which no more is demanded than in another one with no more room; return the others, and the time each stands for.

    `demand` [C, T], `room` [., T], `mask` [J, T]: slots in which a job may run. What serves the harder slot serves the easier one too, so
    a job may be assumed to run in the time of both as in the harder one.
    """
    mask = mask.astype(bool)  # an empty table has no type of its own
    hardest_first = np.lexsort((np.arange(len(seconds)), -mask.sum(axis=0), -demand.sum(axis=0)))
    kept: list[int] = []
    stands_for = np.zeros(len(seconds))
    for t in hardest_first:
        others = np.array(kept, dtype=np.int64)
        dominates = (
            (demand[:, [t]] <= demand[:, others]).all(axis=0)
            & (room[:, [t]] >= room[:, others]).all(axis=0)
            & (mask[:, others] | ~mask[:, [t]]).all(axis=0)
        )
        if not dominates.any():
            kept.append(int(t))
            stands_for[t] += seconds[t]
            continue
        same_jobs = dominates & (mask[:, others] == mask[:, [t]]).all(axis=0)
        if same_jobs.any():  # otherwise a job of the harder slot may not run in this one
            stands_for[others[np.argmax(same_jobs)]] += seconds[t]
    order = np.sort(np.array(kept, dtype=np.int64))
    return order, stands_for[order]


def _numbered(shapes: Sequence[tuple[int, ...]]) -> list[Ints]:
    """Number the elements of several blocks one after another."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    starts = np.cumsum([0, *sizes[:-1]])
    return [start + np.arange(size).reshape(shape) for start, size, shape in zip(starts, sizes, shapes, strict=True)]


class Redispatch:
    """The program of one fleet, loaded once for all scenarios."""

    def __init__(self, fleet: FixedFleet, extension: Extension = NO_EXTENSION) -> None:
        self.fleet, T, E = fleet, len(fleet.seconds), len(extension.option)
        C, A, P, J, W = len(fleet.demand), len(fleet.arcs), len(fleet.point_pool), len(fleet.job_work), fleet.workloads
        Q, K, R = fleet.pools, len(fleet.option_count), len(fleet.room_w)
        f, x, v, u, e = _numbered([(A, T), (P, T), (J, T), (W + J,), (E,)])
        demand, pool, installed, power, progress = _numbered([(C, T), (Q, T), (K, T), (R, T), (J,)])
        self._undone, self._replicas, self._further, self.columns = u, x, e, int((A + P + J) * T + W + J + E)
        self._flows, self._undone_price = f, np.zeros(0)
        self._values: Floats = np.zeros(self.columns)
        entries: list[tuple[Ints, Ints, Floats | float]] = [
            (demand[fleet.arcs[:, 0]], f, 1.0),
            (demand, np.repeat(u[fleet.class_workload][:, None], T, axis=1), fleet.demand),
            (pool[fleet.arcs[:, 1]], f, -1.0),
            (installed[fleet.point_uses[:, 1]], x[fleet.point_uses[:, 0]], fleet.point_systems[:, None]),
            (installed[fleet.job_uses[:, 1]], v[fleet.job_uses[:, 0]], fleet.job_systems[:, None]),
            (power[fleet.point_site], x, fleet.point_power_w[:, None]),
            (power[fleet.job_site], v, fleet.job_power_w[:, None]),
            (progress, u[W:], 1.0),
            (installed[extension.option], np.repeat(e[:, None], T, axis=1), -1.0),
            (power[extension.site], np.repeat(e[:, None], T, axis=1), extension.power_w[:, None]),
        ]
        rows = np.concatenate([np.ravel(row) for row, _, _ in entries])
        columns = np.concatenate([np.ravel(column) for _, column, _ in entries])
        values = np.concatenate([np.ravel(np.broadcast_to(value, np.shape(column))) for _, column, value in entries])
        shape = ((C + Q + K + R) * T + J, self.columns)
        matrix = sparse.coo_array((values, (rows, columns)), shape=shape).tocsc()
        # rows and columns of the coefficients that scenarios change: capacity, then progress
        self._cells = (pool[fleet.point_pool], x), (np.repeat(progress[:, None], T, axis=1), v)
        lower = np.concatenate([fleet.demand.ravel(), np.zeros(Q * T), np.full((K + R) * T, -np.inf), np.ones(J)])
        upper = np.concatenate(
            [np.full((C + Q) * T, np.inf), fleet.option_count.ravel(), fleet.room_w.ravel(), np.full(J, np.inf)]
        )
        most = np.full(shape[1], np.inf)
        most[v], most[u] = fleet.job_mask, 1.0
        cost = np.zeros(shape[1])
        cost[u] = 1.0 + TIE_WEIGHT * np.arange(
            W + J
        )  # among workloads alike the later one is served first, whatever the order of points
        if E:
            most[e], unit = extension.most, max(float(extension.cost.max()), 1e-300)
            cost[e] = extension.cost / unit
            cost[u] = UNDONE_PRICE * max(float(fleet.option_count.max(axis=1, initial=0.0).sum()), 1.0)
        self._undone_price = cost[u]
        self._program = CoefficientLp(matrix, lower, upper, np.zeros(shape[1]), most, cost)
        self._before: tuple[Floats | None, Floats | None] = (None, None)

    def shortfall(self, capacity: Floats, rate: Floats) -> Floats:
        """Minimise the sum of the shares [W + J] of demand and work left undone, at these capacities [P] and rates [J]; return them."""
        fleet = self.fleet
        progress = np.zeros((0, len(fleet.seconds)))
        if len(rate):
            progress = rate[:, None] * fleet.seconds / fleet.job_work[:, None]
        now = np.repeat(capacity[:, None], len(fleet.seconds), axis=1), progress
        for (row, column), values, before in zip(self._cells, now, self._before, strict=True):
            changed = np.ones(values.shape, dtype=bool) if before is None else values != before
            self._program.change(row[changed], column[changed], values[changed])
        self._before = now
        self._values = self._program.solve()
        undone: Floats = self._values[self._undone]
        return undone

    def operate(self, growth: Floats, factors: Mapping[str, float]) -> float:
        """Minimise what the dispatch of the last scenario costs, with no more left undone, and return it; 0 where dispatch is not priced.

        `growth` [C]: requests of the scenario over the requests of the program. `factors`: prices over what they are typically.
        """
        operating = self.fleet.operating
        if operating is None:
            return 0.0
        arcs = operating.of_arcs(factors) * growth[self.fleet.arcs[:, 0], None]
        columns = np.concatenate([self._flows.ravel(), self._replicas.ravel()])
        price = np.concatenate([arcs.ravel(), operating.point.ravel()])
        unit = max(float(np.abs(price).max(initial=0.0)), 1e-300)
        u, zero = self._undone, np.zeros(len(self._undone))
        left = np.minimum(self._values[u] + HELD_TOL, 1.0)
        self._program.bound(u, zero, left)
        self._program.price(u, zero)
        self._program.price(columns, price / unit)
        self._values = self._program.solve()
        cost = float(price @ np.maximum(self._values[columns], 0.0))
        self._program.bound(u, zero, zero + 1.0)
        self._program.price(u, self._undone_price)
        self._program.price(columns, np.zeros(len(columns)))
        return cost

    def further(self) -> Floats:
        """Return the further systems [E] of the last dispatch."""
        systems: Floats = np.maximum(self._values[self._further], 0.0)
        return systems

    def replicas(self) -> Floats:
        """Return the replicas [P, T] of the last dispatch."""
        active: Floats = np.maximum(self._values[self._replicas], 0.0)
        return active
