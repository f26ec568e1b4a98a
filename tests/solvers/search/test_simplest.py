"""The plan of fewest parts against enumeration over subsets of deployments, kinds of systems and sites."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.model.build import build
from solvers.search import joint, simplest
from solvers.search.consolidation import consolidate, restricted
from solvers.search.joint import solve
from solvers.search.parts import Parts, parts_of
from tests.solvers.model.test_residency import SEEDS, whole_problem
from tests.solvers.reference import SMALL, TIMES, near
from tests.solvers.test_bruteforce import EXACT, problem

WITHIN = (0.0, 0.05, 0.3)


def drawn(seed):
    """A random problem, half of them with whole replicas, whose points are a few deployments."""
    rng = np.random.default_rng(seed)
    data = whole_problem(seed) if seed % 2 else problem(rng, ("cost", "carbon_kg", "throughput"))
    points = len(data.point_pool)
    owner = np.where(data.point_pool >= 0, data.point_pool, -1 - data.point_job)
    numbers: dict = {}
    split = rng.integers(0, 2, points)
    merged = [numbers.setdefault((int(owner[p]), int(split[p])), len(numbers)) for p in range(points)]
    return replace(data, point_deployment=np.array(merged, dtype=np.int64)) if rng.random() < 0.5 else data


def subsets(things):
    return itertools.chain.from_iterable(itertools.combinations(things, size) for size in range(len(things) + 1))


DOMINATED = 34828  # the dearer of two points, which the cheapest plan never uses, saves a deployment at the same cost


def with_kinds(data, kinds):
    """The problem in which only some kinds of systems may be held."""
    allowed = np.isin(data.option_group[data.holding_option], kinds)
    return replace(data, holding_upper=np.where(allowed, data.holding_upper, 0.0))


def enumerated(data, worst):
    """Fewest deployments, kinds, sites, and the best value with them, over all subsets."""
    sign = -1.0 if data.objective.maximises else 1.0
    slack = 1e-7 * max(1.0, abs(worst))
    site_of = {int(g): int(r) for g, r in zip(data.option_group, data.option_site)}
    found = []
    for used in subsets(sorted({int(d) for d in data.deployments()})):
        if found and len(used) > min(found)[0]:
            break
        part = restricted(data, np.isin(data.deployments(), used))
        whole = solve(part, EXACT)
        if whole.value is None or sign * whole.value > sign * worst + slack:
            continue
        for kinds in subsets(sorted(site_of)):
            key = (len(used), len(kinds), len({site_of[g] for g in kinds}))
            if found and key > min(found)[:3]:
                continue
            value = solve(with_kinds(part, kinds), EXACT).value
            if value is not None and sign * value <= sign * worst + slack:
                found.append((*key, sign * value))
    return min(found)


@settings(max_examples=200 * TIMES, **SMALL)
@given(SEEDS, st.sampled_from(WITHIN))
def test_fewest_parts_equal_enumeration(seed, within):
    fewest_parts_equal_enumeration(seed, within)


def test_a_dominated_point_may_save_a_deployment():
    fewest_parts_equal_enumeration(DOMINATED, 0.0)


def fewest_parts_equal_enumeration(seed, within):
    data = drawn(seed)
    best = solve(data, EXACT)
    if best.value is None:
        return
    sign = -1.0 if data.objective.maximises else 1.0
    found = solve(data, EXACT, within=within) if within else simpler_of(data, best)
    deployments, kinds, sites, value = enumerated(data, best.value + sign * within * abs(best.value))
    assert parts_of(data, found.values) == Parts(deployments, kinds, sites)
    assert near(sign * found.value, value)


def simpler_of(data, best):
    """The simplest of the best plans."""
    found, columns = simplest.Found(best.value, dict(best.values)), build(data).column_count
    plan = simplest.simplest(data, columns, found, 0.0, EXACT, lambda *_: None)
    return replace(best, value=plan.plan.value, values=plan.plan.values)


@settings(max_examples=60, **SMALL)
@given(SEEDS)
def test_dropping_keeps_within_the_loss_and_never_adds_parts(seed):
    data = drawn(seed)
    best = solve(data, EXACT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simplest, "SETTINGS", replace(simplest.SETTINGS, exact=0))
        found = solve(data, EXACT, within=0.2)
    if best.value is None:
        assert found.value is None
        return
    sign = -1.0 if data.objective.maximises else 1.0
    assert sign * found.value <= sign * best.value + (0.2 + 1e-7) * max(1.0, abs(best.value))
    assert parts_of(data, found.values) <= parts_of(data, best.values)
    assert not found.fewest or found.before is None


@settings(max_examples=60, **SMALL)
@given(SEEDS)
def test_each_list_of_points_is_part_of_the_one_before(seed):
    data = drawn(seed).divisible()
    best = solve(data, EXACT)
    if best.value is None:
        return
    sign = -1.0 if data.objective.maximises else 1.0
    ladder = consolidate(data, best.values, best.value + sign * 0.2 * abs(best.value), EXACT)
    for before, after in itertools.pairwise(ladder):
        gone = np.unique(data.deployments()[before & ~after])
        assert not (after & ~before).any() and len(gone) == 1


def test_no_fewer_parts_are_looked_for_in_a_program_too_large_for_one_piece():
    """Unless it decomposes; the best plan stays, and nothing is said of others."""
    seen = set()
    for seed in range(12):
        data = drawn(seed)
        best = solve(data, EXACT)
        if best.value is None:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joint, "MOST_COLUMNS_IN_ONE_PIECE", 0)
            patch.setattr(joint, "supports", lambda _, yes=bool(seed % 2): yes)
            patch.setattr(joint, "simplest", lambda *_: seen.add("looked for"))
            found = joint.with_fewer_parts(data, best, 0.2, EXACT)
        assert found.value == best.value and (found.before is not None) == bool(seed % 2)
        assert ("looked for" in seen) == bool(seed % 2)
        seen.clear()
