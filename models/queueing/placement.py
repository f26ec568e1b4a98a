"""Load of the fullest of several workers among which requests are divided by what they ask for, such as a prefix."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from models.arrays import Floats

_CELLS = 4096  # cells of the load of a worker, from none to all requests
_MET = 6  # items of which every way to meet is counted
_ALONE = 2000  # items whose place is counted one by one; the loads of further ones are normal


def fullest_worker(number: Floats, chance: Floats, workers: float) -> float:
    """Predict the load of the fullest of W workers over the mean, each item on a worker of its own choice at random (hashing):  W E[max S].

    All ways in which the first k items meet on workers are counted; beside them a worker has the load S of the others, independent of
    other workers:  P(max <= s) = sum over partitions of the k items into m blocks of W!/(W - m)! W^-k F(s)^(W - m) prod F(s - p of a block).
    F is that of item i, of a share p_i of the requests, with chance 1/W: large items convolved one by one, the sum of small ones normal.
    Shapes: number of items and chance of each [group], chances adding up to one over all items, the largest first; workers, result [1].
    From 1 to W; 1 for one worker.
    Reference: David and Nagaraja, Order Statistics (2003), section 2.1 (the largest of W); Raab and Steger, Balls into Bins, RANDOM 1998
    (items of one size).

    >>> even = np.full(1, 1e6), np.full(1, 1e-6)
    >>> bool(fullest_worker(*even, 8) < 1.01), round(fullest_worker(np.ones(1), np.ones(1), 8), 2), fullest_worker(*even, 1)
    (True, 8.0, 1.0)
    """
    return _fullest(tuple(number.tolist()), tuple(chance.tolist()), int(workers))


@lru_cache(maxsize=256)
def _fullest(number: tuple[float, ...], chance: tuple[float, ...], workers: int) -> float:
    if workers <= 1:
        return 1.0
    first: list[float] = []
    for count, p in zip(number, chance, strict=True):
        first += [p] * int(min(count, _MET - len(first)))
    below = _below(number, chance, workers, len(first))
    within = np.zeros(len(below))
    for blocks in _partitions(tuple(first)):
        if (m := len(blocks)) <= workers:
            ways = float(np.prod(workers - np.arange(m, dtype=float))) / float(workers) ** len(first)
            within += ways * below ** (workers - m) * np.prod([_shifted(below, b * _CELLS) for b in blocks], axis=0)
    return min(max(float((1.0 - within)[:-1].sum()) / _CELLS * workers, 1.0), float(workers))


def _below(number: tuple[float, ...], chance: tuple[float, ...], workers: int, left_out: int) -> Floats:
    """Compute P(S <= s) of one worker in all cells, without the first items that are left out."""
    q, mean, variance = 1.0 / workers, 0.0, 0.0
    at = np.zeros(_CELLS + 1)
    at[0], counted = 1.0, 0
    for count, p in zip(number, chance, strict=True):
        count, left_out = count - min(left_out, count), max(left_out - int(count), 0)
        single = int(count) if counted + count <= _ALONE and p * _CELLS > 1.0 else 0
        for _ in range(single):
            at = (1.0 - q) * at + q * _moved(at, p * _CELLS)
        counted += single
        mean += (count - single) * p * q
        variance += (count - single) * p * p * q * (1.0 - q)
    at = _moved(_spread(at, float(np.sqrt(variance)) * _CELLS), mean * _CELLS)
    found: Floats = np.minimum(np.cumsum(at), 1.0)
    return found


@lru_cache(maxsize=256)
def _partitions(items: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """List the partitions of items into blocks, each by the sums of its blocks."""
    if not items:
        return ((),)
    found = []
    for blocks in _partitions(items[1:]):
        found.append((items[0], *blocks))
        found += [(*blocks[:i], blocks[i] + items[0], *blocks[i + 1 :]) for i in range(len(blocks))]
    return tuple(found)


def _shifted(below: Floats, cells: float) -> Floats:
    """Return P(S + x <= s), x a number of cells."""
    found: Floats = np.interp(np.arange(len(below)) - cells, np.arange(len(below)), below, left=0.0)
    return found


def _moved(at: Floats, cells: float) -> Floats:
    """Move chances up by a number of cells, those between two cells divided among both; what would pass the end stays there."""
    whole, part = int(cells), cells - int(cells)
    found = np.zeros_like(at)
    for step, share in ((whole, 1.0 - part), (whole + 1, part)):
        if share:
            step = min(step, len(at) - 1)
            found[step:] += share * at[: len(at) - step]
            found[-1] += share * at[len(at) - step :].sum()
    return found


def _spread(at: Floats, deviation: float) -> Floats:
    """Add a normal deviation, in cells, and mean 0; what would pass an end stays there."""
    if deviation < 1e-3:
        return at
    reach = max(int(np.ceil(6.0 * deviation)), 1)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
    wide = np.convolve(at, weights / weights.sum())
    found = wide[reach : reach + len(at)].copy()
    found[0] += wide[:reach].sum()
    found[-1] += wide[reach + len(at) :].sum()
    return found
