"""The plan of fewest parts against enumeration over subsets of deployments, kinds of systems and sites."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.model.build import build
from solvers.search import dropping, joint, simplest
from solvers.search.consolidation import consolidate, restricted
from solvers.search.joint import solve
from solvers.search.parts import Parts, parts_of
from solvers.search.simplest import Found
from tests.conftest import few_of
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


@settings(max_examples=few_of(200) * TIMES, **SMALL)
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
    band = simplest.Band(found.value, -1.0 if data.objective.maximises else 1.0, 0.0)
    assert columns <= simplest.MOST_EXACT
    plan = simplest.exact(data, found, band, EXACT)
    return replace(best, value=plan.plan.value, values=plan.plan.values)


@settings(max_examples=few_of(60), **SMALL)
@given(SEEDS)
def test_dropping_keeps_within_the_loss_and_never_adds_parts(seed):
    data = drawn(seed)
    best = solve(data, EXACT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "MOST_EXACT", 0)
        found = solve(data, EXACT, within=0.2)
    if best.value is None:
        assert found.value is None
        return
    sign = -1.0 if data.objective.maximises else 1.0
    assert sign * found.value <= sign * best.value + (0.2 + 1e-7) * max(1.0, abs(best.value))
    assert parts_of(data, found.values) <= parts_of(data, best.values)
    assert not found.fewest or found.before is None


@settings(max_examples=few_of(60), **SMALL)
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
            patch.setattr(joint, "exact", lambda *_: seen.add("looked for"))
            found = joint.with_fewer_parts(data, best, 0.2, EXACT)
        assert found.value == best.value and (found.before is not None) == bool(seed % 2)
        assert ("looked for" in seen) == bool(seed % 2)
        seen.clear()


RATES = (0.0, 0.02, 0.1)


def values_by_count(data):
    """The best value with each number of deployments, over all subsets; none where there is no plan."""
    sign = -1.0 if data.objective.maximises else 1.0
    found: dict[int, float] = {}
    for used in subsets(sorted({int(d) for d in data.deployments()})):
        value = solve(restricted(data, np.isin(data.deployments(), used)), EXACT).value
        if value is not None:
            found[len(used)] = min(found.get(len(used), np.inf), sign * value)
    return found


@settings(max_examples=few_of(40), **SMALL)
@given(SEEDS, st.sampled_from(RATES))
def test_the_plan_is_best_with_the_worth_of_its_deployments(seed, rate):
    """By the exact ladder no plan in the band is better, and each of its steps is the best of its number; by trials none has a worse rank than the best plan."""
    data = drawn(seed)
    best = solve(data, EXACT)
    if best.value is None:
        return
    sign = -1.0 if data.objective.maximises else 1.0
    band = simplest.Band(best.value, sign, 0.3, rate)
    by_count = values_by_count(data)
    slack = 1e-5 * max(1.0, abs(best.value))

    def rank(value, deployments):
        return sign * value + rate * abs(best.value) * deployments

    found = joint.with_fewer_parts(data, best, 0.3, EXACT, rate)
    deployments = parts_of(data, found.values).deployments
    ranks = [rank(sign * v, k) for k, v in by_count.items() if v <= sign * band.worst + slack]
    step = rate * abs(best.value)  # kinds and sites may cost as much as a deployment
    assert rank(found.value, deployments) <= min(ranks) + step + slack
    for rung in found.ladder[1:]:
        least = min(v for k, v in by_count.items() if k <= rung.deployments)
        assert sign * rung.value >= least - slack
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "MOST_EXACT", 0)
        tried = joint.with_fewer_parts(data, best, 0.3, EXACT, rate)
    first = rank(best.value, parts_of(data, best.values).deployments)
    assert rank(tried.value, parts_of(data, tried.values).deployments) <= first + slack
    counts = [rung.deployments for rung in tried.ladder]
    assert counts == sorted(set(counts), reverse=True)


@pytest.mark.parametrize("finishes", [False, True])
def test_a_trial_that_cannot_be_finished_gives_way_to_the_next_one(finishes):
    """Of two drops the cheaper one has no plan: the other is taken, or the best plan stays."""
    seen = 0
    for seed in range(60):
        data = drawn(seed)
        best = solve(data, EXACT)
        if best.value is None or parts_of(data, best.values).deployments < 2:
            continue
        few = Found(
            best.value, {**best.values, "x": np.zeros_like(best.values["x"]), "v": np.zeros_like(best.values["v"])}
        )
        made = []

        def try_over(kept, _, made=made, few=few, value=best.value):
            made.append(kept)
            last = len(made) > 1 and finishes
            return dropping.Trial(value, lambda: few if last else None, kept if len(made) == 1 else None)

        band = simplest.Band(best.value, -1.0 if data.objective.maximises else 1.0, 0.5, 0.1)
        found = dropping.by_dropping(data, Found(best.value, dict(best.values)), band, EXACT, try_over)
        assert (found.plan is few) <= finishes and found.plan.value == best.value
        seen += len(made) > 1
    assert seen
