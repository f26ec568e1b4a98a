"""Folded Clos trees of one to three tiers: parts, bisection, hops, and what uniform traffic gets through.

A tree is `columns` columns of `per_column` end ports each: a fat tree is one column of all ports; on rails, port i of every
system is in column i, so that a leaf joins ports of one rail only. Columns share one spine or have each their own. Prices and
the designs that a user can name are in `designs`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats

MAX_TIERS = 3
NONE = -1  # tiers of a tree that cannot hold so many ports


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole tree; arrays over its size. Where `tiers` is -1 it cannot be built and the other figures mean nothing."""

    tiers: Floats | int
    switches: Floats | float
    switch_links: Floats | float  # between switches
    bisection_links: Floats | float  # first half of every column against the second half
    uniform_share: Floats | float  # share of the port's rate, when every port sends to all others alike
    mean_hops: Floats | float  # links between two different ports, shortest path, mean
    most_hops: Floats | float


def leaf_ports(radix: ArrayLike, taper: ArrayLike) -> tuple[Floats, Floats]:
    """Split the ports of a leaf into (down, up):  u = floor(k / (1 + taper)), d = min(k - u, floor(taper u)).

    Shapes: broadcast. Units: radix k [1], taper (ports down per port up) [1], results [1]. Valid for radix >= 2 + taper.
    Reference: Leiserson, IEEE Trans. Computers 34 (1985) (capacities that thin out towards the root).

    >>> [tuple(map(float, leaf_ports(64, t))) for t in (1, 2, 3)]
    [(32.0, 32.0), (42.0, 21.0), (48.0, 16.0)]
    """
    k, ratio = np.asarray(radix, float), np.asarray(taper, float)
    up = np.floor(k / (1.0 + ratio))
    return np.minimum(k - up, np.floor(ratio * up)), up


def rows_reach(radix: ArrayLike, columns: ArrayLike, tiers: int) -> Floats:
    """Count the most rows of leaves, one leaf per column, that a spine of a number of tiers joins.

    Two tiers: a spine switch reaches each of k leaves. Three: k blocks of whole rows, each within k/2 leaves.
    Shapes: broadcast. Units: [1] throughout. Valid for two or three tiers.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3 (k pods of k/2 leaves).

    >>> float(rows_reach(64, 1, 2)), float(rows_reach(64, 8, 2)), float(rows_reach(64, 8, 3))
    (64.0, 8.0, 256.0)
    """
    k, c = np.asarray(radix, float), np.asarray(columns, float)
    rows: Floats = np.floor(k / c) if tiers == 2 else k * np.floor(np.floor(k / 2.0) / c)
    return rows


def tiers_of_tree(per_column: ArrayLike, columns: ArrayLike, radix: ArrayLike, taper: ArrayLike) -> Floats:
    """Count the fewest tiers that join all ports: 0 for none, 1 where one switch holds them, -1 where three tiers do not suffice.

    Shapes: broadcast. Units: [1] throughout.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3.

    >>> tiers_of_tree([0, 64, 65, 2049, 1e6], 1, 64, 1).tolist()
    [0, 1, 2, 3, -1]
    """
    ends, c, k = (np.asarray(a, float) for a in (per_column, columns, radix))
    rows = np.ceil(ends / leaf_ports(k, taper)[0])
    conditions = [ends * c <= 0, ends * c <= k, rows <= rows_reach(k, c, 2), rows <= rows_reach(k, c, 3)]
    return np.select(conditions, [0, 1, 2, 3], NONE)


