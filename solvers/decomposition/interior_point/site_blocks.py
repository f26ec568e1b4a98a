"""The blocks of the LP relaxation: groups of slots, and in each the rows and columns of every site.

A block's matrices depend on the iterate through a diagonal scaling theta. `SiteBlock` therefore holds sparse maps from the scaling of each
arc, point and placement to the entries of these matrices, flattened, so that one product forms them for all slots of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.decomposition.interior_point.lp_data import LpData, Matrix, SparseMatrix


@dataclass(frozen=True, slots=True)
class SiteBlock:
    """Rows of one site in the slots of a block: b rows (fleet options, pools, power if limited), l linking columns, D demands.

    The linking columns belong to no other site. The maps take one value per gated arc, arc or placement, for each slot.
    """

    fleet_options: Ints
    pools: Ints
    power: Ints  # the site itself, or empty if its power is not limited
    points: Ints
    gated: Ints  # positions among the gated arcs
    arcs: Ints
    placements: Ints
    link_columns: Ints  # [l] first-stage columns, then those of jobs' progress, each consecutive
    squares: tuple[Matrix, Matrix]  # [b b, points], [b b, placements]
    fixed: Floats  # [b, l] entries that do not depend on the slot
    gates: Matrix  # [b l, gated]
    gates_balance: Matrix  # [D l, gated]
    balance: Matrix  # [pools D, arcs]
    progress: Matrix  # [b l, placements]
    switches: Matrix  # [b l, placements]

    @property
    def rows(self) -> int:
        return len(self.fleet_options) + len(self.pools) + len(self.power)


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Slots of one window that are eliminated together, and the columns that link them to others, sorted."""

    slots: Ints
    link_columns: Ints
    sites: list[SiteBlock]

    @property
    def pools(self) -> int:
        return sum(len(site.pools) for site in self.sites)


