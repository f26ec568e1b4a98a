"""Resolve systems and networks: convert catalog records into the plain figures that the closed forms take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from catalog.errors import MissingFigure
from catalog.exchange import usd_of_one
from catalog.records import Record
from catalog.similar import unlikeness
from catalog.units import HOUR_S
from models.training.constants import GEMM_FAMILIES
from planner.errors import words_of
from planner.facts.exports import export_status
from planner.messages import Message
from planner.problem.facts import NetworkFacts, OfferFacts, SiteFacts, SystemFacts
from planner.resolve.chip_rates import (
    Read,
    attention8_flop_per_s,
    attention_flop_per_s,
    memory_figure,
    peak_rates,
    reached,
)
from planner.resolve.context import ResolveContext
from planner.resolve.ledger import Ledger
from planner.resolve.stack.slices import slice_of, sliced

EARLY_EXIT = "early exit"  # component of cost: what is due on leaving a commitment


def systems_on_offer(context: ResolveContext, offers: Iterable[OfferFacts]) -> dict[str, SystemFacts]:
    """Resolve every system that is on offer, by name; one with a missing figure is left out, with a problem added."""
    systems: dict[str, SystemFacts] = {}
    for offer in offers:
        if offer.system in systems:
            continue
        try:
            systems[offer.system] = system_facts(context.catalog.get("systems", offer.system), context.ledger)
        except MissingFigure as error:
            context.add_problem(f"{offer.path}.system", words_of(error))
    return systems


def assume_unmeasured_families(ledger: Ledger, systems: Mapping[str, SystemFacts]) -> None:
    """Book the training efficiency of chip families without a measured run: that of other families, an assumption."""
    for family in {system.family for system in systems.values()} - set(GEMM_FAMILIES):
        reason = Message.of("resolve.family_unmeasured").text()
        other = ledger.value("constants", "training.generation_other", "value")
        ledger.assume(f"training.generation_{family or 'unknown'}", other, "1", reason)


def system_facts(record: Record, ledger: Ledger) -> SystemFacts:
    """Resolve the figures of a system and its chip, or of a slice of a chip. Raises MissingFigure for one with neither a value nor an allowed default."""
    whole, mine = _whole_facts(record, ledger), slice_of(record, ledger)
    return whole if mine is None else sliced(whole, mine, record, ledger)


def _whole_facts(record: Record, ledger: Ledger) -> SystemFacts:
    """Resolve the figures of a system with whole chips."""
    name, chip = record.name, ledger.catalog.get("chips", record.words("chip"))
    chips = int(ledger.value("systems", name, "chips"))
    read: Read = lambda field: ledger.optional("chips", chip.name, field)
    rates = peak_rates(read)
    attention = attention_flop_per_s(read) or (ledger.value("chips", chip.name, "bf16_flop_per_s"), "bf16")
    if attention[1] != "bf16":
        reason = Message.of("resolve.attention_rate", precision=attention[1]).text()
        ledger.assume(f"chips/{chip.name}/bf16_flop_per_s", attention[0], "FLOP/s", reason)
    scaleup = _first(ledger, ("systems", name, "scaleup_bytes_per_s"), ("chips", chip.name, "scaleup_bytes_per_s"))
    domain = _first(ledger, ("systems", name, "scaleup_chips"), ("chips", chip.name, "scaleup_chips"))
    power = ledger.optional("systems", name, "power_w")
    if power is None:
        factor = ledger.value("defaults", "node_power_factor", "value")
        power = factor * chips * ledger.value("chips", chip.name, "tdp_w")
        reason = Message.of("resolve.power_from_tdp", factor=f"{factor:g}", count=chips).text()
        ledger.assume(f"systems/{name}/power_w", power, "W", reason, ("energy", "*", name), ("facility", "*", name))
    nic = ledger.optional("systems", name, "nic_bytes_per_s")
    if nic is None:
        ledger.assume(
            f"systems/{name}/nic_bytes_per_s",
            0.0,
            "byte/s",
            Message.of("resolve.no_scale_out").text(),
        )
    if not scaleup and chips > 1:
        ledger.assume(
            f"systems/{name}/scaleup_bytes_per_s",
            0.0,
            "byte/s",
            Message.of("resolve.no_scale_up").text(),
        )
    link, host = ledger.optional("chips", chip.name, "host_bytes_per_s"), ledger.optional("systems", name, "host_bytes")
    crowding = None
    if scaleup and chips > 1 and (domain or 1) <= 1:
        crowding = ledger.optional("systems", name, "host_crowding")
        if crowding is None:
            reason = Message.of("memory.host_links").text()
            crowding = ledger.default("host_crowding", f"systems/{name}/host_crowding", reason)
    ledger.optional("systems", name, "nic_ports")  # cited beside the rate of the NICs, which is that of all their ports
    return SystemFacts(
        name=name,
        chip=chip.name,
        family=chip.words("family"),
        vendor=chip.words("vendor") or "",
        chips=chips,
        flop_per_s=rates,
        flop16_per_s=attention[0],
        hbm_bytes=ledger.value("chips", chip.name, memory_figure(chip)),
        hbm_bytes_per_s=ledger.value("chips", chip.name, "hbm_bytes_per_s"),
        scaleup_bytes_per_s=scaleup or nic or 0.0,
        scaleup_chips=int(min(domain or 1, chips)) if scaleup else 1,
        nic_bytes_per_s=nic or 0.0,
        power_w=power,
        idle_w=_idle_share(record, ledger) * power,
        embodied_kg=chips * _embodied_kg(chip.name, name, ledger),
        export_cn=export_status(chip),
        block_scaled=tuple(name.strip() for name in (chip.words("block_scaled") or "").split(",") if name.strip()),
        attention8_flop_per_s=attention8_flop_per_s(chip.words("family") or "", rates.get("fp8")),
        host_bytes_per_s=link or 0.0,
        host_chips=chips if crowding is not None else 1,
        host_crowding=crowding or 0.0,
        host_bytes=(host or 0.0) / chips,
        reached=reached(read),
    )


def _idle_share(record: Record, ledger: Ledger) -> float:
    """Return the idle power of a system over its maximum: measured, or the catalog's default, which a spec can override for all."""
    own, usual = record.get("idle_fraction"), ledger.catalog.get("defaults", "idle_power_fraction").figure("value")
    if own is not None and (own.kind == "override" or usual.kind != "override"):
        return ledger.value("systems", record.name, "idle_fraction")
    path = f"systems/{record.name}/idle_power_fraction"
    reason = Message.of("resolve.idle_share").text()
    return ledger.default("idle_power_fraction", path, reason, ("energy", "*", record.name))


