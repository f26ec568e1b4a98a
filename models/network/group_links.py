"""Bandwidth of groups of ranks on a scale-out design: bandwidth per chip and start-up time, by the group's size and stride.

All groups of a parallel dimension work at once, placed in rank order. The network's parts are in `designs`; a better
order of the dimensions is found in `placement`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, sum_of
from models.network.collectives import members_per_domain
from models.network.designs import TREES, Design, torus_trunk
from models.network.direct import balanced_dragonfly, torus_dims
from models.network.placement import Level
from models.network.trees import leaf_ports, tiers_of_tree


@dataclass(frozen=True, slots=True)
class Plant:
    """A site's systems on one design; plain numbers. Rates in one direction."""

    design: Design
    systems: int
    chips_per_system: int
    ports_per_system: int
    port_bytes_per_s: float
    radix: int
    scaleup_bytes_per_s: float  # per chip
    alpha_s: float  # start-up of a message between systems
    hop_latency_s: float  # a switch, or a node passed, with its cable
    scaleup_start_s: float = 0.0  # start-up of a message within a system

    @property
    def nic_bytes_per_s(self) -> float:
        """What the NICs of a system give each of its chips [byte/s]."""
        return self.ports_per_system * self.port_bytes_per_s / self.chips_per_system


@dataclass(frozen=True, slots=True)
class GroupLinks:
    """What a chip of each group can send out of its system, and the start-up of a message; arrays as the groups.

    `carried` False: the design has no way between the members. Groups within one system are given the NICs' rate and no hops.
    """

    bytes_per_s: Floats | float
    start_s: Floats | float
    hops: Floats | float
    carried: Bools | bool


def admits(design: Design, group: ArrayLike, stride: ArrayLike, chips_per_system: int) -> Bools | bool:
    """Tell whether a design connects the members of a group: always within a system, else only where there is a network.

    Shapes: broadcast. Units: counts [1], result boolean. Rail-only carries every pattern, but forwards between rails in the system.
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4 (no traffic between rails but through the scale-up domain).

    >>> admits(Design("scale-up"), [8, 2], [1, 8], 8).tolist(), bool(admits(Design("torus"), 2, 8, 8))
    ([True, False], True)
    """
    within = np.asarray(group) <= members_per_domain(group, stride, chips_per_system)
    carried: Bools | bool = (within | (design.kind != "scale-up"))[()]
    return carried


def group_links(plant: Plant, group: ArrayLike, stride: ArrayLike, pattern: str = "ring") -> GroupLinks:
    """Predict bandwidth and start-up time of groups of g ranks, s apart, that all exchange at once in one pattern.

    r = members in a system, R = members in a cell (the systems under one leaf, or one router or group of routers):
    a ring leaves a cell once for R/r systems, so rho = beta min(1, (R/r) c), with c the links out of a cell per port in it
    (1/taper at a leaf); an all-to-all rho = beta min(1, c (g - r)/(g - R)). Rails: a cell is the systems of a row of leaves; what
    goes to other rails is forwarded in the system, beta_up D/(D - 1) at most, or over the joined spine if that is faster.
    Torus: rows of the box of `torus_dims`, filled in order, beta over the load of the busiest link per byte that a node sends.
    Dragonfly: rings between groups go through a third one where that gives more than the m direct links.
    Shapes: broadcast over group and stride; the plant is scalar. Units: counts [1], rates [byte/s] per chip, start-up [s].
    `pattern`: "ring" (also pipelines) or "all-to-all".
    Reference: Wang et al., arXiv:2307.12169, section 4; Dally and Towles (2004), section 3.3; Kim et al., ISCA 2008, section 4
    (Valiant routes); DeepSeek-V3, arXiv:2412.19437, section 3.2.2 (forwarding within the node).

    >>> plant = Plant(Design.named("fat-tree:2"), 64, 8, 8, 50e9, 64, 450e9, 5e-6, 0.33e-6)
    >>> (group_links(plant, [8, 32, 64], [1, 1, 64]).bytes_per_s / 1e9).tolist(), round(float(group_links(plant, 512, 1, "all-to-all").bytes_per_s) / 1e9, 1)
    ([50.0, 50.0, 25.0], 26.7)
    """
    if pattern not in ("ring", "all-to-all"):
        raise ValueError(f"unknown pattern {pattern!r}; known: ring, all-to-all")
    g, s = np.broadcast_arrays(np.asarray(group, float), np.asarray(stride, float))
    inside = np.asarray(members_per_domain(g, s, plant.chips_per_system), float)
    outside = g > inside
    find = {"torus": _torus_rate, "dragonfly": _dragonfly_rate, "scale-up": _no_rate}.get(plant.design.kind, _tree_rate)
    share, hops, forwarded = find(plant, g, s, inside, pattern)
    hops = np.where(outside, hops, 0.0)
    rate = np.where(outside, plant.nic_bytes_per_s * share, plant.nic_bytes_per_s)
    start = np.where(outside, plant.alpha_s + np.maximum(hops - 1.0, 0.0) * plant.hop_latency_s, plant.scaleup_start_s)
    start = start + np.where(outside & forwarded, plant.scaleup_start_s, 0.0)
    return GroupLinks(rate[()], start[()], hops[()], admits(plant.design, g, s, plant.chips_per_system))


