"""The ladder of fewer deployments beside the number that the plan itself has."""

import pytest

from planner.interpret.simplicity import _as_counted
from solvers.search.parts import Rung


@pytest.mark.parametrize(("ladder", "counted", "expected"), [
    ([(9, False), (7, False), (6, True)], 7, [9, 7, 6]), ([(9, False), (7, False), (6, True)], 6, [9, 6]),
    ([(0, False)], 1, [1]), ([(5, False), (4, False)], 3, [5, 3]), ([], 2, []),
])  # fmt: skip
def test_the_step_of_the_plan_has_as_many_deployments_as_the_plan(ladder, counted, expected):
    rungs = tuple(Rung(deployments, 100.0 - deployments, estimated) for deployments, estimated in ladder)
    assert [rung.deployments for rung in _as_counted(rungs, counted)] == expected