def _embodied_kg(chip: str, system: str, ledger: Ledger) -> float:
    """Return the carbon of making one chip with its share of the system [kg]."""
    known = ledger.optional("chips", chip, "embodied_carbon_kg")
    if known is not None:
        return known
    reason = Message.of("resolve.embodied_carbon_unpublished").text()
    return ledger.default(
        "embodied_carbon_per_chip", f"chips/{chip}/embodied_carbon_kg", reason, ("embodied", "*", system)
    )


def _first(ledger: Ledger, *places: tuple[str, str, str]) -> float | None:
    """Return the first of several figures that the catalog has."""
    return next((value for place in places if (value := ledger.optional(*place)) is not None), None)


def network_ports(record: Record, ledger: Ledger) -> NetworkFacts:
    """Resolve radix, port rate and latencies of a network technology; prices and power are left at 0."""
    radix, port = (ledger.value("fabrics", record.name, field) for field in ("radix", "port_bytes_per_s"))
    start, hop = (ledger.optional("fabrics", record.name, field) for field in ("alpha_s", "hop_latency_s"))
    return NetworkFacts(record.name, int(radix), port, 0.0, 0.0, 0.0, 0.0, 0.0, start, hop)


NETWORKS = ("infiniband", "ethernet")
"""Families of fabrics that are bought in switches and links."""
NO_NETWORKS = {"scale-up": "network.within_systems", "provider": "network.provider"}


def not_bought(context: ResolveContext, record: Record) -> Message | None:
    """Say why a fabric of the catalog is no network between systems that one can buy; None where a mere figure is missing."""
    family = record.words("family") or ""
    if family in ("", *NETWORKS):
        return None
    code = NO_NETWORKS.get(family, "network.no_parts")
    words = {"name": record.name, "family": family}
    fabrics = context.catalog.records("fabrics")
    bought = [other.name for other in fabrics if other.words("family") in NETWORKS and other.get("switch_price")]
    return Message.of(code, **words, known=", ".join(f'"{name}"' for name in bought))


