"""Scale-out networks of our own systems: the sizes of a design, the share of one that a system pays, and the bandwidth that it gives.

Candidates and verification both build their networks here, from the closed forms of `models.network.designs`. The program chooses
which network a site gets (`planner.candidates.fleet_options`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from catalog.units import MICRO
from models.arrays import Floats
from models.network.designs import (
    TREES,
    Design,
    Network,
    largest_network,
    latency_s,
    network,
    network_power_w,
)
from models.network.direct import balanced_dragonfly
from models.network.group_links import Plant, group_links, has_full_rate
from models.network.trees import MAX_TIERS, leaf_ports, rows_reach
from planner.problem.facts import NO_NETWORK, NetworkFacts, OfferFacts, ResolvedSpec, ScaleOut, SiteFacts, SystemFacts
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Serving

SPREAD = (2, 4, 8, 18)  # systems that one replica in serving may stand on
PATTERNS = ("ring", "all-to-all")
UNNOTICED_LATENCY_S = 2 * MICRO  # a tenth of the start-up of an exchange between experts
MOST_SIZES = 4096  # sizes in a band that are priced one by one, beside the largest


@dataclass(frozen=True, slots=True)
class Band:
    """The sizes of one design with the same structure: trees of as many tiers, a torus up to a size. `plant` is the largest of them."""

    plant: Plant | None  # None without a network
    price: float  # a system's share
    power_w: float
    largest: float  # systems


def ports_of(system: SystemFacts, parts: NetworkFacts) -> int:
    """Return the network ports that a system takes, in proportion to the rate of its NICs over that of a port."""
    return math.ceil(system.chips * system.nic_bytes_per_s / parts.port_bytes_per_s)


def plant_of(design: str, systems: int, system: SystemFacts, parts: NetworkFacts) -> Plant | None:
    """Build the plant of `systems` systems on a design; None without a network, or where the system has no ports."""
    ports, kind = ports_of(system, parts), Design.named(design)
    if kind.kind == "scale-up" or not ports:
        return None
    rate = parts.used_share * system.chips * system.nic_bytes_per_s / ports
    return Plant(
        kind,
        systems,
        system.chips,
        ports,
        rate,
        parts.radix,
        system.scaleup_bytes_per_s,
        parts.alpha_s or 0.0,
        parts.hop_latency_s or 0.0,
    )


def whole_network(plant: Plant, systems: float | Floats, parts: NetworkFacts) -> Network:
    """Count all parts of a network for `systems` systems; all links are optical where no price of copper is known."""
    rack_systems = 0 if parts.copper_link_price is None else parts.rack_systems
    if plant.design.kind == "torus":
        rack_systems = max(rack_systems, 1)  # a brick of one node has no links within
    if isinstance(systems, np.ndarray):  # no key of a cache
        return network(plant.design, systems, plant.ports_per_system, plant.radix, rack_systems=rack_systems)
    return _of_one_size(plant.design, systems, plant.ports_per_system, plant.radix, rack_systems=rack_systems)


_of_one_size = lru_cache(maxsize=4096)(network)


def price_of(net: Network, parts: NetworkFacts) -> Floats:
    """Compute the purchase price of whole networks from the prices of switches, links to NICs and links between switches.

    Links are optical except for the copper ones. Where only a part of the links is copper, it is those to NICs, which are shorter.
    """
    host, between, copper = (np.asarray(links, float) for links in (net.host_links, net.switch_links, net.copper_links))
    # systems joined directly have links with a NIC at either end
    between_price = np.where(host > 0, parts.link_price_two_tier - parts.link_price_one_tier, parts.link_price_one_tier)
    short = np.minimum(copper, host)
    copper_price = parts.copper_link_price or 0.0
    links = (
        copper * copper_price + (host - short) * parts.link_price_one_tier + (between - copper + short) * between_price
    )
    return np.asarray(net.switches * parts.switch_price + links)


def power_of(net: Network, parts: NetworkFacts) -> Floats:
    """Compute the power of whole networks [W]."""
    return np.asarray(network_power_w(net, parts.switch_power_w, parts.optic_power_w))


def reach_of(site: SiteFacts, offer: OfferFacts, system: SystemFacts) -> float:
    """Return the largest number of systems that supply and site power allow."""
    idle_w = system.idle_w * site.pue.of(system.cooling, site.hall)
    return min(offer.supply, site.power_limit_w / idle_w if idle_w else math.inf)


def reach_with_others(problem: ResolvedSpec, site: SiteFacts, offer: OfferFacts) -> float:
    """Return the largest number of systems on one network, together with those of other kinds with which they may exchange data at the site."""
    system, own = problem.systems[offer.system], reach_of(site, offer, problem.systems[offer.system])
    others = 0.0
    for other in problem.offers:
        kind = problem.systems[other.system]
        if other.how != "buy" or kind.name == system.name or site.region not in other.prices:
            continue
        if (not site.systems or kind.name in site.systems) and exchanges_data(problem, system, kind):
            others += reach_of(site, other, kind)
    return own + others


def exchanges_data(problem: ResolvedSpec, first: SystemFacts, second: SystemFacts) -> bool:
    """Tell whether any deployment may have pools on two kinds of systems: caches between prefill and decode, weights between update and rollout."""
    if any(isinstance(job.spec, Reinforcement) for job in problem.training):
        return True
    return any(
        workload.spec.disaggregation != "never" and may_exchange(workload.spec, first, second)
        for workload in problem.serving
    )


@lru_cache(maxsize=4096)
def bands(design: str, system: SystemFacts, parts: NetworkFacts, reach: float = math.inf) -> tuple[Band, ...]:
    """List the bands of a design that up to `reach` systems can need, smallest first; none where no two systems can be joined.

    Price and power are a system's share of the network in the band that is cheapest (draws least) per system, among those for at most
    `reach` systems: no network of the band costs less, and a larger `reach` never costs more.
    """
    return tuple(_bands(design, system, parts, reach))


def _bands(design: str, system: SystemFacts, parts: NetworkFacts, reach: float) -> Iterator[Band]:
    if Design.named(design).kind == "scale-up":
        yield Band(None, 0.0, 0.0, math.inf)
        return
    previous = 1.0
    for largest in sizes_of(design, ports_of(system, parts), parts.radix):
        if previous >= reach:
            return
        plant = plant_of(design, int(largest), system, parts)
        if largest <= previous or plant is None or not bool(whole_network(plant, largest, parts).holds):
            continue
        sizes = np.arange(previous + 1.0, min(largest, reach, previous + MOST_SIZES) + 1.0)
        if plant.design.kind == "torus" or not len(sizes):  # the same per system at all sizes, but for spare nodes
            sizes = np.array([largest])
        elif largest <= reach:
            sizes = np.append(sizes, largest)
        net = whole_network(plant, sizes, parts)
        price, power_w = (float((total / sizes).min()) for total in (price_of(net, parts), power_of(net, parts)))
        yield Band(plant, price, power_w, largest)
        previous = largest


def largest_of(design: str, system: SystemFacts, parts: NetworkFacts) -> float:
    """Return the most systems that a design can join; infinite where systems need no network."""
    ports = ports_of(system, parts)
    if Design.named(design).kind == "scale-up" or not ports:
        return math.inf
    return max((size for size in sizes_of(design, ports, parts.radix)), default=1.0)


def sizes_of(design: str, ports: int, radix: int) -> Iterator[float]:
    """Yield the largest number of systems of each band. The bandwidth of a torus falls as it grows, so its sizes double."""
    kind = Design.named(design)
    if not ports:
        return
    most = float(largest_network(kind, ports, radix))
    if kind.kind in TREES:
        railed = kind.kind != "fat-tree"
        columns, per_system = (ports if kind.kind == "rail-optimised" else 1), (1 if railed else ports)
        down, up = (float(part) for part in leaf_ports(radix, kind.taper))
        yield float(radix // (columns * per_system))
        for tiers in range(2, MAX_TIERS + 1) if down and up else ():
            yield float(rows_reach(radix, columns, tiers)) * down // per_system
    elif kind.kind == "torus":
        yield from (2.0**power for power in range(1, int(math.log2(most)) + 1))
    else:
        at_router, routers, _ = (float(part) for part in balanced_dragonfly(radix))
        yield from (at_router * routers // ports, most)


def may_share_a_network(first: Any, second: Any) -> bool:
    """Tell whether two fleet options may stand on one network: of one kind on the network of their site, of two where one network `may_join` them.

    What is rented has the provider's network, which joins it to itself only.
    """
    if first is second:
        return True
    if first.site.region != second.site.region or not (first.owned and second.owned):
        return False
    if first.system.name == second.system.name:
        return bool(first.fabric == second.fabric and first.plant == second.plant)
    return may_join(first.plant, second.plant)


def may_join(first: Plant | None, second: Plant | None) -> bool:
    """Tell whether one network of a design and structure can join two kinds of systems.

    Ports of any number share the leaves of a fat tree or the routers of a dragonfly; on rails, where port i stands on tree i, both have
    as many ports; the nodes of a torus are alike.
    """
    if first is None or second is None or structure_of(first) != structure_of(second):
        return False
    kind = first.design.kind
    return kind != "torus" and (not kind.startswith("rail") or first.ports_per_system == second.ports_per_system)


@lru_cache(maxsize=4096)
def structure_of(plant: Plant) -> tuple[Design, int, int]:
    """Return what networks of all sizes of one band have in common: design, tiers and longest way."""
    net = _of_one_size(plant.design, plant.systems, plant.ports_per_system, plant.radix)
    return plant.design, int(net.tiers), int(net.most_hops)


def crosses_vendors(first: SystemFacts, second: SystemFacts) -> bool:
    """Tell whether the chips of two systems are of different vendors, whose engines lay KV caches out differently."""
    return first.vendor != second.vendor


def may_exchange(workload: Serving, prefill: SystemFacts, decode: SystemFacts) -> bool:
    """Tell whether caches of a workload may go from one system to another: between vendors only with its `kv_exchange`."""
    return workload.kv_exchange is not None or not crosses_vendors(prefill, decode)


def exchange_bytes_per_s(workload: Serving, systems: tuple[SystemFacts, SystemFacts], link_bytes_per_s: float) -> float:
    """Compute the rate of a link with the conversion that follows between vendors:  1 / (1/link + 1/conversion)  [byte/s per chip]."""
    if workload.kv_exchange is None or not crosses_vendors(*systems) or link_bytes_per_s <= 0:
        return link_bytes_per_s
    return 1.0 / (1.0 / link_bytes_per_s + 1.0 / workload.kv_exchange.conversion)


def uneven(plant: Plant | None) -> Plant | None:
    """Return the plant if some groups get less bandwidth from it than their NICs could give; otherwise None."""
    return None if plant is None or has_full_rate(plant) else plant


@lru_cache(maxsize=4096)
def scaleout_bytes_per_s(plant: Plant | None) -> float:
    """Return the all-to-all bandwidth of a chip in a replica on a few neighbouring systems [byte/s]; 0 without a network."""
    if plant is None:
        return 0.0
    if has_full_rate(plant):
        return plant.nic_bytes_per_s
    groups = [systems * plant.chips_per_system for systems in SPREAD if systems <= plant.systems]
    return float(np.min(group_links(plant, groups, 1, "all-to-all").bytes_per_s)) if groups else 0.0


@lru_cache(maxsize=4096)
def scaleout_of(plant: Plant | None) -> ScaleOut:
    """Return bandwidth and latency that a network gives each chip in a replica; no bandwidth without a network.

    The latency is that of the mean way between two ports of the network as built, a switch for each link but the first.
    """
    if plant is None:
        return NO_NETWORK
    net = _of_one_size(plant.design, plant.systems, plant.ports_per_system, plant.radix)
    return ScaleOut(scaleout_bytes_per_s(plant), float(latency_s(net.mean_hops, 0.0, plant.hop_latency_s)))


@lru_cache(maxsize=4096)
def probes(plant: Plant | None) -> tuple[tuple[int, int, str, float], ...]:
    """List (group, stride, pattern, rate) over the groups of ranks that the systems hold, by which designs are compared."""
    if plant is None:
        return ()
    total, found = plant.systems * plant.chips_per_system, []
    strides = [plant.chips_per_system * step for step in (1, 4, 16)]
    for stride, pattern in product([1, max(plant.chips_per_system // 2, 1), *strides], PATTERNS):
        groups = [1 << i for i in range(1, total.bit_length()) if (1 << i) * stride <= total]
        rates = np.atleast_1d(group_links(plant, groups, stride, pattern).bytes_per_s) if groups else ()
        found += [(group, stride, pattern, float(rate)) for group, rate in zip(groups, rates, strict=True)]
    return tuple(found)


def carries_as_much(one: Plant | None, other: Plant | None, reach: float = math.inf) -> bool:
    """Tell whether every group of ranks gets at least as much bandwidth from the first network as from the second, up to the size of the second or to `reach`.

    Ways through the first must not be longer by more than what no exchange notices.
    """
    if other is None:
        return True
    if one is None or one.systems < min(other.systems, reach):
        return False
    if scaleout_of(one).latency_s > scaleout_of(other).latency_s + UNNOTICED_LATENCY_S:
        return False
    if uneven(one) is None:
        return True
    mine = {probe[:3]: probe[3] for probe in probes(one)}
    most = min(other.systems, reach) * other.chips_per_system
    return all(
        mine[group, stride, pattern] >= rate * (1 - 1e-9)
        for group, stride, pattern, rate in probes(other)
        if group * stride <= most
    )
