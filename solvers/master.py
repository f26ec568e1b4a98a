"""The master of the decomposition: the structure, patterns of jobs, and cuts that stand for what the slots cost.

Columns     m structure; lambda_i share of pattern i of a job's point; theta_g cost of the slots of a group g.
Rows        the structure's; patterns of a point  sum lambda = y;  of a window  sum lambda <= run;  idle power; cuts
            theta_g >= sum_t [constant - alpha N(m) - sigma (limit - idle power N) + alpha and sigma of running patterns - gates].
A cut is what the slots' programs answered at one point; their prices are kept, because the average of the cuts' prices by the
cuts' weights is what the bound is made of. The bound itself is in certificate.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.certificate import Prices
from solvers.data import Floats, Ints
from solvers.hourwise import NOTHING, Slotwise, Structure
from solvers.slot_programs import SlotAnswer
from solvers.warm import GrowingProgram

PURGE_AFTER, PURGE_FROM = 6, 200  # rounds without weight after which a cut goes, and how many at a time


@dataclass(frozen=True, slots=True)
class Point:
    """Something that the master may decide: the structure's columns and the shares of the patterns."""

    structure: Floats
    patterns: Floats


@dataclass(frozen=True, slots=True)
class Kept:
    """What one answer of the slots left behind."""

    alpha: Floats  # [T, lots]
    sigma: Floats
    beta: Floats
    delta: Floats
    gate: Floats  # [T, W x R]: what serving a workload at a site saves
    constant: Floats  # [T]


