"""Resolve the discount rate, service lives, and what owning costs beside the price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from catalog.units import YEAR_S, show
from planner.facts import Fact
from planner.messages import Message
from planner.problem.economics import Economics, Escalation, Residual
from planner.problem.facts import OfferFacts
from planner.resolve.context import NOT_STATED, ResolveContext
from planner.resolve.money.relays import resolve_relays
from planner.spec.economics import Curve

SCOPE = "systems", "fabric"  # components that are charged less their residual value
PAYMENTS_PER_YEAR = {"yearly": 1, "quarterly": 4, "monthly": 12}
RISING = {
    "electricity": ("energy", "demand charge"),
    "staff": ("staff",),
    "rent": ("colocation", "rent"),
    "maintenance": ("maintenance",),
}
AGES_YEARS = (1, 2, 3, 4, 5)  # ages at which the catalog knows the residual value
REASON = Message.of("resolve.residual_share").text()


def resolve_economics(context: ResolveContext) -> Economics:
    """Resolve the discount rate and the service lives; figures that the spec omits are booked as assumptions."""
    ledger, horizon = context.ledger, context.spec.horizon
    systems, fabric, facility = ((name, "*", "*") for name in (*SCOPE, "facility"))
    yearly = [(name, "*", "*") for name in ("maintenance", "spare parts", "staff", "software", "levies")]
    rate = horizon.discount_rate
    if rate is None:
        rate = ledger.default("discount_rate", "horizon.discount_rate", NOT_STATED, systems, fabric, facility, *yearly)
    life_s = ledger.default("system_life_s", "systems.life", Message.of("resolve.system_life").text(), systems, fabric)
    facility_life_s = ledger.default(
        "facility_life_s", "facility.life", Message.of("resolve.building_life").text(), facility
    )
    if "payments" in horizon.model_fields_set:
        context.assume_stated("horizon.payments", horizon.payments, "")
    return Economics(
        rate,
        horizon.years,
        life_s / YEAR_S,
        facility_life_s / YEAR_S,
        payments_per_year=PAYMENTS_PER_YEAR[horizon.payments],
        escalation=_escalation(context),
        relays=resolve_relays(context),
    )


def _escalation(context: ResolveContext) -> Escalation:
    """Return the rise of prices by year, each one stated booked as an assumption."""
    stated = context.spec.economics.escalation
    for name, components in RISING.items():
        if name in stated.model_fields_set:
            scope = [(component, "*", "*") for component in components]
            context.assume_stated(f"economics.escalation.{name}", getattr(stated, name), "1", *scope)
    return Escalation(stated.electricity, stated.staff, stated.rent, stated.maintenance)


def with_ownership(context: ResolveContext, money: Economics, offers: Sequence[OfferFacts]) -> Economics:
    """Add the licences of the systems held, what owning costs per year, and the residual value of each kind of system that can be bought."""
    asked = context.spec.economics
    if any(not offer.with_software for offer in offers):
        money = _with_software(context, money)
    bought = sorted({offer.system for offer in offers if offer.how == "buy"})
    own = _stated_curves(context, bought)
    if not bought:
        return money
    if asked.residual is None:
        own |= {system: curve for system in bought if system not in own and (curve := _catalog_curve(context, system))}
    usual = [system for system in bought if system not in own]
    common = _usual_curve(context, usual) if usual else None
    return replace(
        money,
        maintenance=_share(
            context, "maintenance", "maintenance_fraction", Message.of("resolve.yearly_share_of_price").text()
        ),
        levies=_levies(context),
        spare_parts=_share(context, "spare_parts", "spare_parts", Message.of("resolve.share_of_price_in_stock").text()),
        staff_per_w=_yearly(context, "staff_per_power", "W s", Message.of("resolve.building_staff").text()),
        staff_beside_crew_per_w=_beside_crew(context),
        staff_per_system=_yearly(context, "staff_per_system", "s", Message.of("resolve.system_staff").text()),
        residual={system: curve for system in bought if (curve := own.get(system, common)) is not None},
    )


def _beside_crew(context: ResolveContext) -> float:
    """Return the staff by power at sites with a crew, per year and watt: the catalog's unless the spec states that of all sites; 0 without such a site."""
    key, stated = "staff_beside_crew", context.spec.economics.staff_per_power
    crews = [site for site in context.spec.sites if site.crew is not None]
    if not crews:
        return 0.0
    if stated is not None:
        return context.convert(stated) * YEAR_S
    reason = Message.of("owning.staff_beside_crew").text()
    scope = [("staff", site.region, "*") for site in crews]
    return context.convert((context.ledger.default(key, f"economics.{key}", reason, *scope), "USD")) * YEAR_S


def _with_software(context: ResolveContext, money: Economics) -> Economics:
    """Add the licences and the support of a chip and of a system, due wherever it is held."""
    reason = Message.of("resolve.licences").text()
    return replace(
        money,
        software_per_chip=_yearly(context, "software_per_chip", "s", reason),
        software_per_system=_yearly(context, "software_per_system", "s", reason),
    )


