"""Contracts with plants: on site, over the grid or financial, with surplus sold in a market, and their carbon by both accounts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from catalog.lookup import Catalog
from catalog.units import KWH_J
from planner.errors import SpecError
from planner.report.electricity import carbon_accounts
from planner.report.page import one_page
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.plans.test_price_contents import HOURS, POWER_KW, WORTH_OF_3_YEARS, electricity, spec

WIND = {"name": "wind far away", "capacity": "11 kW", "price": "0.05 USD/kWh", "profile": "flat"}
PEAKS = {"demand_charge": "15 USD/kW-month"}
YEARS = HOURS * WORTH_OF_3_YEARS
PRICE = 0.04


def market(**site: Any) -> dict[str, Any]:
    """A site with a market's price of 0.04 USD/kWh in all hours and delivery of 0.02."""
    hours = {"start": "2027-01-01T00", "columns": {"price_usd_per_mwh": [PRICE * 1000] * HOURS}}
    document = spec({"region": "us-virginia", "pue": 1.25, "hourly": "own.csv", "delivery": "0.02 USD/kWh", **site})
    return {**document, "series": {"own.csv": hours}}


def contracted(**contract: Any) -> dict[str, Any]:
    return market(electricity={"ppa": [{**WIND, **contract}]})


def test_a_contract_passes_the_connection():
    """10.455 kW do not pass 1 kW."""
    site = {"region": "us-virginia", "pue": 1.25, "electricity": {**PEAKS, "connection": "1 kW", "ppa": [WIND]}}
    plan = planner.solve(spec(site))
    assert plan.status == "infeasible" and verify_plan(plan) == []
    assert "1 kW" in one_page(plan)


@pytest.mark.parametrize("delivery", [{}, {"delivery": "0.053 USD/kWh"}])
def test_over_the_grid_delivery_and_demand_charges_are_due(delivery):
    """10.455 kW at 0.05 and 0.053 USD/kWh, and 15 USD/kW a month: 29,160 USD, with the region's delivery or the same stated."""
    size = {"capacity": "10.455 kW", "least": "10.455 kW"}
    site = {
        "region": "us-virginia",
        "pue": 1.25,
        "electricity": {**PEAKS, "connection": "20 kW", "ppa": [{**WIND, **size}]},
    }
    wanted = POWER_KW * (HOURS * (0.05 + 0.053) + 12 * 15) * WORTH_OF_3_YEARS
    assert wanted == pytest.approx(29_160, abs=1)
    assert electricity(planner.solve(spec({**site, **delivery}))) == pytest.approx(wanted, rel=1e-6)


def test_on_site_nothing_is_due_but_the_price():
    plan = planner.solve(contracted(kind="on-site", capacity="10.455 kW", price="0.05 USD/kWh"))
    assert electricity(plan) == pytest.approx(10.455 * YEARS * 0.05, rel=1e-6)


def test_over_the_grid_delivery_is_paid_on_what_is_taken():
    plan = planner.solve(contracted(capacity="10.455 kW", price="0.03 USD/kWh"))
    assert electricity(plan) == pytest.approx(POWER_KW * YEARS * (0.03 + 0.02), rel=1e-6)


def test_a_financial_contract_settles_the_difference():
    """The grid delivers all at 0.06; 11 kW earn 0.04 and pay 0.03."""
    plan = planner.solve(contracted(kind="financial", price="0.03 USD/kWh"))
    assert electricity(plan) == pytest.approx((POWER_KW * 0.06 - 11 * 0.01) * YEARS, rel=1e-6)
    assert all(row["ppa_w"]["wind far away"] == 0.0 for row in plan.document["schedule"])


def test_surplus_is_sold_less_the_fee_or_curtailed():
    """20 kW are contracted, 10.455 are used, the rest earns 0.04 less 0.01."""
    contract = {"capacity": "20 kW", "least": "20 kW", "kind": "on-site", "price": "0.03 USD/kWh"}
    sold, curtailed = (
        electricity(planner.solve(contracted(**contract, **fee))) for fee in ({"sale_fee": "10 USD/MWh"}, {})
    )
    assert curtailed == pytest.approx(20 * 0.03 * YEARS, rel=1e-6)
    assert sold == pytest.approx((20 * 0.03 - (20 - POWER_KW) * 0.03) * YEARS, rel=1e-6)


def test_carbon_stands_by_both_accounts():
    """A plant over the grid: all by location, none by market. A financial one covers what is bought up to its output."""
    over, settled = (
        planner.solve(contracted(capacity="10.455 kW", price="0.03 USD/kWh", kind=kind))
        for kind in ("grid", "financial")
    )
    grid_kg = sum(row["energy_j"] * row["carbon_kg_per_j"] for row in over.document["schedule"])
    embodied = over.totals["carbon_kg"]
    by_place, by_market = carbon_accounts(over) or (0.0, 0.0)
    assert by_place == pytest.approx(embodied + grid_kg) and by_market == pytest.approx(embodied)
    assert carbon_accounts(settled) == pytest.approx((by_place, by_market))
    assert "location-based" in one_page(over) and "market-based" in one_page(settled)


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ({"sale_fee": "1 USD/MWh", "pays": "taken"}, "has no surplus"),
        ({"kind": "financial", "pays": "taken"}, "has no surplus"),
        ({"kind": "financial", "sale_fee": "1 USD/MWh"}, "settles all that is produced"),
        ({"kind": "virtual"}, r"ppa\[0\].kind: "),
    ],
)
def test_what_a_contract_cannot_be_is_refused(contract, message):
    with pytest.raises(SpecError, match=message):
        resolve_document(contracted(**contract))


@pytest.mark.parametrize(
    ("contract", "key"), [({"kind": "financial"}, "kind"), ({"sale_fee": "1 USD/MWh"}, "sale_fee")]
)
def test_without_a_market_nothing_is_settled(contract, key):
    site = {"region": "us-ohio", "electricity": {"ppa": [{**WIND, **contract}]}}
    with pytest.raises(SpecError, match=rf"sites\[0\].electricity.ppa\[0\].{key}: .*no market's"):
        resolve_document(spec(site))


def test_wrong_costs_of_a_contract_are_found():
    plan = planner.solve(contracted(capacity="20 kW", least="20 kW", sale_fee="1 USD/MWh"))
    assert verify_plan(plan) == []
    document = copy.deepcopy(dict(plan.document))
    row = next(row for row in document["electricity"] if row["item"] == "ppa")
    row["cost"] *= 1.01
    assert any("electricity us-virginia/ppa" in str(found) for found in verify_plan(planner.Plan(document)))


def test_the_market_of_the_catalog_settles_contracts():
    site = {"region": "us-virginia", "electricity": {"ppa": [{**WIND, "kind": "financial"}]}}
    resolved = resolve_document(spec(site)).sites[0]
    series = Catalog.load().get("regions", "us-virginia").series("price_profile")
    assert resolved.electricity is not None and resolved.electricity.contracts[0].market_per_j is not None
    assert resolved.electricity.contracts[0].market_per_j * KWH_J == pytest.approx([each * KWH_J for each in series])
