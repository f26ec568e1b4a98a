"""Build fleet options: one type of system, obtained by one offer, at one site, on one size of one fabric, with its cost and power.

Not here: what a fleet option can do (`planner.candidates.search`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from catalog.units import YEAR_S
from models.network.group_links import Plant
from planner.messages import Message
from planner.money.owning import Purchase, total_worth
from planner.problem.economics import Economics
from planner.problem.fabrics import Band, bands, carries_as_much, reach_of, reach_with_others, scaleout_of
from planner.problem.facility import OPEN
from planner.problem.facts import OfferFacts, ResolvedSpec, ScaleOut, SiteFacts, SystemFacts, exportable, hall_refusal
from planner.problem.phases import API, Term
from planner.spec.fabrics import PROVIDER


@dataclass(frozen=True, slots=True)
class FleetOption:
    """One way to hold systems of one type; figures are per system."""

    site: SiteFacts
    offer: OfferFacts
    system: SystemFacts
    fabric: str
    plant: Plant | None  # the largest network of its band; None without one, and for the provider's
    capital: float  # purchase price of the system
    fabric_capital: float  # purchase price of its share of the fabric
    facility_capital: float  # building and power delivery
    rent_per_s: float
    max_it_w: float  # nameplate of the system and its share of the fabric
    idle_it_w: float
    largest: float  # systems that one such fabric can hold
    tenant: str = ""  # whose workloads may use it; empty: all
    staff_per_year: float = 0.0  # pay for a system of our own
    software_per_year: float = 0.0  # licences and support that its price does not include

    @property
    def owned(self) -> bool:
        """Tell whether the systems are bought."""
        return self.offer.how == "buy"

    @property
    def pue(self) -> float:
        """Return the power usage effectiveness of the hall in which it stands: the site's, or its provider's there."""
        return self.site.pue.of(self.system.cooling, self.site.hall if self.owned else OPEN)

    @property
    def idle_at_meter_w(self) -> float:
        """Compute the power of one idle system and its share of the fabric at the meter of the site."""
        return self.idle_it_w * self.pue

    @property
    def scaleout(self) -> ScaleOut:
        """Return what the network between systems gives a chip; of a rented one the latency is unknown, and left out."""
        return scaleout_of(self.plant) if self.owned else ScaleOut(self.system.nic_bytes_per_s)

    @property
    def scaleout_bytes_per_s(self) -> float:
        """Return the scale-out bandwidth of a chip [byte/s]; 0 without a network."""
        return self.scaleout.bytes_per_s

    @property
    def hall_per_s(self) -> float:
        """Compute the rent of the hall for one owned system."""
        return self.site.hall_per_w_s * self.max_it_w if self.owned else 0.0

    @property
    def headroom(self) -> float:
        """Return the share of systems that serving holds in excess, as a spot market may take systems away."""
        return (self.offer.spot.headroom or 0.0) if self.offer.spot else 0.0

    @property
    def renting_per_s(self) -> float:
        """Compute what holding one rented system costs: its rent, and licences beside it."""
        return self.rent_per_s + self.software_per_year / YEAR_S

    @property
    def size(self) -> int | None:
        """Return the number of systems that the network as built can join; None without an owned network."""
        return None if self.plant is None else self.plant.systems

    @property
    def name(self) -> str:
        """Identify the option among the options of its site."""
        return f"{self.site.region}/{self.system.name}/{self.offer.how}/{self.fabric}/{self.size}/{self.tenant}"


def build_fleet_options(problem: ResolvedSpec) -> tuple[list[FleetOption], Counter[str]]:
    """List the fleet options that export control, the sites' lists of systems and their halls allow, and count the dropped ones by reason."""
    fleet_options: list[FleetOption] = []
    dropped: Counter[str] = Counter()
    for site in problem.sites:
        for offer in problem.offers:
            system = problem.systems[offer.system]
            if site.systems and system.name not in site.systems:
                continue
            if site.region not in offer.prices:
                continue
            if not exportable(system, site, problem.spec.limits):
                dropped[Message.of("dropped.export_control").text()] += 1
                continue
            if refusal := hall_refusal(system, site, offer):
                dropped[refusal] += 1
                continue
            if offer.how != "buy":
                fleet_options.append(_rented(problem.economics, site, offer, system))
                continue
            found = [
                _owned(problem.economics, site, offer, system, design, band)
                for design, band in _bands(site, offer, system)
            ]
            kept = _without_dominated(found, reach_of(site, offer, system))
            wider = _of_joint_networks(problem, site, offer, system, kept)
            dropped[Message.of("dropped.dearer_fabric").text()] += len(found) - len(kept)
            fleet_options += kept + wider
    return [
        option if tenant == option.tenant else replace(option, tenant=tenant)
        for tenant in problem.tenants()
        for option in fleet_options
    ], +dropped


