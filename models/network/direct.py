"""Networks whose nodes or routers are joined directly: the torus of up to three dimensions, and the dragonfly.

Parts, bisection, hops and what uniform traffic gets through; prices and the designs that a user can name are in `designs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, as_result, sum_of

LONGEST = 2.0  # times the root of the nodes
SHORT_RING = 2  # two nodes share one link, not two


@dataclass(frozen=True, slots=True)
class Torus:
    """A whole torus; arrays over its dimensions. Links are counted once for both directions."""

    nodes: Floats | float
    links: Floats | float
    links_between_bricks: Floats | float  # links that leave a brick (a rack)
    bisection_links: Floats | float
    uniform_links: Floats | float  # rate of a node over that of a link, when all nodes send to all others alike
    mean_hops: Floats | float
    most_hops: Floats | float


def ring_links(length: ArrayLike) -> Floats:
    """Count the links of a ring: its length, 1 for two nodes, 0 for one.

    Shapes: as length. Units: [1].
    Reference: Dally and Towles, Principles and Practices of Interconnection Networks (2004), section 5.1 (k-ary n-cubes).

    >>> ring_links([1, 2, 3, 4]).tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    m = np.asarray(length, float)
    return np.where(m > SHORT_RING, m, m - 1.0)


def mean_ring_distance(length: ArrayLike) -> Floats:
    """Compute the mean distance from a node of a ring to all its nodes, itself included:  floor(m^2 / 4) / m.

    Shapes: as length. Units: [1].
    Reference: Dally and Towles (2004), section 5.2, equation 5.3 (k/4 for even k, k/4 - 1/(4 k) for odd k).

    >>> mean_ring_distance([1, 2, 4, 5]).tolist()
    [0.0, 0.5, 1.0, 1.2]
    """
    m = np.asarray(length, float)
    distance: Floats = np.floor(m * m / 4.0) / m
    return distance


