"""What a price of electricity holds: no part counts twice, none that is separate is dropped, and what is unknown stands on the page."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from catalog.lookup import Catalog
from catalog.units import KWH_J, MWH_J
from planner.errors import SpecError
from planner.report.page import one_page
from planner.report.words import whole
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

WORTH_OF_3_YEARS = sum(1.08**-year for year in (1, 2, 3))
POWER_KW = 0.82 * 10.2 * 1.25  # one DGX H100 at a constant share of its power, at the meter
HOURS = 8760


def spec(
    *sites: dict[str, Any], origin: str = "us-virginia", system: str = "DGX H100", **changes: Any
) -> dict[str, Any]:
    """One server at constant power whose costs are its purchase and its electricity."""
    document = {
        "name": "contents",
        "horizon": {"start": "2027-01-01", "years": 3, "discount_rate": 0.08},
        "workloads": [{"name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 5},
            "lengths": {"input": 500, "output": 100}, "origins": [{"region": origin, "share": 1}],
            "slo": {"ttft": {"p95": "5 s"}, "tpot": {"p95": "100 ms"}}, "precision": ["fp8"], "disaggregation": "never"}],
        "sites": [{"systems": [system], "topologies": ["scale-up"], **site} for site in sites],
        "offers": [{"system": system, "how": "buy", "price": "300000 USD"}],
        "economics": {"residual": [{"age": "5 years", "fraction": 0}], "maintenance": 0, "spare_parts": 0, "staff_per_power": "0 USD/kW-year",
            "staff_per_system": "0 USD/year", "software_per_chip": "0 USD/year", "software_per_system": "0 USD/year", "facility_premium": 0},
        "overrides": {"defaults/idle_power_fraction/value": {"value": 0.82, "note": "constant power"}},
        "solver": {"gap": 1e-6},
    }  # fmt: skip
    return copy.deepcopy({**document, **changes})


def electricity(plan: planner.Plan) -> float:
    """Return what the plan pays for energy and peaks."""
    assert verify_plan(plan) == []
    return sum(plan.document["costs"].get(name, 0.0) for name in ("energy", "demand charge", "ppa"))


def statement(document: dict[str, Any]) -> dict[str, str]:
    """Return what the first site's price is said to hold."""
    return dict(resolve_document(document).sites[0].contents.states)


def test_a_demand_charge_is_not_added_to_delivery_that_holds_it():
    """21,049, not 25,899: delivery in Virginia is what industry pays less the market, demand charges among it."""
    plan = planner.solve(
        spec({"region": "us-virginia", "pue": 1.25, "electricity": {"demand_charge": "15 USD/kW-month"}})
    )
    assert electricity(plan) == pytest.approx(21_049, abs=1)
    assert any(row["code"] == "electricity.demand_counted" for row in plan.document["notes"])


def test_a_demand_charge_stands_beside_delivery_that_the_user_states():
    site = {"region": "us-virginia", "pue": 1.25, "delivery": "0.02 USD/kWh", "electricity": {"demand_charge": "15 USD/kW-month"}}  # fmt: skip
    market = sum(Catalog.load().get("regions", "us-virginia").series("price_profile")) / 24 * KWH_J
    wanted = POWER_KW * (HOURS * (market + 0.02) + 12 * 15) * WORTH_OF_3_YEARS
    assert electricity(planner.solve(spec(site))) == pytest.approx(wanted, rel=1e-6)


def test_a_national_average_holds_the_tariffs_demand_charge():
    site = {"region": "cn-shaoguan", "tariff": "cn-guangdong", "electricity": {"demand_charge": "tariff"}}
    plain = {**site, "electricity": {}}
    one, other = (resolve_document(spec(each, origin="cn-shaoguan")).sites[0] for each in (site, plain))
    assert one.electricity is not None and one.electricity.demand_charge == 0.0
    assert one.contents.states == other.contents.states


