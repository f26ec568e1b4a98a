"""Take the catalog's ways to obtain systems where a spec has no `offers`; what cannot be planned is left out and counted.

A system that the spec names (at a site, by an override of its figures, or as a record of its own) is never left out: what it lacks is a
problem of the spec.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from catalog.errors import MissingFigure
from planner.facts import Fact
from planner.facts.clouds import cloud_bought
from planner.facts.left_out import without_figure, without_price
from planner.facts.prices import BUY
from planner.messages import Message
from planner.problem.facility import OPEN
from planner.problem.facts import OfferFacts, SiteFacts
from planner.resolve.context import ResolveContext
from planner.resolve.facility import rack_facts
from planner.resolve.ledger import Ledger
from planner.resolve.money.hourly import with_hourly_terms
from planner.resolve.systems import early_exit_fee, least_prices, least_term_s, price_example, system_facts

PATH = "offers"
SPOT = "spot"


def catalog_offers(context: ResolveContext, sites: Sequence[SiteFacts]) -> list[OfferFacts]:
    """Take all ways but the spot market to obtain the systems that the sites name, or all systems where no site names any.

    A way to obtain a system that lacks a figure is left out with a note, systems without a price with one note for all. Where nothing is
    left, the notes are a problem of the spec.
    """
    at_sites = {name for site in sites for name in site.systems}
    named = at_sites | _with_own_figures(context)
    records = context.catalog.records("offers")
    for record in records:
        sold = context.catalog.get("systems", record.words("system"))
        if record.words("how") == BUY and (rents_only := cloud_bought(f"{PATH}/{record.name}/how", sold)) is not None:
            context.add_fact(rents_only)
    ways = dict.fromkeys((record.words("system"), record.words("how")) for record in records)
    offers: list[OfferFacts] = []
    left_out: list[Fact] = []
    for system, how in ways:
        if how == SPOT or (at_sites and system not in at_sites):
            continue
        error = None if system in named else _missing(context, system, how, sites)
        if error is not None:
            left_out.append(without_figure(f"{PATH}/{system}/{how}", system, how, error.path))
        elif prices := least_prices(context, system, how, sites):
            offers.append(_offer(context, sites, system, how, prices))
    if at_sites:
        _refuse_without_price(context, sites, offers)
    else:
        known = {offer.system for offer in offers} | {str(note.message.arguments["system"]) for note in left_out}
        if count := len(set(context.catalog.names("systems")) - known):
            left_out.append(without_price(PATH, count))
    held = [*context.spec.owned, *context.spec.rented]
    if offers or at_sites or held or context.spec.apis:
        context.notes.extend(left_out)
    elif len(sites) == len(context.spec.sites):  # else a site that is wrong may be what leaves nothing
        reasons = "; ".join(note.message.text() for note in left_out)
        context.add_problem(PATH, Message.of("offers.nothing_left", reasons=reasons).text())
    return offers


def _with_own_figures(context: ResolveContext) -> set[str]:
    """List the systems with figures of the spec's own: of themselves or of their chips, as overrides or as records."""
    spec, catalog = context.spec, context.catalog
    stated = [(path.split("/", 1)[0], path.split("/", 1)[1].rpartition("/")[0]) for path in spec.overrides]
    stated += [(str(kind), str(record["name"])) for kind, records in spec.catalog.items() for record in records]
    chips = {catalog.get("chips", name).name for kind, name in stated if kind == "chips"}
    own = {catalog.get("systems", name).name for kind, name in stated if kind == "systems"}
    return own | {record.name for record in catalog.records("systems") if record.words("chip") in chips}


def _missing(context: ResolveContext, system: str, how: str, sites: Sequence[SiteFacts]) -> MissingFigure | None:
    """Return the figure without which a way to obtain a system cannot be planned; nothing of the trial is booked."""
    ledger = Ledger(context.catalog, context.ledger.prices)
    record, limited = context.catalog.get("systems", system), {site.region for site in sites if site.hall != OPEN}
    try:
        power_w = system_facts(record, ledger).power_w
        if how == "buy" and limited & set(
            least_prices(replace(context, ledger=ledger, problems=[]), system, how, sites)
        ):
            rack_facts(record, power_w, ledger)
    except MissingFigure as error:
        return error
    return None


def _offer(
    context: ResolveContext, sites: Sequence[SiteFacts], system: str, how: str, prices: Mapping[str, float]
) -> OfferFacts:
    path = f"{PATH}/{system}/{how}"
    term_s = least_term_s(context, system, how, sites, f"{path}/term")
    facts = OfferFacts(
        path, system, how, prices, math.inf, term_s=term_s, exit_fee=early_exit_fee(context, path, system, term_s)
    )
    return with_hourly_terms(context, facts)


def _refuse_without_price(context: ResolveContext, sites: Sequence[SiteFacts], offers: Sequence[OfferFacts]) -> None:
    """Add a problem for each system that a site names and that has no price there, unless it is owned or rented already."""
    named = [*(entry.system for entry in context.spec.owned), *(entry.system for entry in context.spec.rented)]
    held = {context.catalog.get("systems", name).name for name in named if context.catalog.has("systems", name)}
    for site in sites:
        priced = {offer.system for offer in offers if site.region in offer.prices} | held
        for i, system in enumerate(site.systems):
            if system not in priced:
                example = price_example(context, system, "buy")
                message = Message.of("offers.named_without_price", system=system, example=example)
                context.add_problem(f"{site.path}.systems[{i}]", message.text())
