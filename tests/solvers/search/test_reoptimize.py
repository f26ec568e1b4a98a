"""A reoptimised program with other prices, demands and limits gives what a cold solve gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solvers.mip import Options
from solvers.model.build import build
from solvers.search import reoptimize
from solvers.search.joint import solve
from solvers.search.reoptimize import Reoptimizer
from tests.conftest import few_of
from tests.solvers.reference import TIMES, TOLERANCE
from tests.solvers.test_bruteforce import problem

GAP = 0.01
QUESTIONS = 4


def changed(data, rng):
    """The same problem at other prices, each by its own factor; now and then with another demand too."""
    factor = lambda values: (
        values * rng.uniform(0.5, 2.0, np.shape(values)[:1]).reshape(-1, *[1] * (np.ndim(values) - 1))
    )
    dearer = {
        name: {**getattr(data, name), "cost": factor(getattr(data, name)["cost"])}
        for name in ("holding_cost", "point_cost", "site_fixed")
        if "cost" in getattr(data, name)
    }
    return replace(data, **dearer, **({"demand": data.demand * rng.uniform(0.5, 1.5)} if rng.random() < 0.25 else {}))


@pytest.mark.parametrize("method", ["auto", "branch"])
@settings(max_examples=few_of(25) * TIMES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_each_solve_is_within_the_gap_of_the_optimum(method, seed):
    rng = np.random.default_rng(seed)
    first, program = problem(rng, ("cost",)), Reoptimizer()
    for number in range(QUESTIONS):
        data = changed(first, rng) if number else first
        found, best = (
            program.solve(data, Options(gap=GAP, method=method)),
            solve(data, Options(gap=0.0, method="direct")),
        )
        assert (found.value is None) == (best.value is None), (found.status, best.status)
        if best.value is None:
            continue
        size = abs(best.value) + TOLERANCE
        assert found.status in ("optimal", "within_gap") and found.gap <= GAP * (1 + 1e-6)
        assert found.bound <= best.value + TOLERANCE * size
        assert best.value - TOLERANCE * size <= found.value <= best.value + GAP * abs(found.value) + TOLERANCE * size


def test_a_program_with_one_point_less_takes_over_columns_and_rows():
    """Columns and rows of remaining points are mapped; those of the removed one are not."""
    for seed in range(100):
        data = problem(np.random.default_rng(seed), ("cost",))
        if (data.point_pool >= 0).sum() > 2:
            break
    gone = int(np.flatnonzero(data.point_pool >= 0)[0])
    stays = np.arange(len(data.point_pool)) != gone
    uses = data.point_uses[:, 0] != gone
    less = replace(
        data, point_pool=data.point_pool[stays], point_job=data.point_job[stays], point_capacity=data.point_capacity[stays], point_power_w=data.point_power_w[stays],
        point_cost={name: values[stays] for name, values in data.point_cost.items()}, point_uses_systems=data.point_uses_systems[uses],
        point_uses=np.column_stack([data.point_uses[uses, 0] - (data.point_uses[uses, 0] > gone), data.point_uses[uses, 1]]),
    )  # fmt: skip
    one, other = build(data), build(less)
    _, columns, rows = reoptimize._LoadedProgram(data, one, None).mapped_to(less, other)
    for block in ("x", "v", "y", "run"):
        new, old = other.columns[block], one.columns[block][stays]
        both = (new >= 0) & (old >= 0)
        assert (columns[new[both]] == old[both]).all() and (columns[new[(new >= 0) & (old < 0)]] == -1).all()
    assert (columns[other.columns["n"][other.columns["n"] >= 0]] == one.columns["n"][one.columns["n"] >= 0]).all()
    same = rows >= 0
    assert same.any() and all(one.row_of(int(rows[i])) == other.row_of(int(i)) for i in np.flatnonzero(same)[:50])


def test_other_fleet_options_map_to_nothing():
    data = problem(np.random.default_rng(3), ("cost",))
    moved = replace(data, option_group=data.option_group + 1)
    assert reoptimize._earlier_points(moved, data) is None and reoptimize._earlier_points(data, data).tolist() == list(
        range(len(data.point_pool))
    )


def test_a_solve_starts_from_the_most_similar_earlier_one():
    """At the first prices again, after others, it starts where the first solve ended; so do LPs solved around the plan."""
    rng = np.random.default_rng(5)
    first, program = problem(rng, ("cost",)), Reoptimizer()
    other = replace(first, holding_cost={**first.holding_cost, "cost": first.holding_cost["cost"] * 1.5})
    bases = []
    for data in (first, other, first):
        found = program.solve(data, Options(gap=GAP, method="branch"))
        assert (
            found.value is not None and found.program_of(data) is not None and found.program_of(replace(data)) is None
        )
        bases.append(found.bases.get("around"))
        found.bases["around"] = len(bases)
    assert bases == [None, 1, 1]
