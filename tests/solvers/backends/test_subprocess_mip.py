"""Small MIPs in a child process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from solvers.backends import highs, subprocess_mip
from solvers.interface import SolverError


def market_split(rows: int = 5, columns: int = 45) -> tuple:
    """A market split problem, which no search solves in reasonable time. Cornuejols and Dawande, IPCO 1998."""
    weights = np.random.default_rng(0).integers(0, 100, (rows, columns)).astype(float)
    half = np.floor(weights.sum(axis=1) / 2)
    matrix = sparse.csc_array(np.hstack([weights, np.eye(rows), -np.eye(rows)]))
    more = np.zeros(columns), np.ones(2 * rows)
    whole = np.concatenate([np.ones(columns), np.zeros(2 * rows)]).astype(bool)
    return (
        np.concatenate(more),
        matrix,
        (half, half),
        (np.zeros(columns + 2 * rows), np.append(np.ones(columns), np.full(2 * rows, np.inf))),
        whole,
        0.0,
    )


KNAPSACK = (
    -np.array([3.0, 4.0, 5.0]),
    sparse.csc_array([[2.0, 3.0, 4.0]]),
    (np.array([-np.inf]), np.array([6.0])),
    (np.zeros(3), np.ones(3)),
    np.ones(3, dtype=bool),
    0.0,
    10.0,
)


@pytest.fixture(autouse=True)
def _none_before():
    subprocess_mip.stop_processes()
    yield
    subprocess_mip.stop_processes()


def test_the_child_process_returns_the_same_result():
    here, there = highs.solve_mip(*KNAPSACK), subprocess_mip.solve_mip(*KNAPSACK)
    assert here.bound == there.bound == pytest.approx(-8.0)
    assert (here.x == there.x).all()


def test_one_process_solves_all_programs():
    subprocess_mip.solve_mip(*KNAPSACK)
    first = list(subprocess_mip._idle)
    subprocess_mip.solve_mip(*KNAPSACK)
    assert subprocess_mip._idle == first and len(first) == 1


def test_a_program_that_overruns_its_time_is_given_up(monkeypatch):
    """HiGHS gets a minute whatever its limit, as if it did not check the clock."""
    monkeypatch.setattr(subprocess_mip, "GRACE_S", 0.5)
    found = subprocess_mip.solve_mip(*market_split(), 0.1, (("time_limit", 60.0),))
    assert found.x is None and found.bound == -np.inf
    assert not subprocess_mip._idle
    assert subprocess_mip.solve_mip(*KNAPSACK).bound == pytest.approx(-8.0)  # another one answers


def test_errors_of_the_child_are_raised_here():
    unbounded = (
        np.array([-1.0]),
        sparse.csc_array((0, 1)),
        (np.zeros(0), np.zeros(0)),
        (np.zeros(1), np.array([np.inf])),
        np.zeros(1, dtype=bool),
        0.0,
        10.0,
    )
    with pytest.raises(SolverError, match="Unbounded"):
        subprocess_mip.solve_mip(*unbounded)
    assert len(subprocess_mip._idle) == 1


def test_a_process_that_dies_is_an_error():
    subprocess_mip.solve_mip(*KNAPSACK)
    subprocess_mip._idle[0]._process.kill()
    with pytest.raises(SolverError, match="ended with"):
        subprocess_mip.solve_mip(*KNAPSACK)
    assert subprocess_mip.solve_mip(*KNAPSACK).bound == pytest.approx(-8.0)


@pytest.mark.parametrize("asked", (False, True))
def test_the_child_ends_with_its_parent(root, asked):
    """Even if the parent is killed: `run` returns when all holders of its standard error have ended."""
    here = "tests.solvers.backends.test_subprocess_mip"
    use = (
        f"from {here} import KNAPSACK; subprocess_mip.solve_mip(*KNAPSACK)"
        if asked
        else "subprocess_mip.start_process()"
    )
    start = f"import os; from solvers.backends import subprocess_mip; {use}; os.kill(os.getpid(), 9)"
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -9 and not done.stderr