def _of_joint_networks(
    problem: ResolvedSpec, site: SiteFacts, offer: OfferFacts, system: SystemFacts, alone: list[FleetOption]
) -> list[FleetOption]:
    """Build the options on networks larger than the systems fill `alone`, which others join; without those that another beats."""
    reach = reach_with_others(problem, site, offer)
    if site.fabric is None or (offer.owned is not None and offer.owned.at_home(site.region)):
        return []
    known = _bands(site, offer, system)
    wider = [
        _owned(problem.economics, site, offer, system, design, band)
        for design in site.topologies
        for band in bands(design, system, site.fabric, reach)
        if not any(name == design and known_band.largest >= band.largest for name, known_band in known)
    ]
    kept = _without_dominated(alone + wider, reach) if wider else []
    return [option for option in wider if any(option is each for each in kept)]


def _software(money: Economics, offer: OfferFacts, system: SystemFacts) -> float:
    """Compute what licences and support of one system cost per year beside its price; an API's are the provider's."""
    return 0.0 if offer.with_software or offer.how == API else money.software_of(system.chips)


def _rented(money: Economics, site: SiteFacts, offer: OfferFacts, system: SystemFacts) -> FleetOption:
    """Build a rented option: rent includes building, network and electricity, but no licences; its energy still counts for carbon."""
    return FleetOption(
        site=site, offer=offer, system=system, fabric=PROVIDER, plant=None,
        capital=0.0, fabric_capital=0.0, facility_capital=0.0, rent_per_s=offer.prices[site.region],
        max_it_w=system.power_w, idle_it_w=system.idle_w, largest=math.inf, software_per_year=_software(money, offer, system),
    )  # fmt: skip


def _bands(site: SiteFacts, offer: OfferFacts, system: SystemFacts) -> list[tuple[str, Band]]:
    """List (fabric design, band of sizes) up to what the supply and the site's power could fill."""
    assert site.fabric is not None
    reach = reach_of(site, offer, system)
    owned = offer.owned
    stands_on = owned.topology if owned is not None and owned.at_home(site.region) else ""
    designs = [stands_on] if stands_on else site.topologies
    return [(design, band) for design in designs for band in bands(design, system, site.fabric, reach)]


def _owned(
    money: Economics, site: SiteFacts, offer: OfferFacts, system: SystemFacts, design: str, band: Band
) -> FleetOption:
    """Build an owned option, with its share of the fabric and of the building."""
    most = system.power_w + band.power_w
    sunk = offer.owned is not None and offer.owned.at_home(site.region)  # network and building are there
    building = 0.0 if sunk else site.facility_cost_per_w * (1 + site.facility_premium) * most
    return FleetOption(
        site=site, offer=offer, system=system, fabric=design, plant=band.plant,
        capital=offer.prices[site.region], fabric_capital=0.0 if sunk else band.price, facility_capital=building, rent_per_s=0.0,
        max_it_w=most, idle_it_w=system.idle_w + band.power_w, largest=band.largest,
        staff_per_year=money.staff_of(most, site.hall_per_w_s == 0, site.crew_per_s > 0), software_per_year=_software(money, offer, system),
    )  # fmt: skip


def _without_dominated(fleet_options: list[FleetOption], reach: float) -> list[FleetOption]:
    """Drop a network when another one for the same system and offer costs and draws no more, and carries and holds no less.

    A larger network is no loss, since each system pays its share. What a network holds beyond `reach` is no gain.
    """

    def beats(i: int, j: int) -> bool:
        """Tell whether network i makes j superfluous; of equal ones the first stays."""
        a, b = fleet_options[i], fleet_options[j]
        at_least = (
            a.fabric_capital <= b.fabric_capital and a.idle_it_w <= b.idle_it_w and a.largest >= min(b.largest, reach)
        )
        return at_least and carries_as_much(a.plant, b.plant, reach) and (i < j or not beats(j, i))

    return [
        option
        for j, option in enumerate(fleet_options)
        if not any(beats(i, j) for i in range(len(fleet_options)) if i != j)
    ]


def purchase_of(money: Economics, option: FleetOption, term: Term) -> Purchase:
    """Describe the purchase of one system: prices, present values over the time held, and payments. Systems owned already have their parts."""
    charges = term.charges
    return Purchase(
        price=term.price,
        fabric=option.fabric_capital,
        building=option.facility_capital,
        staff=option.staff_per_year,
        software=option.software_per_year,
        system=charges.system,
        share=charges.share,
        upkeep=charges.upkeep,
        facility=charges.facility,
        spare_parts=charges.spare_parts,
        per_year=charges.per_year,
        staffed=charges.staff,
        paid=charges.paid,
        parts=0.0 if option.offer.owned is not None else money.spare_parts,
        maintenance=money.maintenance,
        levies=money.levies,
        annuity=money.building_per_year,
    )


def charged(money: Economics, option: FleetOption, term: Term) -> float:
    """Compute the present value of owning one system, without the hall and the energy; 0 for a rented one."""
    return float(total_worth(purchase_of(money, option, term))) if option.owned else 0.0
