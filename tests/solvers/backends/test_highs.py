"""HiGHS is silent and runs with any number of threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from solvers.backends.highs import highs_lp, new_highs, set_threads, solve_mip
from solvers.backends.persistent_lp import CoefficientLp

USE = "from solvers.backends.highs import new_highs; highs = new_highs(); highs.run(); print(highs.getOptionValue('output_flag')[1])"


def test_highs_prints_nothing(root):
    """In a process of its own: the solver's output does not pass through Python's stream."""
    done = subprocess.run([sys.executable, "-c", USE], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def _least_of(highs) -> float:
    highs.run()
    return highs.getInfo().objective_function_value


def _loaded():
    highs = new_highs()
    highs.passModel(
        highs_lp(
            np.array([-1.0]),
            sparse.csc_array([[2.0]]),
            (np.array([-np.inf]), np.array([3.0])),
            (np.zeros(1), np.full(1, 9.0)),
        )
    )
    return highs


@pytest.fixture
def _one_thread_after():
    yield
    set_threads(1)


@pytest.mark.usefixtures("_one_thread_after")
def test_a_loaded_program_runs_with_any_later_number_of_threads():
    """Found on a machine where HiGHS' own number of threads is not the one asked for: it then refuses to run."""
    set_threads(1)
    kept = _loaded()
    for threads in (1, 3, 2, 1):
        set_threads(threads)
        assert _least_of(kept) == _least_of(_loaded()) == -1.5
        warm = CoefficientLp(
            sparse.csc_array([[2.0]]),
            np.array([-np.inf]),
            np.array([3.0]),
            np.zeros(1),
            np.full(1, 9.0),
            np.array([-1.0]),
        )
        assert warm.solve() == pytest.approx([1.5])
        found = solve_mip(
            np.array([-1.0]),
            sparse.csc_array([[2.0]]),
            (np.array([-np.inf]), np.array([3.0])),
            (np.zeros(1), np.full(1, 9.0)),
            np.ones(1, dtype=bool),
            0.0,
            10.0,
        )
        assert found.x == pytest.approx([1.0])


@pytest.mark.usefixtures("_one_thread_after")
def test_a_program_loaded_in_one_thread_runs_in_others():
    set_threads(2)
    kept, barrier = [_loaded() for _ in range(3)], threading.Barrier(3)

    def run(highs) -> float:
        barrier.wait()
        return _least_of(highs)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run, kept)) == [-1.5] * 3
        set_threads(3)
        assert list(pool.map(run, kept)) == [-1.5] * 3
    assert _least_of(kept[0]) == -1.5
