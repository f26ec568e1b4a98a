"""Choose which slots to merge: those that the duals and the solution of a rougher merged program say differ least.

Each slot has a signature, money in the rougher program's terms: of each row, dual times what its side leaves to columns at their mean over the
calendar; of each column, its mean times its reduced cost at the mean duals. Merging slots loses about what their signatures
differ. Whole parts are clustered first (Ward 1963), place by place; then each cluster is cut into runs of slots of least sum of squares
(dynamic programming, Fisher 1958). The number of clusters is the one that loses least money: absolute differences from the means of groups, of
columns as they are and of rows for the share of slots in which a row decides.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from solvers.arrays import Bools, Floats, Ints
from solvers.general.aggregation import NONE
from solvers.general.merged_lp import MergedLp
from solvers.general.structure import FEW_SLOTS, Structure, column_keys, row_keys
from solvers.program import Program

CLUSTERS = 12  # numbers of clusters that are tried, from one to all parts
DECIDES = 0.1  # share of the slots, those in which a row decides; the duals of the others are about 0
LEAST = 1e-9  # share of the largest entry of the signatures, below which one counts as 0


class Grouping:
    """Signatures of the slots of a program, and the parts in clusters."""

    def __init__(self, program: Program, structure: Structure, slots: int, solved: MergedLp):
        """`solved`: a merged program of these slots, of any grouping."""
        self._slots, self._structure = slots, structure
        signature, of_rows = _signatures(program, structure, slots, solved)
        self._money = np.where(of_rows, DECIDES, 1.0)  # by entry of a signature
        self._parts = [np.flatnonzero(structure.run == p) for p in range(structure.runs)]
        self._signature = signature
        self._trees: list[tuple[Ints, Floats | None]] = []  # parts of one length, and their linkage
        lengths = np.array([len(mine) for mine in self._parts], dtype=np.int64)
        for length in np.unique(lengths):
            mine = np.flatnonzero(lengths == length)
            self._trees.append((mine, _ward(np.array([signature[self._parts[p]].ravel() for p in mine]))))

    def groups(self, most: int, alone: Ints = NONE) -> Ints:
        """Group the slots [slots], `most` groups in all; each slot of `alone` is a group of its own besides."""
        kinds, parts = len(self._trees), len(self._parts)
        most = max(most, kinds)
        tried = np.unique(np.rint(np.geomspace(kinds, min(parts, most), CLUSTERS)).astype(int))
        group = min((self._cut(self._clusters(int(count)), most) for count in tried), key=self._lost)
        group[alone] = int(group.max(initial=-1)) + 1 + np.arange(len(alone))
        return group

    def _clusters(self, count: int) -> list[Ints]:
        """Split the parts into about a number of clusters, each of parts of one length; returns the slots of each [parts, places]."""
        found = []
        for mine, tree in self._trees:
            number = np.ones(len(mine), dtype=np.int64)
            if tree is not None:
                number = fcluster(tree, max(round(count * len(mine) / len(self._parts)), 1), "maxclust").astype(
                    np.int64
                )
            for n in np.unique(number):
                found.append(np.array([self._parts[p] for p in mine[number == n]]))
        return found

    def _cut(self, clusters: list[Ints], most: int) -> Ints:
        """Cut clusters into runs, `most` in all, of least sum of squares; returns the groups [slots]."""
        gains, cuts = [], []
        for c, slots in enumerate(clusters):
            least, cut = _runs(self._signature[slots].mean(axis=0))
            cuts.append(cut)
            gains += [(len(slots) * float(least[k] - least[k + 1]), c) for k in range(len(least) - 1)]
        gains.sort(key=lambda gain: -gain[0])
        taken = [c for _, c in gains[: max(most - len(clusters), 0)]]
        pieces = 1 + np.bincount(taken, minlength=len(clusters)).astype(int)
        group, number = np.zeros(self._slots, dtype=np.int64), 0
        for slots, cut, count in zip(clusters, cuts, pieces, strict=True):
            group[slots] = number + cut[count - 1]
            number += int(count)
        return group

    def _lost(self, group: Ints) -> float:
        """Estimate what merging these groups [slots] loses, in money."""
        count = np.bincount(group)
        sums = sparse.csr_array((np.ones(self._slots), (group, np.arange(self._slots)))) @ self._signature
        mean = sums / np.maximum(count, 1)[:, None]
        return float((np.abs(self._signature - mean[group]) @ self._money).sum())


def _signatures(program: Program, structure: Structure, slots: int, solved: MergedLp) -> tuple[Floats, Bools]:
    """Compute the signature of each slot [slots, entries], and which entries are of rows."""
    arrays, one = structure.arrays, np.zeros(slots, dtype=np.int64)
    columns, rows = column_keys(program, structure, one), row_keys(program, structure, one)
    x, y = solved.merged.spread(solved.x), solved.merged.spread_duals(solved.duals)
    x = (np.bincount(columns.number, x, columns.count) / np.bincount(columns.number, minlength=columns.count))[
        columns.number
    ]
    y = (np.bincount(rows.number, y, rows.count) / np.bincount(rows.number, minlength=rows.count))[rows.number]
    side = np.where(y > 0, arrays.row_lower, arrays.row_upper)
    left = np.where(np.isfinite(side), side, 0.0) - arrays.matrix @ x
    reduced = structure.cost - arrays.matrix.T @ y
    slot_of_row = _slots_of_rows(structure, slots)
    timed, single = np.flatnonzero(structure.slot >= 0), np.flatnonzero(slot_of_row >= 0)
    found = sparse.csr_array(
        (
            np.concatenate([(x * reduced)[timed], (y * left)[single]]),
            (
                np.concatenate([structure.slot[timed], slot_of_row[single]]),
                np.concatenate([columns.number[timed], columns.count + rows.number[single]]),
            ),
        ),
        shape=(slots, columns.count + rows.count),
    )
    found.data[np.abs(found.data) < LEAST * np.abs(found.data).max(initial=0.0)] = 0.0
    found.eliminate_zeros()
    entries = np.unique(found.indices)
    if not len(entries):
        return np.zeros((slots, 1)), np.zeros(1, dtype=bool)
    return found[:, entries].toarray(), entries >= columns.count


def _slots_of_rows(structure: Structure, slots: int) -> Ints:
    """Find the last slot of the columns of each row [rows]; -1 for rows of none, or of many."""
    entries = structure.arrays.matrix.tocoo()
    timed = structure.slot[entries.col] >= 0
    of_row = sparse.csr_array(
        (np.ones(int(timed.sum())), (entries.row[timed], structure.slot[entries.col[timed]])),
        shape=(len(structure.arrays.row_lower), slots),
    )
    of_row.sum_duplicates()
    count = np.diff(of_row.indptr)
    last = np.full(len(count), -1)
    np.maximum.at(last, entries.row[timed], structure.slot[entries.col[timed]])
    return np.where(count <= FEW_SLOTS, last, -1)


def _ward(vectors: Floats) -> Floats | None:
    """Cluster vectors [count, entries] hierarchically by Ward's criterion; None for a single one."""
    if len(vectors) < 2:
        return None
    centred = vectors - vectors.mean(axis=0)
    product = centred @ centred.T
    norm = np.diag(product)
    squared = np.maximum(norm[:, None] + norm[None, :] - 2 * product, 0.0)
    np.fill_diagonal(squared, 0.0)
    tree: Floats = linkage(squareform(np.sqrt(squared), checks=False), "ward")
    return tree


