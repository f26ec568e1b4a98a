"""Plan rows of scale-out fabrics, and of the designs that were not chosen. `planner.verify.fleet.fabrics` writes them a second time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from models.arrays import Ints, sum_of
from models.network.designs import Design, Network, bisection_bytes_per_s, latency_s, network
from models.network.group_links import Plant
from planner.candidates.fleet_options import FleetOption
from planner.formulate.joint_network import Network as JointNetwork
from planner.formulate.joint_network import network_of
from planner.interpret.decisions import Decisions
from planner.money.components import FABRIC, SYSTEM
from planner.money.terms import by_position, purchases
from planner.problem.fabrics import plant_of, ports_of, power_of, price_of, sizes_of, whole_network
from planner.problem.facts import NetworkFacts, SiteFacts, SystemFacts

Key = tuple[str, str, str, int]
"""Site, system, design and size of a network."""


def fabric_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each network between our own systems: its parts, in whole numbers, and the sum of the shares paid.

    Kinds of systems on which pools of one deployment stand share a network.
    """
    held: dict[Key, Ints] = {}
    charged: dict[Key, float] = defaultdict(float)
    options: dict[Key, FleetOption] = {}
    form, slots = decided.form, decided.problem.calendar
    shares = [term for term in purchases(form.terms) if term.component == FABRIC.key]
    price = by_position(shares, SYSTEM, {SYSTEM: decided.count.astype(float)})
    for u, (k, term) in enumerate(form.holdings):
        option, count, mask = form.fleet_options[k], int(decided.count[u]), term.mask(slots)
        if option.size is not None and count:
            key = (option.site.region, option.system.name, option.fabric, option.size)
            held[key] = held.get(key, np.zeros(len(mask), dtype=np.int64)) + count * mask
            charged[key] += float(price[u])
            options[key] = option
    rows = []
    for keys in _networks(decided, held):
        if len(keys) > 1:
            kinds = [(options[key], held[key]) for key in keys]
            rows.append(_joint_row(kinds, sum_of(charged[key] for key in keys)))
            continue
        [key] = keys
        (site, system, design, size), count, option = key, int(held[key].max()), options[key]
        assert option.plant is not None
        rows.append(
            {"site": site, "system": system, "design": design, "size": size, "systems": count}
            | fabric_row([option.plant], [count], charged[key], option.site.own_network)
            | {"instead": other_designs(option.site, option.system, design, count)}
        )
    return rows


def _networks(decided: Decisions, held: Iterable[Key]) -> Iterator[list[Key]]:
    """Yield the kinds of systems of each network, those that share one together."""
    shared: dict[JointNetwork, set[Key]] = defaultdict(set)
    for point in (*(decided.form.points[p] for p in decided.used), *decided.form.standing):
        if point.exchange is None and len({use.option.system.name for use in point.uses}) > 1:
            for use in point.uses:
                option = use.option
                if option.size is not None:
                    key = (option.site.region, option.system.name, option.fabric, option.size)
                    shared[network_of(option)].add(key)
    network = {key: together for together in shared.values() for key in together}
    known: set[Key] = set()
    for key in held:
        keys = [each for each in held if each in network.get(key, {key})]
        if key not in known:
            yield sorted(keys)
        known.update(keys)


def _joint_row(kinds: Sequence[tuple[FleetOption, Ints]], charged: float) -> dict[str, Any]:
    """Describe a network of several kinds of systems when most of its ports are taken; `size` counts systems of the kind of which it holds most."""
    plants = [option.plant for option, _ in kinds if option.plant is not None]
    size = max(plant.systems for plant in plants)
    taken = np.sum([count * (size / plant.systems) for plant, (_, count) in zip(plants, kinds, strict=True)], axis=0)
    fullest = int(np.argmax(taken))
    counts = [int(count[fullest]) for _, count in kinds]
    option, names = kinds[0][0], [each.system.name for each, _ in kinds]
    return {
        "site": option.site.region,
        "system": " + ".join(names),
        "design": option.fabric,
        "size": size,
        "systems": sum_of(counts),
        "members": dict(zip(names, counts, strict=True)),
        "taken": float(taken[fullest]) / size,
    } | fabric_row(plants, counts, charged, option.site.own_network)


def fabric_row(plants: Sequence[Plant], systems: Sequence[int], charged: float, parts: NetworkFacts) -> dict[str, Any]:
    """Describe the network of a number of systems of each kind, in whole parts; `charged`: the sum of the systems' shares of its price."""
    net = _built(plants, systems, parts)
    plant = plants[0]
    known = parts.alpha_s is not None and parts.hop_latency_s is not None
    return {
        "tiers": int(net.tiers),
        "ports": int(net.ends),
        "switches": int(net.switches),
        "links": int(net.host_links + net.switch_links),
        "copper_links": int(net.copper_links),
        "optics": int(net.optics),
        "power_w": float(power_of(net, parts)),
        "price": float(price_of(net, parts)),
        "charged": charged,
        "bisection_bytes_per_s": float(bisection_bytes_per_s(net, min(plant.port_bytes_per_s for plant in plants))),
        "uniform_bytes_per_s": float(net.uniform_share) * min(plant.nic_bytes_per_s for plant in plants),
        "mean_hops": float(net.mean_hops),
        "most_hops": int(net.most_hops),
        "latency_s": float(latency_s(net.most_hops, plant.alpha_s, plant.hop_latency_s))
        if known and net.most_hops
        else None,
    }


def _built(plants: Sequence[Plant], systems: Sequence[int], parts: NetworkFacts) -> Network:
    """Count the parts of the network of a number of systems of each kind; port by port where they have different numbers of ports."""
    ports = [plant.ports_per_system for plant in plants]
    if len(set(ports)) == 1:
        return whole_network(plants[0], sum_of(systems), parts)
    total = sum_of(count * each for count, each in zip(systems, ports, strict=True))
    rack_ports = 0 if parts.copper_link_price is None else parts.rack_systems * min(ports)
    return network(plants[0].design, total, 1, parts.radix, rack_systems=rack_ports)


def other_designs(site: SiteFacts, system: SystemFacts, design: str, systems: int) -> list[dict[str, Any]]:
    """List price and bandwidth of the same systems on each other design that the site allows and that can join them, in whole parts."""
    parts = site.own_network
    rows: list[dict[str, Any]] = []
    for other in (name for name in site.topologies if name != design and Design.named(name).kind != "scale-up"):
        size = next((size for size in sizes_of(other, ports_of(system, parts), parts.radix) if size >= systems), None)
        plant = None if size is None else plant_of(other, int(size), system, parts)
        if plant is None:
            continue
        net = whole_network(plant, systems, parts)
        if bool(net.holds):
            price = float(price_of(net, parts)) / systems
            rows.append(
                {
                    "design": other,
                    "price_per_system": price,
                    "uniform_bytes_per_s": float(net.uniform_share) * plant.nic_bytes_per_s,
                }
            )
    return rows
