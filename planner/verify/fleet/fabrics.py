"""Check the networks of a plan: their parts, price and capacity, counted again for the systems that the fleet puts on them.

Counts parts by `models.network.designs`, one network at a time, and writes prices and rows on its own, without
`planner.interpret.fabrics`. Only the sizes that a design comes in are from `planner.problem.fabrics`, as in the plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.network.designs import Design, Network, network
from planner.messages import Message
from planner.problem.fabrics import sizes_of
from planner.problem.facts import NetworkFacts, SiteFacts, SystemFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fleet.joint_network import Kind, shared_networks
from planner.verify.fleet.options import CheckedOption


@dataclass(slots=True)
class OnNetwork:
    """Systems of the fleet on one network: their count in each window, and the cost of their shares of it."""

    option: CheckedOption
    systems: list[float]
    charged: float = 0.0


Networks = dict[tuple[str, str], dict[tuple[str, int | None], OnNetwork]]
"""By site and system, then by fabric and its size."""


def check_fabrics(plan: CheckedPlan, networks: Networks) -> None:
    """Compare the plan's fabrics with the networks of the fleet, those that kinds of systems share counted together."""
    computed: dict[tuple[str, str, str, int | None], dict[str, Any]] = {}
    shared, together = shared_networks(plan.document, plan.fleet_options), set()
    for kinds in shared:
        joined = [networks[region, system][design, size] for region, system, design, size in kinds]
        key, row, taken = _joint_row(kinds, joined)
        plan.at_most("fleet", taken, 1.0, Message.of("path.verify_joint_size", systems=key[1], region=key[0]).text())
        computed[key] = row
        together |= set(kinds)
    for (region, system), chosen in networks.items():
        for (design, size), found in chosen.items():
            if found.option.plant is not None and (region, system, design, size) not in together:
                count = max(found.systems)
                plan.at_most(
                    "fleet",
                    count,
                    found.option.largest,
                    Message.of("verify.system_on_network", system=system, design=design, region=region).text(),
                )
                computed[region, system, design, size] = _row(found.option, int(count), found.charged)
    stated = {(row["site"], row["system"], row["design"], row["size"]): row for row in plan.document["fabrics"]}
    if stated.keys() != computed.keys() or len(stated) < len(plan.document["fabrics"]):
        plan.say("fabrics", "verify.networks_of_fleet")
        return
    for key, parts in computed.items():
        if "instead" not in stated[key]:  # release 0.1 did not always compare designs
            parts.pop("instead", None)
        plan.equal(f"fabrics {'/'.join(map(str, key[:3]))}", {name: stated[key][name] for name in parts}, parts)


def _row(option: CheckedOption, systems: int, charged: float) -> dict[str, Any]:
    """Build the expected plan row of the network of a number of systems."""
    net = _built(option.fabric, systems, option.system, option.site.own_network)
    found = {"systems": systems} | _parts(net, [option], charged)
    return found | {"instead": _other_designs(option.site, option.system, option.fabric, systems)}


def _joint_row(
    kinds: Sequence[Kind], joined: Sequence[OnNetwork]
) -> tuple[tuple[str, str, str, int | None], dict[str, Any], float]:
    """Build (key, expected plan row, share of its size) of a network of several kinds of systems, in the window in which it is fullest.

    A kind takes what its systems are of the most that such a network joins of them alone.
    """
    options = [each.option for each in joined]
    windows = list(zip(*(each.systems for each in joined), strict=True))
    shares = [sum(n / option.largest for n, option in zip(counts, options, strict=True)) for counts in windows]
    counts = [int(n) for n in windows[shares.index(max(shares))]]
    parts, design = options[0].site.own_network, kinds[0][2]
    ports = [_ports(option.system, parts) for option in options]
    if min(ports) == max(ports):
        net = _built(design, sum(counts), options[0].system, parts)
    else:  # port by port
        rack = 0 if parts.copper_link_price is None else parts.rack_systems * min(ports)
        total = sum(n * each for n, each in zip(counts, ports, strict=True))
        net = network(Design.named(design), total, 1, parts.radix, rack_systems=rack)
    names = [system for _, system, _, _ in kinds]
    row = {"systems": sum(counts), "members": dict(zip(names, counts, strict=True)), "taken": max(shares)}
    row |= _parts(net, options, sum(each.charged for each in joined))
    size = max(size for _, _, _, size in kinds if size is not None)
    return (kinds[0][0], " + ".join(names), design, size), row, max(shares)


