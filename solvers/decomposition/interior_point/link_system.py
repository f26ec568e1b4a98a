"""The Newton equations in the columns that link the slots: first-stage columns, and prices of the rows `progress` and `equal`.

    [ -A  C' ] [ m    ]   [ first  ]
    [  C  B  ] [ rest ] = [ second ]        A, B positive definite

Solved by Cholesky factors of A and of the Schur complement B + C A^-1 C'.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from solvers.arrays import Floats, Ints
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.scaling import Scaling, divided
from solvers.decomposition.interior_point.settings import NEWTON
from solvers.decomposition.interior_point.site_blocks import SlotBlock
from solvers.decomposition.interior_point.slot_elimination import EliminatedBlock, blas_threads


class LinkSystem:
    """Factors of the equations in the linking columns."""

    def __init__(self, program: BlockProgram, scaling: Scaling, eliminated: Iterable[EliminatedBlock]):
        """Subtract what the eliminated blocks of slots contribute, and factor."""
        links = _link_matrix(program, scaling)
        for block, done in zip(program.parts, eliminated):
            _subtract_block(links, block, done)
        with blas_threads(program.threads, len(program.moving) ** 3 / 3):
            self._factor(program, links)

    def _factor(self, program: BlockProgram, links: Floats) -> None:
        """Factor A and the Schur complement, from the lower half of [-A, C'; C, B]; rows with equal sides belong to C."""
        o, count, extra = program, len(program.moving), NEWTON.regularization
        first = links[:count, :count]  # factored in place: it is large
        self._scale = _inverse_root(-np.diag(first))
        first *= -self._scale[:, None]
        first *= self._scale
        first[np.arange(count), np.arange(count)] += extra
        self._first = cho_factor(first, lower=True, overwrite_a=True, check_finite=False)
        self._cross = np.vstack([links[count:, :count], o.equal.toarray()])
        half = solve_triangular(self._first[0], (self._cross * self._scale).T, lower=True, check_finite=False)
        second = half.T @ half
        second[: o.links - count, : o.links - count] += links[count:, count:]
        self._scale_second = _inverse_root(np.diag(second))
        second = second * self._scale_second[:, None] * self._scale_second
        second[np.arange(len(second)), np.arange(len(second))] += extra
        self._second = cho_factor(second, lower=True, check_finite=False)

    def solve(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Return (m, rest) for right-hand sides."""
        side = second + self._cross @ self._solve_first(first)
        rest: Floats = self._scale_second * cho_solve(self._second, self._scale_second * side, check_finite=False)
        return self._solve_first(self._cross.T @ rest - first), rest

    def _solve_first(self, side: Floats) -> Floats:
        """A^-1 side."""
        solved: Floats = self._scale * cho_solve(self._first, self._scale * side, check_finite=False)
        return solved


def _inverse_root(diagonal: Floats) -> Floats:
    return np.asarray(1 / np.sqrt(np.maximum(diagonal, NEWTON.least_diagonal)), dtype=np.float64)


def _link_matrix(program: BlockProgram, scaling: Scaling) -> Floats:
    """Return the lower half of the matrix of the linking columns before slots are eliminated [links, links]."""
    o, count, theta, mask = program, len(program.moving), scaling.theta, program.mask
    own = divided(np.ones(count), theta["m"], mask["m"]) + divided(
        scaling.w["upper"], scaling.z["upper"], mask["upper"]
    )
    own += o.to_gates(divided(o.let**2, scaling.both_f, mask["hosted"])) + o.to_switches(
        divided(np.ones_like(scaling.both_v), scaling.both_v, mask["running"])
    )
    links = np.zeros((o.links, o.links))
    links[np.arange(count), np.arange(count)] = -own
    runs, done = np.flatnonzero(o.runs), np.flatnonzero(o.done >= 0)
    links[o.progress[runs], o.progress[runs]] = (scaling.run * o.rate**2).sum(axis=1)[runs]
    place, slot = np.nonzero(o.may_run & (o.switch >= 0))
    np.add.at(links, (o.progress[place], o.switch[place, slot]), (scaling.to_switch * o.rate)[place, slot])
    links[o.progress[done], o.done[done]] -= 1.0
    per = (1.0 / theta["above"])[:, None]
    if isinstance(o.go["above"], np.ndarray):
        links[:count, :count] -= o.back["above"] @ (o.go["above"] * per)
    else:
        above = (o.back["above"] @ o.above.multiply(per)).tocoo()
        links[above.row, above.col] -= above.data
    return links


def _subtract_block(links: Floats, block: SlotBlock, done: EliminatedBlock) -> None:
    """Subtract a block's contribution to the Schur complement."""
    for site, of_site in zip(block.sites, done.links):
        links[np.ix_(site.link_columns, site.link_columns)] -= of_site
    _subtract_lower(links, block.link_columns, done.taken)


def _subtract_lower(matrix: Floats, rows: Ints, values: Floats) -> None:
    """Subtract `values` from these rows and columns of a matrix of which only the lower half is used."""
    first = np.flatnonzero(np.diff(rows, prepend=-2) > 1)  # first of each run of consecutive rows
    if len(first) > NEWTON.most_runs:
        matrix[np.ix_(rows, rows)] -= values
        return
    ends = np.append(first[1:], len(rows))[: len(first)]  # empty where there are no rows
    for i, n in zip(first, ends):
        for j, m in zip(first, ends):
            if j <= i:
                matrix[rows[i] : rows[i] + n - i, rows[j] : rows[j] + m - j] -= values[i:n, j:m]
