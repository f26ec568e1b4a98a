"""Representatives of draws, and the numbers of scenarios that are alike at a date."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.adapt.dates import Dates
from planner.adapt.groups import chosen


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(1, 5))
def test_representatives(values, most):
    """Weights add up; each is the share of draws next to a representative; no more are chosen than there are different draws."""
    features = np.array(values, dtype=float)[:, None]
    picked, weight = chosen(features, most)
    assert weight.sum() == pytest.approx(1.0)
    assert len(picked) == min(most, len(set(values)))
    distance = np.abs(features - features[picked].T)
    for i, share in enumerate(weight):
        assert share <= np.mean(distance[:, i] <= distance.min(axis=1))
    if most >= len(set(values)):
        assert features[picked].ravel() @ weight == pytest.approx(features.mean())


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9, unique=True))
def test_first_representative_is_the_medoid(values):
    """The first representative is the draw of least mean distance, and two are no farther than one."""
    features = np.array(values, dtype=float)[:, None]
    total = np.abs(features - features.T).sum(axis=0)
    picked, _ = chosen(features, 1)
    assert total[picked[0]] == total.min()
    two, _ = chosen(features, 2)
    best = min(
        np.abs(features - features[list(pair)].T).min(axis=1).sum() for pair in combinations(range(len(values)), 2)
    )
    found = np.abs(features - features[two].T).min(axis=1).sum()
    assert best - 1e-9 <= found <= total.min() + 1e-9


def test_nodes_by_hand():
    """Nothing is known at the start; after a measurement the groups of performance are; then everything is."""
    dates = Dates((0.0, 1.0, 2.0), (False, True, True), (False, False, True), 0.0, 0.0)
    nodes = dates.nodes(np.array([0, 0, 1, 1]), np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]]))
    assert nodes.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]
    assert dates.all_known == 2
    assert Dates((0.0, 1.0), (False, True), (False, True), 0.0, 0.0, unfolds=True).all_known == 2
