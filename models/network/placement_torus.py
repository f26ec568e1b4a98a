"""Placement of the ranks of a parallel run on a torus: each parallel dimension divided over the node and the torus's dimensions.

A factorisation says how many ranks of a dimension lie along x, y, z and within a node; along each of them an order says which
are neighbours. Hierarchies of domains are in `placement`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, permutations, product

import numpy as np

from models.arrays import Floats, sum_of
from models.network.placement import Flow

SHORT_RING = 2  # two nodes share one link
Factors = dict[
    str, tuple[int, ...]
]  # by parallel dimension: ranks within the node, then along each dimension of the torus


@dataclass(frozen=True, slots=True)
class TorusPlacement:
    """`factors[axis]`: ranks within a node and along each dimension; `orders[d]`: the axes along dimension d, nearest first."""

    factors: Mapping[str, tuple[int, ...]]
    orders: tuple[tuple[str, ...], ...]
    loads_s: tuple[float, ...]  # time of the busiest link of each dimension

    @property
    def bottleneck_s(self) -> float:
        return max(self.loads_s, default=0.0)


@dataclass(frozen=True, slots=True)
class TorusPlacements:
    """The best placement, the row-by-row one of the given order (None where it is no product), and the worst, of `tried`."""

    best: TorusPlacement
    given: TorusPlacement | None
    worst: TorusPlacement
    tried: int


def best_torus_placement(
    degrees: Mapping[str, int],
    flows: Sequence[Flow],
    dims: Sequence[int],
    link_bytes_per_s: float,
    *,
    node_chips: int = 1,
) -> TorusPlacements:
    """Find the factorisation and order whose busiest link needs the least time, of all of them.

    Rings run along every dimension that their group spans: the data in as many pieces as dimensions, each piece through the
    dimensions in turn, beginning with another one, half each way around; a ring that spans a whole dimension closes over its wrap,
    any other over its own links. All-to-all goes dimension by dimension; a line winds through its brick, there and back (links
    between its rows are counted for every row, an upper bound).
    Within a node nothing is loaded. Per dimension the order is searched alone, since no load depends on another's order.
    Shapes: scalars. Units: flows [byte per rank and step], link rate [byte/s, one direction], times [s]. Valid where the product
    of the degrees is node_chips times the nodes.
    Reference: Jouppi et al., TPU v4, arXiv:2304.01433, section 2 (parallel dimensions mapped to dimensions of the torus);
    Sack and Gropp, PPoPP 2012, section 3 (all-gather over all dimensions of a torus at once).

    >>> flows = [Flow(("tp",), 4e9), Flow(("dp",), 1e9)]
    >>> found = best_torus_placement({"dp": 16, "tp": 4}, flows, (4, 4, 4), 50e9)
    >>> sorted(found.best.factors["dp"]), found.best.bottleneck_s, found.given.bottleneck_s
    ([1, 1, 4, 4], 0.04, 0.04)
    """
    chips = node_chips * math.prod(dims)
    if math.prod(degrees.values()) != chips:
        raise ValueError(f"degrees make {math.prod(degrees.values())} ranks, but the torus has {chips} chips")
    unknown = {axis for flow in flows for axis in flow.axes} - set(degrees)
    if unknown:
        raise ValueError(f"flows name dimensions without a degree: {', '.join(sorted(unknown))}")
    best = worst = None
    tried = 0
    for factors in factorisations(degrees, (node_chips, *dims)):
        chosen = []
        for d, length in enumerate(dims):
            along = [axis for axis in degrees if factors[axis][d + 1] > 1]
            loads = [
                (_load(factors, flows, d, length, order, node_chips) / link_bytes_per_s, i, order)
                for i, order in enumerate(permutations(along))
            ]
            chosen.append((min(loads), max(loads)))
            tried += len(loads)
        low, high = (
            TorusPlacement(factors, tuple(pick[which][2] for pick in chosen), tuple(pick[which][0] for pick in chosen))
            for which in (0, 1)
        )
        if best is None or (low.bottleneck_s, sum_of(low.loads_s)) < (best.bottleneck_s, sum_of(best.loads_s)):
            best = low
        if worst is None or high.bottleneck_s > worst.bottleneck_s:
            worst = high
    if best is None or worst is None:
        raise ValueError(
            f"the degrees {dict(degrees)} do not fill a torus of {'x'.join(map(str, dims))} nodes of {node_chips} chips evenly"
        )
    row = row_by_row(degrees, (node_chips, *dims))
    return TorusPlacements(
        best,
        None if row is None else place_on_torus(row, flows, dims, link_bytes_per_s, node_chips=node_chips),
        worst,
        tried,
    )


def place_on_torus(
    factors: Mapping[str, tuple[int, ...]], flows: Sequence[Flow], dims: Sequence[int], link_bytes_per_s: float,
    *, orders: Sequence[Sequence[str]] | None = None, node_chips: int = 1,
) -> TorusPlacement:  # fmt: skip
    """Compute the time of the busiest link of each dimension for one factorisation; along a dimension in the order of `factors` by default.

    Shapes: scalars. Units: as `best_torus_placement`. Reference: as `best_torus_placement`.

    >>> place_on_torus({"tp": (1, 4)}, [Flow(("tp",), 1e9)], (4,), 50e9).loads_s
    (0.01,)
    """
    along = (
        [tuple(a for a in factors if factors[a][d + 1] > 1) for d in range(len(dims))]
        if orders is None
        else [tuple(order) for order in orders]
    )
    loads = tuple(
        _load(factors, flows, d, length, along[d], node_chips) / link_bytes_per_s for d, length in enumerate(dims)
    )
    return TorusPlacement(dict(factors), tuple(along), loads)


def factorisations(degrees: Mapping[str, int], sizes: Sequence[int]) -> Iterator[Factors]:
    """Enumerate the ways to write the degrees as products over the sizes such that each size is filled exactly.

    Shapes: scalars. Units: [1]. Reference: as `best_torus_placement`.

    >>> [found["tp"] for found in factorisations({"tp": 2, "dp": 4}, (2, 4))]
    [(2, 1), (1, 2)]
    """
    (axis, degree), *rest = degrees.items()
    ways = product(*([f for f in range(size, 0, -1) if size % f == 0 and degree % f == 0] for size in sizes))
    for way in ways:
        if math.prod(way) != degree:
            continue
        left = [size // f for size, f in zip(sizes, way, strict=True)]
        if rest:
            yield from ({axis: way} | more for more in factorisations(dict(rest), left))
        elif all(size == 1 for size in left):
            yield {axis: way}


def row_by_row(degrees: Mapping[str, int], sizes: Sequence[int]) -> Factors | None:
    """Factorise ranks numbered in the order of the degrees over positions numbered in the order of the sizes; None where that fails.

    Shapes: scalars. Units: [1]. Reference: Bokhari, IEEE Trans. Computers 30 (1981) (mapping as the problem; this is the naive one).

    >>> row_by_row({"tp": 8, "dp": 2}, (4, 4)), row_by_row({"tp": 3, "dp": 4}, (2, 6))
    ({'tp': (4, 2), 'dp': (1, 2)}, None)
    """
    left, factors = list(sizes), {}
    for axis, degree in degrees.items():
        way = [1] * len(sizes)
        for d in range(len(sizes)):
            if all(size == 1 for size in left[:d]):
                way[d] = math.gcd(degree, left[d])
                degree, left[d] = degree // way[d], left[d] // way[d]
        if degree > 1:
            return None
        factors[axis] = tuple(way)
    return factors


def ring_volumes(lengths: Sequence[int]) -> tuple[float, ...]:
    """Count the bytes that a node sends along each dimension when all nodes of a brick gather one byte in all, by pieces.

    Of K = number of dimensions pieces, piece i begins with dimension i: (g - 1)/g of a piece there, then (g' - 1)/g' of the
    1/g that is left to gather, and so on. They add up to 1 - 1/(g g' ...).
    Shapes: lengths of the brick > 1. Units: lengths [1], results [byte per byte].
    Reference: Sack and Gropp, PPoPP 2012, section 3; Jain and Sabharwal, IPDPS 2010 (bucket algorithm, pieces by dimension).

    >>> ring_volumes((4, 4, 4)), ring_volumes((4, 2))
    ((0.328125, 0.328125, 0.328125), (0.5625, 0.3125))
    """
    count = len(lengths)
    volumes = [0.0] * count
    for first in range(count):
        share = 1.0 / count
        for step in range(count):
            d = (first + step) % count
            volumes[d] += share * (lengths[d] - 1) / lengths[d]
            share /= lengths[d]
    return tuple(volumes)


def _load(
    factors: Mapping[str, tuple[int, ...]],
    flows: Sequence[Flow],
    d: int,
    length: int,
    order: Sequence[str],
    node_chips: int,
) -> float:
    """Count the bytes on the busiest link of a dimension, one direction."""
    total = np.zeros(length)
    sizes = tuple(factors[axis][d + 1] for axis in order)
    for flow in flows:
        brick = [math.prod(factors[axis][e] for axis in flow.axes) for e in range(len(next(iter(factors.values()))))]
        members, here = brick[0], brick[d + 1]
        if here == 1:
            continue
        group, outer = math.prod(brick), math.prod(brick[1:])
        covered = _coverage(length, sizes, tuple(axis in flow.axes for axis in order), flow.pattern)
        if flow.pattern == "ring":
            long = [e for e, extent in enumerate(brick[1:]) if extent > 1]
            gathered = (
                flow.bytes_per_rank * group / (group - 1) / members
            )  # by each chip, once the node's own part is in the node
            amount = gathered * ring_volumes([brick[e + 1] for e in long])[long.index(d)] / 2.0 * node_chips
        elif flow.pattern == "line":
            amount = flow.bytes_per_rank / 2.0 * node_chips / members
        else:
            amount = flow.bytes_per_rank / (group - 1) * members * (outer / here) * node_chips
        total += amount * covered
    return float(total.max(initial=0.0))


@lru_cache(maxsize=65536)
def _coverage(length: int, sizes: tuple[int, ...], own: tuple[bool, ...], pattern: str) -> Floats:
    """Count how often each link of one line of a dimension is used in one direction, per unit of each step of a ring, a line, an exchange.

    Link i joins positions i and i + 1, the last one wraps. Each group uses its links in both directions alike.
    """
    positions = np.arange(length).reshape(sizes[::-1])
    axes = list(range(len(sizes)))[::-1]
    inner = [axis for axis, mine in zip(axes, own, strict=True) if mine]
    outer = [axis for axis in axes if axis not in inner]
    table = np.sort(
        positions.transpose(*outer, *inner).reshape(
            -1, math.prod(s for s, mine in zip(sizes, own, strict=True) if mine)
        ),
        axis=1,
    )
    used = np.zeros(length)
    for group in table:
        if pattern == "all-to-all":
            pairs = [(a, b) for i, a in enumerate(group) for b in group[i + 1 :]]
        else:
            pairs = list(pairwise(group))
            pairs += [(group[0], group[-1])] if pattern == "ring" else []
        for i, (a, b) in enumerate(pairs):
            closing = pattern == "ring" and i == len(pairs) - 1
            forward = (
                1.0 if 2 * (b - a) < length or length <= SHORT_RING else 0.0 if 2 * (b - a) > length or closing else 0.5
            )
            if pattern == "ring" and 2 * (b - a) == length and not closing:
                forward = 1.0
            used[a:b] += forward
            used[:a] += 1.0 - forward
            used[b:] += 1.0 - forward
    return used
