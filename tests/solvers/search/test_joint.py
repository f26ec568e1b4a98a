"""The bound that is raised after a simpler plan was taken."""

from __future__ import annotations

import pytest

from solvers.interface import Options
from solvers.model.data import Objective
from solvers.search.parts import Parts
from solvers.search.proven import raised
from solvers.solution import Solution


@pytest.mark.parametrize(("best", "status"), [(99.9, "within_gap"), (100.5, "limit"), (None, "limit")])
def test_the_gap_asked_is_held_against_the_best_plan_and_not_the_simpler_one(best, status):
    """At a bound of 99 and a gap of 1 %, a simpler plan of 100.6 stands for one of 99.9 (0.9 %), not for one of 100.5 (1.5 %)."""
    before = None if best is None else (best, Parts(3, 1, 1))
    simple = Solution("limit", Objective("cost"), 100.6, 90.0, 0.105, 0.0, 1, 1, 1, 0, before=before)
    found = raised(simple, 99.0, Options(gap=0.01))
    assert (found.status, found.bound) == (status, 99.0) and found.gap == pytest.approx(1.6 / 100.6)