class Master:
    """The program of what is decided once over the lots and points kept."""

    def __init__(self, view: Slotwise, structure: Structure, lots: Ints, group: Ints, power_limit: Floats, undone: Floats):
        self.view, self.structure, self.lots, self.group, self.power_limit = view, structure, lots, group, power_limit
        self.groups = int(group.max()) + 1
        assigned = [(row, key[1][0]) for row, key in enumerate(structure.keys) if key[0] == "assigned"]
        self.assigned = np.array([row for row, _ in assigned], dtype=np.int64)
        self.undone = undone[[job for _, job in assigned]]  # prices of a job that is left undone
        data, s = view.data, structure
        self.windows = data.windows
        self.patterns: list[tuple[int, Floats]] = []  # (point, share of each slot [T])
        self.kept: list[Kept] = []
        covers = data.covers()
        held = s.columns["n"]
        self._held = np.flatnonzero(held >= 0)
        # systems of each kept lot in each window as a function of the structure
        position = np.full(len(data.lot_site), -1)
        position[lots] = np.arange(len(lots))
        pairs = [(position[data.holding_lot[u]] * self.windows + w, held[u]) for u in self._held if position[data.holding_lot[u]] >= 0 for w in np.flatnonzero(covers[u])]
        rows, columns = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
        self.systems = sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(lots) * self.windows, s.size))
        # watts of idling systems less those that an open site has; sites that are always open have theirs in any case
        place = s.columns["open"]
        limit = np.broadcast_to(power_limit.reshape(data.sites, -1), (data.sites, self.windows))
        gated = (place >= 0)[:, None] & np.isfinite(limit)
        self.steady = np.where(gated, 0.0, limit)  # [R, V]
        power = [(data.lot_site[data.holding_lot[u]] * self.windows + w, held[u], data.holding_power_w[u]) for u in self._held if data.holding_power_w[u] > 0 for w in np.flatnonzero(covers[u])]
        power += [(r * self.windows + w, place[r], -limit[r, w]) for r, w in np.argwhere(gated)]
        self.idle = sparse.csr_array(
            (np.array([p[2] for p in power]), (np.array([p[0] for p in power], dtype=np.int64), np.array([p[1] for p in power], dtype=np.int64))), shape=(data.sites * self.windows, s.size)
        )
        self._point_rows: dict[int, int] = {}
        self._run_rows: dict[tuple[int, int], int] = {}
        self._program = self._build()

    def _build(self) -> GrowingProgram:
        s = self.structure
        self.first_pattern = s.size + self.groups + len(self.undone)
        limit = self.steady.ravel()
        bounded = np.flatnonzero(np.isfinite(limit) & (np.diff(self.idle.indptr) > 0))
        blocks, lower, upper = [s.matrix, self.idle[bounded]], [s.row_lower, np.full(len(bounded), -np.inf)], [s.row_upper, limit[bounded]]
        link_rows, link_cols, link_vals, count = [], [], [], s.matrix.shape[0] + len(bounded)
        y, run = s.columns["y"], s.columns["run"]
        for p in self.view.training:
            if y[p] >= 0:
                self._point_rows[int(p)] = count + len(link_rows)
                link_rows.append(len(link_rows)), link_cols.append(y[p]), link_vals.append(-1.0)
        equal = len(link_rows)
        for p, w in np.argwhere(run >= 0):
            self._run_rows[int(p), int(w)] = count + len(link_rows)
            link_rows.append(len(link_rows)), link_cols.append(run[p, w]), link_vals.append(-1.0)
        blocks.append(sparse.csr_array((np.array(link_vals), (np.array(link_rows, dtype=np.int64), np.array(link_cols, dtype=np.int64))), shape=(len(link_rows), s.size)))
        lower += [np.concatenate([np.zeros(equal), np.full(len(link_rows) - equal, -np.inf)])]
        upper += [np.zeros(len(link_rows))]
        jobs = len(self.undone)
        left = sparse.csr_array((np.ones(jobs), (self.assigned, np.arange(jobs))), shape=(count + len(link_rows), jobs))
        matrix = sparse.hstack([sparse.vstack(blocks), sparse.csr_array((count + len(link_rows), self.groups)), left]).tocsc()
        self.fixed_rows = matrix.shape[0]
        self.idle_rows = s.matrix.shape[0] + np.arange(len(bounded))
        self._idle_kept = bounded
        self.lower = np.concatenate([np.zeros(s.size), np.full(self.groups, -np.inf), np.zeros(jobs)])
        self.upper = np.concatenate([s.most, np.full(self.groups + jobs, np.inf)])
        self.lower[s.size : s.size + self.groups] = 0.0 if (self.view.arc_cost >= 0).all() and (self.view.point_cost >= 0).all() else -np.inf
        self.cut_of = np.zeros((0, 2), dtype=np.int64)  # (answer, group)
        self.unused = np.zeros(0, dtype=np.int64)
        return GrowingProgram(matrix, np.concatenate(lower), np.concatenate(upper), self.lower, self.upper, np.concatenate([s.cost, np.ones(self.groups), self.undone]))

    # -- patterns --------------------------------------------------------------------------------------------------

    def add_pattern(self, point: int, share: Floats) -> None:
        """A way to do a job at a point, in all cuts at once."""
        view = self.view
        rows, values = [self._point_rows[point]], [1.0]
        for w in range(self.windows):
            if (point, w) in self._run_rows and share[view.window == w].any():
                rows.append(self._run_rows[point, w]), values.append(1.0)
        self.patterns.append((point, share))
        if len(self.cut_of):
            taken = self._taken([len(self.patterns) - 1])
            found = np.flatnonzero(np.abs(taken[:, 0]) > NOTHING)
            rows, values = np.concatenate([rows, self.fixed_rows + found]), np.concatenate([values, taken[found, 0]])
        cost = float(view.point_cost[point] @ share)
        self._program.add_column(cost, np.asarray(rows), np.asarray(values, dtype=float))

    def _taken(self, which, cuts: Ints | None = None) -> Floats:
        """[cuts, patterns]: minus what running the patterns costs at the prices of each cut."""
        view, data = self.view, self.view.data
        cuts = np.arange(len(self.cut_of)) if cuts is None else cuts
        result = np.zeros((len(cuts), len(which)))
        position = np.full(len(data.lot_site), -1)
        position[self.lots] = np.arange(len(self.lots))
        answers = np.unique(self.cut_of[cuts, 0])
        for c, i in enumerate(which):
            point, share = self.patterns[i]
            uses = np.flatnonzero(view.use_point == point)
            for answer in answers:
                kept = self.kept[answer]
                price = kept.sigma[:, view.site[point]] * data.point_power_w[point]
                for u in uses:
                    price = price + kept.alpha[:, position[view.use_lot[u]]] * view.use_systems[u]
                by_group = np.bincount(self.group, weights=price * share, minlength=self.groups)
                mine = np.flatnonzero(self.cut_of[cuts, 0] == answer)
                result[mine, c] = -by_group[self.cut_of[cuts[mine], 1]]
        return result

    # -- cuts ------------------------------------------------------------------------------------------------------

    def keep(self, answer: SlotAnswer) -> Kept:
        """The prices of an answer, with the savings of arcs added up by workload and site."""
        view = self.view
        gate = np.zeros((len(self.structure.pair_gate), view.slots))
        np.add.at(gate, self.structure.arc_pair, answer.gate.T * view.demand[view.arc_demand])
        limit = np.where(np.isfinite(self.steady), self.steady, 0.0)[:, view.window]
        constant = (answer.delta * view.demand.T).sum(axis=1) - (answer.sigma * limit.T).sum(axis=1)
        return Kept(answer.alpha, answer.sigma, answer.beta, answer.delta, gate.T, constant)

    def add_cuts(self, kept: Kept, groups: Ints | None = None) -> None:
        """One cut for each of these groups of slots, or for all."""
        groups = np.arange(self.groups) if groups is None else groups
        index = len(self.kept)
        self.kept.append(kept)
        fresh = np.column_stack([np.full(len(groups), index), groups])
        self.cut_of = np.concatenate([self.cut_of, fresh])
        self.unused = np.concatenate([self.unused, np.zeros(len(groups), dtype=np.int64)])
        self._program.add_rows(*self._rows(np.arange(len(self.cut_of) - len(groups), len(self.cut_of))))

    def _rows(self, cuts: Ints) -> tuple[Floats, sparse.csr_array]:
        view, s = self.view, self.structure
        into = sparse.csr_array((np.ones(view.slots), (self.group, np.arange(view.slots))), shape=(self.groups, view.slots))
        lower, parts = np.empty(len(cuts)), []
        never = s.pair_gate < 0
        gated = np.flatnonzero(~never)
        place = sparse.csr_array((np.ones(len(gated)), (gated, s.pair_gate[gated])), shape=(len(never), s.size))
        by_window = [into @ sparse.diags_array((view.window == w).astype(float)) for w in range(self.windows)]
        for answer in np.unique(self.cut_of[cuts, 0]):
            kept, mine = self.kept[answer], np.flatnonzero(self.cut_of[cuts, 0] == answer)
            groups = self.cut_of[cuts[mine], 1]
            gate = into @ kept.gate
            lower[mine] = (into @ kept.constant - gate[:, never].sum(axis=1))[groups]
            systems, watts = (np.stack([part @ prices for part in by_window], axis=2).reshape(self.groups, -1)[groups] for prices in (kept.alpha, kept.sigma))
            row = sparse.csr_array(systems) @ self.systems - sparse.csr_array(watts) @ self.idle
            row = row + sparse.csr_array(gate[groups]) @ place
            parts.append((mine, row, groups))
        stacked = sparse.vstack([row for _, row, _ in parts]).tocsr()
        order = np.argsort(np.concatenate([mine for mine, _, _ in parts]), kind="stable")
        groups = np.concatenate([g for _, _, g in parts])
        theta = sparse.csr_array((np.ones(len(cuts)), (np.arange(len(cuts)), groups)), shape=(len(cuts), self.groups))
        taken = self._taken(range(len(self.patterns)), cuts[np.concatenate([mine for mine, _, _ in parts])])
        taken[np.abs(taken) < NOTHING] = 0.0
        whole = sparse.hstack([stacked, theta, sparse.csr_array((len(cuts), len(self.undone))), sparse.csr_array(taken)]).tocsr()[order]
        whole.data[np.abs(whole.data) < NOTHING] = 0.0
        whole.eliminate_zeros()
        return lower, whole

    def restore(self, cut_of: Ints, unused: Ints) -> None:
        """Cuts of answers that are kept already."""
        self.cut_of, self.unused = cut_of.copy(), unused.copy()
        if len(cut_of):
            self._program.add_rows(*self._rows(np.arange(len(cut_of))))

    @property
    def places(self) -> dict[int, int]:
        """Points of jobs that patterns may be added for."""
        return self._point_rows

    @property
    def places_array(self) -> Ints:
        return np.array(sorted(self._point_rows), dtype=np.int64)

    def purge(self) -> None:
        """Cuts that have had no weight for some rounds go; their prices stay while any cut of the answer is left."""
        gone = np.flatnonzero(self.unused >= PURGE_AFTER)
        if len(gone) < PURGE_FROM:
            return
        self._program.delete_rows(self.fixed_rows + gone)
        stay = self.unused < PURGE_AFTER
        self.cut_of, self.unused = self.cut_of[stay], self.unused[stay]
        for index in set(range(len(self.kept))) - set(self.cut_of[:, 0].tolist()):
            self.kept[index] = None

    def hold(self, tolerance: float) -> None:
        """Rows hold to the tolerance from now on."""
        self._program.hold(tolerance)

    # -- solving ---------------------------------------------------------------------------------------------------

    def solve(self, box: tuple[Floats, Floats] | None) -> tuple[float, Point, Prices] | None:
        """(value, point, average prices) within a box around a point (of structure and patterns); None where the box is empty."""
        free = np.full(len(self.patterns), np.inf)
        lower, upper = np.concatenate([self.lower, 0.0 * np.zeros(len(self.patterns))]), np.concatenate([self.upper, free])
        if box is not None:
            inside = np.r_[0 : self.structure.size, self.first_pattern : len(lower)]
            lower[inside], upper[inside] = np.maximum(lower[inside], box[0]), np.minimum(upper[inside], box[1])
            upper[inside] = np.maximum(upper[inside], lower[inside])
        self._program.bound(lower, upper)
        found = self._program.solve()
        if found is None:
            return None
        value, x, duals = found
        weight = duals[self.fixed_rows :]
        self.unused = np.where(np.abs(weight) > 1e-10, 0, self.unused + 1)
        point = Point(x[: self.structure.size], x[self.first_pattern :])
        return value, point, self._average(weight, duals)

    def solve_whole(self, lower: Floats, upper: Floats, integer: np.ndarray, gap: float, seed: int, seconds: float, shares: Floats | None = None) -> tuple[float, float, Point] | None:  # fmt: skip
        """(value, least possible value, point) with the structure's columns whole where asked and within bounds, patterns as given if they are; None where none was found."""
        size, none = self.structure.size, np.zeros(len(self.patterns))
        low, high = (none, none + np.inf) if shares is None else (shares, shares)
        self._program.bound(np.concatenate([lower, self.lower[size:], low]), np.concatenate([upper, self.upper[size:], high]))
        found = self._program.solve_whole(np.flatnonzero(integer), gap, seconds, seed)
        if found is None:
            return None
        value, proven, x = found
        return value, proven, Point(x[:size], x[self.first_pattern :])

    def _average(self, weight: Floats, duals: Floats) -> Prices:
        view, data = self.view, self.view.data
        alpha, sigma = np.zeros((len(data.lot_site), view.slots)), np.zeros((data.sites, view.slots))
        beta, delta = np.zeros((data.pools, view.slots)), np.zeros((len(view.demand), view.slots))
        for index in np.unique(self.cut_of[np.abs(weight) > NOTHING, 0]):
            mine = self.cut_of[:, 0] == index
            share = np.bincount(self.cut_of[mine, 1], weights=weight[mine], minlength=self.groups)[self.group]
            kept = self.kept[index]
            alpha[self.lots] += (kept.alpha * share[:, None]).T
            sigma += (kept.sigma * share[:, None]).T
            beta += (kept.beta * share[:, None]).T
            delta += (kept.delta * share[:, None]).T
        # rows on idle power are prices of watts in every slot of their window
        for row, at in zip(self.idle_rows, self._idle_kept, strict=True):
            site, window = divmod(int(at), self.windows)
            here = np.flatnonzero(view.window == window)
            sigma[site, here] += -min(duals[row], 0.0) / max(len(here), 1)
        return Prices(alpha, sigma, beta, delta, duals[: self.structure.matrix.shape[0]])

    def linear_cost(self, point: Point) -> float:
        """What a point costs beside the slots."""
        running = sum(share * float(self.view.point_cost[p] @ v) for share, (p, v) in zip(point.patterns, self.patterns, strict=True) if share > NOTHING)
        return float(self.structure.cost @ point.structure + self.undone @ self.left_undone(point)) + running

    def left_undone(self, point: Point) -> Floats:
        """Share of each job that has no place."""
        return np.maximum(1.0 - self.structure.matrix[self.assigned] @ point.structure, 0.0)

    def given(self, point: Point) -> tuple[Floats, Floats, Floats, Floats]:
        """What the slots' programs need to know of a point: systems [lots, T], open share [A], systems of jobs, free watts [R, T]."""
        view, data, s = self.view, self.view.data, self.structure
        systems = (self.systems @ point.structure).reshape(len(self.lots), self.windows)[:, view.window]
        idle = (self.idle @ point.structure).reshape(data.sites, self.windows)[:, view.window]
        gate = np.append(point.structure, 1.0)[s.arc_gate]  # 1 where nothing is to be switched
        position = np.full(len(data.lot_site), -1)
        position[self.lots] = np.arange(len(self.lots))
        job_systems, job_watts = np.zeros_like(systems), np.zeros_like(idle)
        for share, (p, v) in zip(point.patterns, self.patterns, strict=True):
            if share > NOTHING:
                job_watts[view.site[p]] += share * data.point_power_w[p] * v
                for u in np.flatnonzero(view.use_point == p):
                    job_systems[position[view.use_lot[u]]] += share * view.use_systems[u] * v
        limit = np.where(np.isfinite(self.steady), self.steady, 1e12)[:, view.window]
        return systems, gate, job_systems, limit - idle - job_watts
