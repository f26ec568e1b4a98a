"""Lots: systems of one kind obtained one way at one site on one fabric, with what one of them costs and draws.

Not here: what a lot can do (`planner.candidates`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from models import fabrics
from planner.problem import OfferFacts, Problem, SiteFacts, SystemFacts, exportable

PROVIDER = "provider"  # the fabric of a rented system comes with it
TIERS = {"scale-up": 0, "rail-optimised": 1, "fat-tree-1:1": 2, "fat-tree-2:1": 2}


@dataclass(frozen=True, slots=True)
class Lot:
    """`capital` and `fabric_capital`: purchase prices of one system and of its share of the fabric."""

    site: SiteFacts
    offer: OfferFacts
    system: SystemFacts
    fabric: str
    scaleout_bytes_per_s: float  # per chip, what the fabric leaves of the NIC between systems; 0 without a fabric
    capital: float
    fabric_capital: float
    facility_capital: float
    rent_per_s: float
    max_it_w: float  # nameplate of one system and its share of the fabric
    idle_it_w: float
    largest: float  # systems that one such fabric can hold

    @property
    def owned(self) -> bool:
        return self.offer.how == "buy"

    @property
    def name(self) -> str:
        return f"{self.site.region}/{self.system.name}/{self.offer.how}/{self.fabric}"


def build_lots(problem: Problem) -> tuple[list[Lot], Counter[str]]:
    """Every lot that export control and the sites' lists allow, and counts of what was dropped by reason."""
    lots: list[Lot] = []
    dropped: Counter[str] = Counter()
    for site in problem.sites:
        for offer in problem.offers:
            system = problem.systems[offer.system]
            if site.systems and system.name not in site.systems:
                continue
            if site.region not in offer.prices:
                continue
            if not exportable(system, site, problem.spec.limits):
                dropped["system barred by export control"] += 1
                continue
            found = [_owned(site, offer, system, design) for design in site.fabrics] if offer.how == "buy" else [_rented(site, offer, system)]
            kept = _not_dominated([lot for lot in found if lot is not None])
            dropped["fabric dearer than one that carries as much"] += len([lot for lot in found if lot]) - len(kept)
            lots += kept
    return lots, +dropped


def _rented(site: SiteFacts, offer: OfferFacts, system: SystemFacts) -> Lot:
    """Building, network and electricity are in the rent; the energy is still counted for carbon."""
    return Lot(
        site=site, offer=offer, system=system, fabric=PROVIDER, scaleout_bytes_per_s=system.nic_bytes_per_s,
        capital=0.0, fabric_capital=0.0, facility_capital=0.0, rent_per_s=offer.prices[site.region],
        max_it_w=system.power_w, idle_it_w=system.idle_w, largest=math.inf,
    )  # fmt: skip


def _owned(site: SiteFacts, offer: OfferFacts, system: SystemFacts, design: str) -> Lot | None:
    """None for a scale-out fabric where the system has no ports."""
    network, tiers = site.network, TIERS[design]
    # a chip with a faster or slower NIC than the network's port takes ports in proportion
    ports = math.ceil(system.chips * system.nic_bytes_per_s / network.port_bytes_per_s) if tiers else 0
    if tiers and not ports:
        return None
    switches, between = fabrics.parts_per_port(design, tiers, network.radix)
    cables = network.link_price_one_tier + (network.link_price_two_tier - network.link_price_one_tier) * between
    price = ports * (switches * network.switch_price + cables)
    power = ports * (switches * network.switch_power_w + 2 * (1 + between) * network.optic_power_w)
    most = system.power_w + power
    return Lot(
        site=site, offer=offer, system=system, fabric=design,
        scaleout_bytes_per_s=system.nic_bytes_per_s * fabrics.bisection_fraction(design, tiers),
        capital=offer.prices[site.region], fabric_capital=float(price), facility_capital=site.facility_cost_per_w * most, rent_per_s=0.0,
        max_it_w=float(most), idle_it_w=float(system.idle_w + power),
        largest=float(fabrics.largest_systems(design, ports, network.radix, tiers)) if tiers else math.inf,
    )  # fmt: skip


def _not_dominated(lots: list[Lot]) -> list[Lot]:
    """Drop a fabric when another costs and draws no more and carries and holds no less (exact: same system and way)."""

    def beats(a: Lot, b: Lot) -> bool:
        at_least = (
            a.fabric_capital <= b.fabric_capital and a.idle_it_w <= b.idle_it_w
            and a.scaleout_bytes_per_s >= b.scaleout_bytes_per_s and a.largest >= b.largest
        )  # fmt: skip
        return at_least and (a != b) and (lots.index(a) < lots.index(b) or _figures(a) != _figures(b))

    return [lot for lot in lots if not any(beats(other, lot) for other in lots)]


def _figures(lot: Lot) -> tuple[float, ...]:
    return lot.fabric_capital, lot.idle_it_w, lot.scaleout_bytes_per_s, lot.largest
