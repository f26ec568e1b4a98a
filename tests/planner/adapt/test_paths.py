"""A tree of demand paths: each date sees demand up to it and nothing later."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.adapt.paths import branched, changes

WINDOWS = 4
factor = st.sampled_from([0.5, 0.8, 1.0, 1.25, 1.6, 3.0])


@st.composite
def cases(draw):
    """Draw paths of two workloads over four windows, and the windows that each of three dates sees."""
    count = draw(st.integers(1, 12))
    growth = np.array(draw(st.lists(factor, min_size=count * 2 * WINDOWS, max_size=count * 2 * WINDOWS)))
    return growth.reshape(count, 2, WINDOWS), sorted(
        draw(st.lists(st.integers(0, WINDOWS - 1), min_size=3, max_size=3))
    )


@given(cases())
def test_paths_that_a_date_cannot_tell_apart_are_alike_so_far(case):
    growth, seen = case
    paths = branched(growth, seen)
    assert paths.weight.sum() == pytest.approx(1.0)
    for windows in seen:
        node = paths.at(windows)
        for each in np.unique(node):
            same = paths.growth[node == each][:, :, :windows]
            assert same == pytest.approx(np.repeat(same[:1], len(same), axis=0))
    for before, after in pairwise(seen):  # what was told apart stays so
        pairs = {(a, b) for a, b in zip(paths.at(after), paths.at(before), strict=True)}
        assert len(pairs) == len(np.unique(paths.at(after)))


@given(cases(), st.integers(0, WINDOWS - 1), factor)
def test_what_comes_later_changes_no_decision(case, now, other):
    """Draws that differ after a date only follow the same branch at that date, and at every date before it."""
    growth, seen = case
    paths = branched(growth, seen)
    changed = growth.copy()
    changed[:, :, now:] *= other
    stage = paths.stage(now)
    assert (paths.followed(growth)[: stage + 1] == paths.followed(changed)[: stage + 1]).all()


@given(cases())
def test_branches_follow_one_another(case):
    """The path that a draw follows at a date lies in the branch that it followed before; a path follows itself."""
    growth, seen = case
    paths = branched(growth, seen)
    followed = paths.followed(growth)
    for stage in range(1, len(paths.seen)):
        assert (paths.node[stage - 1][followed[stage]] == paths.node[stage - 1][followed[stage - 1]]).all()
    own = paths.followed(paths.growth)
    for stage in range(len(paths.seen)):
        assert (paths.node[stage][own[stage]] == paths.node[stage]).all()


def test_two_levels_that_double_or_stay_by_hand():
    """Two levels show in the first window and each doubles or stays in the last; in between nothing is known of that."""
    rows = [[level, level, level * last] for level in (1.0, 2.0) for last in (1.0, 2.0)]
    paths = branched(np.array(rows)[:, None, :], [0, 1, 2])
    assert paths.growth[:, 0].tolist() == [[1, 1, 1], [1, 1, 2], [2, 2, 2], [2, 2, 4]]
    assert paths.weight.tolist() == [0.25] * 4
    assert [len(np.unique(paths.at(windows))) for windows in (0, 1, 2, 3)] == [1, 2, 2, 4]


def test_changes_are_over_the_last_window_seen():
    growth = np.array([[[2.0, 3.0, 8.0]]])
    assert changes(growth, 0, 2).tolist() == [[2.0, 3.0]]
    assert changes(growth, 2, 3).tolist() == pytest.approx(np.array([[8.0 / 3.0]]))
