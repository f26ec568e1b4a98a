"""Check the three deployment pathways: what each costs by component, and which announced figure cannot be met at catalog prices (docs/pathways.md)."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from catalog.lookup import Catalog
from catalog.units import WEEK_S
from planner.cli.main import main
from planner.errors import SpecError
from planner.plan import Plan
from planner.spec.document import at, edited
from planner.studies.side_by_side import side_by_side
from planner.verify.plan import verify_plan

QUICK = (
    ("solver.replicas", "divisible"),
    ("solver.time_limit", "300 s"),
)  # what is asked here is not about replicas, nor about time
RECORDS = {
    "sovereign": "Sovereign stack (Huawei Ascend)",
    "hybrid": "Hybrid stack (NVIDIA + domestic NIC)",
    "edge": "Edge-first (Ascend 310P / BR100 Edge)",
}
HARDWARE_AND_POWER = (
    ("sites[0].colocation", None),
    ("sites[0].fixed_cost", None),
)  # the building is the catalog's then
FIVE_YEARS = (
    ("economics.residual", [{"age": "5 years", "fraction": 0}]),
    ("economics.maintenance", 0),
    ("economics.spare_parts", 0),
    ("economics.facility_premium", 0),
)  # written off in equal parts, as in an announcement


@pytest.fixture(scope="module")
def ask(root):
    """Solve a pathway with edits, each variant once."""
    known: dict[tuple[str, str], Plan] = {}

    def get(name: str, *edits) -> Plan:
        key = name, json.dumps(edits)
        if key not in known:
            document = json.loads((root / f"examples/pathway_{name}.json").read_text(encoding="utf-8"))
            known[key] = planner.solve(edited(document, (*edits, *QUICK)))
        return known[key]

    return get


@pytest.fixture(scope="module")
def announced():
    """Read TCO [USD], time to deploy [s] and, where stated, chips from the catalog, which holds them as claims."""
    catalog = Catalog.load()
    return {
        name: {key: figure.number for key, figure in catalog.get("systems", record).claimed.items()}
        for name, record in RECORDS.items()
    }


def node_prices() -> tuple[float, float]:
    """Price a node of eight 910B at both prices of the chip."""
    price = Catalog.load().get("offers", "Atlas 800T A2, buy").get("price")
    return price.number, price.high


def conflict(plan: Plan) -> list[str]:
    assert plan.status == "infeasible"
    return [row["path"] for row in plan["diagnosis"]["conflict"]]


@pytest.mark.parametrize("name", RECORDS)
def test_a_pathway_is_solved_and_holds_and_begins_when_it_is_said_to(ask, announced, name):
    plan = ask(name)
    assert plan.gap <= 0.001 and verify_plan(plan) == []
    assert plan["phases"][0]["chips"] == 0  # nothing stands before the delivery
    starts = {row["what"]: row[plan["name"]] for row in side_by_side([plan]).rows}["first work after"]
    assert starts == announced[name]["deploy_s"]


def test_the_sovereign_pathway_costs_more_than_announced_at_either_price_of_the_chip(ask, announced):
    low, high = node_prices()
    assert announced["sovereign"]["chips"] == ask("sovereign")["totals"]["chips"] == 2048
    costs = [ask("sovereign", ("offers[0].price", f"{price} USD")).objective["value"] for price in (low, high)]
    assert costs[0] == pytest.approx(ask("sovereign").objective["value"])
    assert costs == pytest.approx([49.1e6, 55.8e6], rel=0.01)
    assert min(costs) > 1.3 * announced["sovereign"]["tco"]


def test_the_cost_of_the_systems_is_their_price_less_what_they_are_worth_by_age(ask):
    """At no interest: from the order of three years less 14 weeks, between the ages of 2 and 3 years."""
    years = 3 - 14 * 7 / 365
    parts, price = ask("sovereign")["costs"], 256 * node_prices()[0]
    assert parts["systems"] == pytest.approx(price * (1 - (0.425 - (0.425 - 0.3) * (years - 2))))
    assert parts["maintenance"] == pytest.approx(0.04 * years * (price + ask("sovereign")["fabrics"][0]["charged"]))
    assert parts["site"] == pytest.approx(1.2e6 * 3)
    assert sum(parts.values()) == pytest.approx(ask("sovereign")["totals"]["cost"])


def test_only_what_is_written_off_over_five_years_without_hall_and_staff_fits_what_was_announced(ask, announced):
    """Hardware, building and electricity at the lower price: not if systems count at what they sell for, and are maintained."""
    prices = [(("offers[0].price", f"{price} USD"),) for price in node_prices()]
    low, high = (ask("sovereign", *HARDWARE_AND_POWER, *FIVE_YEARS, *price).objective["value"] for price in prices)
    assert low < announced["sovereign"]["tco"] < high
    sold = ask("sovereign", *HARDWARE_AND_POWER, *prices[0]).objective["value"]
    assert sold > 1.3 * announced["sovereign"]["tco"]


def test_the_announced_cost_as_a_budget_is_named_as_what_cannot_be_met(ask, announced):
    for name, further in (("sovereign", ()), ("hybrid", (("workloads[0].demand.output_tokens", "278B tokens/day"),))):
        plan = ask(name, *further, ("limits.budget", f"{announced[name]['tco'] / 1e6:g}M USD"))
        assert conflict(plan) == ["limits.budget"]
        assert f"at most {announced[name]['tco'] / 1e6:g}M USD" in plan["diagnosis"]["conflict"][0]["words"]
        (change,) = plan["diagnosis"]["repair"]
        assert float(change["to"].removesuffix("M USD")) * 1e6 == pytest.approx(
            ask(name, *further).objective["value"], rel=0.01
        )


def test_the_announced_cost_buys_half_as_many_chips(ask, announced):
    budget = (("objective", {"maximise": "throughput"}), ("limits.budget", f"{announced['sovereign']['tco']:.0f} USD"))
    chips = [
        ask("sovereign", *budget, ("offers[0].price", f"{price} USD"))["totals"]["chips"] for price in node_prices()
    ]
    assert chips == [pytest.approx(1120, rel=0.02), pytest.approx(976, rel=0.02)]


def test_the_hybrid_pathway_fits_its_figure_for_the_same_service_but_not_for_as_many_chips(ask, announced):
    same, as_many = ask("hybrid"), ask("hybrid", ("workloads[0].demand.output_tokens", "278B tokens/day"))
    demands = {at(ask(name)["spec"], "workloads[0].demand.output_tokens") for name in ("sovereign", "hybrid")}
    assert len(demands) == 1
    assert (
        same["totals"]["chips"] == pytest.approx(592, rel=0.03) and same.objective["value"] < announced["hybrid"]["tco"]
    )
    assert (
        as_many["totals"]["chips"] == pytest.approx(2048, rel=0.02)
        and as_many.objective["value"] > 2 * announced["hybrid"]["tco"]
    )


def test_the_hybrid_pathway_stands_neither_in_china_nor_under_its_residency(ask):
    assert conflict(ask("hybrid", ("sites[0].region", "cn-qingyang"))) == ["limits.export_control"]
    rule = (("workloads[0].residency", ["cn"]), ("workloads[1].residency", ["cn"]))
    assert conflict(ask("hybrid", *rule)) == ["workloads[0].residency", "workloads[1].residency"]


def test_the_edge_pathway_costs_a_fraction_of_its_figure(ask, announced):
    plan = ask("edge")
    assert plan["totals"]["chips"] == announced["edge"]["chips"] == 128
    assert {(row["site"], row["count"]) for row in plan["fleet"]} == {
        (site["region"], 4) for site in plan["spec"]["sites"]
    }
    assert plan.objective["value"] == pytest.approx(3.94e6, rel=0.01)
    dear = ask("edge", ("offers[0].price", "160000 USD"))  # cards of 30,000 USD
    assert dear.objective["value"] < 0.4 * announced["edge"]["tco"]


def test_a_building_that_must_be_built_first_is_named_as_what_comes_too_late(ask):
    weeks = Catalog.load().get("defaults", "facility_lead_time_s").value("value") / WEEK_S
    plan = ask("sovereign", ("sites[0].available_from", f"{weeks:g} weeks"))
    assert conflict(plan) == ["sites[0].available_from"] and "47 weeks" in plan["diagnosis"]["conflict"][0]["words"]
    earlier = ask("sovereign", ("phases[1].start", "9 weeks"))
    assert conflict(earlier) == ["offers[0].available_from"]


def test_a_region_that_starts_from_nothing_serves_a_third_from_a_hall_before_its_building_stands(ask):
    plan = ask("staged")
    assert plan.gap <= 0.001 and verify_plan(plan) == []
    delivery, hall, building = plan["phases"]
    assert (delivery["chips"], building["chips"]) == (0, 2048) and 600 < hall["chips"] < 760
    obtained = {(row["site"], row["obtained"]): row["count"] for row in plan["fleet"]}
    assert set(obtained) == {("cn-qingyang", "hall"), ("cn-zhongwei", "building")}  # what stands in the hall stays
    later = ask("staged", ("sites[0].available_from", "47 weeks"), ("workloads[0].demand.factor_by_phase.hall", 0))
    tokens = plan["totals"]["tokens"] - later["totals"]["tokens"]
    assert tokens == pytest.approx(80e9 * 0.33 * 33 * 7)
    assert (plan.objective["value"] - later.objective["value"]) / tokens * 1e6 == pytest.approx(0.82, rel=0.05)


# -- side by side --------------------------------------------------------------------------------------------------------


def test_plans_side_by_side_show_every_component_of_each(ask):
    plans = [ask(name) for name in RECORDS]
    found = side_by_side(plans)
    for plan in plans:
        column = {row["what"]: row[plan["name"]] for row in found.rows if row["table"] == "cost"}
        assert column.pop("all") == pytest.approx(plan["totals"]["cost"]) == pytest.approx(sum(column.values()))
        totals = {row["what"]: row[plan["name"]] for row in found.rows if row["table"] == "totals"}
        assert totals["purchase price"] == pytest.approx(
            sum(1.02 * row["count"] * row["price"] for row in plan["fleet"])  # with spare parts
            + sum(row["charged"] for row in plan["fabrics"])
        )
        # at no interest, what is paid for and not yet charged is what the systems are still worth
        assert totals["cost with purchases paid in full"] == pytest.approx(
            plan["totals"]["cost"] + totals["worth at the end"]
        )


def test_three_plans_can_be_compared_from_the_command_line(ask, tmp_path, capsys):
    paths = [tmp_path / f"{name}.json" for name in RECORDS]
    for path in paths:
        ask(path.stem).save(path)
    assert main(["compare", *map(str, paths), "-q"]) == 0
    printed = capsys.readouterr().out
    assert "Cost by component" in printed and "rented hall" in printed and "98 d" in printed


def test_what_is_paid_in_phases_is_told_only_where_it_is_known(ask):
    """Where electricity is a decision, a phase does not state payments for it."""
    plan = ask("edge").document
    rows = [{"capital": 2.0, "residual": 1.0, "paid": paid} for paid in (None, 3.0)]
    found = side_by_side([Plan({**plan, "phases": rows})])
    told = {row["what"]: row[plan["name"]] for row in found.rows if row["table"] == "totals"}
    assert told["purchase price"] == 4.0 and "cost with purchases paid in full" not in told


def test_plans_in_two_currencies_or_of_one_name_cannot_stand_side_by_side(ask):
    other = copy.deepcopy(ask("edge").document)
    other["spec"]["currency"] = "CNY"
    with pytest.raises(SpecError, match="USD"):
        side_by_side([ask("sovereign"), Plan(other)])
    with pytest.raises(SpecError, match="the same name"):
        side_by_side([ask("edge"), ask("edge")])
