"""Program data of the networks that kinds of systems share where pools of a deployment stand on two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from models.arrays import Floats
from models.network.group_links import Plant
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint
from planner.formulate.costs import Holding
from planner.problem.fabrics import structure_of
from solvers.model.block_data.joint_network import JointNetworks

Network = tuple[object, ...]
"""Site, design, tiers and longest way: of each there is at most one network that several kinds share."""
Kind = tuple[Network, str]
"""A network, and a kind of systems on it."""


def joint_networks(
    fleet_options: Sequence[FleetOption], holdings: Sequence[Holding], points: Sequence[OperatingPoint]
) -> JointNetworks | None:
    """Build the networks that points with pools on two kinds need; None where there is no such point.

    A system takes of a network's size, counted in systems of the kind of which it holds most, the share that it takes of all its ports.
    """
    uses = list(_uses(points))
    kinds = _memberships(uses)
    if not kinds:
        return None
    number = {kind: i for i, kind in enumerate(kinds)}
    networks = list(dict.fromkeys(network for network, _ in kinds))
    size = {network: max(plant.systems for (at, _), plant in kinds.items() if at == network) for network in networks}
    pooled = [(number[kind_of(option)], row) for row, (option, crosses) in enumerate(uses) if crosses]
    member = []
    for u, (k, _) in enumerate(holdings):
        option = fleet_options[k]
        if option.plant is not None and kind_of(option) in number:
            member.append((number[kind_of(option)], u))
    return JointNetworks(
        size=np.array([float(size[network]) for network in networks]),
        network=np.array([networks.index(network) for network, _ in kinds], dtype=np.int64),
        unit=np.array([size[network] / plant.systems for (network, _), plant in kinds.items()]),
        member=np.array(member, dtype=np.int64).reshape(-1, 2),
        pooled=np.array(pooled, dtype=np.int64).reshape(-1, 2),
    )


def kept_apart(points: Sequence[OperatingPoint], joins: Floats) -> set[Kind]:
    """List the kinds of systems that a solution keeps off the network that they could share; `joins` [N], empty where all may share theirs."""
    kinds = _memberships(list(_uses(points)))
    return {kind for kind, joined in zip(kinds, joins.tolist(), strict=True) if joined < 0.5} if joins.size else set()


def kind_of(option: FleetOption) -> Kind:
    """Return the network that the systems of an option may share with others, and their kind."""
    return network_of(option), option.system.name


def _memberships(uses: Sequence[tuple[FleetOption, bool]]) -> dict[Kind, Plant]:
    """Map each kind on which points with pools on two kinds stand to its network, in the order of the points."""
    return {kind_of(option): option.plant for option, crosses in uses if crosses and option.plant is not None}


def network_of(option: FleetOption) -> Network:
    """Return what identifies the network that the systems of an option may share with others; only the site without a network of our own."""
    return (option.site.region, *(() if option.plant is None else structure_of(option.plant)))


def _uses(points: Sequence[OperatingPoint]) -> Iterator[tuple[FleetOption, bool]]:
    """Yield (fleet option, whether the pools of its point stand on two kinds at one site) of every use of every point, in order."""
    for point in points:
        crosses = point.exchange is None and len({use.option.system.name for use in point.uses}) > 1
        for use in point.uses:
            yield use.option, crosses
