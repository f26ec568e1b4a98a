"""No clock decides a plan: attempts end by nodes, iterations and work, and the first one to its end whatever the time limit is."""

from __future__ import annotations

import time

import numpy as np
import pytest

from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from planner.solving.replicas import asking_for
from planner.spec.document import read_document
from solvers.interface import Options
from solvers.memory import TimeWatch
from solvers.search import joint
from tests.plans.test_simplicity import SPEC


def whole(document):
    """The program of a spec with whole replicas."""
    problem = asking_for(resolve_document(document), "whole")
    return formulate(problem, find_candidates(problem)).data


def solved(data, limit_s, within=0.0):
    options = Options(enough_gap=0.05, threads=2, time_limit_s=limit_s, clock=TimeWatch())
    found = joint.solve(data, options, within=within)
    assert found.values and not found.relaxed
    return found, options.clock


def equal(one, other):
    return all(np.array_equal(one.values[block], other.values[block]) for block in one.values)


@pytest.fixture(scope="module")
def small():
    return whole(SPEC)


@pytest.fixture(scope="module")
def unhurried(small):
    return solved(small, 60.0)[0]


@pytest.mark.parametrize("limit_s", [0.01, 1.0, 10.0])
def test_a_time_limit_takes_nothing_from_the_first_plan(small, unhurried, limit_s):
    assert equal(unhurried, solved(small, limit_s)[0])


def test_a_slow_machine_ends_with_the_plan_of_a_fast_one(small, monkeypatch):
    """Its clock shows five times the time, and the limit leaves room for that."""
    fast, of_fast = solved(small, 600.0, within=0.02)
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 5.0 * real())
    slow, of_slow = solved(small, 600.0, within=0.02)
    assert equal(fast, slow) and not of_fast.was_up and not of_slow.was_up


def test_a_time_limit_takes_nothing_from_the_first_plan_of_the_main_example(root):
    data = whole(read_document((root / "examples" / "mixed_fleet.json").read_bytes()))
    first, short = solved(data, 60.0)[0], solved(data, 0.5)[0]
    assert equal(first, short) and first.gap < 0.01
