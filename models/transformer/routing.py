"""How a gate loads experts: popularity, redundant copies and their placement, capacity, and limits on the domains of a token."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import pdtr, pdtrc

from models.arrays import Floats, Result, as_result

_WIDEN = 1.2  # places in the order of popularity, last over first, that are taken together
_LEAST, _MOST, _FINE = (
    1e-4,
    1e3,
    8.0,
)  # means between which the largest of many numbers is tabulated, and steps of a factor e
_DOUBLINGS = 16  # doublings of the ranks for which a table is kept


@dataclass(frozen=True, slots=True)
class Routing:
    """Statements on the routing of a mixture of experts; a figure left out stays as it is fitted."""

    popularity: float | None = None  # Zipf exponent of how often experts are chosen; 0: all alike; None: as fitted
    imbalance: float | None = (
        None  # load of the fullest rank over the mean, measured; None: by popularity, or as fitted
    )
    redundant: int = 0  # second copies of experts, beyond those that fill up the ranks
    most_domains: int = 0  # that a token may visit, crossing to each once; 0: no limit, a copy for each expert
    capacity_factor: float = inf  # tokens that an expert takes over the mean of all; further ones are dropped
    two_batches: bool = True  # whether one half of a batch may compute while the other exchanges

    def excess(self, experts: int, held: ArrayLike, ranks: ArrayLike) -> Result | None:
        """Return the load of the fullest rank over the mean, as tokens beyond the capacity are dropped; None where it is as fitted.

        Shapes: held [copies of all ranks] and ranks broadcast; result [1]. Reference: `fullest_rank`; GShard, arXiv:2006.16668,
        section 2.2 (expert capacity).

        >>> float(Routing(imbalance=1.5, capacity_factor=1.25).excess(8, 8, 8)), Routing().excess(8, 8, 8)
        (1.25, None)
        """
        if self.imbalance is None and self.popularity is None:
            return None
        n, copies = np.broadcast_arrays(np.asarray(ranks), np.asarray(held))
        if self.imbalance is not None:
            found = np.where(n > 1, self.imbalance, 1.0)
        else:
            a = float(self.popularity or 0.0)
            pairs, place = np.unique(np.stack([copies.ravel(), n.ravel()]), axis=1, return_inverse=True)
            each = np.array([fullest_rank(experts, a, int(h), int(r)) for h, r in pairs.T])
            found = each[place.reshape(-1)].reshape(n.shape)
        return as_result(np.minimum(found, np.maximum(self.capacity_factor, 1.0)))

    def fullest(self, fitted: ArrayLike, experts: int, held: ArrayLike, ranks: ArrayLike) -> Result:
        """Return the load of the fullest rank over the mean: as stated, or else as `fitted`, and within the capacity of experts.

        Shapes: fitted, held [copies of all ranks] and ranks broadcast; result [1]. Reference: `excess`.

        >>> float(Routing().fullest(1.05, 8, 8, 8)), float(Routing(imbalance=1.5).fullest(1.05, 8, 8, 8))
        (1.05, 1.5)
        """
        stated = self.excess(experts, held, ranks)
        return as_result(np.minimum(fitted if stated is None else stated, max(self.capacity_factor, 1.0)))

    def with_chance(
        self, fitted: ArrayLike, experts: int, topk: int, held: ArrayLike, ranks: ArrayLike, tokens: ArrayLike
    ) -> Result:
        """Return the load of the fullest rank over the mean as tokens happen to fall:  1 + sqrt(e^2 + d^2),  e = `fullest` - 1.

        d: excess of the fullest of R ranks over their mean of m k / R choices (`largest_excess`), times the root of (1 - 1/R)(E - k)/(E - 1)
        since the choices of a token are distinct and their sum is known. One choice at least, and no more than all tokens could bring a rank or its experts
        take. A measured imbalance has chance in it. Shapes: all broadcast; tokens m [token]; result [1].
        Reference: Raab and Steger, Balls into Bins, RANDOM 1998; Feller, volume 1, section II.6 (hypergeometric variance).

        >>> one, many = (float(EVEN.with_chance(1.0, 256, 8, 256, 8, tokens)) for tokens in (1, 1e5))
        >>> 2.4 < one < 2.5, 1.0 < many < 1.01
        (True, True)
        """
        lasting = np.asarray(self.fullest(fitted, experts, held, ranks), float)
        if self.imbalance is not None:
            return as_result(lasting)
        m, n = np.maximum(np.asarray(tokens, float), 1.0), np.asarray(ranks, float)
        narrow = np.sqrt((1.0 - 1.0 / n) * (experts - topk) / np.maximum(experts - 1.0, 1.0))
        chance = np.maximum(largest_excess(m * topk / n, n) * narrow, n / (m * topk) - 1.0)
        room = np.maximum(self.capacity_factor, experts / (m * topk))
        most = np.minimum(n * np.minimum(topk, np.asarray(held, float) / n) / topk, room)
        return as_result(np.minimum(1.0 + np.hypot(lasting - 1.0, chance), np.maximum(most, lasting)))

    def kept(self, experts: int, topk: int, tokens: ArrayLike) -> Result:
        """Return the share of tokens that find room at their experts; 1 without a capacity.

        Shapes: as tokens [token of the batch]; result [1]. Reference: `dropped_share`.

        >>> Routing().kept(64, 8, 1000.0)
        1.0
        """
        if self.capacity_factor == inf:
            return 1.0
        return 1.0 - dropped_share(experts, topk, tokens, self.capacity_factor, self.popularity or 0.0)


EVEN = Routing()  # where nothing is stated


@lru_cache(maxsize=1)
def _largest() -> Floats:
    """Tabulate (E[largest] - mean) / sqrt(mean) of R Poisson numbers: rows by the logarithm of the mean, columns by that of R."""
    means = np.exp(np.arange(np.log(_LEAST), np.log(_MOST) + 1.0 / _FINE, 1.0 / _FINE))[:, None]
    numbers = np.arange(np.ceil(_MOST + 14.0 * _MOST**0.5))
    below = np.log(np.maximum(pdtr(numbers, means), 1e-300))
    most = [-np.expm1(2.0**doubling * below).sum(axis=1, keepdims=True) for doubling in range(_DOUBLINGS + 1)]
    table: Floats = (np.concatenate(most, axis=1) - means) / np.sqrt(means)
    return table


def largest_excess(mean: ArrayLike, ranks: ArrayLike) -> Result:
    """Compute by how much the largest of R independent Poisson numbers exceeds their mean l, over that mean:  (sum_j 1 - F(j)^R) / l - 1.

    Read off a table, linear between its entries (the largest within 0.02, beyond a mean of 1 within 0.02 sqrt(l)); beyond 1,000 the excess goes with the root of the mean.
    Shapes: mean [1] and ranks [1] broadcast; result [1]. Valid for R up to 65,536.
    Reference: Raab and Steger, Balls into Bins, RANDOM 1998 (the fullest bin); David and Nagaraja, Order Statistics (2003), chapter 4.

    >>> [round(float(largest_excess(1.0, ranks)), 2) for ranks in (1, 8, 64)]
    [0.0, 1.58, 2.96]
    """
    table, each = _largest(), np.asarray(mean, float)
    x = np.clip(np.log(np.maximum(each, _LEAST) / _LEAST) * _FINE, 0.0, table.shape[0] - 1.001)
    y = np.clip(np.log2(np.asarray(ranks, float)), 0.0, _DOUBLINGS - 0.001)
    i, j = x.astype(np.int64), y.astype(np.int64)
    u, v = x - i, y - j
    low = table[i, j] + v * (table[i, j + 1] - table[i, j])
    high = table[i + 1, j] + v * (table[i + 1, j + 1] - table[i + 1, j])
    return as_result((low + u * (high - low)) / np.sqrt(np.maximum(each, _LEAST)))


@lru_cache(maxsize=64)
def _popularity(experts: int, exponent: float) -> Floats:
    chances: Floats = np.arange(1, experts + 1, dtype=float) ** -exponent
    chances /= chances.sum()
    return chances


@lru_cache(maxsize=64)
def _groups(experts: int, exponent: float) -> tuple[Floats, Floats]:
    """Group experts of nearly equal popularity: (number, mean chance of each); one group where all are alike."""
    if exponent == 0.0:
        return np.array([float(experts)]), np.array([1.0 / experts])
    edges = np.unique(np.minimum(np.rint(_WIDEN ** np.arange(200)), experts).astype(int)) - 1
    edges = np.append(edges, experts) if edges[-1] < experts else edges
    parts = np.split(_popularity(experts, exponent), edges[1:-1])
    return np.array([float(len(part)) for part in parts]), np.array([part.mean() for part in parts])


def popularity(experts: int, exponent: float) -> Floats:
    """Compute the share of choices that fall on each expert, the most popular first:  p_i ~ i^-a, adding up to 1.

    Shapes: result [experts]. Units: [1]. Even for a = 0.
    Reference: Breslau et al., Web Caching and Zipf-like Distributions, INFOCOM 1999 (the family of distributions).

    >>> popularity(4, 0.0).tolist(), popularity(2, 1.0).round(3).tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.667, 0.333])
    """
    return _popularity(experts, float(exponent)).copy()


@lru_cache(maxsize=4096)
def fullest_rank(experts: int, exponent: float, held: int, ranks: int) -> float:
    """Compute the load of the fullest rank over the mean, with `held` copies of experts placed by their load on equally many slots.

    Copies beyond one of each go one by one to the expert with most load per copy; then the fullest copies are placed first, each on
    the least loaded rank with a free slot. Shapes: scalars; held a multiple of ranks, at least experts. Units: [1]. From 1 to ranks.
    Reference: DeepSeek-V3, arXiv:2412.19437, section 3.4 (redundant experts by load); Graham, SIAM J. Appl. Math. 17 (1969) (longest
    first, within 4/3 of the best without the limit on slots).

    >>> fullest_rank(8, 0.0, 8, 4), fullest_rank(4, 9.0, 4, 4) > 3.9, fullest_rank(4, 9.0, 8, 4) < 1.7
    (1.0, True, True)
    """
    loads = _popularity(experts, exponent)
    copies = np.ones(experts, dtype=np.int64)
    heap = [(-float(load), i) for i, load in enumerate(loads)]
    for _ in range(held - experts):
        _, i = heap[0]
        copies[i] += 1
        heapq.heapreplace(heap, (-float(loads[i] / copies[i]), i))
    each = np.sort(np.repeat(loads / copies, copies))[::-1]
    places = [(0.0, 0, rank) for rank in range(ranks)]  # load, copies held, rank
    slots, most = held // ranks, 0.0
    for load in each.tolist():
        filled, count, rank = heapq.heappop(places)
        most = max(most, filled + load)
        if count + 1 < slots:
            heapq.heappush(places, (filled + load, count + 1, rank))
    return max(most * ranks, 1.0)


def dropped_share(experts: int, topk: int, tokens: ArrayLike, capacity_factor: float, exponent: float = 0.0) -> Result:
    """Compute the share of choices beyond the capacity of their expert:  sum_i E[(X_i - C)+] / (m k),  C = max(1, floor(f m k / E)).

    The tokens of an expert are Poisson with mean m k p_i, so E[(X - C)+] = l P(X >= C) - C P(X > C).
    Shapes: as tokens m [token of the batch]; result [1]. Falls with the factor f.
    Reference: Lepikhin et al., GShard, arXiv:2006.16668, section 2.2 (capacity); Fedus, Zoph and Shazeer, Switch Transformers, JMLR 23
    (2022), section 2.2 (capacity factor, dropped tokens).

    >>> [round(float(dropped_share(8, 2, 4000.0, f)), 3) for f in (0.5, 1.0, 1.25)]
    [0.5, 0.013, 0.0]
    """
    m = np.asarray(tokens, float)
    counts, chances = _groups(experts, float(exponent))
    mean = m[..., None] * topk * chances
    room = np.maximum(np.floor(capacity_factor * m * topk / experts), 1.0)[..., None]
    over = np.maximum(mean * pdtrc(room - 1.0, mean) - room * pdtrc(room, mean), 0.0)
    asked = np.maximum(m * topk, 1e-300)
    return as_result(np.where(m > 0.0, np.clip(over @ counts / asked, 0.0, 1.0), 0.0))
