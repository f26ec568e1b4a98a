"""What a replay says of stated figures: nothing where they agree within sampling, and the place where they do not; branches that worlds follow."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from planner.verify.adapt.cut import Schedule
from planner.verify.adapt.dispatch import Outcomes
from planner.verify.adapt.replay import Replayed, compare, followed, leaves_of
from planner.verify.adapt.rows import check_weights
from planner.verify.adapt.worlds import Worlds
from planner.verify.findings import Report

COUNT = 1000
COSTS = np.linspace(50.0, 150.0, COUNT)
SECTION = {
    "risk": "expected", "tree_cost": 100.0, "tree": {"weight": [0.5, 0.5], "cost": [80.0, 120.0], "kept": [True, False]},
    "fresh": {"scenarios": 1000, "kept": 0.8, "cost": 100.0, "p10": 60.0, "p90": 140.0},
}  # fmt: skip


def outcomes(costs, kept):
    return Outcomes(np.asarray(costs, dtype=float), np.asarray(kept, dtype=bool), np.zeros((len(costs), 0)))


def places(change=None, leaves=((80.0, 120.0), (True, False)), risk="expected"):
    section = copy.deepcopy(SECTION) | {"risk": risk}
    if change:
        section["fresh"] |= change
    report = Report()
    compare(
        report, section, Replayed(outcomes(*leaves), outcomes(COSTS, np.arange(COUNT) % 5 > 0), np.array([0.5, 0.5]))
    )
    return [finding.path for finding in report.found]


@pytest.mark.parametrize(
    "change", [None, {"kept": 0.83}, {"kept": 0.77}, {"cost": 104.0}, {"p10": 63.0}, {"p90": 137.0}]
)
def test_figures_that_sampling_explains_hold(change):
    assert places(change) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [({"kept": 0.9}, "kept"), ({"kept": 0.7}, "kept"), ({"cost": 88.0}, "cost"), ({"cost": 112.0}, "cost"), ({"p10": 70.0}, "p10"), ({"p90": 130.0}, "p90")],
)  # fmt: skip
def test_figures_that_it_does_not_are_told(change, name):
    """Shares have standard errors of 1.3 to 1.8 points, the mean one of 1.3 beside 1 for the gap of programs."""
    assert places(change) == [f"adaptation.fresh.{name}"]


def test_leaves_are_compared_one_by_one():
    assert places(leaves=((80.0, 118.0), (True, False))) == ["adaptation.tree.cost[1]"]
    assert places(leaves=((80.0, 120.0), (False, False))) == ["adaptation.tree.kept"]
    assert (
        places(leaves=((80.0, 118.0), (True, False)), risk="cvar") == []
    )  # the program leaves cheap leaves dearer than they must be
    assert places(leaves=((80.0, 122.0), (True, False)), risk="cvar") == ["adaptation.tree.cost[1]"]


def test_worlds_follow_what_they_have_seen_and_nothing_later():
    """Two groups of performance and three paths: two alike until the second window. At the first date only demand is known, at the second all."""
    paths = [[1.0, 1.0, 2.0], [1.0, 1.0, 0.5], [0.5, 0.5, 0.5]]
    section = {
        "groups": [{"weight": 0.5, "errors": {"chip": {"throughput": each}}} for each in (1.0, 0.5)],
        "paths": [{"weight": 1 / 3, "factors": {"chat": factors}} for factors in paths],
    }  # fmt: skip
    leaves = leaves_of(section)
    assert leaves.growth["chat"].tolist() == paths * 2
    assert leaves.errors["chip"]["throughput"].tolist() == [1.0] * 3 + [0.5] * 3
    schedule = Schedule((0.0, 10.0, 20.0, 30.0), (False, False, True, True), (False, True, True, True), 0.0, 0.0, 4)
    growth = np.array([[0.9, 0.9, 0.4], [0.6, 0.6, 9.0], [1.1, 1.0, 1.9]])
    worlds = Worlds({"chat": growth}, {}, 3)
    rates = np.array([[0.55], [0.9], [1.2]])
    found = followed(
        section, schedule, [0.0, 10.0, 20.0, 30.0], (leaves.errors["chip"]["throughput"][:, None], rates), worlds
    )
    assert found[0].tolist() == [0, 0, 0]
    assert found[1].tolist() == [0, 2, 0]
    assert found[2].tolist() == [3, 2, 0]
    assert found[3].tolist() == [4, 2, 0]


@pytest.mark.parametrize(
    ("groups", "paths", "leaves", "wrong"),
    [
        ((0.25, 0.75), (0.5, 0.5), (0.125, 0.125, 0.375, 0.375), []),
        ((0.25, 0.75), (0.5, 0.5), (0.2, 0.05, 0.375, 0.375), ["adaptation.tree.weight"]),
        ((0.5, 1.5), (0.25, 0.25), (0.125, 0.125, 0.375, 0.375), ["adaptation.groups.weight", "adaptation.paths.weight"]),
        ((-0.25, 1.25), (0.5, 0.5), (-0.125, -0.125, 0.625, 0.625), ["adaptation.groups.weight"]),
    ],
)  # fmt: skip
def test_leaves_weigh_what_their_group_and_path_do(groups, paths, leaves, wrong):
    """All four weigh 1 in sum over the leaves."""
    report = Report()
    rows = ([{"weight": weight} for weight in each] for each in (groups, paths))
    check_weights(report, dict(zip(("groups", "paths"), rows, strict=True)) | {"tree": {"weight": list(leaves)}})
    assert sorted({finding.path.partition("[")[0] for finding in report.found}) == wrong
