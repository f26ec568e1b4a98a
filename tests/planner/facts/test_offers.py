"""Rents of newer chips below older ones are named, and no price that a plan takes by default is old without being listed."""

from __future__ import annotations

import re

import pytest

from catalog.contents import PRICES, contents_key
from catalog.dates import age_months
from catalog.lookup import shipped_catalog
from catalog.schemas import SCHEMAS
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
    found = {path for path, _ in old_prices(shipped_catalog(), RELEASED)}
    assert {path for path in found if path.startswith(("offers/", "defaults/"))} == NO_NEWER_FIGURE_FOUND


def money():
    """Yield (path, figure) of each price in all kinds of the catalog."""
    catalog = shipped_catalog()
    for kind in SCHEMAS:
        for record in catalog.records(kind):
            for name, figure in record.figures.items():
                if re.fullmatch("[A-Z]{3}(/.*)?", figure.unit):
                    yield f"{kind}/{record.name}/{name}", figure


def test_each_price_is_of_the_last_18_months_or_marked():
    """By the year and month that its date ends with; a price without a date is marked too, and none else is."""
    marked = {path for path, _ in old_prices(shipped_catalog(), RELEASED)}
    year, month = (int(part) for part in RELEASED.split("-"))
    prices = dict(money())
    assert len(prices) > 700 and marked <= set(prices)
    for path, figure in prices.items():
        days = re.findall(r"(\d{4})(?:-(\d{2})(?!\d))?", figure.date or "")
        if not days:
            assert path in marked, path
            continue
        last = max(12 * int(y) + (int(m) if m and int(m) <= 12 else 12) for y, m in days)
        if not re.search("H[12]|-2[0-9]$", figure.date or ""):  # half years and spans of years: `catalog.dates`
            assert (12 * year + month - last > OLD_MONTHS) == (path in marked), f"{path} {figure.date}"


def test_each_price_of_electricity_states_four_parts():
    """Also one that is added tomorrow: in regions, tariffs and defaults, with a unit of money per energy."""
    catalog, stated = shipped_catalog(), 0
    for path, figure in money():
        kind, _, rest = path.partition("/")
        name, _, key = rest.rpartition("/")
        if kind not in PRICES or not figure.unit.endswith("/J") or key.endswith("levies"):
            continue
        words = catalog.get(kind, name).words(contents_key(key if key in PRICES[kind] else ""))
        assert words, path
        parts = dict(part.split() for part in words.split(", "))
        assert list(parts) == ["energy", "delivery", "demand", "levies"], path
        assert set(parts.values()) <= {"included", "separate", "unknown"}, path
        stated += 1
    assert stated > 70


@pytest.mark.parametrize(
    ("state", "per_kwh"),
    [("iowa", 0.062), ("georgia", 0.0683), ("texas", 0.0663), ("nevada", 0.0681), ("ohio", 0.079), ("newyork", 0.0892)],
)
def test_prices_of_electricity_in_the_usa_are_of_2025(state, per_kwh):
    """Average of industry by the EIA in one or two months of 2025, with a range; no table of 2025 was found for the other four states."""
    price = shipped_catalog().get("regions", f"us-{state}").figure("electricity_price")
    assert price.number * 3.6e6 == pytest.approx(per_kwh)
    assert str(price.date).startswith("2025") and price.low <= price.value <= price.high
    states = {name for name in shipped_catalog().names("regions") if name.startswith("us-")}
    old = {f"us-{name}" for name in ("virginia", "oregon", "arizona", "california")}
    assert {
        name for name in states if shipped_catalog().get("regions", name).figure("electricity_price").date == "2023"
    } == old


def test_offers_are_named_by_system_way_and_region():
    """The page finds the price of a system at a site by the name of the offer."""
    regions = set(shipped_catalog().names("regions"))
    for offer in shipped_catalog().records("offers"):
        words = offer.words
        assert offer.name.startswith(f"{words('system')}, {words('how')}")
        assert words("region") not in regions or f", {words('region')}, " in offer.name