def _parts(net: Network, options: Sequence[CheckedOption], charged: float) -> dict[str, Any]:
    """Count the parts of a network, and the rates that the kinds of systems on it give it: those of the slowest."""
    parts = options[0].site.own_network
    rates = [_rates(option.system, parts) for option in options]
    port_rate, nic_rate = min(port for port, _ in rates), min(nic for _, nic in rates)
    known = parts.alpha_s is not None and parts.hop_latency_s is not None
    latency = (parts.alpha_s or 0.0) + (int(net.most_hops) - 1) * (parts.hop_latency_s or 0.0)
    return {
        "tiers": int(net.tiers),
        "ports": int(net.ends),
        "switches": int(net.switches),
        "links": int(net.host_links) + int(net.switch_links),
        "copper_links": int(net.copper_links),
        "optics": 2 * (int(net.host_links) + int(net.switch_links) - int(net.copper_links)),
        "power_w": _power_w(net, parts),
        "price": _price(net, parts),
        "charged": charged,
        "bisection_bytes_per_s": float(net.bisection_links) * port_rate,
        "uniform_bytes_per_s": float(net.uniform_share) * nic_rate,
        "mean_hops": float(net.mean_hops),
        "most_hops": int(net.most_hops),
        "latency_s": latency if known and net.most_hops else None,
    }


def _other_designs(site: SiteFacts, system: SystemFacts, design: str, systems: int) -> list[dict[str, Any]]:
    """Price the other designs of the site that can join the same systems."""
    parts, rows = site.own_network, []
    for other in site.topologies:
        ports = _ports(system, parts)
        if other == design or Design.named(other).kind == "scale-up":
            continue
        if not any(size >= systems for size in sizes_of(other, ports, parts.radix)):
            continue
        net = _built(other, systems, system, parts)
        if net.holds:
            rows.append(
                {
                    "design": other,
                    "price_per_system": _price(net, parts) / systems,
                    "uniform_bytes_per_s": float(net.uniform_share) * _rates(system, parts)[1],
                }
            )
    return rows


def _ports(system: SystemFacts, parts: NetworkFacts) -> int:
    """Count the ports of a network that one system takes."""
    return math.ceil(system.chips * system.nic_bytes_per_s / parts.port_bytes_per_s)


def _rates(system: SystemFacts, parts: NetworkFacts) -> tuple[float, float]:
    """Return the rates of a port and of a chip without protocol overhead [byte/s]."""
    port = parts.used_share * system.chips * system.nic_bytes_per_s / _ports(system, parts)
    return port, port * _ports(system, parts) / system.chips


def _built(design: str, systems: int, system: SystemFacts, parts: NetworkFacts) -> Network:
    """Build a network for a number of systems. Without a price of copper every link is optical; a torus has bricks of one node then."""
    kind = Design.named(design)
    rack_systems = parts.rack_systems if parts.copper_link_price is not None else 0
    if kind.kind == "torus" and rack_systems < 1:
        rack_systems = 1
    return network(kind, systems, _ports(system, parts), parts.radix, rack_systems=rack_systems)


def _power_w(net: Network, parts: NetworkFacts) -> float:
    """Sum the power of switches and of the transceivers at both ends of each optical link [W]."""
    optical = float(net.host_links) + float(net.switch_links) - float(net.copper_links)
    return float(net.switches) * parts.switch_power_w + 2 * optical * parts.optic_power_w


def _price(net: Network, parts: NetworkFacts) -> float:
    """Sum the purchase price of switches and links. Copper goes first to the links between NIC and switch, which are the shorter ones."""
    host, between, copper = float(net.host_links), float(net.switch_links), float(net.copper_links)
    copper_hosts = min(copper, host)
    optical_between = between - (copper - copper_hosts)
    nic_ends = parts.link_price_one_tier  # systems joined directly
    switch_ends = parts.link_price_two_tier - parts.link_price_one_tier
    between_price = switch_ends if host > 0 else nic_ends
    return (
        float(net.switches) * parts.switch_price
        + copper * (parts.copper_link_price or 0.0)
        + (host - copper_hosts) * parts.link_price_one_tier
        + optical_between * between_price
    )
