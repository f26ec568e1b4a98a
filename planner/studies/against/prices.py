"""Hold prices of systems and the power drawn against the rows of a CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.exchange import per_usd
from catalog.lookup import Catalog
from catalog.units import HOUR_S, KILO, UnitError, parse_money
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.problem.facts import OfferFacts, ResolvedSpec
from planner.report.why.oldest import BUY, FOLLOWS
from planner.report.words import how_words
from planner.spec.document import Edits, at
from planner.studies.against.assumption import POWER, PRICE, Assumption
from planner.studies.against.figures_file import Figures, latest, mean_of
from planner.studies.base.varied import price_edits

METERED = ("demand charge", "ppa", "battery")
"""Components of a site whose electricity is a decision: its cost does not move in proportion to the power drawn."""


def of_prices(plan: Plan, problem: ResolvedSpec, catalog: Catalog, rows: Sequence[Figures]) -> list[Assumption]:
    """Hold the price of each way to obtain a system against the rows of its latest date. Raises SpecError for one that the plan does not offer, and for a currency without a rate."""
    stated = [row for row in rows if "price" in row.numbers]
    keys = dict.fromkeys((row.text("system"), row.text("how"), row.text("site")) for row in stated)
    found, problems = [], []
    for system, how, site in keys:
        here = latest([r for r in stated if (r.text("system"), r.text("how"), r.text("site")) == (system, how, site)])
        offer = _offer(plan, problem, system, how, site)
        rates = {code: _per_usd(problem, catalog, code) for code in {row.text("currency") for row in here} - {""}}
        unknown = sorted(code for code, rate in rates.items() if rate is None)
        if offer is None:
            problems.append(Issue("price", Message.of("actual.no_offer", system=system, how=how).text()))
        elif unknown:
            problems.append(Issue("currency", Message.of("actual.no_rate", currency=unknown[0]).text()))
        else:
            found.append(_price(plan, problem, offer, site, [_converted(row, rates, problem) for row in here]))
    if problems:
        raise SpecError(problems)
    return found


def _offer(plan: Plan, problem: ResolvedSpec, system: str, how: str, site: str) -> OfferFacts | None:
    """Find the offer of a system that the plan holds, else the first that the spec makes."""
    held = {row["offer"] for row in plan.fleet}
    offers = [
        offer
        for offer in problem.offers
        if (offer.system, offer.how) == (system, how)
        and offer.owned is None
        and offer.rented is None
        and not offer.stated_at
        and offer.prices
        and site in ("", *offer.prices)
    ]
    return min(offers, key=lambda offer: offer.path not in held, default=None)


def _price(plan: Plan, problem: ResolvedSpec, offer: OfferFacts, site: str, rows: Sequence[Figures]) -> Assumption:
    """Hold one price: per system where it is bought, per system and hour where it is rented."""
    currency = problem.spec.currency
    size, unit = (1.0, currency) if offer.how == BUY else (HOUR_S, f"{currency}/h")
    held = {row["site"] for row in plan.fleet if row["offer"] == offer.path}
    regions = [site] if site else [region for region in offer.prices if region in held] or list(offer.prices)
    planned = size * sum(offer.prices[region] for region in regions) / len(regions)
    actual = mean_of(rows, "price") or planned
    low, high = (None if side is None else side * planned for side in _range(plan, problem, offer))
    of = f"{offer.system}, {how_words(offer.how)}" + (f", {site}" if site else "")
    return Assumption(
        PRICE, of, planned, actual, unit, low, high, moved=_following(plan, offer, site), restated=_priced(problem, offer, actual / planned)
    )  # fmt: skip


def _per_usd(problem: ResolvedSpec, catalog: Catalog, code: str) -> float | None:
    """Return units of a currency per USD: of the spec, else of the catalog; None where neither knows it."""
    stated = problem.spec.exchange
    return stated[code].per_usd if code in stated else problem.per_usd.get(code, per_usd(catalog, code))


def _converted(row: Figures, rates: Mapping[str, float | None], problem: ResolvedSpec) -> Figures:
    """Return a row with its price in the currency of the plan."""
    rate = rates.get(row.text("currency")) or problem.per_usd[problem.spec.currency]
    return Figures(row.line, row.texts, {"price": row.numbers["price"] * problem.per_usd[problem.spec.currency] / rate})


def _following(plan: Plan, offer: OfferFacts, site: str) -> float:
    """Add up the part of the plan's cost that moves with a price while the fleet stays."""
    components = FOLLOWS[BUY if offer.how == BUY else ""]
    return sum(
        line["amount"]
        for line in plan.cost_lines
        if (line["system"], line["how"]) == (offer.system, offer.how)
        and line["component"] in components
        and site in ("", line["site"])
    )