def has_full_rate(plant: Plant) -> bool:
    """Tell whether every group that a network of its size carries has the NICs' rate in every pattern: trees without taper, and of those
    rail-only where the scale-up domain forwards as fast as the NICs send, beta_up D/(D - 1) >= beta.

    Shapes: scalar. Units: as `Plant`. Sufficient, not necessary: a tapered tree of one tier is left out.
    Reference: as `group_links`.

    >>> [has_full_rate(Plant(Design.named(name), 64, 8, 8, 50e9, 64, 450e9, 5e-6, 3e-7)) for name in ("rail-only", "fat-tree:2", "torus")]
    [True, False, False]
    """
    if plant.design.kind not in TREES or plant.design.taper > 1.0:
        return False
    passing = plant.scaleup_bytes_per_s * plant.chips_per_system / max(plant.chips_per_system - 1.0, 1.0)
    return plant.design.kind != "rail-only" or plant.chips_per_system == 1 or passing >= plant.nic_bytes_per_s


def dimension_links(
    plant: Plant, tp: ArrayLike, cp: ArrayLike, dp: ArrayLike, pp: ArrayLike, ep: ArrayLike
) -> dict[str, GroupLinks]:
    """Predict the bandwidth that each parallel dimension of a training layout gets out of the design, ranks numbered tensor, context, data, pipeline.

    tp: 1 apart; cp and the ranks cp dp that share dense parameters: tp apart; ep: 1 apart, all-to-all; "expert_dp", the
    tp cp dp / ep ranks that share an expert: ep apart (without expert parallelism as dp); pp: tp cp dp apart.
    Shapes: broadcast. Units: as `group_links`.
    Reference: Narayanan et al., arXiv:2104.04473, section 3.1; strides as in `training.data_parallel_s`.

    >>> plant = Plant(Design.named("rail-only"), 64, 8, 8, 50e9, 64, 450e9, 5e-6, 0.33e-6)
    >>> links = dimension_links(plant, tp=8, cp=1, dp=[16, 32], pp=[4, 2], ep=1)
    >>> (links["dp"].bytes_per_s / 1e9).tolist(), (links["pp"].start_s * 1e6).round(2).tolist()
    ([50.0, 50.0], [5.33, 5.33])
    """
    tp, cp, dp, pp, ep = np.broadcast_arrays(*(np.asarray(a, float) for a in (tp, cp, dp, pp, ep)))
    stage = tp * cp * dp
    experts = (np.where(ep > 1, stage / ep, cp * dp), np.where(ep > 1, ep, tp))
    return {
        "tp": group_links(plant, tp, 1.0), "cp": group_links(plant, cp, tp), "dp": group_links(plant, cp * dp, tp),
        "ep": group_links(plant, ep, 1.0, "all-to-all"), "expert_dp": group_links(plant, *experts), "pp": group_links(plant, pp, stage),
    }  # fmt: skip


Found = tuple[Floats, Floats, Bools | bool]  # share of the NIC's rate, hops, forwarded in the system


def _cell_share(g: Floats, r: Floats, in_cell: Floats, out: Floats | float, pattern: str) -> Floats:
    """Compute the share of the NIC's rate that the links out of a cell leave, `out` of them per port in the cell."""
    leaves = g > in_cell
    if pattern == "ring":
        return np.where(leaves, np.minimum(1.0, in_cell / r * out), 1.0)
    return np.where(leaves, np.minimum(1.0, out * (g - r) / np.where(leaves, g - in_cell, 1.0)), 1.0)


