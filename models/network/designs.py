"""Scale-out designs side by side: what each costs, draws, carries and reaches for any number of systems.

A design is a way to wire the NIC ports of equal systems; `network` gives its parts and capacities in closed form. Parts and
their prices are inputs. What a group of ranks gets out of a design is in `group_links`, where to put the ranks in `placement`.

* scale-up         no scale-out network; a replica stays inside one system
* rail-only        port i of every system on tree i, the trees not joined: other traffic is forwarded through the scale-up domain
* rail-optimised   leaves as on rails, pod by pod, and one spine over all of them
* fat-tree         one folded Clos over all ports; ":3" or ":3/2" after a tree's name tapers its leaves by that ratio
* torus            systems joined directly in up to three dimensions, no switches
* dragonfly        groups of full meshes, balanced a = 2 p = 2 h, joined by global links
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.arrays import Bools, Floats, Ints, as_result
from models.network.direct import balanced_dragonfly, dragonfly, rack_brick, torus, torus_dims
from models.network.trees import leaf_ports, rows_reach, tree

KINDS = ("scale-up", "rail-only", "rail-optimised", "fat-tree", "torus", "dragonfly")
TREES = ("rail-only", "rail-optimised", "fat-tree")
SHORTEST_PORTS = 2  # ports of a node in a ring
LARGEST_TORUS = 1 << 20  # nodes; no switch bounds it


Parts = dict[str, NDArray[Any] | float]  # the fields of `Network`


@dataclass(frozen=True, slots=True)
class Design:
    """A kind of network and, for a tree, the ports of a leaf that go down for each one that goes up."""

    kind: str
    taper: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fabric design {self.kind!r}; known: {', '.join(KINDS)}")
        if self.taper < 1.0 or (self.taper > 1.0 and self.kind not in TREES):
            raise ValueError(f"{self.kind}: a taper of {self.taper} is not possible; trees take 1 or more, others none")

    @classmethod
    def named(cls, name: str) -> Design:
        """Parse the name of a design, such as "torus", "fat-tree" or "rail-optimised:3/2".

        Shapes: scalar. Units: taper [1]. Reference: as this module.

        >>> Design.named("fat-tree:3/2")
        Design(kind='fat-tree', taper=1.5)
        """
        kind, _, taper = name.partition(":")
        return cls(kind, float(Fraction(taper)) if taper else 1.0)


@dataclass(frozen=True, slots=True)
class Network:
    """A whole network; arrays over the number of systems. Where `holds` is False the design cannot join them.

    Links join two ports, whichever they are of, and count once for both directions.
    """

    holds: Bools | bool
    systems: Floats | float  # that stand on it; a torus is built whole and may hold more than asked
    ends: Floats | float  # NIC ports
    tiers: Ints | int  # 0 without switches
    switches: Floats | float
    host_links: Floats | float  # NIC to switch
    switch_links: Floats | float  # between switches, or between nodes
    copper_links: Floats | float  # links within a rack; all others are optical
    bisection_links: Floats | float
    uniform_share: Floats | float  # share of the NICs' rate, when every port sends to all others that it reaches alike
    mean_hops: Floats | float  # links between two different ports (nodes of a torus)
    most_hops: Floats | float

    @property
    def optical_links(self) -> Floats | float:
        return self.host_links + self.switch_links - self.copper_links

    @property
    def optics(self) -> Floats | float:
        """Transceivers: one at each end of an optical link."""
        return 2.0 * self.optical_links


def network(
    design: Design, systems: ArrayLike, ports_per_system: ArrayLike, radix: ArrayLike, *, rack_systems: int = 1
) -> Network:
    """Count parts and capacities of a design for a number of systems and NIC ports of each, with switches of one radix.

    A link is copper where both its ends stand in one rack of `rack_systems`: host links if all systems of a leaf (router) do,
    local links of a dragonfly if its group does, links between leaves if all systems do, links of a torus within a brick.
    Hops and uniform traffic of rail-only are those within a rail.
    Shapes: broadcast over systems, ports, radix. Units: [1] throughout. Valid for at least 1 port per system and radix >= 8.
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4; see also `trees.tree`, `direct`.

    >>> [float(network(Design.named(name), 256, 8, 64).switches) for name in ("rail-only", "rail-optimised", "torus", "dragonfly")]
    [96.0, 96.0, 0.0, 128.0]
    """
    n, p, k = np.broadcast_arrays(*(np.asarray(a, float) for a in (systems, ports_per_system, radix)))
    parts = {"torus": _torus, "dragonfly": _dragonfly, "scale-up": _nothing}.get(design.kind, _tree)(
        design, n, p, k, rack_systems
    )
    alone = np.asarray(parts["holds"], bool) & (n <= 1.0)  # a single system needs no network
    for name in (
        "tiers",
        "switches",
        "host_links",
        "switch_links",
        "copper_links",
        "bisection_links",
        "mean_hops",
        "most_hops",
    ):
        parts[name] = np.where(alone, 0.0, parts[name])
    parts["tiers"] = np.asarray(parts["tiers"]).astype(np.int64)
    return Network(**{name: np.broadcast_to(part, n.shape)[()] for name, part in parts.items()})


def _nothing(design: Design, n: Floats, p: Floats, k: Floats, rack_systems: int) -> Parts:
    zero = np.zeros(n.shape)
    names = (
        "tiers",
        "switches",
        "host_links",
        "switch_links",
        "copper_links",
        "bisection_links",
        "uniform_share",
        "mean_hops",
        "most_hops",
    )
    parts: Parts = {"holds": n <= 1.0, "systems": n, "ends": zero}
    parts.update(dict.fromkeys(names, zero))
    return parts


def _tree(design: Design, n: Floats, p: Floats, k: Floats, rack_systems: int) -> Parts:
    railed = design.kind != "fat-tree"
    columns, per_column = (p, n) if railed else (np.ones_like(p), n * p)
    found = tree(per_column, columns, k, design.taper, joined=design.kind != "rail-only")
    one_switch = found.tiers == 1
    leaf = np.where(one_switch, k, leaf_ports(k, design.taper)[0])
    under = np.minimum(n, leaf if railed else np.ceil(leaf / p))
    hosts = n * p
    copper = np.where(under <= rack_systems, hosts, 0.0) + np.where(n <= rack_systems, found.switch_links, 0.0)
    return {
        "holds": found.tiers >= 0, "systems": n, "ends": hosts, "tiers": found.tiers, "switches": found.switches, "host_links": hosts,
        "switch_links": found.switch_links, "copper_links": copper, "bisection_links": found.bisection_links,
        "uniform_share": found.uniform_share, "mean_hops": found.mean_hops, "most_hops": found.most_hops,
    }  # fmt: skip


def _torus(design: Design, n: Floats, p: Floats, k: Floats, rack_systems: int) -> Parts:
    wanted = np.stack([np.maximum(np.ceil(n), 1), np.clip(np.floor(p / 2.0), 1, 3)], axis=-1).reshape(-1, 2).astype(int)
    boxes = [torus_dims(int(nodes), int(most)) for nodes, most in wanted]
    bricks = np.array([rack_brick(box, rack_systems) for box in boxes]).reshape(*n.shape, 3)
    dims = np.array(boxes).reshape(*n.shape, 3)
    trunk = torus_trunk(dims, p)
    found = torus(*np.moveaxis(dims, -1, 0), brick=tuple(np.moveaxis(bricks, -1, 0)))
    between = found.links_between_bricks
    return {
        "holds": (trunk >= 1.0) & (n <= LARGEST_TORUS), "systems": found.nodes, "ends": found.nodes * p, "tiers": np.zeros(n.shape),
        "switches": np.zeros(n.shape), "host_links": np.zeros(n.shape), "switch_links": trunk * found.links,
        "copper_links": trunk * (found.links - between), "bisection_links": trunk * found.bisection_links,
        "uniform_share": np.minimum(1.0, trunk * found.uniform_links / p), "mean_hops": found.mean_hops, "most_hops": found.most_hops,
    }  # fmt: skip


def torus_trunk(dims: ArrayLike, ports_per_system: ArrayLike) -> Floats:
    """Count the NIC ports of a node that go to each neighbour of a torus:  floor(p / neighbours of a node).

    Shapes: dimensions along the last axis, of which three. Units: [1] throughout. 0 where a node has too few ports.
    Reference: Dally and Towles (2004), section 5.1 (2 neighbours per dimension longer than two nodes).

    >>> torus_trunk([[4, 4, 4], [4, 4, 1], [2, 1, 1]], 8).tolist()
    [1.0, 2.0, 8.0]
    """
    neighbours = np.minimum(np.asarray(dims, float) - 1.0, 2.0).sum(axis=-1)
    trunk: Floats = np.floor(np.asarray(ports_per_system, float) / np.maximum(neighbours, 1.0))
    return trunk


def _dragonfly(design: Design, n: Floats, p: Floats, k: Floats, rack_systems: int) -> Parts:
    hosts = n * p
    found = dragonfly(hosts, k)
    at_router, per_group, _ = balanced_dragonfly(k)
    copper = np.where(np.ceil(at_router / p) <= rack_systems, hosts, 0.0)
    copper = copper + np.where(np.ceil(at_router * per_group / p) <= rack_systems, found.local_links, 0.0)
    return {
        "holds": np.asarray(found.holds), "systems": n, "ends": hosts, "tiers": np.ones(n.shape), "switches": found.switches,
        "host_links": hosts, "switch_links": found.local_links + found.global_links, "copper_links": copper,
        "bisection_links": found.bisection_links, "uniform_share": found.uniform_share, "mean_hops": found.mean_hops, "most_hops": found.most_hops,
    }  # fmt: skip


def largest_network(design: Design, ports_per_system: ArrayLike, radix: ArrayLike) -> Floats | float:
    """Compute the largest number of systems that a design joins with switches of one radix.

    A tree of three tiers: k floor(k/2) d ports, of one rail or (fat tree) of all; joined rails: d systems to each of
    `trees.rows_reach` rows; dragonfly: a p (a h + 1) ports; no switch bounds a torus.
    Shapes: broadcast. Units: [1] throughout.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3; Kim et al., ISCA 2008, section 3.1.

    >>> [float(largest_network(Design.named(name), 8, 64)) for name in ("scale-up", "rail-only", "rail-optimised", "fat-tree", "dragonfly")]
    [1.0, 65536.0, 8192.0, 8192.0, 32832.0]
    """
    p, k = np.broadcast_arrays(np.asarray(ports_per_system, float), np.asarray(radix, float))
    if design.kind == "scale-up":
        return as_result(np.ones(p.shape))
    if design.kind == "torus":
        return as_result(np.where(p >= SHORTEST_PORTS, float(LARGEST_TORUS), 2.0))
    if design.kind == "dragonfly":
        at_router, per_group, out = balanced_dragonfly(k)
        return as_result(np.floor(at_router * per_group * (per_group * out + 1.0) / p))
    down, _ = leaf_ports(k, design.taper)
    if design.kind == "rail-optimised":
        return as_result(np.maximum(rows_reach(k, p, 3) * down, np.floor(k / p)))
    reach = rows_reach(k, 1.0, 3) * down
    return as_result(np.floor(reach / (p if design.kind == "fat-tree" else 1.0)))


def network_price(
    net: Network, switch_price: ArrayLike, copper_link_price: ArrayLike, optical_link_price: ArrayLike
) -> Floats | float:
    """Sum the purchase price:  N_switch p_switch + N_copper p_copper + N_optical p_optical, an optical link with both its transceivers.

    Shapes: broadcast. Units: prices [money each], result [money].
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4 (switches and transceivers as the cost of a network).

    >>> float(network_price(network(Design("rail-only"), 64, 8, 64), 50_000, 300, 1_325)) / 64
    16850.0
    """
    return (
        net.switches * np.asarray(switch_price, float)
        + net.copper_links * np.asarray(copper_link_price, float)
        + net.optical_links * np.asarray(optical_link_price, float)
    )


def network_power_w(net: Network, switch_power_w: ArrayLike, optic_power_w: ArrayLike) -> Floats | float:
    """Sum the power of switches and transceivers:  N_switch P_s + 2 N_optical P_o; copper draws nothing of its own.

    Shapes: broadcast. Units: power of a switch, of one transceiver, result [W].
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4.

    >>> float(network_power_w(network(Design("rail-only"), 64, 8, 64), 747.0, 8.0)) / 64
    221.375
    """
    return net.switches * np.asarray(switch_power_w, float) + net.optics * np.asarray(optic_power_w, float)


def bisection_bytes_per_s(net: Network, port_bytes_per_s: ArrayLike) -> Floats | float:
    """Compute the bisection bandwidth of a network in one direction:  cut links times the rate of a port.

    Shapes: broadcast. Units: port, result [byte/s], one direction.
    Reference: Dally and Towles (2004), section 3.3.

    >>> float(bisection_bytes_per_s(network(Design.named("fat-tree:2"), 84, 8, 64), 50e9)) / 1e9
    8400.0
    """
    return net.bisection_links * np.asarray(port_bytes_per_s, float)


def latency_s(hops: ArrayLike, alpha_s: ArrayLike, hop_latency_s: ArrayLike) -> Floats | float:
    """Compute the latency of an empty message over a number of links:  alpha + (hops - 1) t_switch; alpha alone within a node.

    Shapes: broadcast. Units: hops [1], start-up of a message and time in a switch (or a node passed) with its cable [s], result [s].
    Reference: Dally and Towles (2004), section 3.3.2 (zero-load latency).

    >>> round(float(latency_s(4, 5e-6, 0.33e-6)) * 1e6, 2)
    5.99
    """
    return as_result(np.asarray(alpha_s, float) + np.maximum(np.asarray(hops, float) - 1.0, 0.0) * hop_latency_s)
