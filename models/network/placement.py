"""Placement of the ranks of a parallel run: the order of the parallel dimensions that loads the busiest links least.

A fabric is a hierarchy here: domains within domains, each with what its chips can send out of it. Ranks fill positions in
order, the first dimension fastest. Tori are in `placement_torus`; the bandwidth of one group alone is in `group_links`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, as_result, sum_of

PATTERNS = ("ring", "line", "all-to-all")


@dataclass(frozen=True, slots=True)
class Flow:
    """Traffic of a step within each group of ranks that differ in the named dimensions only.

    ring: every rank sends `bytes_per_rank` to the next of its group, nearest first, closed (all-reduce, all-gather);
    line: half of it to the next and half to the one before, ends apart (pipeline); all-to-all: the same part to every other rank.
    """

    axes: tuple[str, ...]
    bytes_per_rank: float
    pattern: str = "ring"

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise ValueError(f"unknown pattern {self.pattern!r}; known: {', '.join(PATTERNS)}")


@dataclass(frozen=True, slots=True)
class Level:
    """Domains of `chips` neighbours; `bytes_per_s` is what each of them can send out of its domain, all at once, one direction."""

    chips: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Placement:
    """One order of the dimensions, fastest first: per level the time of the busiest way out of a domain, for all flows and for each alone."""

    order: tuple[str, ...]
    loads_s: tuple[float, ...]
    flows_s: tuple[tuple[float, ...], ...]  # [level][flow]

    @property
    def bottleneck_s(self) -> float:
        return max(self.loads_s, default=0.0)


@dataclass(frozen=True, slots=True)
class Placements:
    """The best order, the one that was given, and the worst, of `tried`."""

    best: Placement
    given: Placement
    worst: Placement
    tried: int


def crossing_share(inside: ArrayLike, group: ArrayLike, pattern: str) -> Floats | float:
    """Compute the share of a rank's traffic that leaves a domain with r of the g members of its group, mean over the r.

    Ring 1/r and line 1/r (of two domains 1/(2 r), since an end has one neighbour); all-to-all (g - r)/(g - 1); 0 for r = g.
    Shapes: broadcast. Units: counts [1], result [1]. Valid where every domain that the group touches holds r members.
    Reference: Cho et al., BlueConnect, MLSys 2019, section 3 (a ring crosses a boundary once for all members within it).

    >>> [float(crossing_share(8, 32, p)) for p in ("ring", "line", "all-to-all")], float(crossing_share(4, 4, "ring"))
    ([0.125, 0.125, 0.7741935483870968], 0.0)
    """
    r, g = np.asarray(inside, float), np.asarray(group, float)
    share = (g - r) / np.maximum(g - 1.0, 1.0) if pattern == "all-to-all" else 1.0 / r
    if pattern == "line":
        share = np.where(g == 2.0 * r, share / 2.0, share)
    return as_result(np.where(r < g, share, 0.0))


def best_placement(degrees: Mapping[str, int], flows: Sequence[Flow], levels: Sequence[Level]) -> Placements:
    """Find the order of dimensions whose busiest domain boundary needs the least time, of all orders.

    min over orders of max over levels l of sum over flows V_f share_f,l / beta_l. Exact: every order is tried, and where a
    domain's boundary cuts through a group unevenly, the links are counted one by one. Ties go to the less total load, then
    to the given order. Shapes: scalars. Units: bytes of a flow [byte per rank and step], rates [byte/s], times [s].
    Reference: Narayanan et al., arXiv:2104.04473, section 3 (which dimension within a server); mapping as in Bokhari,
    IEEE Trans. Computers 30 (1981).

    >>> flows = [Flow(("tp",), 8e9), Flow(("dp",), 1e9), Flow(("pp",), 1e8, "line")]
    >>> found = best_placement({"dp": 4, "pp": 2, "tp": 8}, flows, [Level(8, 50e9), Level(32, 25e9)])
    >>> found.best.order, round(found.best.bottleneck_s, 3), round(found.given.bottleneck_s, 3)
    (('tp', 'dp', 'pp'), 0.021, 0.16)
    """
    unknown = {axis for flow in flows for axis in flow.axes} - set(degrees)
    if unknown:
        raise ValueError(f"flows name dimensions without a degree: {', '.join(sorted(unknown))}")
    moving = [axis for axis in degrees if degrees[axis] > 1]
    alone = tuple(axis for axis in degrees if degrees[axis] == 1)
    found = [place_in_order((*order, *alone), degrees, flows, levels) for order in permutations(moving)]
    ranking = sorted(range(len(found)), key=lambda i: (found[i].bottleneck_s, sum_of(found[i].loads_s), i))
    return Placements(found[ranking[0]], found[0], found[ranking[-1]], len(found))


def place_in_order(
    order: Sequence[str], degrees: Mapping[str, int], flows: Sequence[Flow], levels: Sequence[Level]
) -> Placement:
    """Compute the time of every flow over every level's busiest boundary for one order of the dimensions, fastest first.

    Shapes: scalars. Units: as `best_placement`.
    Reference: as `best_placement`.

    >>> place_in_order(("dp", "tp"), {"tp": 2, "dp": 2}, [Flow(("tp",), 1e9)], [Level(2, 1e9)]).loads_s
    (1.0,)
    """
    strides = dict(zip(order, np.cumprod([1, *(degrees[axis] for axis in order)])[:-1].tolist(), strict=True))
    loads, flows_s = [], []
    for level in levels:
        # [flow, domain] bytes per chip of the domain; one domain stands for all where they are alike
        out = [
            flow.bytes_per_rank * share
            for flow, share in zip(flows, _shares(flows, degrees, strides, level.chips), strict=True)
        ]
        loads.append(_time_s(max(sum_of(out, np.zeros(1)).tolist(), default=0.0), level.bytes_per_s))
        flows_s.append(tuple(_time_s(max(one), level.bytes_per_s) for one in out))
    return Placement(tuple(order), tuple(loads), tuple(flows_s))


def _time_s(size_bytes: float, bytes_per_s: float) -> float:
    return 0.0 if size_bytes == 0.0 else float(size_bytes / bytes_per_s) if bytes_per_s > 0.0 else math.inf


def _shares(flows: Sequence[Flow], degrees: Mapping[str, int], strides: Mapping[str, int], chips: int) -> list[Floats]:
    """Count, per flow, the bytes that leave each domain per chip of it and per byte of the flow."""
    members = {axis: _members(strides[axis], degrees[axis], chips) for axis in degrees}
    if not all(members.values()):
        return [_counted(flow, degrees, strides, chips) for flow in flows]
    shares = []
    for flow in flows:
        inside, group = (math.prod(of[axis] for axis in flow.axes) for of in (members, degrees))
        shares.append(np.array([crossing_share(inside, group, flow.pattern)]))
    return shares


def _members(stride: int, degree: int, chips: int) -> int:
    """Count the members of a group in each domain that it touches; 0 where that is not the same number everywhere."""
    if stride % chips == 0:
        return 1
    if chips % stride:
        return 0
    within = chips // stride
    if within % degree == 0:
        return degree
    return within if degree % within == 0 else 0


def _counted(flow: Flow, degrees: Mapping[str, int], strides: Mapping[str, int], chips: int) -> Floats:
    """Count the shares link by link over all ranks."""
    order = sorted(degrees, key=lambda axis: (strides[axis], degrees[axis] > 1))
    ranks = np.arange(math.prod(degrees.values())).reshape([degrees[axis] for axis in reversed(order)])
    own = [order[::-1].index(axis) for axis in flow.axes]
    others = [i for i in range(ranks.ndim) if i not in own]
    table = np.sort(ranks.transpose(*others, *own).reshape(-1, math.prod(degrees[axis] for axis in flow.axes)), axis=1)
    domain, group = table // chips, table.shape[1]
    out = np.zeros(ranks.size // chips + 1)
    if group == 1:
        return out
    if flow.pattern == "all-to-all":
        for member in range(group):
            away = (domain != domain[:, member : member + 1]).sum(axis=1) / (group - 1)
            np.add.at(out, domain[:, member], away)
    else:
        amount = 0.5 if flow.pattern == "line" else 1.0
        here, there = (
            (domain, np.roll(domain, -1, axis=1)) if flow.pattern == "ring" else (domain[:, :-1], domain[:, 1:])
        )
        np.add.at(out, here[here != there], amount)
        if flow.pattern == "line":
            np.add.at(out, there[here != there], amount)
    return out / chips
