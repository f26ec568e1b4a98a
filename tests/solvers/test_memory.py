"""A search ends with its best plan when the process holds as much memory as it may, and the size of a program is told before it is built."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from benchmarks.methods import random_spec
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from solvers import memory
from solvers.interface import Options
from solvers.memory import MemoryWatch
from solvers.model.build import build
from solvers.model.size import COLUMN_BYTES, least_program_bytes
from solvers.search.joint import solve

METHODS = ("direct", "branch", "decomposed")


@pytest.fixture(scope="module")
def data():
    problem = resolve_document(random_spec(13))
    return formulate(problem, find_candidates(problem)).data


@pytest.mark.parametrize("method", METHODS)
def test_a_search_ends_when_the_memory_is_used_up(data, method):
    watch = MemoryWatch(0.0)
    found = solve(data, Options(gap=1e-9, time_limit_s=600.0, method=method, memory=watch))
    assert watch.was_full and found.status == "limit" and found.seconds < 60.0


def test_a_search_of_highs_keeps_the_plan_that_it_has(data, monkeypatch):
    """The memory is used up before the search is done."""
    looks = iter([0.0] * 3)
    monkeypatch.setattr(memory, "resident_bytes", lambda: next(looks, math.inf))
    monkeypatch.setattr(
        "solvers.backends.highs_run.LOOK_EVERY_S", 0.0
    )  # at the fourth chance, however fast the machine is
    watch = MemoryWatch(1.0)
    found = solve(data, Options(gap=1e-9, time_limit_s=600.0, method="direct", memory=watch))
    assert watch.was_full and found.status == "limit" and found.bound is not None
    assert found.value is None or found.value >= 162_222.0 * (1 - 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_memory_that_suffices_changes_nothing(tiny, method):
    problem = resolve_document(tiny())
    data = formulate(problem, find_candidates(problem)).data
    watch = MemoryWatch(math.inf)
    free, watched = solve(data, Options(method=method)), solve(data, Options(method=method, memory=watch))
    assert not watch.was_full and (free.value, free.status) == (watched.value, watched.status)


def test_a_watch_remembers_that_it_was_full_and_lets_later_steps_begin(monkeypatch):
    watch = MemoryWatch(1e9)
    for held, full, remembered in ((5e8, False, False), (2e9, True, True), (5e8, False, True)):
        monkeypatch.setattr(memory, "resident_bytes", lambda held=held: held)
        assert (watch.is_full(), watch.was_full) == (full, remembered)
        left_s = Options(time_limit_s=1e12, memory=watch).left_s(0.0)
        assert (left_s == 0.0) is full


def test_memory_that_can_be_given_back_is_not_used_up(monkeypatch):
    held = [2e9]
    monkeypatch.setattr(memory, "resident_bytes", lambda: held[0])
    monkeypatch.setattr(memory, "give_back", lambda: held.__setitem__(0, 5e8))
    watch = MemoryWatch(1e9)
    assert not watch.is_full() and not watch.was_full


def test_the_estimate_counts_no_more_than_is_built(data):
    """The columns of points are counted exactly; all else of the program comes on top."""
    program = build(data)
    placed = int((program.columns["x"] >= 0).sum())
    assert COLUMN_BYTES * placed <= least_program_bytes(data) <= 2 * COLUMN_BYTES * program.column_count
    arrays = program.arrays()
    parts = (arrays.matrix.data, arrays.matrix.indices, arrays.lower, arrays.upper, arrays.unit, arrays.integer)
    kept = sum(part.nbytes for part in parts) + sum(index.nbytes for index in program.columns.values())
    assert least_program_bytes(data) < 2 * kept
    assert least_program_bytes(data, math.inf) >= least_program_bytes(data)


PIECES = """
from solvers import memory

before = memory.resident_bytes()
pieces = [bytearray(20_000) for _ in range(5_000)]
kept = pieces[::50]
taken = memory.resident_bytes() - before
del pieces
memory.give_back()
print(taken, memory.resident_bytes() - before, len(kept))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="malloc_trim is of glibc")
def test_memory_of_many_small_pieces_is_given_back():
    """Pieces that stay hold the top of the heap, below which freed ones are not given back by themselves.

    In a process of its own, whose heap has no room left by others.
    """
    told = subprocess.run([sys.executable, "-c", PIECES], capture_output=True, text=True, check=True).stdout
    taken, held, kept = map(float, told.split())
    assert taken > 80e6 and held < 0.4 * taken and kept == 100
