"""Limits on the parts of a plan against enumeration over the kinds of systems that may be held."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings

from solvers.model.block_data.parts import PartLimits
from solvers.model.build import build
from solvers.model.fleet import holding_upper
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.model.test_residency import SEEDS, whole_problem
from tests.solvers.reference import SMALL, TIMES, near
from tests.solvers.search.test_simplest import subsets, with_kinds
from tests.solvers.test_bruteforce import EXACT, problem


def drawn(seed):
    """A random problem with limits on its parts, some of them with whole replicas."""
    rng = np.random.default_rng(seed)
    data = whole_problem(seed) if seed % 2 else problem(rng, ("cost", "carbon_kg", "throughput"))
    limits = PartLimits(
        counted=rng.random(len(data.holding_option)) < 0.9,
        most_sites=float(rng.choice([1, 2, math.inf])),
        most_kinds=float(rng.choice([1, 2, math.inf])),
        least_systems=int(rng.integers(1, 4)),
    )
    return replace(data, parts=limits)


def held_by_kind(data, n):
    """Systems of counted holdings by kind and window."""
    held = np.zeros((int(data.option_group.max()) + 1, data.windows))
    counted = data.parts.counted
    group = data.option_group[data.holding_option]
    np.add.at(held, group[counted], (n[:, None] * data.covers())[counted])
    return held


def keeps(data, n):
    """Whether counts of systems keep the limits, by their definition."""
    held, parts = held_by_kind(data, n), data.parts
    site_of = {int(g): int(r) for g, r in zip(data.option_group, data.option_site)}
    sites = {site_of[g] for g in np.flatnonzero(held.max(axis=1, initial=0) > 0.5).tolist()}
    kinds = [
        sum(held[g, w] > 0.5 for g, r in site_of.items() if r == site) for site in sites for w in range(data.windows)
    ]
    few = (held > 0.5) & (held < parts.least_systems - 0.5)
    return len(sites) <= parts.most_sites and max(kinds, default=0) <= parts.most_kinds and not few.any()


@settings(max_examples=few_of(150) * TIMES, **SMALL)
@given(SEEDS)
def test_plans_keep_the_limits_and_are_the_best_that_do(seed):
    data = drawn(seed)
    found = solve(data, EXACT)
    if found.values:
        assert keeps(data, found.values["n"])
    if data.parts.least_systems > 1:
        free = solve(replace(data, parts=None), EXACT)
        if free.values and keeps(data, free.values["n"]):
            assert near(found.value, free.value)
        return
    sign = -1.0 if data.objective.maximises else 1.0
    site_of = {int(g): int(r) for g, r in zip(data.option_group, data.option_site)}
    values = []
    for kinds in subsets(sorted(site_of)):
        free = replace(data, parts=None)
        allowed = with_kinds(free, kinds).holding_upper
        free = replace(free, holding_upper=np.where(data.parts.counted, allowed, data.holding_upper))
        by_site = [sum(site_of[g] == r for g in kinds) for r in {site_of[g] for g in kinds}]
        if len(by_site) <= data.parts.most_sites and max(by_site, default=0) <= data.parts.most_kinds:
            values.append(solve(free, EXACT))
    best = min((sign * each.value for each in values if each.value is not None), default=None)
    windows = data.windows > 1 and math.isfinite(data.parts.most_kinds)  # kinds may then change from window to window
    if found.value is None:
        assert best is None
    elif not windows:
        assert near(sign * found.value, best)
    else:
        assert best is None or sign * found.value <= best + 1e-6 * max(1.0, abs(best))


def with_orders(seed):
    """A random problem whose holdings belong to orders of at most two holdings, some placed already; some have whole replicas."""
    rng = np.random.default_rng(seed)
    data = whole_problem(seed) if seed % 2 else problem(rng, ("cost", "carbon_kg", "throughput"))
    holdings = len(data.holding_option)
    order = rng.permutation(np.arange(holdings) // 2)
    least = rng.integers(1, 4, size=order.max() + 1)
    placed = rng.random(len(least)) < 0.2
    limits = PartLimits(counted=np.ones(holdings, dtype=bool), order=order, order_least=least, order_placed=placed)
    return replace(data, parts=limits)


@settings(max_examples=few_of(40) * TIMES, **SMALL)
@given(SEEDS)
def test_an_order_is_placed_with_its_least_count_or_not_at_all(seed):
    """Against all choices of orders and all ways to split the least count of each over its holdings."""
    data = with_orders(seed)
    order, least = data.parts.order, data.parts.order_least
    found = solve(data, EXACT)
    if found.values:
        counts = np.bincount(order, np.round(found.values["n"]), len(least))
        assert (((counts == 0) & ~data.parts.order_placed) | (counts >= least)).all()
    free = replace(data, parts=None)
    sign = -1.0 if data.objective.maximises else 1.0
    ways = []
    for o, few in enumerate(least):
        first, *rest = np.flatnonzero(order == o)
        none = [] if data.parts.order_placed[o] else [None]
        ways.append(none + [((first, few - k), *((u, k) for u in rest)) for k in range(few + 1 if rest else 1)])
    values = []
    for chosen in itertools.product(*ways):
        lower = np.zeros(len(order)) if data.holding_lower is None else data.holding_lower.copy()
        upper = holding_upper(data)  # a plan with a lower bound above it would be cut to it
        for o, way in enumerate(chosen):
            if way is None:
                upper[order == o] = 0
            for u, count in way or ():
                lower[u] = max(lower[u], count)
        if (lower <= upper).all():
            values.append(solve(replace(free, holding_lower=lower, holding_upper=upper), EXACT).value)
    best = min((sign * value for value in values if value is not None), default=None)
    assert (found.value is None) == (best is None)
    assert best is None or near(sign * found.value, best)


def test_without_limits_the_program_has_no_column_of_the_block():
    assert "kept" not in build(problem(np.random.default_rng(1), ("cost",))).columns
