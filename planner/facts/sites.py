"""Compare electricity, cooling, power and halls of a site with their known ranges."""

from __future__ import annotations

from catalog.exchange import usd_of_one
from catalog.lookup import Catalog
from catalog.units import GIGA, KILO, KWH_J, MONTH_S
from planner.facts import Fact
from planner.facts.ranges import Known, known_of
from planner.messages import Message

HALL = Known(
    150 / (KILO * MONTH_S),
    250 / (KILO * MONTH_S),
    "150 to 250 USD/kW-month for halls of accelerators, mean of all 217 (CBRE, Q1 2025)",
)
BATTERY = Known(
    73 / KWH_J,
    270 / KWH_J,
    "73 (China) to 236 USD/kWh turnkey (BloombergNEF survey, December 2025), 250 EUR/kWh (Danish Energy Agency)",
)
CAMPUS = Known(0.0, 5 * GIGA, "largest campus under construction, 5 GW (Meta Hyperion, 2025)")
DAYLIGHT = 0.5  # share of the hours of a year, at any latitude


def electricity_prices(catalog: Catalog) -> Known | None:
    """Return the range of the electricity prices of all regions of the catalog [USD/J]."""
    figures = [
        figure for record in catalog.records("regions") if (figure := record.get("electricity_price")) is not None
    ]
    priced = [(figure, usd) for figure in figures if (usd := usd_of_one(catalog, figure)) is not None]
    return known_of([figure for figure, _ in priced], "regions/*/electricity_price", [usd for _, usd in priced])


def carbon_intensities(catalog: Catalog) -> Known | None:
    """Return the most carbon intensity of all regions of the catalog [kg/J]; a contract or a dam may have next to none."""
    found = _of_regions(catalog, "carbon_intensity")
    return None if found is None else Known(0.0, found.most, found.source)


def efficiencies(catalog: Catalog) -> Known | None:
    """Return the range of the power usage effectiveness (PUE) of all climates, of what operators report, and of the default."""
    names = (("climates", "pue_air"), ("climates", "pue_liquid"), ("regions", "pue_reported"))
    figures = [figure for kind, name in names for record in catalog.records(kind) if (figure := record.get(name))]
    known = "climates/*/pue_*, regions/*/pue_reported, defaults/pue_default"
    return known_of([*figures, catalog.get("defaults", "pue_default").figure("value")], known)


def demand_charges(catalog: Catalog, per_usd: dict[str, float]) -> Known | None:
    """Return the range of the demand charges of all tariffs [USD/W s], by the units of each currency for one US dollar."""
    figures = [figure for record in catalog.records("tariffs") if (figure := record.get("demand_charge")) is not None]
    known = [figure for figure in figures if figure.unit[:3] in per_usd]
    return known_of(known, "tariffs/*/demand_charge", [1.0 / per_usd[figure.unit[:3]] for figure in known])


def more_than_daylight(path: str, factor: float) -> Fact | None:
    """Refuse a solar plant with more output over capacity than there are hours with the sun above the horizon: half of all.

    Source: astronomy; every place of the earth has the sun above the horizon for half of a year, within 1 %.
    """
    if factor <= DAYLIGHT:
        return None
    return Fact(
        path,
        Message.of("site.more_than_daylight", given=factor),
        "astronomy: the sun is up half of the hours of a year",
        refuses=True,
    )


def _of_regions(catalog: Catalog, name: str) -> Known | None:
    figures = [figure for record in catalog.records("regions") if (figure := record.get(name)) is not None]
    return known_of(figures, f"regions/*/{name}")