def tree(per_column: ArrayLike, columns: ArrayLike, radix: ArrayLike, taper: ArrayLike, *, joined: bool = True) -> Tree:
    """Count parts and capacities of a tree, or of one tree per column where they are not joined.

    With R = ceil(n / d) rows and u ports up per leaf: U = c R u uplinks; two tiers: c R + ceil(U/k) switches and U links;
    three: ceil(U/(k/2)) aggregation switches and U links more. Columns apart, of one tier, share switches: ceil(c / floor(k/n)). Bisection with R even c u R/2, else half a leaf's ports more.
    Uniform traffic leaves a leaf at most at u (N - 1) / (d (N - d)). Hops 2 under one leaf, 4 in one block, else 6.
    Shapes: broadcast over ports per column n, columns c, radix k, taper. Units: [1] throughout; N = c n, or n if not joined.
    Leaves are filled in order; an upper bound of the bisection where the middle runs through a block of three tiers.
    Reference: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3; Dally and Towles, Principles and Practices of
    Interconnection Networks (2004), section 3.3 (bisection, channel load).

    >>> one = tree(512, 1, 64, 1)
    >>> int(one.tiers), float(one.switches), float(one.switch_links), float(one.bisection_links), float(one.uniform_share)
    (2, 24.0, 512.0, 256.0, 1.0)
    >>> float(tree(480, 1, 64, 3).bisection_links)
    80.0
    """
    n, c, k, ratio = np.broadcast_arrays(*(np.asarray(a, float) for a in (per_column, columns, radix, taper)))
    copies, c = (1.0, c) if joined else (c, np.ones_like(c))
    down, up = leaf_ports(k, ratio)
    tiers = tiers_of_tree(n, c, k, ratio)
    ends, rows = n * c, np.ceil(n / down)
    uplinks = c * rows * up
    spines, aggregation = np.ceil(uplinks / k), np.ceil(uplinks / np.floor(k / 2.0))
    switches = np.select(
        [tiers == 1, tiers == 2, tiers == 3], [1.0, c * rows + spines, c * rows + aggregation + spines], 0.0
    )
    links = np.select([tiers == 2, tiers == 3], [uplinks, 2.0 * uplinks], 0.0)

    bisection = np.where((tiers > 1) & (rows > 1), c * _column_cut(n, down, up), c * np.floor(n / 2.0))
    many = (tiers > 1) & (ends > down)
    with np.errstate(divide="ignore", invalid="ignore"):
        under = np.minimum(down, n)  # ports of a full leaf
        leaving = up * (ends - 1.0) / (under * np.where(many, ends - under, 1.0))
        share = np.where(many, np.minimum(1.0, leaving), 1.0)
        block = np.maximum(1.0, np.floor(np.floor(k / 2.0) / c)) * down * c  # ports of a block
        in_leaf = np.where(tiers > 1, _same_part(n, down, c, ends), 1.0)
        in_block = np.where(tiers > 2, _same_part(ends, block, 1.0, ends), 1.0)
    hops = np.where(ends > 1, 6.0 - 2.0 * in_leaf - 2.0 * in_block, 0.0)
    most = np.where(ends > 1, 2.0 * tiers, 0.0)
    # A switch that one column does not fill takes several of them, kept apart.
    together = np.where(tiers == 1, np.maximum(1.0, np.floor(k / np.maximum(n, 1.0))), 1.0) if not joined else 1.0
    parts = (np.ceil(copies / together) * switches, copies * links, copies * bisection, share, hops, most)
    return Tree(tiers[()], *(part[()] for part in parts))


def _column_cut(n: Floats, down: Floats, up: Floats) -> Floats:
    """Compute the least cut between the first half of n ports and the rest, above full leaves: at the leaves of either side.

    A leaf with a ports of the first half and b of the second is cut at min(u + b, a), or at min(u + a, b).
    """
    first = np.floor(n / 2.0)
    whole = np.floor(first / down)
    mixed_first = first - whole * down
    mixed_second = np.where(mixed_first > 0, np.minimum(down, n - whole * down) - mixed_first, 0.0)
    rest = n - first - mixed_second
    last = rest - np.floor(rest / down) * down
    from_first = whole * up + np.minimum(up + mixed_second, mixed_first)
    into_second = np.floor(rest / down) * up + np.minimum(up, last) + np.minimum(up + mixed_first, mixed_second)
    return np.minimum(from_first, into_second)


def _same_part(count: Floats, part: Floats, times: Floats | float, of: Floats) -> Floats:
    """Compute the chance that two different ones of `of` share a part, when `count` fill parts in order, `times` alike."""
    whole = np.floor(count / part)
    rest = count - whole * part
    return times * (whole * part * (part - 1.0) + rest * (rest - 1.0)) / np.where(of > 1, of * (of - 1.0), 1.0)
