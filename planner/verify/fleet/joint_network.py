"""Find the networks that kinds of systems share, from the pools of a plan's points, and tell which kinds one network can join.

Builds each network by `models.network.designs`; names of designs alone prove nothing. Which points need a network is read from their
rows, without `planner.formulate.joint_network` and `planner.problem.fabrics.may_share_a_network`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from models.network.designs import Design, network
from planner.verify.fleet.options import CheckedOption, FleetOptions, key_at

Kind = tuple[str, str, str, int | None]
"""Site, system, design and size of its network."""


def shared_networks(document: Mapping[str, Any], fleet_options: FleetOptions) -> list[list[Kind]]:
    """List the kinds of systems of each network on which pools of two kinds stand: at a site one of each design and structure."""
    shared: dict[tuple[Any, ...], set[Kind]] = {}
    for row in _points(document):
        options = [fleet_options[key_at(row["site"], pool)] for pool in row["pools"]]
        if len({option.system.name for option in options}) < 2 or len({option.site.region for option in options}) > 1:
            continue
        for option, pool in zip(options, row["pools"], strict=True):
            kind = (row["site"], pool["system"], pool["topology"], pool["network_size"])
            shared.setdefault((row["site"], pool["topology"], *_structure(option)), set()).add(kind)
    return [sorted(kinds, key=lambda kind: kind[:3]) for kinds in shared.values()]


def _points(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of all points that run, or stand by."""
    for workload in document["workloads"]:
        yield from workload["points"]
    yield from (document.get("robustness") or {}).get("standing_by", ())


def stand_together(first: CheckedOption, second: CheckedOption) -> bool:
    """Tell whether two pools can stand on one network: of one kind on the network of their site, else one network can join both kinds.

    On rails both kinds have as many ports; the nodes of a torus are alike.
    """
    if first is second:
        return True
    if first.site.region != second.site.region or not (first.owned and second.owned) or first.fabric != second.fabric:
        return False
    if first.system.name == second.system.name:
        return first.largest == second.largest
    kind = Design.named(first.fabric).kind
    if kind == "torus" or (kind.startswith("rail") and _ports(first) != _ports(second)):
        return False
    return first.plant is not None and second.plant is not None and _structure(first) == _structure(second)


def _structure(option: CheckedOption) -> tuple[int, int]:
    """Return (tiers, links of the longest way) of the largest network that the size of an option stands for."""
    if not math.isfinite(option.largest):
        return 0, 0
    net = network(Design.named(option.fabric), option.largest, _ports(option), option.site.own_network.radix)
    return int(net.tiers), int(net.most_hops)


def _ports(option: CheckedOption) -> int:
    """Count the ports of the network that one system takes."""
    return math.ceil(option.system.chips * option.system.nic_bytes_per_s / option.site.own_network.port_bytes_per_s)
