"""What a search leaves on and a plan does not need is cleared: a spoilt optimum is the optimum again, and no row is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.model.build import build, objective_vector
from solvers.model.data import Limit
from solvers.search.joint import solve
from solvers.search.needless import without_needless
from tests.solvers.model.test_blocks import real, two_sites, whole
from tests.solvers.test_bruteforce import EXACT, problem

ROW_TOL = 1e-9
TREE = dict(edge_workload=whole(0, 0), edge_cost={"cost": real(4, 1)}, tree_path=whole([0, 0, 0], [0, 1, 0], [0, 1, 1]))


@pytest.mark.parametrize("limits", [(), (Limit("limits.budget", "cost", 100.0),)], ids=["no budget", "a budget"])
def test_a_site_that_serves_nothing_hosts_nothing_and_gets_no_weights(limits):
    data = two_sites(**TREE, limits=limits)
    best = solve(data, EXACT)
    assert best.values["host"].tolist() == [[1, 0]] and best.values["edge"].tolist() == [1, 0]
    values = {**best.values, "host": np.ones((1, 2)), "edge": np.ones(2)}
    program = build(data)
    assert objective_vector(program, data) @ program.vector(values) == pytest.approx(best.value + 1)
    found = without_needless(program, data, values)
    assert found["host"].tolist() == [[1, 0]] and found["edge"].tolist() == [1, 0]
    x = program.vector(found)
    assert program.arrays().violation(x) <= ROW_TOL and objective_vector(program, data) @ x == pytest.approx(best.value)


def test_what_is_needed_stays():
    data = two_sites(**TREE, holding_upper=real(2, 2))
    best = solve(data, EXACT)
    assert best.values["host"].tolist() == [[1, 1]]
    assert without_needless(build(data), data, best.values) is best.values


def test_a_site_without_systems_is_closed():
    data = two_sites(site_fixed={"cost": real(5, 1)})
    best = solve(data, EXACT)
    found = without_needless(build(data), data, {**best.values, "open": np.ones(2)})
    assert found["open"].tolist() == best.values["open"].tolist() and best.values["open"].sum() == 1


@pytest.mark.parametrize("seed", range(60))
def test_a_spoilt_optimum_is_the_optimum_again(seed):
    rng = np.random.default_rng(seed)
    data = replace(problem(rng, ("cost", "carbon_kg")), limits=())
    best = solve(data, EXACT)
    if not best.values:
        return
    program = build(data)
    x, arrays = program.vector(best.values), program.arrays()
    edges = [c for c in program.columns["edge"].ravel().tolist() if c >= 0]
    binaries = [c for block in ("open", "host", "y") for c in program.columns[block].ravel().tolist() if c >= 0]
    for column in [*edges, *binaries]:  # a host needs its edges
        before = x[column]
        x[column] = 1.0
        if arrays.violation(x) > ROW_TOL:
            x[column] = before
    cleared = program.vector(without_needless(program, data, program.values(x)))
    value = objective_vector(program, data)
    assert arrays.violation(cleared) <= ROW_TOL
    assert value @ cleared == pytest.approx(best.value, rel=1e-7, abs=1e-7)