def slot_blocks(lp: LpData, parallel: bool) -> list[SlotBlock]:
    """Divide the LP into blocks of slots, small enough for the cache and, if they run in `parallel`, for several threads."""
    together = _slot_groups(lp)
    by_site = [_SiteRows(lp, r).blocks(together) for r in range(lp.sites)]
    parts = []
    for i, slots in enumerate(together):
        sites = [of_parts[i] for of_parts in by_site if of_parts[i].rows]
        link_columns = np.sort(np.concatenate([site.link_columns for site in sites] or [np.zeros(0, dtype=np.int64)]))
        parts.append(SlotBlock(slots, link_columns, sites))
    most = max(int(lp.settings.most_block_numbers // max(lp.demands, 1) ** 2), 1)
    if parallel:
        most = min(most, -(-lp.slots // lp.settings.parallel_blocks))
    return [
        replace(part, slots=slots)
        for part in parts
        for slots in np.array_split(part.slots, -(-len(part.slots) // most))
    ]


def _slot_groups(lp: LpData) -> list[Ints]:
    """Group slots of one window in which the same placements may run.

    Columns of a placement reach into its group alone. Neighbouring groups are merged where that costs less work than another group.
    """
    _, kind = np.unique(np.vstack([lp.window, lp.may_run]), axis=1, return_inverse=True)
    parts = [np.flatnonzero(kind.reshape(-1) == k) for k in dict.fromkeys(kind.reshape(-1))]  # in order of time
    going: list[Bools] = [np.any(lp.may_run[:, slots], axis=1) for slots in parts]
    of_jobs = np.union1d(lp.switch[lp.may_run], lp.done)
    held = len(lp.moving) - int((of_jobs >= 0).sum())
    overhead = lp.settings.site_overhead_multiplications * lp.sites

    def work(slots: Sequence[int] | Ints, placements: Bools) -> float:
        return len(slots) * lp.demands * (held + 2.0 * float(placements.sum())) ** 2

    while len(parts) > 1:
        saved = [
            overhead + work(a, of_a) + work(b, of_b) - work([*a, *b], np.logical_or(of_a, of_b))
            if lp.window[a[0]] == lp.window[b[0]]
            else -np.inf
            for a, b, of_a, of_b in zip(parts, parts[1:], going, going[1:])
        ]
        at = int(np.argmax(saved))
        if saved[at] <= 0:
            break
        parts[at : at + 2], going[at : at + 2] = [np.concatenate(parts[at : at + 2])], [going[at] | going[at + 1]]
    return parts


class _SiteRows:
    """Rows of one site and their parts that are equal in all blocks of slots."""

    def __init__(self, lp: LpData, site: int):
        """Find the rows, columns and products of columns of this site."""
        view, data = lp.view, lp.view.data
        self.lp, self.first = lp, int(lp.first[site])
        self.fleet_options = np.flatnonzero(data.option_site[lp.linking.fleet_options] == site)
        self.points = np.flatnonzero(view.site[lp.points] == site)
        self.pools = np.unique(data.point_pool[lp.points[self.points]])
        self.power = np.flatnonzero(lp.limited[site : site + 1]) + site
        self.rows = len(self.fleet_options) + len(self.pools) + len(self.power)
        self.row_of_pool = np.full(lp.pools, -1)
        self.row_of_pool[self.pools] = len(self.fleet_options) + np.arange(len(self.pools))
        self.placements = np.flatnonzero((view.site[lp.placements] == site) & lp.runs)
        self.arcs = np.flatnonzero(self.row_of_pool[lp.arc_pool] >= 0)
        self.gated = self.arcs[lp.gate[self.arcs] >= 0]
        serving = sparse.vstack(
            [
                -lp.uses[self.fleet_options][:, self.points],
                lp.serves[self.pools][:, self.points],
                -lp.watts[self.power][:, self.points],
            ]
        )
        self.point_squares = self._ready(_squares(serving))
        self.job_runs = sparse.vstack(
            [
                -lp.job_uses[self.fleet_options][:, self.placements],
                sparse.csr_array((len(self.pools), len(self.placements))),
                -lp.job_watts[self.power][:, self.placements],
            ]
        ).tocsc()
        self.job_squares = _squares(self.job_runs).tocsc()
        self.balance = self._map(
            -np.ones(len(self.arcs)),
            (self.row_of_pool[lp.arc_pool[self.arcs]] - len(self.fleet_options)) * lp.demands
            + lp.arc_demand[self.arcs],
            np.arange(len(self.arcs)),
            (len(self.pools) * lp.demands, len(self.arcs)),
        )
        self.own = np.arange(lp.first[site], lp.first[site + 1])  # first-stage columns of the site
        self.fixed = self._fixed()

    def _ready(self, matrix: SparseMatrix) -> Matrix:
        return dense_if_small(matrix, self.lp.settings.most_dense_entries)

    def _map(self, values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Matrix:
        return self._ready(sparse.csr_array((values, (rows, columns)), shape=shape))

    def _fixed(self) -> Floats:
        """[V, b, own columns]: systems held and idle watts of the site's first-stage columns."""
        lp, options, count = self.lp, self.fleet_options, len(self.own)
        windows = np.arange(lp.windows)
        option_window, power_window = (which[:, None] * lp.windows + windows for which in (options, self.power))
        systems = lp.systems[option_window.ravel()][:, self.own].toarray()
        idle = lp.idle[power_window.ravel()][:, self.own].toarray()
        fixed = np.zeros((lp.windows, self.rows, count))
        fixed[:, : len(options)] = systems.reshape(len(options), lp.windows, count).transpose(1, 0, 2)
        fixed[:, self.rows - len(self.power) :] = -idle.reshape(len(self.power), lp.windows, count).transpose(1, 0, 2)
        return fixed

    def blocks(self, together: list[Ints]) -> list[SiteBlock]:
        """Return the site's rows in each group of slots."""
        return [self._block(slots) for slots in together]

    def _block(self, slots: Ints) -> SiteBlock:
        """Return the site's rows in slots of one window."""
        lp, b, gated = self.lp, self.rows, self.gated
        w, going = lp.window[slots[0]], np.flatnonzero(lp.may_run[self.placements][:, slots].any(axis=1))
        placements = self.placements[going]
        switch = lp.column[lp.linking.switch[placements, w]]
        used = self.fixed[w].any(axis=0)
        used[lp.gate[gated] - self.first] = True
        used[switch[switch >= 0] - self.first] = True
        columns = np.concatenate([self.own[used], lp.progress[placements]])
        link, l, count = np.full(lp.links, -1), len(columns), np.arange(len(gated))
        link[columns] = np.arange(l)
        run = self.job_runs[:, going].tocoo()
        run_row, run_column = run.row.astype(np.int64), run.col.astype(np.int64)
        at = switch[run_column]
        here = at >= 0
        return SiteBlock(
            fleet_options=self.fleet_options,
            pools=self.pools,
            power=self.power,
            points=self.points,
            gated=np.searchsorted(lp.gated, gated),
            arcs=self.arcs,
            placements=placements,
            link_columns=columns,
            squares=(self.point_squares, self._ready(self.job_squares[:, going].tocsr())),
            fixed=np.hstack([self.fixed[w][:, used], np.zeros((b, len(placements)))]),
            gates=self._map(
                -np.ones(len(gated)),
                self.row_of_pool[lp.arc_pool[gated]] * l + link[lp.gate[gated]],
                count,
                (b * l, len(gated)),
            ),
            gates_balance=self._map(
                np.ones(len(gated)),
                lp.arc_demand[gated] * l + link[lp.gate[gated]],
                count,
                (lp.demands * l, len(gated)),
            ),
            balance=self.balance,
            progress=self._map(
                run.data, run_row * l + link[lp.progress[placements[run_column]]], run_column, (b * l, len(placements))
            ),
            switches=self._map(
                run.data[here], run_row[here] * l + link[at[here]], run_column[here], (b * l, len(placements))
            ),
        )


def dense_if_small(matrix: SparseMatrix, most_entries: int) -> Matrix:
    """Return a matrix in the form in which it is multiplied with fastest: dense if it has at most a number of entries, zeros included."""
    if matrix.shape[0] * matrix.shape[1] > most_entries:
        return matrix
    dense: Floats = matrix.toarray()
    return dense


def _squares(matrix: SparseMatrix | sparse.csc_array) -> SparseMatrix:
    """[b b, n]: outer product of each column [b] with itself, flattened."""
    columns = matrix.tocsc()
    b, counts = columns.shape[0], np.diff(columns.indptr)
    first = np.repeat(np.arange(len(columns.data)), np.repeat(counts, counts))
    second = np.concatenate(
        [np.tile(np.arange(start, end), end - start) for start, end in zip(columns.indptr[:-1], columns.indptr[1:])]
        or [np.zeros(0, dtype=np.int64)]
    )
    column = np.repeat(np.arange(columns.shape[1]), counts**2)
    return sparse.csr_array(
        (columns.data[first] * columns.data[second], (columns.indices[first] * b + columns.indices[second], column)),
        shape=(b * b, columns.shape[1]),
    )
