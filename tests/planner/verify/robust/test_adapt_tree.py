"""Triggers against the tree that they are derived from: those written hold, and changed ones are found."""

from __future__ import annotations

import copy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.adapt.triggers import triggers
from planner.verify.findings import Report
from planner.verify.robust.adapt_tree import check_tree

WAY = {"site": "here", "how": "buy", "offer": "offers[0]", "topology": "scale-up", "network_size": None}
AT_S = 100.0


@st.composite
def sections(draw):
    """Draw a tree of some leaves with the needs of two workloads and the orders of some systems, and the section that follows from it."""
    leaves = draw(st.integers(2, 6))

    def each(values):
        return [draw(st.sampled_from(values)) for _ in range(leaves)]

    parts = each([1, 2, 3])
    orders = [
        {**WAY, "system": f"system {i}", "decided_s": AT_S, "cost": float(10 - i), "counts": [*each([0.0, 0.2, 3.0, 7.5])[1:], 4.0]}
        for i in range(draw(st.integers(1, 12)))
    ]  # fmt: skip
    tree = {
        "weight": [part / sum(parts) for part in parts], "cost": each([5.0, 8.0]), "kept": each([True, False]),
        "needs": [{"workload": name, "decided_s": AT_S, "over": each([0.9, 1.0, 1.2, 1.5])} for name in ("chat", "code")],
        "orders": orders,
    }  # fmt: skip
    weight = tree["weight"]
    return {
        "leaves": leaves, "tree": tree, "triggers": triggers(tree),
        "tree_cost": sum(w * c for w, c in zip(weight, tree["cost"], strict=True)),
        "tree_kept": sum(w * k for w, k in zip(weight, tree["kept"], strict=True)),
    }  # fmt: skip


def found_in(section):
    report = Report()
    check_tree(report, section)
    return [finding.path for finding in report.found]


@given(sections())
def test_triggers_follow_from_the_tree(section):
    assert found_in(section) == []
    assert len(section["triggers"]) <= min(len(section["tree"]["orders"]), 10)
    assert all(rule["agrees"] > 1 - rule["share"] for rule in section["triggers"])


def test_an_order_of_few_leaves_that_no_need_tells_apart_is_no_rule():
    order = {**WAY, "system": "DGX H100", "decided_s": AT_S, "cost": 1.0}
    tree = {"weight": [0.25] * 4, "cost": [1.0] * 4, "kept": [True] * 4, "needs": []}
    assert triggers({**tree, "orders": [{**order, "counts": [1.0, 0.0, 0.0, 0.0]}]}) == []
    (always,) = triggers({**tree, "orders": [{**order, "counts": [1.0, 1.0, 1.0, 0.0]}]})
    assert (always["workload"], always["agrees"]) == (None, 0.75)


@given(sections(), st.sampled_from(["share", "count", "agrees"]))
def test_a_changed_figure_of_a_rule_is_found(section, key):
    assume(section["triggers"])
    wrong = copy.deepcopy(section)
    wrong["triggers"][0][key] *= 0.9
    assert any(path.startswith("adaptation.triggers[0]") for path in found_in(wrong))


@given(sections())
def test_a_changed_threshold_is_found(section):
    assume(section["triggers"])
    wrong = copy.deepcopy(section)
    wrong["triggers"][0]["above"] += 0.05
    assert "adaptation.triggers[0].above" in found_in(wrong)


@given(sections())
def test_a_threshold_that_says_something_else_is_found(section):
    """Above all needs a rule never fires, though the tree orders: it agrees less than stated, as ordering always in some leaf does."""
    assume(section["triggers"])
    wrong = copy.deepcopy(section)
    rule = wrong["triggers"][0]
    assume(rule["workload"] is not None and rule["agrees"] > 1 - rule["share"] + 1e-3)
    rule["above"] = 9.0
    assert found_in(wrong) == ["adaptation.triggers[0].above", "adaptation.triggers[0].agrees"]


@given(sections())
def test_a_rule_that_is_left_out_is_found(section):
    assume(section["triggers"])
    wrong = copy.deepcopy(section)
    del wrong["triggers"][0]
    assert found_in(wrong) == ["adaptation.triggers"]


@pytest.mark.parametrize(("key", "place"), [("tree_cost", "adaptation.tree_cost"), ("leaves", "adaptation.tree")])
def test_sums_by_hand(key, place):
    tree = {"weight": [0.25, 0.75], "cost": [4.0, 8.0], "kept": [False, True], "needs": [], "orders": []}
    section = {"leaves": 2, "tree": tree, "triggers": [], "tree_cost": 7.0, "tree_kept": 0.75}
    assert found_in(section) == []
    assert found_in({**section, key: 3}) == [place]
