"""Systems that come in one window and go after another, with what is bought in a phase limited: against the reference that tries every
whole-numbered plan (`tests/solvers/reference.py`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.data import Limit
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TOLERANCE, agree, agree_with_each_other, best
from tests.solvers.test_bruteforce import problem

EXACT = Options(gap=0.0)
LATE = "capital of late"


def problems(objectives=("cost", "carbon_kg", "throughput")):
    return st.integers(0, 2**32 - 1).map(lambda seed: phased(np.random.default_rng(seed), objectives))


def phased(rng, objectives):
    """A small problem in which each slot is a window of its own and every holding has its first and last window."""
    data = problem(rng, objectives)
    T, U = data.slots, len(data.holding_option)
    ends = np.sort(rng.integers(0, T, (U, 2)), axis=1)
    late = ends[:, 0] > 0
    price = rng.integers(1, 5, U).astype(float)
    bought = {LATE: price * late}
    limits = (
        (*data.limits, Limit("phases[1].capital", LATE, float(rng.integers(0, 12))))
        if rng.random() < 0.6
        else data.limits
    )
    return replace(
        data,
        slot_window=np.arange(T),
        holding_window=ends[:, 0],
        holding_last=ends[:, 1],
        holding_cost={**data.holding_cost, **bought},
        limits=limits,
    )


@settings(max_examples=few_of(60), **SMALL)
@given(problems())
def test_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(40), **SMALL)
@given(problems())
def test_branching_and_direct_agree(data):
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


@settings(max_examples=few_of(60), **SMALL)
@given(problems(objectives=("cost",)), st.sampled_from(["capital", "comes earlier", "goes later", "supply"]))
def test_more_room_never_costs_more(data, what):
    """Each way in which a phase gives way: more money, earlier delivery, a longer life, more systems."""
    relaxed = {
        "capital": lambda: replace(data, limits=tuple(replace(limit, upper=limit.upper + 4) for limit in data.limits)),
        "comes earlier": lambda: replace(data, holding_window=np.maximum(data.holding_window - 1, 0), site_power_limit_w=data.site_power_limit_w + np.inf, supply_limit=data.supply_limit + np.inf),
        "goes later": lambda: replace(data, holding_last=np.minimum(data.holding_last + 1, data.slots - 1), site_power_limit_w=data.site_power_limit_w + np.inf, supply_limit=data.supply_limit + np.inf),
        "supply": lambda: replace(data, supply_limit=data.supply_limit + 1),
    }[what]()  # fmt: skip
    before, after = solve(data, EXACT), solve(relaxed, EXACT)
    if before.status == "optimal":
        assert after.status == "optimal" and after.value <= before.value + TOLERANCE * max(1.0, before.value)


@settings(max_examples=few_of(60), **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_a_holding_of_all_windows_equals_one_from_first_to_last(seed):
    """From the first window to the last is the same as -1, and one window as one window."""
    data = phased(np.random.default_rng(seed), ("cost", "throughput"))
    U, T = len(data.holding_option), data.slots
    whole = replace(data, holding_window=np.zeros(U, dtype=int), holding_last=np.full(U, T - 1))
    agree_with_each_other(
        solve(whole, EXACT), solve(replace(data, holding_window=np.full(U, -1), holding_last=None), EXACT)
    )
    single = replace(data, holding_last=data.holding_window)
    agree_with_each_other(solve(single, EXACT), solve(replace(data, holding_last=None), EXACT))


@settings(max_examples=few_of(30), **SMALL)
@given(problems())
def test_nothing_runs_outside_the_windows_of_its_holding(data):
    solution = solve(data, EXACT)
    if solution.status != "optimal":
        return
    there = np.zeros((len(data.option_site), data.slots))
    for u, (k, first, last) in enumerate(zip(data.holding_option, data.holding_window, data.holding_last, strict=True)):
        there[k, first : last + 1] += solution.values["n"][u]
    busy = np.zeros_like(there)
    for (p, k), systems in zip(data.point_uses, data.point_uses_systems, strict=True):
        busy[k] += systems * (solution.values["x"][p] + solution.values["v"][p])
    assert (busy <= there + TOLERANCE).all()


@settings(max_examples=few_of(10), **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_the_decomposition_encloses_the_optimum(seed):
    """On problems without limits: its value is a plan's, its bound is valid."""
    data = replace(phased(np.random.default_rng(seed), ("cost",)), limits=())
    whole = solve(data, EXACT)
    apart = solve(data, Options(gap=1e-3, method="decomposed", time_limit_s=20.0))
    if whole.status != "optimal" or apart.value is None:
        return
    slack = 1e-4 * max(1.0, whole.value)
    assert apart.value >= whole.value - slack and apart.bound <= whole.value + slack