def _levies(context: ResolveContext) -> float:
    """Return property tax and insurance per year, as a share of purchase prices; where the spec states none, none count and the plan says so."""
    stated, path = context.spec.economics.levies, "economics.levies"
    if stated is None:
        context.add_fact(Fact(path, Message.of("owning.no_levies")))
        return 0.0
    context.assume_stated(path, stated, "1", ("levies", "*", "*"))
    return stated


def building_premium(context: ResolveContext) -> float:
    """Return the extra cost of a building for AI, as a share of the construction cost; 0 where nothing is bought to stand in it."""
    stated = context.spec.offers
    if stated is not None and all(offer.how != "buy" for offer in stated):
        return 0.0
    return _share(
        context,
        "facility_premium",
        "facility_ai_premium",
        Message.of("resolve.dense_building").text(),
        "facility",
    )


def lead_time_s(context: ResolveContext, path: str) -> float:
    """Return the time until a site that is built new is finished; `path`: of the site."""
    stated = context.spec.economics.facility_lead_time
    if stated is None:
        reason = Message.of("resolve.switchgear").text()
        return context.ledger.default("facility_lead_time_s", f"{path}.building", reason)
    context.assume_stated("economics.facility_lead_time", stated, "s")
    return stated


def _share(context: ResolveContext, key: str, default: str, reason: str, component: str = "") -> float:
    """Return a share of the spec's block `economics`, or the catalog's default, booked as an assumption."""
    stated, path = getattr(context.spec.economics, key), f"economics.{key}"
    scope = component or key.replace("_", " "), "*", "*"
    if stated is None:
        return context.ledger.default(default, path, reason, scope)
    context.assume_stated(path, stated, "1", scope)
    return float(stated)


def _yearly(context: ResolveContext, key: str, per: str, reason: str) -> float:
    """Return an amount of the spec's block `economics` per year [plan currency], or the catalog's default of the same name, booked."""
    stated, path, scope = getattr(context.spec.economics, key), f"economics.{key}", (key.partition("_")[0], "*", "*")
    if stated is None:
        return context.convert((context.ledger.default(key, path, reason, scope), "USD")) * YEAR_S
    context.assume_stated(path, stated[0], f"{stated[1]}/{per}", scope)
    return context.convert(stated) * YEAR_S


def _scopes(systems: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(component, "*", system) for system in systems for component in SCOPE]


def _book_curve(context: ResolveContext, path: str, points: Curve, systems: Sequence[str]) -> Residual:
    """Book a curve that the spec states as an assumption."""
    words = ", ".join(f"{point.fraction:g} at {show(point.age, 's')}" for point in points)
    context.assume_stated(path, words, "1", *_scopes(systems))
    return Residual(tuple(point.age / YEAR_S for point in points), tuple(point.fraction for point in points))


def _stated_curves(context: ResolveContext, bought: Sequence[str]) -> dict[str, Residual]:
    """Return the curves that the spec states of single kinds, by the names of their records."""
    found: dict[str, Residual] = {}
    for name, points in context.spec.economics.residual_of.items():
        path = f"economics.residual_of.{name}"
        record = context.find("systems", name, path)
        if record is None:
            continue
        if record.name not in bought:
            names = ", ".join(bought)
            known = Message.of("resolve.not_bought_known", system=record.name, known=names)
            wrong = known if bought else Message.of("resolve.not_bought", system=record.name)
            context.add_problem(path, wrong.text())
        elif record.name in found:
            context.add_problem(path, Message.of("resolve.system_twice", system=record.name).text())
        else:
            found[record.name] = _book_curve(context, path, points, [record.name])
    return found


def _catalog_curve(context: ResolveContext, system: str) -> Residual | None:
    """Return the catalog's curve of a kind of system; None where it has none of its own."""
    record, points = context.catalog.get("systems", system), []
    for years in AGES_YEARS:
        if record.get(name := f"residual_{years}y") is not None:
            figure = context.ledger.figure("systems", system, name)
            path = f"economics.residual_of.{system}.{years}y"
            context.ledger.assume(path, figure.printed, figure.unit, REASON, *_scopes([system]))
            points.append((float(years), figure.number))
    return _curve(context, f"systems/{system}", points) if points else None


def _usual_curve(context: ResolveContext, systems: Sequence[str]) -> Residual:
    """Return the curve of systems that have none of their own: the spec's, or the catalog's default."""
    path, stated = "economics.residual", context.spec.economics.residual
    if stated is not None:
        return _book_curve(context, path, stated, systems)
    points = [
        (float(years), context.ledger.default(f"residual_{years}y", f"{path}.{years}y", REASON, *_scopes(systems)))
        for years in AGES_YEARS
    ]
    return _curve(context, "defaults", points)


def _curve(context: ResolveContext, place: str, points: Sequence[tuple[float, float]]) -> Residual:
    """Put the points of a curve together; add a problem where values rise with age, or lie beyond 0 and 1."""
    ages, values = zip(*points, strict=True)
    if min(values) < 0 or max(values) > 1 or any(after > before for before, after in pairwise(values)):
        context.add_problem("overrides", Message.of("resolve.residual_curve_expected", system=place).text())
    return Residual(tuple(ages), tuple(values))