def torus(x: ArrayLike, y: ArrayLike = 1, z: ArrayLike = 1, *, brick: Sequence[ArrayLike] = (1, 1, 1)) -> Torus:
    """Count parts and capacities of an x by y by z torus.

    Links n/m rings(m) per dimension of length m. Bisection: the least over the orders of the dimensions of
    w_1 C_1 + w_2 C_2 + ... up to the first even one, C_i the product of the dimensions after it and w = 2 cut links per ring (1 for two
    nodes). Uniform traffic: r <= 2 rings(m)/m (n - 1)/n / mean distance in every dimension, in links. Mean hops:
    sum of mean distances times n/(n - 1), most: sum of floor(m / 2).
    Shapes: broadcast. Units: [1] throughout. `brick` must divide the dimensions.
    Reference: Aroca and Fernandez Anta, IEEE Trans. Parallel and Distributed Systems 25 (2014), theorem on tori (bisection);
    Dally and Towles (2004), sections 5.2 and 3.3; Jouppi et al., TPU v4, arXiv:2304.01433, section 2 (bricks of 4^3 in a rack).

    >>> pod = torus(16, 16, 16, brick=(4, 4, 4))
    >>> float(pod.links), float(pod.links_between_bricks), float(pod.bisection_links), float(pod.most_hops)
    (12288.0, 3072.0, 512.0, 24.0)
    """
    dims = tuple(np.broadcast_arrays(*(np.asarray(a, float) for a in (x, y, z))))
    nodes = dims[0] * dims[1] * dims[2]
    links = sum_of(nodes / m * ring_links(m) for m in dims)
    bricks = (np.asarray(side, float) for side in brick)
    between = sum_of(
        nodes / m * np.where(side < m, np.minimum(m / side, ring_links(m)), 0.0)
        for m, side in zip(dims, bricks, strict=True)
    )
    cuts = []
    for order in permutations(dims):
        cut, rest, open_ = np.zeros_like(nodes), nodes, np.ones(nodes.shape, bool)
        for m in order:
            rest = rest / m
            cut = cut + np.where(open_, np.where(m > SHORT_RING, 2.0, m - 1.0) * rest, 0.0)
            open_ = open_ & (m % 2 == 1)
        cuts.append(cut)
    others = np.maximum(nodes - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = [2.0 * ring_links(m) / m * others / nodes / mean_ring_distance(m) for m in dims]
    rate = np.fmin.reduce([np.where(m > 1, rate, np.inf) for m, rate in zip(dims, rates, strict=True)])
    hops = sum_of(mean_ring_distance(m) for m in dims) * nodes / others
    most = sum_of(np.floor(m / 2.0) for m in dims)
    return Torus(*(as_result(part) for part in (nodes, links, between, np.minimum.reduce(cuts), rate, hops, most)))


@lru_cache(maxsize=4096)
def torus_dims(nodes: int, most: int = 3) -> tuple[int, int, int]:
    """Choose the dimensions, at most `most` of them longer than one, of a torus for a number of nodes: fewest nodes, then shortest longest side.

    No dimension is longer than twice the root of the nodes, since the longest one bounds uniform traffic; numbers without
    such a product get some spare nodes. Shapes: scalars. Units: [1].
    Reference: Dally and Towles (2004), section 5.2 (throughput of tori falls with the longest dimension).

    >>> torus_dims(64), torus_dims(16), torus_dims(97), torus_dims(100, 2), torus_dims(2)
    ((4, 4, 4), (4, 4, 1), (7, 7, 2), (10, 10, 1), (2, 1, 1))
    """
    longest = LONGEST * nodes ** (1.0 / most) if most > 1 else nodes
    found = []
    for z in range(1, math.floor(nodes ** (1 / 3) + 1e-9) + 2 if most > 2 else 2):
        for y in range(z, math.floor(math.sqrt(nodes / z) + 1e-9) + 2 if most > 1 else 2):
            x = math.ceil(nodes / (y * z))
            if y <= x <= max(longest, 2.0):
                found.append((x * y * z, x, -y, (x, y, z)))
    return min(found)[-1]


@lru_cache(maxsize=4096)
def rack_brick(dims: tuple[int, int, int], rack_nodes: int) -> tuple[int, int, int]:
    """Choose the brick of at most a number of nodes that divides the torus evenly and that fewest links leave.

    Shapes: scalars. Units: [1].
    Reference: Jouppi et al., TPU v4, arXiv:2304.01433, section 2 (4 x 4 x 4 in a rack, copper within, optics between).

    >>> rack_brick((16, 16, 16), 64), rack_brick((4, 4, 2), 8)
    ((4, 4, 4), (2, 2, 2))
    """
    sides = [[s for s in range(1, m + 1) if m % s == 0 and s <= rack_nodes] for m in dims]
    bricks = [(a, b, c) for a in sides[0] for b in sides[1] for c in sides[2] if a * b * c <= rack_nodes]
    return min(bricks, key=lambda brick: (float(torus(*dims, brick=brick).links_between_bricks), max(brick), brick))


@dataclass(frozen=True, slots=True)
class Dragonfly:
    """A whole dragonfly; arrays over its size. `holds` False where there are more ports than a full one has."""

    holds: Bools | bool
    groups: Floats | float
    switches: Floats | float
    local_links: Floats | float
    global_links: Floats | float
    bisection_links: Floats | float  # lower half of the groups against the upper half
    uniform_share: Floats | float  # share of the port's rate, when every port sends to all others alike
    mean_hops: Floats | float  # by minimal routes: at most one global link
    most_hops: Floats | float


def balanced_dragonfly(radix: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Balance a dragonfly: (ports per router p, routers per group a, global links per router h) with a = 2 p = 2 h:  h = floor((k + 1) / 4).

    Shapes: as radix. Units: radix k [1], results [1]. Valid for radix >= 3; a router uses p + a - 1 + h = 4 h - 1 ports.
    Reference: Kim, Dally, Scott and Abts, ISCA 2008, section 3.1 (balanced dragonfly).

    >>> [float(part) for part in balanced_dragonfly(64)]
    [16.0, 32.0, 16.0]
    """
    h = np.floor((np.asarray(radix, float) + 1.0) / 4.0)
    return h, 2.0 * h, h


def dragonfly(ends: ArrayLike, radix: ArrayLike) -> Dragonfly:
    """Count parts and capacities of a balanced dragonfly built in whole groups of full meshes.

    g = ceil(n / (a p)) groups, at most a h + 1; m = floor(a h / (g - 1)) global links between each two. Bisection
    floor(g/2) ceil(g/2) m links; of one group, a^2/4 local ones. Uniform traffic r <= m (n - 1)/(a p)^2 for the global links
    and r <= (n - 1)/(p (p + 2 (n - a p)/a)) for the local ones. Hops: 2 at one router, 3 in a group; to another group, with M = min(m, a)
    routers that have a link there, 2 + (M + 2 (2 M a - M^2 - M) + 3 (a - M)^2) / a^2.
    Shapes: broadcast over ports n and radix k. Units: [1] throughout. Exact for whole groups.
    Reference: Kim, Dally, Scott and Abts, ISCA 2008, sections 3.1 and 4 (N = a p (a h + 1), minimal routes).

    >>> full = dragonfly(1056, 15)
    >>> float(full.groups), float(full.switches), float(full.global_links), float(full.uniform_share)
    (33.0, 264.0, 528.0, 1.0)
    """
    n, k = np.broadcast_arrays(np.asarray(ends, float), np.asarray(radix, float))
    p, a, h = balanced_dragonfly(k)
    groups = np.ceil(n / (a * p))
    others = np.maximum(groups - 1.0, 1.0)
    pair = np.where(groups > 1, np.floor(a * h / others), 0.0)
    full = groups * a * p
    half = np.floor(groups / 2.0)
    across = np.minimum(half * (groups - half) * pair, np.maximum(n - half * a * p, 0.0))
    bisection = np.where(groups > 1, across, np.minimum(a * a / 4.0, np.floor(n / 2.0)))
    rest = np.maximum(full - 1.0, 1.0)
    by_global = np.where(groups > 1, pair * rest / (a * p) ** 2, np.inf)
    by_local = np.where(a > 1, rest / (p * (p + 2.0 * (full - a * p) / a)), np.inf)
    near, far = a * p, full - a * p
    m = np.minimum(pair, a)
    away = 2.0 + (m + 2.0 * (2.0 * m * a - m * m - m) + 3.0 * (a - m) ** 2) / (a * a)
    hops = (2.0 * (p - 1.0) + 3.0 * (near - p) + away * far) / rest
    most = np.where(groups > 1, np.where(m < a, 5.0, 4.0), 3.0)
    holds = groups <= a * h + 1.0
    parts = (groups * a, groups * a * (a - 1.0) / 2.0, groups * (groups - 1.0) / 2.0 * pair, bisection)
    share = np.minimum(1.0, np.minimum(by_global, by_local))
    return Dragonfly(holds[()], groups[()], *(part[()] for part in (*parts, share, hops, most)))