def network_facts(context: ResolveContext, record: Record) -> NetworkFacts:
    """Resolve the parts of a network technology. Raises MissingFigure for a part without a published price."""
    ledger, name = context.ledger, record.name

    def price(field: str) -> float:
        return context.price(ledger.figure("fabrics", name, field))

    return NetworkFacts(
        name=name,
        radix=int(ledger.value("fabrics", name, "radix")),
        port_bytes_per_s=ledger.value("fabrics", name, "port_bytes_per_s"),
        switch_price=price("switch_price"),
        link_price_one_tier=price("link_price_one_tier"),
        link_price_two_tier=price("link_price_two_tier"),
        switch_power_w=ledger.value("fabrics", name, "switch_power_w"),
        optic_power_w=ledger.value("fabrics", name, "optic_power_w"),
        alpha_s=ledger.optional("fabrics", name, "alpha_s"),
        hop_latency_s=ledger.optional("fabrics", name, "hop_latency_s"),
        copper_link_price=price("copper_link_price") if record.get("copper_link_price") else None,
        rack_systems=int(ledger.value("fabrics", name, "rack_systems")) if record.get("rack_systems") else 1,
    )


def least_prices(context: ResolveContext, system: str, how: str, sites: Sequence[SiteFacts]) -> dict[str, float]:
    """Find the lowest published price of a system at each site where it is offered, at the price level that counts."""
    return {
        region: context.price(context.ledger.figure("offers", record.name, "price"))
        for region, record in _cheapest(context, system, how, sites).items()
    }


def least_term_s(context: ResolveContext, system: str, how: str, sites: Sequence[SiteFacts], path: str) -> float:
    """Find the longest term among the lowest published prices of a system at the sites [s], and book it; 0 where none has one."""
    records = _cheapest(context, system, how, sites).values()
    with_term = [record for record in records if record.get("term") is not None]
    if not with_term:
        return 0.0
    longest = max(with_term, key=lambda record: record.value("term"))
    figure = context.ledger.figure("offers", longest.name, "term")
    context.ledger.assume(
        path,
        figure.printed,
        figure.unit,
        Message.of("resolve.term_of_price").text(),
        (EARLY_EXIT, "*", system),
    )
    return figure.number


def early_exit_fee(context: ResolveContext, path: str, system: str, term_s: float) -> float:
    """Return the catalog's share of the rent for the rest of a term that is due on leaving, booked; 0 where there is no term."""
    if term_s <= 0.0:
        return 0.0
    scope = EARLY_EXIT, "*", system
    return context.ledger.default(
        "exit_fee", f"{path}.exit_fee", Message.of("resolve.rest_of_commitment").text(), scope
    )


def price_example(context: ResolveContext, system: str, how: str) -> str:
    """Write a price of the class of a system: per chip the median of the catalog's offers of the system with the most similar chip."""
    prices: dict[str, list[float]] = defaultdict(list)
    for record in context.catalog.records("offers"):
        figure = record.get("price")
        if (
            record.words("how") == how
            and figure is not None
            and (usd := usd_of_one(context.catalog, figure)) is not None
        ):
            prices[record.words("system")].append(figure.number * usd)
    mine, *others = (context.catalog.get("systems", name) for name in (system, *prices))
    chip = context.catalog.get("chips", mine.words("chip"))
    other = min(others, key=lambda of: (unlikeness(chip, context.catalog.get("chips", of.words("chip"))), of.name))
    price = median(prices[other.name]) * mine.value("chips") / other.value("chips")
    rounded = float(f"{price * (1.0 if how == 'buy' else HOUR_S):.2g}")
    price_text = f"{rounded:.12g} USD{'' if how == 'buy' else '/h'}"
    return Message.of("resolve.price_like", price=price_text, system=other.name).text()


def _cheapest(context: ResolveContext, system: str, how: str, sites: Sequence[SiteFacts]) -> dict[str, Record]:
    """Find the offer of the catalog with the lowest price of a system, by region of the sites where there is one."""

    def price(record: Record) -> float:
        return context.price(context.ledger.priced(record).figure("price"))

    offered = context.catalog.records("offers")
    records = [record for record in offered if record.words("system") == system and record.words("how") == how]
    found = {}
    for site in sites:
        fits = [r for r in records if r.words("region") in ("", site.region) and r.words("zone") in ("", *site.zones)]
        if fits:
            found[site.region] = min(fits, key=price)
    return found
