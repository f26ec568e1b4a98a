"""Resolve the systems that are rented already, as offers of all of them under a contract with an end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from catalog.units import DAY_S
from planner.messages import Message
from planner.problem.facts import OfferFacts, SiteFacts, SystemFacts, exportable
from planner.problem.owned import RentedFacts
from planner.problem.phases import seconds_from
from planner.resolve.context import ResolveContext
from planner.resolve.systems import EARLY_EXIT, early_exit_fee
from planner.spec.economics import RentedSystems
from planner.spec.model import Limits
from planner.spec.quantities import offer_price


def resolve_rented(context: ResolveContext, sites: Sequence[SiteFacts]) -> list[OfferFacts]:
    """Resolve each entry of `rented` as a reservation of its count whose term is the rest of the contract."""
    found = []
    for i, entry in enumerate(context.spec.rented):
        path = f"rented[{i}]"
        system = context.find("systems", entry.system, f"{path}.system")
        region = context.find("regions", entry.region, f"{path}.region")
        if system is None or region is None:
            continue
        home = next((site for site in sites if site.region == region.name), None)
        if home is None:
            context.add_problem(f"{path}.region", Message.of("resolve.not_a_site").text())
            continue
        if home.from_s > 0:
            context.add_problem(f"{path}.region", Message.of("rented.before_site", region=home.region).text())
        if home.systems and system.name not in home.systems:
            words = Message.of("rented.not_at_site", system=system.name, site=home.path)
            context.add_problem(f"{path}.system", words.text())
        chips = system.get("chips")
        found.append(_offer(context, path, entry, system.name, 1.0 if chips is None else chips.number, home))
    return found


def _offer(
    context: ResolveContext, path: str, entry: RentedSystems, system: str, chips: float, home: SiteFacts
) -> OfferFacts:  # fmt: skip
    """Resolve one entry."""
    scope, fee_scope = ("rent", "*", system), (EARLY_EXIT, "*", system)
    until_s = seconds_from(context.spec.horizon.start, entry.until)
    if until_s <= 0:
        start = context.spec.horizon.start
        context.add_problem(f"{path}.until", Message.of("rented.over_at_start", start=str(start)).text())
    price = context.convert(offer_price(entry.price, False, chips), path=f"{path}.price")
    context.assume_price(f"{path}.price", "reserved", entry.price, "", scope)
    extension_price = price if entry.extendable else None
    if entry.extension_price is not None and not entry.extendable:
        context.add_problem(f"{path}.extension_price", Message.of("rented.not_extendable").text())
    elif entry.extension_price is not None:
        where = f"{path}.extension_price"
        extension_price = context.convert(offer_price(entry.extension_price, False, chips), path=where)
        context.assume_price(where, "reserved", entry.extension_price, "", scope)
    if isinstance(entry.until, date):
        context.ledger.assume(
            f"{path}.until", entry.until.isoformat(), "-", Message.of("rented.contract_ends").text(), scope
        )
    else:
        context.assume_stated(f"{path}.until", entry.until, "s", scope)
    notice_s = max(float(round(entry.notice)), DAY_S)
    if notice_s > entry.notice:
        context.ledger.assume(f"{path}.notice", notice_s, "s", Message.of("rented.a_day_at_least").text(), scope)
    else:
        context.assume_stated(f"{path}.notice", entry.notice, "s", scope)
    if entry.exit_fee is None:
        fee = early_exit_fee(context, path, system, until_s)
    else:
        fee = entry.exit_fee
        context.assume_stated(f"{path}.exit_fee", fee, "1", fee_scope)
    return OfferFacts(
        path, system, "reserved", {home.region: price}, float(entry.count), term_s=until_s, exit_fee=fee,
        with_software=bool(entry.includes), rented=RentedFacts(until_s, notice_s, extension_price),
    )  # fmt: skip


def check_rented(
    context: ResolveContext, offers: Sequence[OfferFacts], sites: Sequence[SiteFacts],
    systems: Mapping[str, SystemFacts], limits: Limits,
) -> None:  # fmt: skip
    """Refuse systems that are said to be rented where export control bars them."""
    for offer in offers:
        if offer.rented is None or offer.system not in systems:
            continue
        for site in sites:
            if site.region in offer.prices and not exportable(systems[offer.system], site, limits):
                words = Message.of("rented.barred", system=offer.system, region=site.region)
                context.add_problem(f"{offer.path}.system", words.text())
