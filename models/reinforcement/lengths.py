"""Lengths of responses: gamma lengths cut off at a limit, and how a batch of them runs through a fixed number of slots, in decode steps.

What a step costs is in rollout.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc

from models.arrays import Floats, Result, as_result

LEAST_CV = 0.02  # below which all lengths are taken as equal
LARGEST_SCALE = 1e4  # mean before the limit over the limit, beyond which every response is cut off
CELLS_PER_MEAN = 32.0  # of the grid of lengths
FEWEST_CELLS, MOST_CELLS = 128, 1024
WAVES = 4  # lengths of the limit over which starts are followed one by one; their rate is constant after that
MOST_ENDLESS_TOKENS = 0.25  # share of all tokens that responses without an end make
NODES = 32  # of the tail's axis
EQUILIBRIUM_CELLS = 512


@dataclass(frozen=True, slots=True)
class ResponseLengths:
    """Tokens of a response: mean as it comes out, coefficient of variation before the limit, the limit at which it is cut off, and the share that
    never ends by itself, as when a policy repeats itself."""

    mean_tokens: float
    cv: float
    limit_tokens: float
    endless: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.mean_tokens <= self.limit_tokens or self.cv < 0.0:
            raise ValueError(
                f"a mean of {self.mean_tokens:g} tokens does not lie above 0 and within the limit of {self.limit_tokens:g}, "
                f"or a variation of {self.cv:g} is negative"
            )

    @property
    def endless_share(self) -> float:
        """Return the share that runs to the limit whatever the others do; they make at most a quarter of all tokens."""
        return min(self.endless, MOST_ENDLESS_TOKENS * self.mean_tokens / self.limit_tokens)

    @property
    def ending_mean_tokens(self) -> float:
        """Compute the mean of the others [token]."""
        share = self.endless_share
        return (self.mean_tokens - share * self.limit_tokens) / (1.0 - share)


def uncut_mean_tokens(lengths: ResponseLengths) -> float:
    """Compute the mean m before the limit L of gamma lengths, those that end by themselves, whose mean after it is given:  E[min(X, L)] = m P(k+1, kL/m) + L Q(k, kL/m).

    k = 1/cv^2; P and Q are the regularised incomplete gamma functions. Shapes: numbers. Units: [token]. Infinite where every response
    reaches the limit. Reference: Klugman, Panjer and Willmot, Loss Models, 4th ed. (2012), appendix A (limited expected value).

    >>> round(uncut_mean_tokens(ResponseLengths(1000.0, 1.0, 1e6))), round(uncut_mean_tokens(ResponseLengths(800.0, 1.0, 1000.0)))
    (1000, 2154)
    """
    cv, limit, mean = lengths.cv, lengths.limit_tokens, lengths.ending_mean_tokens
    if cv < LEAST_CV or mean >= limit:
        return mean
    shape = cv**-2.0

    def cut(uncut: float) -> float:
        at = shape * limit / uncut
        return float(uncut * gammainc(shape + 1.0, at) + limit * gammaincc(shape, at))

    low, high = mean, LARGEST_SCALE * limit
    if cut(high) <= mean:
        return float(np.inf)
    for _ in range(80):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if cut(middle) < mean else (low, middle)
    return float(high)


def longer_share(lengths: ResponseLengths, tokens: ArrayLike) -> Result:
    """Compute the share of responses longer than a number of tokens:  S(n) = e + (1 - e) Q(k, k n/m) below the limit, 0 from there on.

    e is the share without an end.
    Shapes: as tokens. Units: [token], result [1]. Reference: as `uncut_mean_tokens`.

    >>> longer_share(ResponseLengths(500.0, 0.0, 1000.0), [0.0, 499.0, 501.0]).tolist()
    [1.0, 1.0, 0.0]
    """
    n, mean = np.asarray(tokens, float), uncut_mean_tokens(lengths)
    if lengths.cv < LEAST_CV or lengths.ending_mean_tokens >= lengths.limit_tokens:
        longer = np.where(n < mean, 1.0, 0.0)
    elif np.isinf(mean):
        longer = np.ones_like(n)
    else:
        shape = lengths.cv**-2.0
        longer = gammaincc(shape, shape * np.maximum(n, 0.0) / mean)
    share = lengths.endless_share
    return as_result(np.where(n < lengths.limit_tokens, share + (1.0 - share) * longer, 0.0))


def running_age(lengths: ResponseLengths) -> float:
    """Compute the mean tokens so far of a running response where slots are always refilled:  E[X^2]/(2 m) = sum n S(n) / sum S(n).

    Shapes: numbers. Units: [token]. Reference: Feller, An Introduction to Probability Theory and Its Applications, vol. 2 (1971), section XI.4.

    >>> round(running_age(ResponseLengths(500.0, 0.0, 1000.0))), round(running_age(ResponseLengths(500.0, 1.0, 20000.0)))
    (250, 500)
    """
    n = (np.arange(EQUILIBRIUM_CELLS) + 0.5) * lengths.limit_tokens / EQUILIBRIUM_CELLS
    share = np.asarray(longer_share(lengths, n), float)
    return float(share @ n / share.sum())


@dataclass(frozen=True, slots=True)
class Courses:
    """Course of batches through slots, by decode step: full until the queue is empty, then the tail. Axes [case], [case, node].

    Nodes divide the tail, which ends at the limit, into cells of `cell_steps`. Ages are decode steps since a response began.
    """

    full_steps: Floats  # until the queue is empty; 0 where every response has a slot at once
    full_age: Floats  # mean of those running until then
    running: Floats  # share of the slots, or of the responses where these are fewer, that still run in each cell
    age: Floats  # mean of those
    cell_steps: float


@dataclass(frozen=True, slots=True)
class _Grid:
    """Lengths on a grid: probability and survival by cell, and the starts of one slot that is refilled for ever."""

    cell: float  # [token]
    longer: Floats  # [cell] share longer than so many cells
    starts: Floats  # [cell] mean number of starts of a slot in it, the first at 0
    mean: float  # [cell]
    second: float  # of the square [cell^2]


@lru_cache(maxsize=64)
def _grid(lengths: ResponseLengths) -> _Grid:
    wanted = np.clip(CELLS_PER_MEAN * lengths.limit_tokens / lengths.mean_tokens, FEWEST_CELLS, MOST_CELLS)
    cells = NODES * int(np.ceil(wanted / NODES))
    edges = (np.arange(cells + 1) + 0.5) * lengths.limit_tokens / cells
    beyond = np.concatenate([[1.0], np.asarray(longer_share(lengths, edges[:-1])), [0.0]])
    beyond[1] = 1.0  # no response is shorter than a cell
    share = -np.diff(beyond)  # [cells + 1], lengths of 0 to `cells` cells
    places = np.arange(cells + 1)
    mean, second = float(share @ places), float(share @ places**2)
    longer = np.concatenate([1.0 - np.cumsum(share)[:-1], [0.0]])
    starts = np.zeros(WAVES * cells + 1)
    starts[0] = 1.0
    back = share[:0:-1]  # of lengths `cells` down to 1
    for j in range(1, len(starts)):
        first = max(j - cells, 0)
        starts[j] = starts[first:j] @ back[cells - (j - first) :]
    return _Grid(lengths.mean_tokens / mean, longer, starts, mean, second)


def courses(lengths: ResponseLengths, waves: ArrayLike) -> Courses:
    """Follow batches of `waves` responses per slot through slots that are refilled until none waits: a renewal process, then its tail.

    Responses started up to step t: 1 + M(t) per slot, M the renewal function; the queue is empty at 1 + M(t*) = waves. After that
    r(x) = sum_u S(t* + x - u) over the starts u. After some lengths of the limit M has its constant slope 1/m, and ages those of
    equilibrium:  t* = m waves - E[X^2]/(2 m), r(x) = sum_a S(a + x)/m.
    Shapes: waves [case]; results see `Courses`. Units: waves [response per slot], steps [step], one token each. Exact in the mean for many slots.
    Reference: Feller, An Introduction to Probability Theory and Its Applications, vol. 2 (1971), chapter XI (renewal theory).

    >>> all_at_once, refilled = courses(ResponseLengths(500.0, 1.0, 4000.0), [1.0, 10.0]).full_steps
    >>> float(all_at_once), bool(4400 < refilled < 4600)
    (0.0, True)
    """
    grid, many = _grid(lengths), np.atleast_1d(np.asarray(waves, float))
    distinct, place = np.unique(many, return_inverse=True)
    found = [_course(grid, float(case)) for case in distinct]
    full, full_age, running, age = (np.array(part)[place] for part in zip(*found, strict=True))
    cells = len(grid.longer) - 1
    return Courses(full * grid.cell, full_age * grid.cell, running, age * grid.cell, cells * grid.cell / NODES)


def _course(grid: _Grid, waves: float) -> tuple[float, float, Floats, Floats]:
    """Follow one batch, in cells: (steps until the queue is empty, mean age until then, running and mean age by node)."""
    longer, cells = grid.longer, len(grid.longer) - 1
    started = np.cumsum(grid.starts)
    x = np.arange(cells)
    if waves <= 1.0:
        alive, aged, full = longer[:cells], longer[:cells] * x, 0.0
    elif waves >= started[-1]:
        left = np.cumsum(longer[::-1])[::-1]
        left_aged = np.cumsum((longer * np.arange(cells + 1))[::-1])[::-1]
        alive, aged = left[:cells] / grid.mean, left_aged[:cells] / grid.mean
        full = grid.mean * waves - 0.5 * grid.second / grid.mean
    else:
        last = int(np.searchsorted(started, waves - 1e-9))
        begun = np.arange(max(last - cells, 0), last + 1)
        weight = grid.starts[begun].copy()
        weight[-1] = waves - (started[last - 1] if last else 0.0)  # the queue is empty before all of these begin
        ages = (last - begun)[:, None] + x[None, :]
        share = np.where(ages < cells, longer[np.minimum(ages, cells)], 0.0) * weight[:, None]
        alive, aged, full = share.sum(axis=0), (share * ages).sum(axis=0), float(last)
    every = waves if waves > 1.0 else 1.0
    total_age = every * 0.5 * grid.second  # of the responses of one slot, over all their steps
    full_age = max(total_age - float(aged.sum()), 0.0) / full if full else 0.0
    edges = np.linspace(0, cells, NODES + 1).round().astype(int)
    width = cells / NODES
    running = np.add.reduceat(alive, edges[:-1]) / width
    with np.errstate(invalid="ignore", divide="ignore"):
        age = np.where(running > 0, np.add.reduceat(aged, edges[:-1]) / width / running, 0.0)
    return full, full_age, np.minimum(running, 1.0), age
