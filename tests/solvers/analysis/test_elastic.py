"""The elastic program with results of earlier solves, against a new one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.analysis import relief
from solvers.analysis.elastic import VIOLATION_TOL, ElasticProgram
from solvers.mip import Options
from tests.conftest import few_of
from tests.solvers import test_all_blocks_bruteforce as together
from tests.solvers.reference import SMALL, TIMES

problems = st.integers(0, 2**32 - 1)


def rows_of(data):
    return [*(("power", r) for r in np.flatnonzero(np.isfinite(data.site_power_limit_w)).tolist()),
            *(("supply", s) for s in np.flatnonzero(np.isfinite(data.supply_limit)).tolist()),
            *(("limit", i) for i, limit in enumerate(data.limits) if math.isfinite(limit.upper))]  # fmt: skip


def tight(seed):
    """Draw a problem with tight limits, which is often infeasible."""
    rng = np.random.default_rng(seed)
    data = together.problem(rng, ("cost",))
    rows = rows_of(data)
    return (
        rng,
        relief.with_limits(data, {row: float(rng.integers(1, 9)) / 4 for row in rows if rng.random() < 0.7}),
        rows,
    )


@settings(**SMALL, max_examples=few_of(20) * TIMES)
@given(problems)
def test_earlier_solves_give_the_same_results_as_new_ones(seed):
    rng, data, rows = tight(seed)
    kept = ElasticProgram(data, rows, Options())
    if not kept.is_infeasible_without([]) or kept.is_infeasible_without(rows):
        return
    for loose in ([row] for row in rng.permutation(rows).tolist()):
        loose = [(kind, int(position)) for kind, position in loose]
        least, known = ElasticProgram(data, rows, Options()).least_relief(loose), kept.relief_bound(loose)
        assert known <= least * (1 + 1e-6) + VIOLATION_TOL
        assert (
            kept.is_infeasible_without(loose)
            == ElasticProgram(data, rows, Options()).is_infeasible_without(loose)
            == math.isinf(least)
        )
        assert kept.least_relief(loose) == pytest.approx(least, rel=1e-6)
    for share in rng.choice([0.3, 0.6, 0.8], 3):
        loose = [row for row in rows if rng.random() < share]
        assert kept.is_infeasible_without(loose) == ElasticProgram(data, rows, Options()).is_infeasible_without(loose)


@settings(**SMALL, max_examples=few_of(20) * TIMES)
@given(problems)
def test_an_infeasible_subset_is_infeasible_on_its_own(seed):
    _, data, rows = tight(seed)
    elastic = ElasticProgram(data, rows, Options())
    if elastic.is_infeasible_without([]) and not relief.is_structurally_infeasible(data):
        needed = elastic.infeasible_subset(rows)
        assert ElasticProgram(data, rows, Options()).is_infeasible_without([row for row in rows if row not in needed])
        assert elastic.infeasible_subset(needed) == needed


def test_most_problems_are_infeasible_by_more_than_one_limit():
    """Otherwise the properties above prove little."""
    found = []
    for seed in range(60):
        _, data, rows = tight(seed)
        elastic = ElasticProgram(data, rows, Options())
        if (
            not relief.is_structurally_infeasible(relief.without_limits(data, rows))
            and elastic.is_infeasible_without([])
            and not elastic.is_infeasible_without(rows)
        ):
            found.append(len(elastic.infeasible_subset(rows)))
    assert len(found) >= 10 and sum(size > 1 for size in found) >= 3