def _runs(values: Floats) -> tuple[Floats, list[Ints]]:
    """Cut a sequence [places, entries] into 1, 2, ... runs of least sum of squares about their means.

    Returns the sums [runs - 1] and, for each number of runs, the run of each place.
    """
    places = len(values)
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    square = np.concatenate([[0.0], np.cumsum((values**2).sum(axis=1))])
    within = np.zeros((places + 1, places + 1))  # cost of the run from a place to before another
    for i in range(places):
        ends = np.arange(i + 1, places + 1)
        within[i, ends] = np.maximum(
            square[ends] - square[i] - ((total[ends] - total[i]) ** 2).sum(axis=1) / (ends - i), 0
        )
    best = np.full((places + 1, places + 1), np.inf)  # [runs, places]
    best[0, 0] = 0.0
    before = np.zeros((places + 1, places + 1), dtype=np.int64)
    for k in range(1, places + 1):
        for end in range(k, places + 1):
            choices = best[k - 1, :end] + within[:end, end]
            before[k, end] = int(np.argmin(choices))
            best[k, end] = choices[before[k, end]]
    cuts = []
    for k in range(1, places + 1):
        run, end = np.zeros(places, dtype=np.int64), places
        for r in range(k, 0, -1):
            start = before[r, end]
            run[start:end] = r - 1
            end = start
        cuts.append(run)
    return best[1:, places], cuts
