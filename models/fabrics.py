"""Scale-out fabric designs as mathematics: tiers, switches, links, reach and taper. Parts and their prices are inputs.

Four designs for systems that each bring `ports_per_system` NIC ports, built from switches of one radix:

* scale-up        no scale-out network; a replica stays inside one system
* rail-optimised  port i of every system joins rail i, one non-blocking tree per rail; traffic between rails first crosses
                  the scale-up domain, so no tree joins the rails
* fat-tree-1:1    one non-blocking folded Clos over all ports
* fat-tree-2:1    the same with twice as many ports down as up at each leaf
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

Result = np.ndarray | float
DESIGNS = ("scale-up", "rail-optimised", "fat-tree-1:1", "fat-tree-2:1")
MAX_TIERS = 3
# Ports of a leaf that go down for each one that goes up.
_DOWN_PER_UP = {"rail-optimised": 1.0, "fat-tree-1:1": 1.0, "fat-tree-2:1": 2.0}


@dataclass(frozen=True, slots=True)
class FabricCounts:
    """Parts of a whole fabric; arrays over the number of systems. Where `tiers` is -1 the design cannot hold them."""

    tiers: np.ndarray | int
    switches: np.ndarray | float
    host_links: np.ndarray | float  # NIC to leaf
    switch_links: np.ndarray | float  # between switches


def _down_per_up(design: str) -> float:
    if design not in _DOWN_PER_UP:
        raise ValueError(f"unknown fabric design {design!r}; known: {', '.join(DESIGNS)}")
    return _DOWN_PER_UP[design]


def _leaf_ports(design: str, radix: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Ports down and up of a leaf in a tree of two tiers or more."""
    ratio = _down_per_up(design)
    up = np.floor(np.asarray(radix, float) / (1.0 + ratio))
    return np.minimum(np.asarray(radix, float) - up, ratio * up), up


def largest_systems(design: str, ports_per_system: ArrayLike, radix: ArrayLike, tiers: int = MAX_TIERS) -> Result:
    """Most systems that a design of so many tiers can join.

    Ports of one tree: k (one tier), k d (two), k (k/2) d (three), with d the ports down of a leaf; a rail tree takes one
    port of each system, a fat tree all of them; scale-up joins one system.
    Shapes: broadcast. Units: ports per system [1], radix k [1], result [1]. Valid for radix >= 4.
    Reference: Leiserson, IEEE Trans. Computers 34 (1985); Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3 (k^3/4 hosts).

    >>> float(largest_systems("fat-tree-1:1", 1, 64)), float(largest_systems("rail-optimised", 8, 64, tiers=1))
    (65536.0, 64.0)
    """
    if design == "scale-up":
        return np.ones(np.broadcast(ports_per_system, radix).shape)[()]
    k = np.asarray(radix, float)
    down, _ = _leaf_ports(design, k)
    ports = (k, k * down, k * np.floor(k / 2.0) * down)[tiers - 1]
    per_tree = 1.0 if design == "rail-optimised" else np.asarray(ports_per_system, float)
    return np.floor(ports / per_tree + np.zeros(np.shape(ports_per_system)))[()]


def tiers_needed(design: str, systems: ArrayLike, ports_per_system: ArrayLike, radix: ArrayLike) -> Result:
    """Fewest tiers that join so many systems: 0 for scale-up or a single system, -1 where three do not suffice.

    Shapes: broadcast. Units: systems, ports per system, radix, result [1].
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3.

    >>> [int(tiers_needed("rail-optimised", n, 8, 64)) for n in (1, 64, 65, 2048, 2049)]
    [0, 1, 2, 2, 3]
    """
    systems = np.asarray(systems, float)
    if design == "scale-up":
        return np.where(systems <= 1, 0, -1)[()]
    reach = [largest_systems(design, ports_per_system, radix, tiers) for tiers in range(1, MAX_TIERS + 1)]
    conditions = [systems <= 1, *(systems <= limit for limit in reach)]
    return np.select(conditions, [0, 1, 2, 3], -1)[()]


def fabric_counts(design: str, systems: ArrayLike, ports_per_system: ArrayLike, radix: ArrayLike) -> FabricCounts:
    """Switches and links of a whole fabric, in whole switches at each tier.

    Per tree of n ports, leaves with d down and u up: leaves ceil(n/d); two tiers: spines ceil(leaves u / k); three tiers:
    aggregation ceil(leaves u / (k/2)), core ceil(leaves u / k); links n + leaves u (tiers - 1).
    Shapes: broadcast over systems and radix. Units: [1] throughout.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3; Wang et al., Rail-only, arXiv:2307.12169, section 4.

    >>> counts = fabric_counts("fat-tree-1:1", 64, 8, 64)
    >>> int(counts.tiers), float(counts.switches), float(counts.host_links), float(counts.switch_links)
    (2, 24.0, 512.0, 512.0)
    """
    systems, ports, k = np.broadcast_arrays(*(np.asarray(a, float) for a in (systems, ports_per_system, radix)))
    tiers = tiers_needed(design, systems, ports, k)
    if design == "scale-up":
        zero = np.zeros(systems.shape)[()]
        return FabricCounts(tiers, zero, zero, zero)
    trees, per_tree = (ports, systems) if design == "rail-optimised" else (1.0, systems * ports)
    down, up = _leaf_ports(design, k)
    leaves = np.ceil(per_tree / down)
    uplinks = leaves * up
    spines = np.ceil(uplinks / k)
    aggregation = np.ceil(uplinks / np.floor(k / 2.0))
    switches = np.select([tiers == 1, tiers == 2, tiers == 3], [1.0, leaves + spines, leaves + aggregation + spines], 0.0)
    between = np.select([tiers == 2, tiers == 3], [uplinks, 2.0 * uplinks], 0.0)
    hosts = np.where(tiers > 0, per_tree, 0.0)
    return FabricCounts(tiers, (trees * switches)[()], (trees * hosts)[()], (trees * between)[()])


