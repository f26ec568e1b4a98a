"""Power of a site that changes with the windows, and money that may be paid in a phase: against the reference that tries every
whole-numbered plan (`tests/solvers/reference.py`), alone with phases and beside every other block."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solvers.analysis.relief import without_limits
from solvers.decomposition.coverage import supports
from solvers.decomposition.lagrangian_bound import Duals, lagrangian_bound
from solvers.decomposition.reformulation import build_first_stage
from solvers.decomposition.slots import SlotView
from solvers.mip import Options
from solvers.model.block_data.porting import PortData
from solvers.model.block_data.power_stages import PowerStages
from solvers.model.build import build
from solvers.model.data import Limit
from solvers.model.schedule import can_finish
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers import test_all_blocks_bruteforce as together
from tests.solvers.model import test_phases as phases
from tests.solvers.reference import SMALL, TIMES, TOLERANCE, agree, agree_with_each_other, best

EXACT = Options(gap=0.0)
PAID = "paid in late"


def problems(objectives=("cost", "carbon_kg", "throughput")):
    return st.integers(0, 2**32 - 1).map(lambda seed: question(seed, objectives))


def question(seed, objectives):
    return limited(np.random.default_rng(seed), lambda rng: roomy(rng, phases.phased(rng, objectives)))


def everything(objectives=together.OBJECTIVES):
    return st.integers(0, 2**32 - 1).map(
        lambda seed: limited(np.random.default_rng(seed), lambda rng: together.problem(rng, objectives))
    )


def roomy(rng, data):
    """Most holdings come early and stay, and other limits leave room, so that it is those of the phases that bind."""
    U, early = len(data.holding_option), rng.random(len(data.holding_option)) < 0.6
    return replace(
        data, holding_window=np.where(early, 0, data.holding_window), holding_last=np.where(rng.random(U) < 0.8, data.slots - 1, data.holding_last),
        holding_upper=np.full(U, 3.0), supply_limit=data.supply_limit + 3, job_window_mask=np.ones_like(data.job_window_mask),
        point_power_w=data.point_power_w + 1, limits=data.limits if rng.random() < 0.2 else (),
    )  # fmt: skip


def limited(rng, made):
    """A problem whose sites have other power in other windows, and with a ceiling on what holdings, points and arcs of the last window take."""
    data = made(rng)
    late = data.slot_window == data.windows - 1
    table = lambda *shape: rng.integers(0, 3, shape, endpoint=True).astype(float)
    comes_late = (data.holding_window == data.windows - 1) & (data.windows > 1)
    holding = table(len(data.holding_option)) * comes_late
    part = {
        "holding_cost": {**data.holding_cost, PAID: holding}, "point_cost": {**data.point_cost, PAID: table(*data.point_cost["cost"].shape) * late},
        "arc_cost": {**data.arc_cost, PAID: table(*data.arc_cost["cost"].shape) * late}, "site_fixed": {**data.site_fixed, PAID: table(data.sites)},
    }  # fmt: skip
    if rng.random() < 0.6:
        part["limits"] = (*data.limits, Limit("phases[1].budget", PAID, float(rng.integers(1, 16))))
    return replace(staged(rng, data), **part)


def staged(rng, data):
    """Each site has one limit throughout, one for each stretch of windows, or none in some of them."""
    rows, steady = [], data.site_power_limit_w.copy()
    for r in range(data.sites):
        if rng.random() < 0.7:
            steady[r] = np.inf
            edges = [
                0,
                *sorted({int(w) for w in rng.integers(1, max(data.windows, 2), 2)} & set(range(1, data.windows))),
                data.windows,
            ]
            low = 2 if data.spread is None else 7
            rows += [
                (r, a, b - 1, float(rng.integers(low, low + 8)))
                for a, b in itertools.pairwise(edges)
                if rng.random() < 0.8
            ]
    site, first, last, limit = np.array(rows, dtype=float).reshape(-1, 4).T
    stages = PowerStages(site=site.astype(int), first=first.astype(int), last=last.astype(int), limit_w=limit)
    return replace(data, site_power_limit_w=steady, power_stages=stages)


@settings(max_examples=few_of(50) * TIMES, **SMALL)
@given(problems())
def test_equals_enumeration(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(30) * TIMES, **SMALL)
@given(everything())
def test_equals_enumeration_beside_every_block(data):
    agree(solve(data, EXACT), best(data))


@settings(max_examples=few_of(30) * TIMES, **SMALL)
@given(problems())
def test_both_searches_agree(data):
    agree_with_each_other(*(solve(data, Options(gap=0.0, method=method)) for method in ("direct", "branch")))


@settings(max_examples=few_of(10) * TIMES, **SMALL)
@given(data=problems(objectives=("cost",)))
@example(data=question(220, ("cost",)))  # nothing is left that could move
def test_the_decomposition_encloses_the_optimum(data):
    """Under power that changes: the value is that of a feasible plan, and the bound is valid."""
    encloses(without_money(data))


@settings(max_examples=few_of(10) * TIMES, **SMALL)
@given(data=problems(objectives=("cost",)), seed=st.integers(0, 2**32 - 1))
def test_the_decomposition_encloses_the_optimum_under_budgets(data, seed):
    """Budgets of all phases together and of the last one limit first-stage variables."""
    rng, data = np.random.default_rng(seed), without_money(data)
    price = 1e6 * rng.integers(1, 5, len(data.holding_option))
    late = data.holding_window > 0
    limits = (
        Limit("phases[1].capital", "late", 1e6 * rng.integers(0, 8)),
        Limit("limits.capital", "capital", 1e6 * rng.integers(4, 18)),
    )
    encloses(replace(data, holding_cost={**data.holding_cost, "late": price * late, "capital": price}, limits=limits))


def encloses(data):
    assert supports(data)
    least, apart = best(data), solve(data, Options(gap=1e-3, method="decomposed", time_limit_s=5.0))
    if least is None:
        assert apart.value is None
        return
    slack = 1e-4 * max(1.0, least)
    assert apart.bound is None or apart.bound <= least + slack
    if apart.value is not None:
        assert apart.value >= least - slack
        program = build(data)
        assert program.arrays().violation(program.vector(apart.values)) < 1e-5
        assert power_holds(data, apart.values)


@settings(max_examples=few_of(10), **SMALL)
@given(problems(objectives=("cost",)))
def test_blocks_that_couple_slots_are_not_decomposed(data):
    """Porting, and the budget of a phase that covers operation: the decomposition declines."""
    operated = [
        np.any(part.get(limit.functional, 0.0)) for limit in data.limits for part in (data.point_cost, data.arc_cost)
    ]
    assert supports(data) == (not any(operated))  # a budget of purchases alone ties no slots
    ported = replace(
        without_money(data),
        ports=PortData(
            member=np.array([(p, 0) for p in range(len(data.point_pool))]).reshape(-1, 2),
            cost={"cost": np.array([3.0])},
            groups=1,
        ),
    )
    assert not supports(ported)
    agree_with_each_other(solve(ported, EXACT), solve(ported, Options(gap=0.0, method="decomposed")))


def without_money(data):
    parts = ("holding_cost", "point_cost", "arc_cost", "site_fixed")
    return replace(
        data,
        limits=(),
        **{part: {name: values for name, values in getattr(data, part).items() if name != PAID} for part in parts},
    )


def power_holds(data, values):
    """Every slot's watts against the limit of its window, by hand."""
    limit, _ = data.power_limit()
    watts = np.zeros((data.sites, data.slots))
    for u, (k, n) in enumerate(zip(data.holding_option, values["n"], strict=True)):
        there = (data.holding_window[u] <= data.slot_window) & (data.slot_window <= data.holding_last[u])
        watts[data.option_site[k]] += n * data.holding_power_w[u] * there
    for p, site in enumerate(data.point_site()):
        watts[site] += data.point_power_w[p] * (values["x"][p] + values["v"][p])
    return (watts <= limit[:, data.slot_window] + 1e-5).all()


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(problems(objectives=("cost",)), st.integers(0, 2**32 - 1))
def test_the_lagrangian_bound_is_valid_at_any_duals(data, seed):
    """At any duals the Lagrangian bound is below the least cost; it needs the limits of the right windows."""
    data = without_money(data)
    whole = solve(data, EXACT)
    if whole.status != "optimal":
        return
    rng = np.random.default_rng(seed)
    view = SlotView.of(data, "cost", np.flatnonzero(can_finish(data)))
    once = build_first_stage(data, view, "cost", build)
    draw = lambda *shape: rng.exponential(2.0, shape) * (rng.random(shape) < 0.7)
    T = data.slots
    for _ in range(5):
        prices = Duals(
            draw(len(data.option_site), T),
            draw(data.sites, T),
            draw(data.pools, T),
            3 * draw(len(view.demand), T),
            draw(len(once.keys)) * rng.choice([-1, 1], len(once.keys)),
        )
        assert lagrangian_bound(view, once, data.power_limit()[0], prices).value <= whole.value + 1e-6 * max(
            1.0, abs(whole.value)
        )