def _no_rate(plant: Plant, g: Floats, s: Floats, r: Floats, pattern: str) -> Found:
    return np.zeros_like(g), np.zeros_like(g), False


def _tree_rate(plant: Plant, g: Floats, s: Floats, r: Floats, pattern: str) -> Found:
    kind, ports, chips = plant.design.kind, plant.ports_per_system, plant.chips_per_system
    railed = kind != "fat-tree"
    columns = ports if kind == "rail-optimised" else 1
    per_column = plant.systems if railed else plant.systems * ports
    tiers = int(tiers_of_tree(per_column, columns, plant.radix, plant.design.taper))
    if tiers < 0:
        return np.zeros_like(g), np.zeros_like(g), False
    down, up = (float(part) for part in leaf_ports(plant.radix, plant.design.taper))
    leaf_systems = max(1.0, down if railed else np.floor(down / ports))
    cell = np.inf if tiers == 1 else leaf_systems * chips
    in_cell = np.asarray(members_per_domain(g, s, cell), float) if tiers > 1 else g
    block = leaf_systems * np.floor(plant.radix / 2 / columns) * chips
    in_block = np.asarray(members_per_domain(g, s, block), float) if tiers == 3 else g
    hops = np.where(g <= in_cell, 2.0, np.where(g <= in_block, 4.0, 6.0))
    share = _cell_share(g, r, in_cell, up / down if tiers > 1 else 1.0, pattern)
    # Neighbours keep their rail where groups are cut alike in every system; an exchange keeps it where a system has one member.
    aligned = np.where(s < chips, chips % np.maximum(s, 1.0) == 0, s % chips == 0)
    crossing = np.asarray(railed & (chips > 1) & (~aligned | ((pattern == "all-to-all") & (r > 1))))
    # Each of the D chips sends to all rails alike: (D - 1)/D of what leaves the system crosses the scale-up domain first.
    passing = plant.scaleup_bytes_per_s / plant.nic_bytes_per_s * chips / max(chips - 1.0, 1.0)
    forwarded = np.where(crossing, np.minimum(share, passing), share)
    if kind != "rail-optimised":
        return forwarded, hops, crossing
    near = r + (in_cell - r) / r  # under the leaf, only ports of the same rail are reached without the spine
    direct = np.where(crossing, _cell_share(g, r, near, up / down if tiers > 1 else 1.0, pattern), share)
    by_spine = crossing & (direct >= forwarded)
    return (
        np.maximum(forwarded, direct),
        np.where(by_spine & (tiers > 1), np.maximum(hops, 4.0), hops),
        crossing & ~by_spine,
    )


def _dragonfly_rate(plant: Plant, g: Floats, s: Floats, r: Floats, pattern: str) -> Found:
    at_router, per_group, out = (float(part) for part in balanced_dragonfly(plant.radix))
    ends = plant.systems * plant.ports_per_system
    groups = np.ceil(ends / (at_router * per_group))
    if groups > per_group * out + 1:
        return np.zeros_like(g), np.zeros_like(g), False
    chips_per_port = plant.chips_per_system / plant.ports_per_system
    by_router = np.maximum(r, members_per_domain(g, s, at_router * chips_per_port))
    by_group = np.maximum(by_router, members_per_domain(g, s, at_router * per_group * chips_per_port))
    hops = np.where(g <= by_router, 2.0, np.where(g <= by_group, 3.0, 5.0))
    pair = np.floor(per_group * out / max(groups - 1.0, 1.0))
    # To one neighbour go the direct links, or, by way of third parties, half of all links.
    spread = 2.0 if pattern == "ring" else 1.0
    local_out = max(1.0, (per_group - 1.0) / spread) / at_router
    global_out = max(pair, per_group * out / spread) / (at_router * per_group)
    if pattern == "all-to-all":
        global_out = pair * (groups - 1.0) / (at_router * per_group)
    share = np.minimum(
        _cell_share(g, r, by_router, local_out, pattern), _cell_share(g, r, by_group, global_out, pattern)
    )
    return share, hops, False


