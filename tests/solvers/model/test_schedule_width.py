"""Rows `held width` cut off fractions only: no optimum changes with them, and the relaxation of some questions gets dearer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.general.rolling import Piece
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector
from tests.conftest import few_of
from tests.solvers.test_all_blocks_bruteforce import problem


def test_a_job_of_several_windows_holds_its_width_in_one_of_them():
    asked = dearer = 0
    for seed in range(few_of(200)):
        data = problem(np.random.default_rng(seed), ("cost",))
        program = build(data)
        if not sum(len(block.index) for block in program.row_blocks["held width"]):
            continue
        arrays, cost = program.arrays(), objective_vector(program, data)
        upper = arrays.row_upper.copy()
        for block in program.row_blocks["held width"]:
            upper[block.rows] = np.inf
        without = replace(arrays, row_upper=upper)
        relaxed = [replace(one, integer=np.zeros_like(arrays.integer)) for one in (arrays, without)]
        values = [solve_mip(Piece(one), cost, "min", Options(gap=0.0)).objective for one in (arrays, without, *relaxed)]
        assert (values[0] is None) == (values[1] is None)
        if values[0] is None:
            continue
        assert values[0] == pytest.approx(values[1], rel=1e-6, abs=1e-6)
        assert values[3] * (1 - 1e-6) - 1e-6 <= values[2]
        asked, dearer = asked + 1, dearer + (values[2] > values[3] * (1 + 1e-4))
    assert asked >= 10
    assert dearer