def more_power(data, watts=2.0):
    return replace(data, power_stages=replace(data.power_stages, limit_w=data.power_stages.limit_w + watts))


RELAXED = {
    "power of every stage": more_power,
    "no stages": lambda d: replace(d, power_stages=None),
    "money of the phase": lambda d: replace(
        d, limits=tuple(replace(x, upper=x.upper + 5 * (x.functional == PAID)) for x in d.limits)
    ),
}


@pytest.mark.parametrize("what", RELAXED)
@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(data=problems(objectives=("cost", "carbon_kg")))
def test_more_room_never_costs_more(data, what):
    before = solve(data, EXACT)
    if before.status == "optimal":
        after = solve(RELAXED[what](data), EXACT)
        assert after.status == "optimal" and after.value <= before.value + TOLERANCE * max(1.0, before.value)


def test_the_limits_bind_in_the_problems():
    """Of these problems, so many have another answer without the stages, and without the money of the phase."""
    power = money = 0
    for seed in range(60):
        data = limited(np.random.default_rng(seed), lambda rng: roomy(rng, phases.phased(rng, ("cost",))))
        at = solve(data, EXACT)
        power += differs(at, solve(replace(data, power_stages=None), EXACT))
        money += differs(at, solve(replace(data, limits=tuple(x for x in data.limits if x.functional != PAID)), EXACT))
    assert power >= 6 and money >= 6, (power, money)


