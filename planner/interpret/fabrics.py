"""Plan rows of scale-out fabrics, and of the designs that were not chosen. `planner.verify.fleet.fabrics` writes them a second time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from models.arrays import Ints
from models.network.designs import Design, bisection_bytes_per_s, latency_s
from models.network.group_links import Plant
from planner.candidates.fleet_options import FleetOption
from planner.interpret.decisions import Decisions
from planner.money.components import FABRIC, SYSTEM
from planner.money.terms import by_position, purchases
from planner.problem.fabrics import plant_of, ports_of, power_of, price_of, sizes_of, whole_network
from planner.problem.facts import NetworkFacts, SiteFacts, SystemFacts


def fabric_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each network between our own systems: its parts, in whole numbers, and the sum of the shares paid."""
    held: dict[tuple[str, str, str, int], Ints] = {}
    charged: dict[tuple[str, str, str, int], float] = defaultdict(float)
    options: dict[tuple[str, str, str, int], tuple[FleetOption, Plant]] = {}
    form, slots = decided.form, decided.problem.calendar
    shares = [term for term in purchases(form.terms) if term.component == FABRIC.key]
    price = by_position(shares, SYSTEM, {SYSTEM: decided.count.astype(float)})
    for u, (k, term) in enumerate(form.holdings):
        option, count, mask = form.fleet_options[k], int(decided.count[u]), term.mask(slots)
        if option.plant is not None and count:
            key = (option.site.region, option.system.name, option.fabric, option.plant.systems)
            held[key] = held.get(key, np.zeros(len(mask), dtype=np.int64)) + count * mask
            charged[key] += float(price[u])
            options[key] = option, option.plant
    rows = []
    for key, counts in held.items():
        (site, system, design, size), count = key, int(counts.max())
        option, plant = options[key]
        rows.append(
            {"site": site, "system": system, "design": design, "size": size, "systems": count}
            | fabric_row(plant, count, charged[key], option.site.own_network)
            | {"instead": other_designs(option.site, option.system, design, count)}
        )
    return rows


def fabric_row(plant: Plant, systems: int, charged: float, parts: NetworkFacts) -> dict[str, Any]:
    """Describe the network of `systems` systems, in whole parts; `charged`: the sum of the systems' shares of its price."""
    net = whole_network(plant, systems, parts)
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
        "bisection_bytes_per_s": float(bisection_bytes_per_s(net, plant.port_bytes_per_s)),
        "uniform_bytes_per_s": float(net.uniform_share) * plant.nic_bytes_per_s,
        "mean_hops": float(net.mean_hops),
        "most_hops": int(net.most_hops),
        "latency_s": float(latency_s(net.most_hops, plant.alpha_s, plant.hop_latency_s))
        if known and net.most_hops
        else None,
    }


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