def _torus_rate(plant: Plant, g: Floats, s: Floats, r: Floats, pattern: str) -> Found:
    """Divide what a node sends by the load of the busiest link, when a group's nodes lie along the dimensions row by row.

    Interleaved groups share links: a stride of t nodes takes t times the load. A ring that does not span a whole dimension
    closes over its own links. See `placement_torus.best_torus_placement` for the pieces of a ring.
    """
    dims = torus_dims(plant.systems, int(np.clip(plant.ports_per_system // 2, 1, 3)))
    trunk = float(torus_trunk(np.array(dims), plant.ports_per_system))
    left, before = np.ceil(g / r), np.maximum(1.0, s / plant.chips_per_system)
    nodes, extents, strides = left, [], []
    for length in dims:
        strides.append(np.clip(before, 1.0, length))
        extents.append(np.clip(np.minimum(np.floor(length / strides[-1]), left), 1.0, None))
        left, before = np.ceil(left / extents[-1]), np.maximum(1.0, before / length)
    wraps = [
        (here * apart >= length) & (length > 2) for here, apart, length in zip(extents, strides, dims, strict=True)
    ]
    if pattern == "ring":
        sent, used = _ring_volumes(extents), [np.where(whole, 0.5, 1.0) for whole in wraps]
        hops = np.maximum.reduce([np.where(here > 1, apart, 0.0) for here, apart in zip(extents, strides, strict=True)])
    else:
        sent = [np.where(here > 1, nodes / np.maximum(nodes - 1.0, 1.0) / here, 0.0) for here in extents]
        used = [
            np.floor(here * here / 4.0) * np.where(whole, 0.5, 1.0) for here, whole in zip(extents, wraps, strict=True)
        ]
        far = [np.where(whole, np.floor(here / 2.0), here - 1.0) for here, whole in zip(extents, wraps, strict=True)]
        hops = sum_of(steps * apart for steps, apart in zip(far, strides, strict=True))
    load = np.maximum.reduce([amount * links * apart for amount, links, apart in zip(sent, used, strides, strict=True)])
    with np.errstate(divide="ignore"):
        share = np.where(load > 0, trunk / (plant.ports_per_system * load), np.inf)
    return np.minimum(1.0, share), hops, False


def _ring_volumes(extents: list[Floats]) -> list[Floats]:
    """Compute `placement_torus.ring_volumes` per byte that a member sends in all, for arrays of bricks."""
    long = [(here > 1).astype(float) for here in extents]
    count = np.maximum(sum_of(long), 1.0)
    volumes = [np.zeros_like(here) for here in extents]
    for first in range(len(extents)):
        share = long[first] / count
        for step in range(len(extents)):
            d = (first + step) % len(extents)
            volumes[d] = volumes[d] + share * (extents[d] - 1.0) / extents[d]
            share = share / extents[d]
    total = np.where(sum_of(volumes) > 0, sum_of(volumes), 1.0)
    return [volume / total for volume in volumes]


def levels_of(plant: Plant) -> tuple[Level, ...]:
    """Describe the design as domains within domains, for `placement.best_placement`: systems, and the cells with thinner links out.

    Systems leave at the NICs' rate, leaves at 1/taper of it; groups of a dragonfly at a/2 h links for a p ports (third parties
    carry the other half). A torus has no such levels: see `placement_torus`.
    Shapes: scalars. Units: rates of `Level` [byte/s] per chip.
    Reference: Kim et al., ISCA 2008, section 4; Dally and Towles (2004), section 3.3.

    >>> [(level.chips, level.bytes_per_s / 1e9) for level in levels_of(Plant(Design.named("fat-tree:2"), 64, 8, 8, 50e9, 64, 450e9, 5e-6, 3e-7))]
    [(8, 50.0), (40, 25.0)]
    """
    design, chips, rate = plant.design, plant.chips_per_system, plant.nic_bytes_per_s
    if design.kind == "torus":
        raise ValueError("a torus is no hierarchy; use placement_torus.best_torus_placement")
    if design.kind == "scale-up":
        return (Level(chips, 0.0),)
    if design.kind == "dragonfly":
        at_router, per_group, out = (float(part) for part in balanced_dragonfly(plant.radix))
        cell = int(at_router * per_group * chips / plant.ports_per_system)
        return Level(chips, rate), Level(cell, rate * out / (2.0 * at_router))
    columns = plant.ports_per_system if design.kind == "rail-optimised" else 1
    per_column = plant.systems * (1 if design.kind != "fat-tree" else plant.ports_per_system)
    if tiers_of_tree(per_column, columns, plant.radix, design.taper) < 2:
        return (Level(chips, rate),)
    down, up = (float(part) for part in leaf_ports(plant.radix, design.taper))
    systems = down if design.kind != "fat-tree" else max(1.0, down // plant.ports_per_system)
    return Level(chips, rate), Level(int(systems) * chips, rate * up / down)