def differs(one, other):
    return one.status != other.status or (
        one.value is not None and abs(one.value - other.value) > TOLERANCE * max(1.0, abs(one.value))
    )


@settings(max_examples=few_of(40), **SMALL)
@given(problems(objectives=("cost",)))
def test_one_limit_in_every_window_is_a_limit_throughout(data):
    steady = np.where(np.arange(data.sites) % 2 == 0, 5.0, np.inf)
    sites = np.flatnonzero(np.isfinite(steady))
    stages = PowerStages(
        site=sites,
        first=np.zeros(len(sites), dtype=int),
        last=np.full(len(sites), data.windows - 1),
        limit_w=steady[sites],
    )
    always = replace(data, site_power_limit_w=steady, power_stages=None)
    agree_with_each_other(
        solve(always, EXACT),
        solve(replace(always, site_power_limit_w=np.full(data.sites, np.inf), power_stages=stages), EXACT),
    )


@settings(max_examples=few_of(30), **SMALL)
@given(problems(objectives=("cost",)))
def test_a_stage_without_a_limit_is_no_stage(data):
    rows = [("power", data.sites + s) for s in range(len(data.power_stages.site))]
    agree_with_each_other(solve(without_limits(data, rows), EXACT), solve(replace(data, power_stages=None), EXACT))
