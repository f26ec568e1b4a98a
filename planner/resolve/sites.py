"""Resolve the sites: electricity, building or rented hall, the parts of their networks, and the power that they may draw."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from catalog.dates import MONTHS, last_month
from catalog.errors import MissingFigure
from catalog.records import Record
from catalog.units import show
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message, listed
from planner.problem.economics import Economics
from planner.problem.facts import NetworkFacts, PhaseFacts, SiteFacts
from planner.resolve.context import ResolveContext
from planner.resolve.electricity import electricity_facts
from planner.resolve.electricity_prices import carbon_by_hour, price_by_hour
from planner.resolve.facility import assured, effectiveness, hall_facts
from planner.resolve.money.economics import building_premium
from planner.resolve.phases import power_in_time, site_from_s
from planner.resolve.power_caps import measured_curve
from planner.resolve.systems import network_facts, not_bought
from planner.spec.sites import Site


@dataclass(frozen=True, slots=True)
class SitePlace:
    """A site of the spec with the records that it names; `path`: its place in the spec."""

    site: Site
    path: str
    region: Record
    fabric: Record
    systems: tuple[str, ...]


def resolve_sites(context: ResolveContext, money: Economics, phases: tuple[PhaseFacts, ...]) -> list[SiteFacts]:
    """Resolve every site of the spec; one with a wrong name or a missing figure is left out, with a problem added."""
    stated = context.spec.sites
    regions = [context.find("regions", site.region, f"sites[{i}].region") for i, site in enumerate(stated)]
    context.check_distinct(regions, "sites", Message.of("resolve.join_sites").text())
    sites = []
    for i, (site, region) in enumerate(zip(stated, regions, strict=True)):
        path = f"sites[{i}]"
        fabric = context.find("fabrics", site.fabric, f"{path}.fabric")
        systems = context.find_all("systems", site.systems or [], f"{path}.systems")
        if site.tariff is not None and context.find("tariffs", site.tariff, f"{path}.tariff") is None:
            continue
        if region is None or fabric is None or systems is None:
            continue
        place = SitePlace(site, path, region, fabric, tuple(record.name for record in systems))
        try:
            sites.append(_site(context, place, money, phases))
        except MissingFigure as error:
            context.add_problem(path, words_of(error))
        except SpecError as error:
            context.problems.extend(error.problems)
    return sites


def _fabric(context: ResolveContext, place: SitePlace) -> NetworkFacts:
    """Resolve the fabric of a site. Raises SpecError for a fabric that nobody buys as one, MissingFigure for a part without a figure."""
    try:
        return network_facts(context, place.fabric)
    except MissingFigure:
        if (wrong := not_bought(context, place.fabric)) is None:
            raise
        raise SpecError([Issue(f"{place.path}.fabric", wrong.text())]) from None


def _site(context: ResolveContext, place: SitePlace, money: Economics, phases: tuple[PhaseFacts, ...]) -> SiteFacts:
    """Resolve one site. Raises MissingFigure or SpecError where it cannot go on."""
    site, path, region = place.site, place.path, place.region
    building, hall_per_w_s = _building_and_hall(context, place)
    power = power_in_time(context, site, path, phases)
    price_per_j, contents = price_by_hour(context, site, region, path)
    return SiteFacts(
        path=path,
        region=region.name,
        price_per_j=price_per_j,
        carbon_kg_per_j=carbon_by_hour(context, site, region, path),
        pue=effectiveness(context, site, region, path),
        facility_cost_per_w=context.convert((building, "USD")),
        facility_premium=building_premium(context) if building else 0.0,
        fixed_cost_per_s=0.0 if site.fixed_cost is None else context.convert(site.fixed_cost),
        crew_per_s=_crew(context, place),
        systems=place.systems,
        topologies=tuple(dict.fromkeys(site.topologies)),
        fabric=replace(_fabric(context, place), used_share=site.network_share),
        export_zone=region.words("export_zone") or "none",
        zones=tuple(filter(None, (region.words("residency"), region.words("country")))),
        fails_with=site.zone or region.name,
        power_caps=tuple(sorted(set(site.power_caps), reverse=True)),
        cap_curve=measured_curve(context.ledger, f"{path}.power_caps") if site.power_caps else None,
        contents=contents,
        electricity=electricity_facts(context, site, region, path, money, contents),
        from_s=site_from_s(context, site, path),
        hall_per_w_s=hall_per_w_s,
        storage_bytes_per_s=math.inf if site.storage_bandwidth is None else site.storage_bandwidth,
        power_limit_w=power.limit_w,
        phase_power_w=power.by_phase_w,
        first_power_w=power.first_w,
        hall=hall_facts(site),
        assured=assured(site),
    )


def _crew(context: ResolveContext, place: SitePlace) -> float:
    """Return the pay of the crew of a site [plan currency/s], booked as an assumption; 0 where none is stated."""
    stated, path = place.site.crew, f"{place.path}.crew"
    if stated is None:
        return 0.0
    paid = context.convert(stated, path=path)
    scope = ("staff", place.region.name, "")
    context.assume_stated(path, paid, f"{context.spec.currency}/s", scope, note=place.site.note)
    return paid


def _building_and_hall(context: ResolveContext, place: SitePlace) -> tuple[float, float]:
    """Return (construction cost [USD/W], rent of a hall [plan currency/(W s)]); a rented hall takes the place of a building."""
    here, site, path = place.region.name, place.site, place.path
    if site.colocation is not None:
        rent, where = context.convert(site.colocation, path=f"{path}.colocation"), f"{path}.colocation"
        unit = f"{context.spec.currency}/W s"
        context.assume_price(where, "colocation", rent, unit, ("colocation", here, "*"), note=site.note)
        return 0.0, rent
    return _building_cost(context, here, path), 0.0


def _building_cost(context: ResolveContext, region: str, path: str) -> float:
    """Return the construction cost of a region, or the catalog's default, in the year of this release [USD/W]; without a date as it stands."""
    ledger, scope, where = context.ledger, ("facility", region, "*"), f"{path}.construction_cost"
    if ledger.catalog.get("regions", region).get("construction_cost") is None:
        figure = ledger.figure("defaults", "facility_cost", "value")
        reason = Message.of("resolve.construction_unpublished").text()
    else:
        figure, reason = ledger.figure("regions", region, "construction_cost"), ""
    stated, year = last_month(figure.date), int(ledger.catalog.get("defaults", "facility_cost_year").value("value"))
    years = 0 if stated is None else year - stated // MONTHS
    growth = 0.0
    if years > 0:
        ledger.value("defaults", "facility_cost_year", "value")
        growth = ledger.value("defaults", "facility_cost_growth", "value")
        grown = Message.of("market.building_cost", year=figure.date or "", now=str(year), growth=f"{growth:.1%}")
        reason = listed((reason, grown.text()))
    cost: float = figure.number * (1.0 + growth) ** max(years, 0)
    if reason:
        ledger.assume(where, show(cost, figure.unit), figure.unit, reason, scope)
    return cost
