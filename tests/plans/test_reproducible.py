"""What surrounds a run must not change its plan: seeds of hashes, locale, working folder, zone, threads of the libraries and of the solver, Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import long_run
from tests.planner.verify import tampering

ROOT = Path(__file__).resolve().parents[2]
SOLVE = """
import json, sys, planner
print(json.dumps(planner.solve(json.loads(sys.argv[1]), threads=int(sys.argv[2])).document))
"""
COMPENSATED = """
import builtins, math
from functools import reduce
from operator import add

def compensated(parts, start=0):
    parts = list(parts)
    exact = all(type(part) in (int, float) for part in (start, *parts)) and any(type(part) is float for part in (start, *parts))
    return math.fsum([start, *parts]) if exact else reduce(add, parts, start)

builtins.sum = compensated
"""
"""Sums of numbers as Python 3.12 and later round them, on any version: `sum` there keeps what each addition loses."""
SURROUNDINGS = {
    "hashes": {"PYTHONHASHSEED": "1"},
    "random hashes": {"PYTHONHASHSEED": "random"},
    "locale": {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"},
    "zone": {"TZ": "Asia/Tokyo"},
    "library threads": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
}
PLAIN = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def begun(spec, folder, surroundings, threads=1, before=""):
    """Begin to solve a spec in a process of its own, which first runs the lines `before`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LC_", "LANG"))}
    return subprocess.Popen(
        [sys.executable, "-c", before + SOLVE, json.dumps(spec), str(threads)],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | PLAIN | surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """Return the plan that a process printed."""
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(printed)


def test_all_surroundings_at_once_leave_the_plan_as_it_was(tiny, tmp_path):
    other = tmp_path / "other folder"
    other.mkdir()
    together = {key: value for each in SURROUNDINGS.values() for key, value in each.items()}
    spec = tiny()
    both = [begun(spec, tmp_path, {}), begun(spec, other, together, threads=2)]
    first, second = map(ended, both)
    assert first["status"] == "optimal" and first["fleet"]
    assert second == first


@pytest.mark.parametrize("what", SURROUNDINGS)
def test_one_surrounding_leaves_the_small_plan_as_it_was(small_spec, tmp_path, what):
    both = [begun(small_spec, tmp_path, {}), begun(small_spec, tmp_path, SURROUNDINGS[what])]
    first, second = map(ended, both)
    assert second == first


def test_two_threads_of_the_solver_leave_the_small_plan_as_it_was(small_spec, tmp_path):
    first, second = map(ended, [begun(small_spec, tmp_path, {}), begun(small_spec, tmp_path, {}, threads=2)])
    assert second == first


@pytest.mark.parametrize(
    "name", ["small", "lines", pytest.param("halls", marks=long_run), pytest.param("quality", marks=long_run)]
)
def test_sums_that_another_python_rounds_otherwise_leave_the_plan_as_it_was(name, tmp_path):
    spec = tampering.SPECS[name]()
    both = [begun(spec, tmp_path, {}), begun(spec, tmp_path, {}, before=COMPENSATED)]
    first, second = map(ended, both)
    assert first["fleet"] and second == first