def parts_per_port(design: str, tiers: int, radix: ArrayLike) -> tuple[Result, Result]:
    """(switches, links between switches) per NIC port of a large fabric: the slope of `fabric_counts`.

    One tier: 1/k and 0. More: switches 1/d + (u/d)/k + [t = 3] (u/d)/(k/2), links (t - 1) u/d, with d and u the ports of
    a leaf down and up; without taper this is (2 t - 1)/k and t - 1.
    Shapes: as radix. Units: [1] per port.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3 (5 k^2/4 switches for k^3/4 hosts).

    >>> switches, links = parts_per_port("fat-tree-1:1", 3, 64)
    >>> float(switches * 64), float(links)
    (5.0, 2.0)
    """
    k = np.asarray(radix, float)
    if design == "scale-up" or tiers == 0:
        return np.zeros(k.shape)[()], np.zeros(k.shape)[()]
    if tiers == 1:
        return (1.0 / k)[()], np.zeros(k.shape)[()]
    down, up = _leaf_ports(design, k)
    uplinks = up / down
    aggregation = uplinks / np.floor(k / 2.0) if tiers == MAX_TIERS else 0.0
    return (1.0 / down + uplinks / k + aggregation)[()], (uplinks * (tiers - 1))[()]


def bisection_fraction(design: str, tiers: int) -> float:
    """Share of the injection bandwidth that crosses the middle: 1 if non-blocking, 1/2 for 2:1 of two tiers or more, 0 without network.

    Rails: the share between systems on the same rail. Units: tiers [1], result [1].
    Reference: Dally and Towles, Principles and Practices of Interconnection Networks (2004), section 3.3 (bisection).

    >>> bisection_fraction("fat-tree-2:1", 2), bisection_fraction("fat-tree-2:1", 1), bisection_fraction("scale-up", 0)
    (0.5, 1.0, 0.0)
    """
    if design == "scale-up":
        return 0.0
    return 1.0 / _down_per_up(design) if tiers > 1 else 1.0


def scaleout_bytes_per_s(
    design: str, nic_bytes_per_s: ArrayLike, group_systems: ArrayLike, ports_per_system: ArrayLike, radix: ArrayLike
) -> Result:
    """Bandwidth per chip and direction that a group of systems can count on when all its chips send at once.

    The NIC's rate while the group fits under one leaf (rails: one leaf per rail), else the rate times the bisection
    fraction; groups placed leaf by leaf. A single system uses no fabric and is given the full rate.
    Shapes: broadcast. Units: rate [byte/s], counts [1], result [byte/s]. Uniform traffic; a ring crosses a leaf boundary
    with few of its links and keeps the full rate, so this is the cautious figure.
    Reference: Dally and Towles (2004), section 3.3 (throughput bound by the bisection).

    >>> [float(scaleout_bytes_per_s("fat-tree-2:1", 50e9, n, 8, 64)) / 1e9 for n in (1, 5, 6)]
    [50.0, 50.0, 25.0]
    """
    rate, group = np.broadcast_arrays(np.asarray(nic_bytes_per_s, float), np.asarray(group_systems, float))
    if design == "scale-up":
        return np.where(group <= 1, rate, 0.0)[()]
    down, _ = _leaf_ports(design, radix)
    per_leaf = down if design == "rail-optimised" else np.floor(down / np.asarray(ports_per_system, float))
    return (rate * np.where((group <= 1) | (group <= per_leaf), 1.0, bisection_fraction(design, 2)))[()]


def switch_hops(tiers: ArrayLike) -> Result:
    """Switches on the longest shortest path: 2 t - 1, and 0 without a network.

    Shapes: as the argument. Units: [1].
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3.

    >>> [int(switch_hops(t)) for t in (0, 1, 2, 3)]
    [0, 1, 3, 5]
    """
    tiers = np.asarray(tiers)
    return np.where(tiers > 0, 2 * tiers - 1, 0)[()]


def fabric_price(
    counts: FabricCounts, switch_price: ArrayLike, host_link_price: ArrayLike, switch_link_price: ArrayLike
) -> Result:
    """Purchase price:  N_switch p_switch + N_host p_host + N_between p_between, cables with both their transceivers.

    Shapes: broadcast. Units: prices [money each], result [money].
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4 (switches and transceivers as the cost of a network).

    >>> float(fabric_price(fabric_counts("rail-optimised", 64, 8, 64), 50_000, 1_325, 1_240)) / 64
    16850.0
    """
    return counts.switches * switch_price + counts.host_links * host_link_price + counts.switch_links * switch_link_price


def fabric_power_w(counts: FabricCounts, switch_power_w: ArrayLike, optic_power_w: ArrayLike) -> Result:
    """Power of switches and of the optics at both ends of every link:  N_switch P_s + 2 N_link P_o.

    Shapes: broadcast. Units: power of a switch, of one end of a link, result [W]. All links optical: an upper figure
    where hosts are cabled in copper.
    Reference: Wang et al., Rail-only, arXiv:2307.12169, section 4.

    >>> float(fabric_power_w(fabric_counts("rail-optimised", 64, 8, 64), 747.0, 8.0)) / 64
    221.375
    """
    return counts.switches * switch_power_w + 2.0 * (counts.host_links + counts.switch_links) * optic_power_w
