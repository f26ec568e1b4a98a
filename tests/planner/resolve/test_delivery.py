"""Delivery of electricity: a charge on top of every hour's price, known where the price is that of the operator's market."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.lookup import Catalog
from catalog.units import KWH_J
from planner.resolve.resolver import resolve_document

SITE = {"region": "us-virginia", "systems": ["DGX H100"]}
RETAIL = {"us-virginia": 0.0892, "us-texas": 0.0663, "us-california": 0.1864, "us-newyork": 0.0892}  # [USD/kWh]


@pytest.fixture
def per_kwh(tiny):
    """Return the price of each slot of a site [USD/kWh]."""

    def price(**site) -> np.ndarray:
        return resolve_document(tiny(sites=[SITE | site])).sites[0].price_per_j * KWH_J

    return price


@pytest.mark.parametrize("region", RETAIL)
def test_market_price_with_delivery_has_the_level_of_what_industry_pays(per_kwh, region):
    price = per_kwh(region=region)
    assert price.mean() == pytest.approx(RETAIL[region], rel=2e-3) and np.ptp(price) > 0.005


def test_stated_delivery_takes_the_place_of_the_catalogs(per_kwh):
    market = Catalog.load().get("regions", "us-virginia").figures["price_profile"].value
    assert per_kwh(delivery="0.02 USD/kWh").mean() == pytest.approx(np.mean(market) * KWH_J + 0.02)
    assert per_kwh(delivery="0 USD/kWh").mean() == pytest.approx(np.mean(market) * KWH_J)


def test_a_stated_price_is_paid_as_it_stands_and_delivery_where_it_is_stated(per_kwh):
    assert per_kwh(electricity_price="0.05 USD/kWh") == pytest.approx(0.05)
    assert per_kwh(electricity_price="0.05 USD/kWh", delivery="0.01 USD/kWh") == pytest.approx(0.06)


def test_delivery_is_listed_among_the_assumptions(tiny):
    assumed = {row.path: row for row in resolve_document(tiny(sites=[SITE])).assumptions}
    assert "sites[0].delivery" in assumed and "2023" in assumed["sites[0].delivery"].reason
