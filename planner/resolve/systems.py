"""Catalog records of systems and networks as the plain figures that the closed forms take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catalog.records import Record
from planner.problem.facts import NetworkFacts, SiteFacts, SystemFacts
from planner.resolve.chip_rates import peak_rates
from planner.resolve.ledger import Ledger
from planner.spec.model import PRECISIONS

Money = Callable[[float, str], float]


def system_facts(record: Record, ledger: Ledger) -> SystemFacts:
    """Figures of a system and its chip. Raises MissingFigure for what has neither a figure nor an allowed default."""
    name, chip = record.name, ledger.catalog.get("chips", record.text["chip"])
    chips = int(ledger.value("systems", name, "chips"))
    rates = peak_rates(lambda field: ledger.optional("chips", chip.name, field), PRECISIONS)
    if "bf16" not in rates:  # attention and the head run at 16 bit whatever the weights are
        ledger.value("chips", chip.name, "bf16_flop_per_s")  # raises: the user is told which figure to state
    scaleup = _first(ledger, ("systems", name, "scaleup_bytes_per_s"), ("chips", chip.name, "scaleup_bytes_per_s"))
    domain = _first(ledger, ("systems", name, "scaleup_chips"), ("chips", chip.name, "scaleup_chips"))
    power = ledger.optional("systems", name, "power_w")
    if power is None:
        factor = ledger.figure("defaults", "node_power_factor", "value").value
        power = factor * chips * ledger.value("chips", chip.name, "tdp_w")
        reason = f"no power is published for this system: {factor:g} x {chips} chips x TDP"
        ledger.assume(f"systems/{name}/power_w", power, "W", reason, ("energy", "*", name), ("facility", "*", name))
    nic = ledger.optional("systems", name, "nic_bytes_per_s")
    if nic is None:
        ledger.assume(
            f"systems/{name}/nic_bytes_per_s",
            0.0,
            "byte/s",
            "no network out of this system is published: nothing spans two of them",
        )
    if not scaleup and chips > 1:
        ledger.assume(
            f"systems/{name}/scaleup_bytes_per_s",
            0.0,
            "byte/s",
            "no link between its chips is published: they exchange over the network",
        )
    idle = ledger.default(
        "idle_power_fraction",
        f"systems/{name}/idle_power_fraction",
        "idle power as a share of the maximum",
        ("energy", "*", name),
    )
    return SystemFacts(
        name=name,
        chip=chip.name,
        family=chip.text.get("family", ""),
        chips=chips,
        flop_per_s=rates,
        hbm_bytes=ledger.value("chips", chip.name, "hbm_bytes"),
        hbm_bytes_per_s=ledger.value("chips", chip.name, "hbm_bytes_per_s"),
        scaleup_bytes_per_s=scaleup or nic or 0.0,
        scaleup_chips=int(min(domain or 1, chips)) if scaleup else 1,
        nic_bytes_per_s=nic or 0.0,
        nic_ports=int(ledger.optional("systems", name, "nic_ports") or 0),
        power_w=power,
        idle_w=idle * power,
        embodied_kg=chips * _embodied_kg(chip.name, name, ledger),
        export_cn=chip.text.get("export_cn", "unknown"),
    )


def _embodied_kg(chip: str, system: str, ledger: Ledger) -> float:
    """Carbon of making one chip with its share of the system [kg]."""
    known = ledger.optional("chips", chip, "embodied_carbon_kg")
    if known is not None:
        return known
    reason = "no embodied carbon is published for this chip"
    return ledger.default(
        "embodied_carbon_per_chip", f"chips/{chip}/embodied_carbon_kg", reason, ("embodied", "*", system)
    )


def _first(ledger: Ledger, *places: tuple[str, str, str]) -> float | None:
    return next((value for place in places if (value := ledger.optional(*place)) is not None), None)


def network_ports(record: Record, ledger: Ledger) -> NetworkFacts:
    """What a network technology joins and how fast, its prices and power left out."""
    radix, port = (ledger.value("fabrics", record.name, field) for field in ("radix", "port_bytes_per_s"))
    start, hop = (ledger.optional("fabrics", record.name, field) for field in ("alpha_s", "hop_latency_s"))
    return NetworkFacts(record.name, int(radix), port, 0.0, 0.0, 0.0, 0.0, 0.0, start, hop)


def network_facts(record: Record, ledger: Ledger, convert: Money) -> NetworkFacts:
    """Parts of a network technology; a part without a published price raises MissingFigure."""
    name = record.name

    def figure(field: str) -> float:
        return ledger.value("fabrics", name, field)

    def time(field: str) -> float | None:
        return ledger.optional("fabrics", name, field)

    def price(field: str) -> float:
        found = ledger.figure("fabrics", name, field)
        return convert(found.value, found.unit[:3])

    return NetworkFacts(
        name=name,
        radix=int(figure("radix")),
        port_bytes_per_s=figure("port_bytes_per_s"),
        switch_price=price("switch_price"),
        link_price_one_tier=price("link_price_one_tier"),
        link_price_two_tier=price("link_price_two_tier"),
        switch_power_w=figure("switch_power_w"),
        optic_power_w=figure("optic_power_w"),
        alpha_s=time("alpha_s"),
        hop_latency_s=time("hop_latency_s"),
        copper_link_price=price("copper_link_price") if record.get("copper_link_price") else None,
        rack_systems=int(figure("rack_systems")) if record.get("rack_systems") else 1,
    )


def least_prices(ledger: Ledger, system: str, how: str, sites: Sequence[SiteFacts], convert: Money) -> dict[str, float]:
    """The least published price of the system at each site where it is offered, each at the figure that counts."""

    def price(record: Record) -> float:
        figure = ledger.priced(record).figure("price")
        return convert(figure.number, figure.unit[:3])

    records = [r for r in ledger.catalog.records("offers") if r.text["system"] == system and r.text["how"] == how]
    prices = {}
    for site in sites:
        fits = [r for r in records if r.words("region") in ("", site.region) and r.words("zone") in ("", *site.zones)]
        if fits:
            record = min(fits, key=price)
            figure = ledger.figure("offers", record.name, "price")
            prices[site.region] = convert(figure.number, figure.unit[:3])
    return prices
