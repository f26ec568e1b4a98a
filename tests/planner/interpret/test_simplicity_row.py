"""The ladder of fewer deployments beside the count and the value that the plan itself has."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.interpret.simplicity import _as_counted
from solvers.search.parts import Rung
from solvers.search.simplest import Band, as_ladder

BEST, NINE, SEVEN, SIX = (
    Rung(9, 100.0),
    Rung(8, 100.1),
    Rung(7, 100.2),
    Rung(6, 100.9, estimated=True),
)
BAND = Band(100.0, 1.0, 0.01, 0.0025)


@pytest.mark.parametrize(("ladder", "chosen", "mine", "expected"), [
    ((BEST, SEVEN, SIX), SEVEN, Rung(7, 100.2), (BEST, SEVEN, SIX)),
    ((BEST, SEVEN, SIX), SEVEN, Rung(6, 100.3), (BEST, Rung(6, 100.3))),  # fewer than the search counted: no estimate of as many
    ((BEST, NINE, SEVEN), SEVEN, Rung(8, 100.2), (BEST, Rung(8, 100.2))),  # the step of eight is another plan's
    ((BEST, NINE, SEVEN), NINE, Rung(8, 100.9), (Rung(8, 100.9),)),  # at its own value all others rank before it
    ((BEST, SEVEN), BEST, Rung(10, 100.0), (Rung(10, 100.0),)),
    ((BEST,), BEST, Rung(1, 100.0), (Rung(1, 100.0),)),
    ((), None, Rung(2, 100.0), ()),
])  # fmt: skip
def test_the_step_that_was_chosen_is_that_of_the_plan(ladder, chosen, mine, expected):
    assert _as_counted(ladder, chosen, mine, BAND) == expected


RUNGS = st.builds(Rung, st.integers(0, 9), st.sampled_from([100.0, 100.2, 100.4, 100.9, 101.5]), st.booleans())


@given(
    st.lists(RUNGS, max_size=6),
    RUNGS,
    st.integers(0, 6),
    st.sampled_from([0.0, 0.0025, math.inf]),
    st.sampled_from([-1.0, 1.0]),
)
def test_the_plan_keeps_the_rules_of_its_ladder(rungs, mine, at, rate, sign):
    """What `verify` asks: fewer at each step, the plan among those made, and none made in the band that ranks before it."""
    band, mine = Band(100.0 * sign, sign, 0.01, rate), Rung(mine.deployments, sign * mine.value)
    ladder = as_ladder(Rung(10, 100.0 * sign), [Rung(r.deployments, sign * r.value, r.estimated) for r in rungs], band)
    found = _as_counted(ladder, ladder[at % len(ladder)], mine, band)
    assert all(more.deployments > fewer.deployments for more, fewer in itertools.pairwise(found))
    assert mine in found
    made = [rung for rung in found if not rung.estimated and band.allows(rung.value)]
    assert all(band.rank(rung.deployments, rung.value) >= band.rank(mine.deployments, mine.value) for rung in made)
    assert {*found} - {mine} <= {*ladder}
