"""Rents of newer chips below older ones are named, and no price that a plan takes by default is old without being listed."""

from __future__ import annotations

import pytest

from catalog.dates import age_months
from catalog.lookup import shipped_catalog
from planner.facts.offers import OLD_MONTHS, STRENGTHS, below_older, old_prices
from planner.resolve.resolver import resolve_document
from planner.version import RELEASED
from tests.planner.facts.base import spec

H200, H100 = "DGX H200, reserved, 3-year rental", "DGX H100, reserved, market"
ASKED = {f"offers/{H200}/price": {"value": "12.8 USD/h", "note": "the survey of early 2026"}}
OF_TODAY = (
    H200, H100, "DGX B200, reserved, 3-year rental", "DGX B300, reserved, 3-year rental", "GB200 NVL72, reserved, 3-year rental",
    "GB300 NVL72, reserved, 3-year rental", "MI300X 8x OAM node, reserved, 3-year rental", "MI355X 8x node, reserved, 3-year rental",
    "DGX H100, on_demand, market", "DGX H200, on_demand, market", "DGX B200, on_demand, market", "DGX B300, on_demand, market",
    "MI300X 8x OAM node, on_demand, market", "MI355X 8x node, on_demand, market",
    "DGX H100, buy", "DGX H200, buy", "DGX B200, buy", "DGX B300, buy", "GB200 NVL72, buy", "GB300 NVL72, buy", "MI355X 8x node, buy",
)  # fmt: skip
NO_NEWER_FIGURE_FOUND = {
    "offers/DGX A100 80GB, buy/price", "offers/Gaudi3 8x node, buy/price", "offers/Atlas 800T A2, buy/price",
    "offers/TPU v4 pod, on_demand, market/price", "offers/TPU v5e pod, on_demand, market/price", "offers/TPU v5p pod, on_demand, market/price",
    "offers/TPU v6e pod, on_demand, market/price", "offers/GCP a3-highgpu-8g, on_demand, us-iowa, us-central1/price",
    "defaults/software_per_system/value", "defaults/internet_egress_price/value", "defaults/china_electricity_price/value",
    "defaults/industrial_electricity_price/value",
}  # fmt: skip


def test_a_newer_chip_below_an_older_one_is_found():
    """At 1.60 USD/h, as the survey of early 2026 had it, an H200 for three years was cheaper than an H100 for one (2.35)."""
    rent, older = below_older(shipped_catalog().with_overrides(ASKED))[H200]
    assert (rent.per_chip * 3600, older.per_chip * 3600) == pytest.approx((1.6, 2.35))
    assert older.offer.name == H100
    assert H200 not in below_older(shipped_catalog())


def test_only_like_is_compared_with_like():
    found = below_older(shipped_catalog())
    assert found
    for rent, older in found.values():
        assert rent.seller == older.seller and rent.per_chip < older.per_chip
        assert rent.chip.words("year") > older.chip.words("year")
        assert all(rent.chip.value(name) >= older.chip.value(name) for name in STRENGTHS)


def test_a_plan_that_rests_on_the_rent_is_told():
    """Not one that states a rent of its own: the figure of the catalog is then not used."""
    of = lambda **changes: {
        note.path for note in resolve_document(spec(**changes)).notes if note.message.code == "market.below_older"
    }
    taken = [{"system": "DGX H200", "how": "reserved"}]
    assert of(offers=taken, overrides=ASKED) == {f"offers/{H200}/price"}
    assert of(offers=taken) == set()
    assert of(offers=[{**taken[0], "price": "23 USD/h"}], overrides=ASKED) == set()


@pytest.mark.parametrize("name", OF_TODAY)
def test_prices_of_today_have_a_date_a_low_and_a_high(name):
    price = shipped_catalog().get("offers", name).figure("price")
    age = age_months(price.date, RELEASED)
    assert age is not None and age <= OLD_MONTHS
    assert price.low is not None and price.high is not None


def test_prices_older_than_a_year_and_a_half_are_known():
    """Whoever finds a newer figure takes the price out of this list; `flopwatt catalog check prices` prints the list to users."""
    assert {path for path, _ in old_prices(shipped_catalog(), RELEASED)} == NO_NEWER_FIGURE_FOUND


def test_offers_are_named_by_system_way_and_region():
    """The page finds the price of a system at a site by the name of the offer."""
    regions = set(shipped_catalog().names("regions"))
    for offer in shipped_catalog().records("offers"):
        words = offer.words
        assert offer.name.startswith(f"{words('system')}, {words('how')}")
        assert words("region") not in regions or f", {words('region')}, " in offer.name
