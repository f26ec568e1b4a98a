"""The policy of a plan to adapt: a truthful plan holds, and every part that is changed is noticed."""

from __future__ import annotations

import copy
import json

import pytest

import planner
import planner.adapt.search as search
from planner.plan import Plan
from planner.verify.claims.unchecked import is_replayed
from planner.verify.plan import verified, verify_plan
from tests.conftest import long_run

pytestmark = long_run


@pytest.fixture(scope="module")
def adapted(root):
    """Plan the phases of the example with fewer leaves and scenarios than usual."""
    spec = json.loads((root / "examples/adapt/phases.json").read_text(encoding="utf-8"))
    spec["adapt"] |= {"scenarios": 60, "risk": "expected"}
    spec["solver"]["time_limit"] = "600 s"  # so that all scenarios are valued on a busy machine too
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LEAVES", (15,)), ("CHECKED", 60), ("FRESH", 300), ("SAMPLES", 0)):
            patch.setattr(search, name, value)
        return planner.solve(spec).document


def test_a_truthful_plan_holds_and_is_replayed(adapted):
    found = verified(Plan(adapted))
    assert found.holds and is_replayed(adapted)
    assert "adaptation" not in {part.path for part in found.unchecked}
    assert len(adapted["adaptation"]["paths"]) > 1 and len(adapted["adaptation"]["groups"]) > 1


@pytest.mark.parametrize(
    ("place", "change", "path"),
    [
        (("fresh", "kept"), lambda kept: round(0.5 * 300 * kept) / 300, "adaptation.fresh.kept"),
        (("fresh", "cost"), lambda cost: 0.8 * cost, "adaptation.fresh.cost"),
        (("fresh",), lambda fresh: fresh | {"p90": fresh["p10"]}, "adaptation.fresh.p90"),
        (("layouts", 0, "capacity"), lambda rate: 1.01 * rate, "adaptation.layouts[0].capacity"),
        (("layouts", 0, "pools", 0, "extra_power_w"), lambda watts: 1.01 * watts, "adaptation.layouts[0].extra_power_w[0]"),
        (("commitments", 0, "cost"), lambda cost: 0.99 * cost, "adaptation.commitments[0].cost"),
        (("commitments", 0, "from_s"), lambda moment: moment + 86400.0, "adaptation.commitments[0]"),
        (("commitments", 0, "counts"), lambda counts: [counts[0] + 1], "adaptation.sign"),
        (("dates", 1, "at_s"), lambda moment: moment + 86400.0, "adaptation.dates[1].at_s"),
        (("triggers", 0, "above"), lambda above: above + 0.05, "adaptation.triggers[0].above"),
    ],
)  # fmt: skip
def test_a_changed_figure_is_noticed(adapted, place, change, path):
    wrong = copy.deepcopy(adapted)
    row = wrong["adaptation"]
    for key in place[:-1]:
        row = row[key]
    row[place[-1]] = change(row[place[-1]])
    assert path in {finding.path for finding in verify_plan(Plan(wrong))}


def test_leaves_that_cost_something_else_are_noticed(adapted):
    """Two leaves whose costs move apart still have the stated mean."""
    wrong = copy.deepcopy(adapted)
    tree = wrong["adaptation"]["tree"]
    i, j = (tree["cost"].index(end) for end in (min(tree["cost"]), max(tree["cost"])))
    tree["cost"][i] += 0.05 * tree["cost"][i]
    tree["cost"][j] -= 0.05 * tree["cost"][i] / 1.05 * tree["weight"][i] / tree["weight"][j]
    assert {finding.path.partition("[")[0] for finding in verify_plan(Plan(wrong))} == {"adaptation.tree.cost"}


def test_errors_of_a_group_that_are_others_are_noticed(adapted):
    wrong = copy.deepcopy(adapted)
    for group in wrong["adaptation"]["groups"]:
        for errors in group["errors"].values():
            errors["throughput"] = 0.5 * errors["throughput"]
    assert {finding.path.partition("[")[0] for finding in verify_plan(Plan(wrong))} & {
        "adaptation.tree.cost",
        "adaptation.tree.kept",
    }


def test_a_plan_without_its_policy_is_listed_as_not_replayed(adapted):
    plain = copy.deepcopy(adapted)
    for name in ("commitments", "layouts", "groups", "paths"):
        del plain["adaptation"][name]
    found = verified(Plan(plain))
    assert found.holds and "adaptation" in {part.path for part in found.unchecked}