def test_a_tariff_without_demand_keeps_its_demand_charge():
    name = "my-johor TNB E3 high voltage peak/off-peak (2014-2025)"
    site = {"region": "my-johor", "tariff": name, "electricity": {"demand_charge": "tariff"}}
    found = resolve_document(spec(site, origin="my-johor")).sites[0]
    assert found.electricity is not None and found.electricity.demand_charge > 0
    assert found.contents.unknown == ("levies",)


def test_chinese_multipliers_float_the_purchase_alone():
    """48,739 CNY with a purchase share of 0.65, not 32,376."""
    battery = {"energy": "60 kWh", "power": "20 kW", "energy_price": "1000 CNY/kWh", "life": "10 years"}
    plan = planner.solve(
        spec(
            {"region": "cn-nanjing", "pue": 1.3, "electricity": {"battery": battery}},
            origin="cn-nanjing",
            system="HGX H20 8-GPU server",
            offers=[{"system": "HGX H20 8-GPU server", "how": "buy"}],
            currency="CNY",
            exchange={"CNY": {"per_usd": 7.0}},
            overrides={
                "defaults/idle_power_fraction/value": {"value": 0.82, "note": "constant power"},
                "defaults/china_electricity_price/value": {"value": "0.088 USD/kWh", "note": "as published in USD"},
            },
            limits={"export_control": False},
        )
    )
    assert electricity(plan) == pytest.approx(48_739, abs=1)


def test_a_market_of_which_delivery_is_unknown_does_not_win_unnoticed():
    """São Paulo at 23.8 USD/MWh beside 66 delivered: the page says what the plan costs at what businesses pay there."""
    plan = planner.solve(
        spec(*({"region": region, "pue": 1.25} for region in ("us-texas", "ca-toronto", "br-saopaulo")))
    )
    assert electricity(plan) and [row["site"] for row in plan.document["fleet"]] == ["br-saopaulo"]
    (row,) = plan.document["price_contents"]
    more = POWER_KW * HOURS * (0.189 - row["price_per_j"] * KWH_J) * WORTH_OF_3_YEARS
    assert row["cost_at_industrial"] - row["cost"] == pytest.approx(more, rel=1e-6)
    page = " ".join(one_page(plan).split())
    assert "unknown: delivery; demand; levies" in page and f"{whole(row['cost_at_industrial'])} USD" in page


def test_the_market_of_toronto_is_delivered():
    """Its industry pays 97.6 CAD/MWh: global adjustment and delivery come on top of 23.5 USD/MWh."""
    site = resolve_document(spec({"region": "ca-toronto"})).sites[0]
    assert site.price_per_j.mean() * MWH_J == pytest.approx(75.0, abs=0.1) and not site.contents.unknown


def test_a_wrong_statement_in_a_plan_is_found():
    plan = planner.solve(spec({"region": "br-saopaulo"}, {"region": "us-texas"}))
    document = copy.deepcopy(dict(plan.document))
    document["price_contents"][0]["cost_at_industrial"] *= 1.01
    assert any("price_contents br-saopaulo" in str(found) for found in verify_plan(planner.Plan(document)))
    document = copy.deepcopy(dict(plan.document))
    del document["price_contents"]
    assert any("price_contents" in str(found) for found in verify_plan(planner.Plan(document)))


MARKET_FILE = {"start": "2027-01-01T00", "columns": {"price_usd_per_mwh": [40.0] * HOURS}}


def priced(**site: Any) -> float:
    """Return the mean price of a site with an own market file of 40 USD/MWh [USD/kWh]."""
    document = spec({"region": "us-virginia", "hourly": "own.csv", **site}, series={"own.csv": MARKET_FILE})
    return float(resolve_document(document).sites[0].price_per_j.mean()) * KWH_J


