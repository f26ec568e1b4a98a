"""Linear programs that stay loaded."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers.backends.persistent_lp import RowGenerationLp


def test_a_program_out_of_time_has_no_result_and_is_solved_with_more():
    rng = np.random.default_rng(0)
    rows, columns = 300, 600
    matrix = sparse.random_array((rows, columns), density=0.1, rng=rng, format="csr")
    program = RowGenerationLp(
        matrix,
        matrix @ rng.random(columns) - 0.1,
        np.full(rows, np.inf),
        np.zeros(columns),
        np.full(columns, 2.0),
        rng.random(columns),
    )
    assert program.solve(0.0) is None
    value, x, _ = program.solve()
    assert program.solve()[0] == value and (matrix @ x).min() > -1e-6
