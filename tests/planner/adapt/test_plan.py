"""A whole plan with `adapt`: what it states adds up, it keeps its promise in fresh scenarios, and work that costs nothing is refused."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.adapt.plan import _prices
from planner.adapt.search import GAP
from planner.errors import SpecError
from planner.plan import Plan
from planner.solving.variants import resolved
from planner.verify.plan import verify_plan
from tests.conftest import long_run


@long_run
def test_a_plan_to_adapt_keeps_its_promise_and_adds_up(tiny):
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
        adapt={"promise": 0.8, "delivery": "12 weeks"},
    )  # fmt: skip
    spec["workloads"][0]["demand"]["requests_per_s"] = 9000
    plan = planner.solve(spec)
    found = plan["adaptation"]
    assert verify_plan(plan) == []
    assert found["fresh"]["kept"] >= 0.77
    assert found["fresh"]["p10"] <= found["fresh"]["cost"] <= found["fresh"]["p90"] * 2
    assert found["plain_cost"] == plan.value
    signed = sum(row["count"] for row in found["sign"]) * 8
    for row in found["needs"]:
        assert 0 < row["low"] < row["typical"] < row["high"]
        assert row["signed"] == pytest.approx(signed)
    wrong = copy.deepcopy(plan.document)
    wrong["adaptation"]["needs"][0]["signed"] = signed + 8.0
    assert [issue.path for issue in verify_plan(Plan(wrong))] == ["adaptation.needs[0].signed"]
    if found["fixed"] is not None:
        assert found["fixed"]["kept"] >= 0.8
        assert found["values"]["adapting"] == pytest.approx(found["fixed"]["cost"] - found["tree_cost"])
    assert (
        found["values"]["perfect"] >= max(found["values"]["performance"], found["values"]["demand"]) - 1e-6 * plan.value
    )


@long_run
def test_late_deliveries_and_prices_are_planned_and_hold(tiny):
    """Systems may come half a year late and rents may double: what is signed is not there at once, and the list of what was drawn is the spec's."""
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[
            {"system": "DGX H100", "how": "buy", "price": "310000 USD", "delivery": {"low": "8 weeks", "typical": "12 weeks", "high": "38 weeks"}},
            {"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"},
        ],
        prices={"ranges": {"offers[1].price": {"low": "50 USD/h", "high": "120 USD/h"}}},
        adapt={"promise": 0.8, "prices": True},
    )  # fmt: skip
    spec["workloads"][0]["demand"]["requests_per_s"] = 9000
    plan = planner.solve(spec)
    found = plan["adaptation"]
    assert verify_plan(plan) == []
    assert found["fresh"]["kept"] >= 0.77
    assert found["needs"][0]["signed"] == 0.0 and all(row["from_s"] >= 12 * 7 * 86400 for row in found["sign"])
    assert [row["offer"] for row in found["deliveries"]] == ["offers[0]"]
    assert "offers[1].price" in [row["path"] for row in found["prices"]]
    assert found["values"]["stochastic"] >= -GAP * found["tree_cost"]  # the first stage is the better one
    known = [found["values"][name] for name in ("performance", "demand", "prices", "deliveries")]
    assert found["values"]["perfect"] >= max(known) - 1e-6 * plan.value
    wrong = copy.deepcopy(plan.document)
    wrong["adaptation"]["deliveries"][0]["high_s"] += 1.0
    assert [issue.path for issue in verify_plan(Plan(wrong))] == ["adaptation.deliveries"]


@long_run
def test_without_uncertainty_it_is_the_plain_plan(tiny):
    """One leaf, the same fleet at the same cost, and nothing that adapting or knowing is worth."""
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD", "delivery": {"typical": "0 d"}}, {"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
        adapt={"promise": 0.8, "demand": 0.0, "times": False},
    )  # fmt: skip
    spec["workloads"][0]["demand"]["requests_per_s"] = 9000
    plan = planner.solve(spec)
    found = plan["adaptation"]
    assert (found["leaves"], found["open"], found["triggers"]) == (1, [], [])
    assert [(row["system"], row["count"]) for row in found["sign"]] == [("DGX H100", plan["fleet"][0]["count"])]
    for cost in (found["tree_cost"], found["fresh"]["cost"], found["fixed"]["cost"]):
        assert cost == pytest.approx(plan.value)
    for value in (*found["values"].values(), found["gap"]["bound"]):
        assert value == pytest.approx(0.0, abs=GAP * plan.value)


def test_work_that_costs_nothing_has_no_price(tiny):
    problem = resolved(tiny())
    with pytest.raises(SpecError, match="nothing for chat"):
        _prices(problem, Plan({"workloads": [{"name": "chat", "cost": 0.0}]}), 10.0)
    (price,) = _prices(problem, Plan({"workloads": [{"name": "chat", "cost": 100.0}]}), 10.0)[0].values()
    assert 0 < price < 1