def test_an_own_market_file_keeps_the_regions_delivery_unless_it_is_stated():
    assert priced() == pytest.approx(0.04 + 0.053)
    assert priced(delivery="0 USD/kWh") == pytest.approx(0.04)
    assert priced(contents={"delivery": "included", "demand": "included", "levies": "included"}) == pytest.approx(0.04)
    assert priced(contents={"delivery": "0.01 USD/kWh", "levies": "0.02 USD/kWh"}) == pytest.approx(0.07)


def test_a_charge_that_holds_what_the_price_holds_is_refused():
    with pytest.raises(SpecError, match=r"sites\[0\].contents: .*levies would count twice.*state \"delivery\""):
        priced(contents={"levies": "included"})


@pytest.mark.parametrize(
    ("site", "place"),
    [
        ({"region": "us-ohio", "delivery": "0.01 USD/kWh"}, r"sites\[0\].delivery: .*remove it here"),
        ({"region": "us-virginia", "delivery": "0.01 USD/kWh", "contents": {"delivery": "0.02 USD/kWh"}}, "stated twice"),
        ({"region": "us-virginia", "delivery": "0.01 USD/kWh", "contents": {"delivery": "included"}}, "stated twice"),
        ({"region": "id-jakarta", "tariff": "id-jakarta PLN I-4/TT", "delivery": "1 USD/kWh"}, r"sites\[0\].delivery: "),
        ({"region": "us-virginia", "contents": {"demand": "15 USD/kW-month"}}, 'needs the block "electricity"'),
        ({"region": "us-virginia", "contents": {"demand": "15 USD/kW-month"}, "electricity": {"demand_charge": "9 USD/kW-month"}}, "stated twice"),
        ({"region": "us-virginia", "contents": {"delivery": "maybe"}}, r"sites\[0\].contents.delivery: "),
    ],
)  # fmt: skip
def test_what_is_stated_twice_is_refused_with_place_and_remedy(site, place):
    with pytest.raises(SpecError, match=place):
        resolve_document(spec(site))


COMPLETE = {
    "market with delivery": ({"region": "us-virginia"}, {"delivery": "separate", "demand": "separate", "levies": "separate"}),
    "average of industry": ({"region": "us-ohio"}, {"delivery": "included", "demand": "included", "levies": "included"}),
    "own price": (
        {"region": "us-ohio", "electricity_price": "0.05 USD/kWh"},
        {"delivery": "included", "demand": "included", "levies": "included"},
    ),
    "own price and delivery": (
        {"region": "us-ohio", "electricity_price": "0.05 USD/kWh", "delivery": "0.01 USD/kWh"},
        {"demand": "included", "levies": "included"},
    ),
    "own price and peaks": (
        {"region": "us-ohio", "electricity_price": "0.05 USD/kWh", "electricity": {"demand_charge": "9 USD/kW-month"}},
        {"delivery": "included", "demand": "separate", "levies": "included"},
    ),
    "province": ({"region": "cn-nanjing"}, {"delivery": "included", "demand": "included", "levies": "included"}),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_statement_of_contents_changes_no_price_that_was_complete(name, count):
    site, stated = COMPLETE[name]
    said = dict([("energy", "included"), *stated.items()][:count])
    before, after = (resolve_document(spec(each)).sites[0] for each in (site, {**site, "contents": said}))
    assert (before.price_per_j == after.price_per_j).all() and before.contents.states == after.contents.states
    assert not before.contents.unknown
    assert (before.electricity and before.electricity.demand_charge) == (
        after.electricity and after.electricity.demand_charge
    )


def test_an_unknown_part_changes_no_cost_but_is_told():
    site = {"region": "us-ohio", "electricity_price": "0.05 USD/kWh"}
    plain, told = (planner.solve(spec(each)) for each in (site, {**site, "contents": {"delivery": "unknown"}}))
    assert plain.value == told.value and "price_contents" not in plain.document
    (row,) = told.document["price_contents"]
    assert row["delivery"] == "unknown" and row["industrial_per_j"] * KWH_J == pytest.approx(0.079)
    assert verify_plan(told) == []
