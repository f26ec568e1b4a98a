"""Prices keep the currency of their source and are converted once, at the dated rates of the plan."""

from __future__ import annotations

import json

import pytest

from catalog.exchange import per_usd
from catalog.lookup import Catalog, shipped_catalog
from catalog.units import KWH_J
from planner.facts.offers import below_older
from planner.facts.prices import market
from planner.resolve.resolver import resolve_document
from tests.plans.one_server import SYSTEM, question

MODULE = 1_050_000  # CNY, of 8 chips
OFFER = {
    "name": "module",
    "text": {"system": SYSTEM, "how": "buy"},
    "figures": {"price": {"value": MODULE, "unit": "CNY", "note": "list"}},
}
RATES = {"CNY": {"per_usd": 7.0, "date": "2026-11"}}


@pytest.fixture
def price_of(tmp_path):
    """Resolve the price of the first offer; the catalog has one in CNY for systems that have none there."""
    (tmp_path / "offers.json").write_text(json.dumps({"offers": [OFFER]}))

    def resolved(currency, exchange, price=None):
        offer = {"system": SYSTEM, "how": "buy"} | ({} if price is None else {"price": price})
        document = question(currency=currency, exchange=exchange, offers=[offer])
        return resolve_document(document, [tmp_path]).offers[0].prices["us-virginia"]

    return resolved


@pytest.mark.parametrize("exchange", [{}, RATES])
def test_an_amount_in_the_currency_of_the_plan_stays(price_of, exchange):
    assert price_of("CNY", exchange, "1.05M CNY") == MODULE


def test_an_amount_in_another_currency_is_converted_at_the_rate_of_the_plan(price_of):
    assert price_of("USD", RATES, "1.05M CNY") == pytest.approx(150_000)
    assert price_of("USD", {}, "1.05M CNY") == pytest.approx(MODULE / per_usd(shipped_catalog(), "CNY"))


def test_a_price_of_the_catalog_keeps_its_currency(price_of):
    """The list price in CNY is the same number in a plan in CNY, whatever the rate, and the least price is chosen across currencies."""
    assert price_of("CNY", RATES) == MODULE
    assert price_of("USD", RATES) == pytest.approx(150_000)


@pytest.mark.parametrize("exchange", [{}, RATES])
def test_electricity_of_a_chinese_region_stays(exchange):
    """Qingyang reports 0.398 CNY/kWh, all in."""
    document = question(currency="CNY", exchange=exchange)
    site = document["sites"][0]
    site["region"] = document["workloads"][0]["origins"][0]["region"] = "cn-qingyang"
    del site["electricity_price"], site["systems"]
    document["limits"] = {"licences": [SYSTEM]}
    document["overrides"] = {}
    mean = resolve_document(document).sites[0].price_per_j.mean() * KWH_J
    assert mean == pytest.approx(0.398, rel=0.1)


def test_known_ranges_compare_prices_across_currencies(tmp_path):
    (tmp_path / "offers.json").write_text(json.dumps({"offers": [OFFER]}))
    catalog = Catalog.load([tmp_path])
    plain, known = (market(each, each.get("systems", SYSTEM), "buy") for each in (shipped_catalog(), catalog))
    assert known.most == plain.most  # 131,250 CNY a chip is less than 43,750 USD
    assert known.least <= plain.least


@pytest.mark.parametrize("code", ["CNY", "EUR", "JPY", "SGD", "INR", "BRL", "GBP"])
def test_default_rates_are_of_2026_with_date_and_source(code):
    rate = shipped_catalog().get("defaults", f"exchange_{code.lower()}").figure("value")
    assert rate.date.startswith("2026-") and len(rate.date) == len("2026-10-09")
    assert rate.source


def test_a_rent_in_another_currency_is_compared_with_those_of_older_chips(tmp_path):
    """100 CNY/h for 8 B200 is 1.87 USD a chip and hour, below the H100's; the number alone, 12.5, would not be."""
    rent = {"name": "module", "text": {"system": "DGX B200", "how": "on_demand"}}
    rent["figures"] = {"price": {"value": 100, "unit": "CNY/h", "note": "list"}}
    (tmp_path / "offers.json").write_text(json.dumps({"offers": [rent]}))
    assert "module" in below_older(Catalog.load([tmp_path]))
