"""What is bought: price less residual value, replacement, upkeep, staff, licences, levies, building, network; in other currencies, and owned already."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plans.money.sheets import (
    CHIPS,
    NAMEPLATE_KW,
    Document,
    Sheet,
    annuity,
    carbon,
    check,
    cost,
    kwh,
    later,
    left,
    owned_question,
    worth,
)

PRICE, BUILDING, PREMIUM = 300_000.0, 11.7, 0.085
UPKEEP = {
    "maintenance": 0.04, "spare_parts": 0.02, "levies": 0.015, "staff_per_power": "400 USD/kW-year", "staff_per_system": "1200 USD/year",
    "software_per_chip": "4500 USD/year", "software_per_system": "10000 USD/year", "facility_premium": PREMIUM,
}  # fmt: skip
BUILT = {"regions/us-virginia/construction_cost": {"value": f"{BUILDING} USD/W", "note": "test"}}
YEARS, LIFE = 7, 5


def seven_years() -> dict[str, Any]:
    """A life of five years in seven: sold at five, bought again, and sold at two."""
    asked = owned_question(YEARS, UPKEEP, overrides=BUILT)
    asked["offers"][0]["life"] = "5 years"
    asked["sites"][0].update(electricity_price="0.08 USD/kWh", fixed_cost="100000 USD/year")
    return asked


def bought_again(plan: Document) -> float:
    """P (1 - f(5) v^5) + P v^5 (1 - f(2) v^2)."""
    again = YEARS - LIFE
    return PRICE * (1 - left(LIFE) * later(LIFE)) + PRICE * later(LIFE) * (1 - left(again) * later(again))


def falling() -> dict[str, Any]:
    asked = owned_question(YEARS, {})
    asked["offers"][0].update(life="5 years", price_change_per_year=-0.3)
    return asked


def falling_price(plan: Document) -> float:
    """The second costs 0.7^5 of the first, on delivery and at sale."""
    again = YEARS - LIFE
    second = PRICE * 0.7**LIFE * later(LIFE) * (1 - left(again) * later(again))
    return PRICE * (1 - left(LIFE) * later(LIFE)) + second


YUAN, PER_EURO = 2_100_000.0, 0.9 / 7.0  # euros of one yuan, both by their rates to the dollar


def in_euros() -> dict[str, Any]:
    asked = owned_question(3, {"maintenance": 0.04, "staff_per_system": "1200 USD/year"}, currency="EUR")
    asked["exchange"] = {"EUR": {"per_usd": 0.9}, "CNY": {"per_usd": 7.0}}
    asked["offers"][0]["price"] = f"{YUAN} CNY"
    asked["sites"][0].update(electricity_price="0.1 USD/kWh", fixed_cost="20000 EUR/year")
    return asked


def kept() -> dict[str, Any]:
    """Two servers of one year stand there, and one is needed."""
    asked = owned_question(3, {"maintenance": 0.05})
    asked["owned"] = [{"system": "DGX H100", "region": "us-virginia", "count": 2, "age": "1 year", "price": f"{PRICE} USD"}]  # fmt: skip
    return asked


def networked() -> dict[str, Any]:
    asked = owned_question(3, {"maintenance": 0.04, "levies": 0.01})
    asked["offers"][0]["least"] = 16
    asked["sites"][0].update(topologies=["rail-optimised"])
    return asked


def network(plan: Document) -> float:
    (row,) = plan["fabrics"]
    return float(row["charged"])


def dear() -> dict[str, Any]:
    asked = owned_question(3, {})
    asked["prices"] = {"buy": "high", "ranges": {"offers[0].price": {"low": "200000 USD", "high": "350000 USD"}}}
    return asked


def own_hall() -> dict[str, Any]:
    """A hall that is rented: its staff is in its rent."""
    asked = owned_question(3, {"staff_per_power": "400 USD/kW-year", "staff_per_system": "1200 USD/year"}, overrides={})
    asked["sites"][0]["colocation"] = "150 USD/kW-month"
    return asked


def of_all(plan: Document) -> float:
    """Add up all components by their sheets."""
    return sum(sheet.wanted(plan) for sheet in OF_SEVEN_YEARS)


W7, W3 = worth(YEARS), worth(3)
OF_SEVEN_YEARS = [
    Sheet("systems, replaced", seven_years, lambda d: cost(d, "systems"), bought_again),
    Sheet("maintenance", seven_years, lambda d: cost(d, "maintenance"), lambda d: 0.04 * PRICE * W7),
    Sheet("spare parts, sold with the system", seven_years, lambda d: cost(d, "spare parts"), lambda d: 0.02 * bought_again(d)),
    Sheet("staff by power and by system", seven_years, lambda d: cost(d, "staff"), lambda d: (400 * NAMEPLATE_KW + 1200) * W7),
    Sheet("licences by chip and by system", seven_years, lambda d: cost(d, "software"), lambda d: (4500 * CHIPS + 10_000) * W7),
    Sheet("levies", seven_years, lambda d: cost(d, "levies"), lambda d: 0.015 * PRICE * W7),
    # The building lasts 20 years; its price is recovered by an annuity on nameplate power.
    Sheet("building", seven_years, lambda d: cost(d, "facility"), lambda d: BUILDING * (1 + PREMIUM) * 1000 * NAMEPLATE_KW * annuity(20) * W7),
    Sheet("energy at one price", seven_years, lambda d: cost(d, "energy"), lambda d: kwh(d["schedule"], YEARS) * 0.08 * W7),
    Sheet("fixed cost of the site", seven_years, lambda d: cost(d, "site"), lambda d: 100_000 * W7),
]  # fmt: skip
SHEETS = [
    *OF_SEVEN_YEARS,
    Sheet("cost of all", seven_years, lambda d: d["totals"]["cost"], of_all),
    Sheet("value of the objective", seven_years, lambda d: d["objective"]["value"], of_all),
    Sheet("tokens", seven_years, lambda d: d["totals"]["tokens"], lambda d: 5 * 100 * 3600 * 24 * 365 * YEARS),
    # Levelised: cost over tokens, both at present worth.
    Sheet("levelised cost per 1M tokens", seven_years, lambda d: d["workloads"][0]["cost_per_million_tokens"], lambda d: of_all(d) / (5 * 100 * 3600 * 24 * 365 * W7 / 1e6)),
    Sheet("energy of all", seven_years, lambda d: d["totals"]["energy_j"], lambda d: sum(row["power_w"] * row["seconds"] for row in d["schedule"])),
    Sheet("falling price", falling, lambda d: cost(d, "systems"), falling_price),
    Sheet("price in yuan, plan in euros", in_euros, lambda d: cost(d, "systems"), lambda d: YUAN * PER_EURO * (1 - left(3) * later(3))),
    Sheet("maintenance of a price in yuan", in_euros, lambda d: cost(d, "maintenance"), lambda d: 0.04 * YUAN * PER_EURO * W3),
    Sheet("energy in dollars, plan in euros", in_euros, lambda d: cost(d, "energy"), lambda d: kwh(d["schedule"], 3) * 0.1 * 0.9 * W3),
    Sheet("staff in dollars, plan in euros", in_euros, lambda d: cost(d, "staff"), lambda d: 1200 * 0.9 * W3),
    Sheet("fixed cost in the plan's own euros", in_euros, lambda d: cost(d, "site"), lambda d: 20_000 * W3),
    # What is kept costs what it would sell for today, less what it sells for at the end.
    Sheet("kept", kept, lambda d: cost(d, "systems"), lambda d: d["owned"][0]["kept"] * PRICE * (left(1) - left(4) * later(3))),
    Sheet("maintenance of what is kept", kept, lambda d: cost(d, "maintenance"), lambda d: d["owned"][0]["kept"] * 0.05 * PRICE * W3),
    Sheet("worth of one that is sold", kept, lambda d: d["owned"][0]["worth"], lambda d: PRICE * left(1)),
    Sheet("proceeds of what is sold", kept, lambda d: d["owned"][0]["proceeds"], lambda d: d["owned"][0]["sold"] * PRICE * left(1)),
    Sheet("many systems", networked, lambda d: cost(d, "systems"), lambda d: d["fleet"][0]["count"] * PRICE * (1 - left(3) * later(3))),
    Sheet("network", networked, lambda d: cost(d, "fabric"), lambda d: network(d) * (1 - left(3) * later(3))),
    Sheet("maintenance of systems and network", networked, lambda d: cost(d, "maintenance"), lambda d: 0.04 * (d["fleet"][0]["count"] * PRICE + network(d)) * W3),
    Sheet("levies of systems and network", networked, lambda d: cost(d, "levies"), lambda d: 0.01 * (d["fleet"][0]["count"] * PRICE + network(d)) * W3),
    Sheet("price at its high figure", dear, lambda d: cost(d, "systems"), lambda d: 350_000 * (1 - left(3) * later(3))),
    Sheet("hall that is rented", own_hall, lambda d: cost(d, "colocation"), lambda d: 150 * NAMEPLATE_KW * 12 * W3),
    Sheet("staff without that of the hall", own_hall, lambda d: cost(d, "staff"), lambda d: 1200 * W3),
    # Carbon of making a server counts for the years of its life in which it is held.
    Sheet("embodied carbon", seven_years, lambda d: carbon(d, "embodied"), lambda d: 318 * CHIPS * YEARS / LIFE),
]  # fmt: skip


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_an_amount_of_what_is_bought_is_that_of_its_sheet(sheet):
    check(sheet)