def _range(plan: Plan, problem: ResolvedSpec, offer: OfferFacts) -> tuple[float | None, float | None]:
    """Return low and high of a price over its typical one: of the catalog, or stated in the spec."""
    if not offer.path.startswith("offers["):
        behind = [each for each in problem.citations if _is_price(each.path, offer)]
        near = [each.figure for each in behind if each.figure.number]
        lows, highs = ([getattr(f, side) / f.number for f in near if getattr(f, side)] for side in ("low", "high"))
        return min(lows, default=None), max(highs, default=None)
    path = f"{offer.path}.price"
    stated = ((plan.document["spec"].get("prices") or {}).get("ranges") or {}).get(path) or {}
    typical = _amount(at(plan.document["spec"], path), offer.how)
    bounds = [_amount(stated.get(side), offer.how) for side in ("low", "high")]
    low, high = (bound / typical if bound and typical else None for bound in bounds)
    return low, high


def _amount(text: Any, how: str) -> float | None:
    try:
        return parse_money(str(text), "" if how == BUY else "s")[0]
    except (UnitError, KeyError):
        return None


def _is_price(path: str, offer: OfferFacts) -> bool:
    """Tell whether a figure of the catalog is a price of a way to obtain a system."""
    return path.startswith(f"offers/{offer.system}, {offer.how}") and path.endswith("/price")


def _priced(problem: ResolvedSpec, offer: OfferFacts, factor: float) -> Any:
    """Multiply a price: of the spec's offer, or the catalog's by overrides."""

    def restated(document: Mapping[str, Any]) -> Edits:
        if offer.path.startswith("offers[") and at(document, f"{offer.path}.price") is not None:
            edits = price_edits(document, offer.path, factor)
            ranges = dict((document.get("prices") or {}).get("ranges") or {})
            if ranges.pop(f"{offer.path}.price", None) is not None:
                edits = (*edits, ("prices.ranges", ranges))
            return edits
        behind = [each for each in problem.citations if _is_price(each.path, offer)]
        return overridden(document, {c.path: (c.figure.number * factor, c.figure.unit) for c in behind})

    return restated


def overridden(document: Mapping[str, Any], values: Mapping[str, tuple[float, str]]) -> Edits:
    """Put figures of the catalog into the spec's `overrides`, by path: (value, unit)."""
    note = Message.of("actual.note").text()
    own = {path: {"value": f"{value:.12g} {unit}", "note": note} for path, (value, unit) in values.items()}
    return (("overrides", {**(document.get("overrides") or {}), **own}),)


def of_power(plan: Plan, problem: ResolvedSpec, rows: Sequence[Figures]) -> list[Assumption]:
    """Hold the mean power that all systems of a site, or of the plan, draw at the meter against rows."""
    return list(_powers(plan, problem, [row for row in rows if "power_kw" in row.numbers]))


def _powers(plan: Plan, problem: ResolvedSpec, rows: Sequence[Figures]) -> Iterator[Assumption]:
    for site in dict.fromkeys(row.text("site") for row in rows):
        slots = [slot for slot in plan.schedule if site in ("", slot["site"])]
        span = sum({slot["slot"]: slot["seconds"] for slot in slots}.values())
        planned = sum(slot["power_w"] * slot["seconds"] for slot in slots) / span if span else 0.0
        if planned <= 0.0:
            continue
        actual = KILO * (mean_of([row for row in rows if row.text("site") == site], "power_kw") or 0.0)
        lines = [line for line in plan.cost_lines if site in ("", line["site"])]
        decided = any(line["component"] in METERED and line["amount"] for line in lines)
        moved = None if decided else sum(line["amount"] for line in lines if line["component"] == "energy")
        systems = {row["system"] for row in plan.fleet if site in ("", row["site"])} & problem.systems.keys()
        drawn = {f"systems/{name}/power_w": problem.systems[name].power_w for name in sorted(systems)}
        yield Assumption(
            POWER, site or plan.document["name"], planned, actual, "W", moved=moved, restated=_drawing(drawn, actual / planned)
        )  # fmt: skip


def _drawing(drawn: Mapping[str, float], factor: float) -> Any:
    """State nameplates times a factor, of which idle power is a share."""
    return lambda document: overridden(document, {path: (watts * factor, "W") for path, watts in drawn.items()})
