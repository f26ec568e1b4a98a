"""Lengths of responses: gamma lengths cut off at a limit, and how a batch of them runs through a fixed number of slots, in decode steps.

What a step costs is in rollout.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft
from scipy.special import gammainc, gammaincc

from models.arrays import Floats, Ints, Result, as_result

LEAST_CV = 0.02  # below which all lengths are taken as equal
LARGEST_SCALE = 1e4  # mean before the limit over the limit, beyond which every response is cut off
CELLS_PER_MEAN = 32.0  # cells of the grid of lengths, per mean
FEWEST_CELLS, MOST_CELLS = 128, 65536
WAVES = 4  # lengths of the limit over which starts are followed one by one; their rate is constant after that
MOST_ENDLESS_TOKENS = 0.25  # share of all tokens that responses without an end make
NODES = 32  # nodes of the tail's axis
FALLING_NODES = (
    0.75  # share of the nodes that follow the logarithm of what still runs; the others divide the time evenly
)
LEAST_RUNNING = 1e-8  # share of the slots, below which no further node is spent


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


def second_moment_tokens2(lengths: ResponseLengths) -> float:
    """Compute the mean square of a length:  (1 - e) (m^2 (1 + cv^2) P(k+2, kL/m) + L^2 Q(k, kL/m)) + e L^2.

    m: mean before the limit L of gamma lengths, k = 1/cv^2; e: share without an end. Shapes: numbers. Units: [token^2].
    Reference: Klugman, Panjer and Willmot, Loss Models, 4th ed. (2012), appendix A (limited moments).

    >>> round(second_moment_tokens2(ResponseLengths(500.0, 0.0, 1000.0)) ** 0.5), round(second_moment_tokens2(ResponseLengths(500.0, 1.0, 1e6)) / 500**2, 3)
    (500, 2.0)
    """
    mean, limit, cv, e = uncut_mean_tokens(lengths), lengths.limit_tokens, lengths.cv, lengths.endless_share
    if cv < LEAST_CV or lengths.ending_mean_tokens >= limit or np.isinf(mean):
        square = min(mean, limit) ** 2
    else:
        shape = cv**-2.0
        at = shape * limit / mean
        square = float(mean**2 * (1.0 + cv**2) * gammainc(shape + 2.0, at) + limit**2 * gammaincc(shape, at))
    return (1.0 - e) * square + e * limit**2


def running_age(lengths: ResponseLengths) -> float:
    """Compute the mean tokens so far of a running response where slots are always refilled:  E[X^2]/(2 m).

    Shapes: numbers. Units: [token]. Reference: Feller, An Introduction to Probability Theory and Its Applications, vol. 2 (1971), section XI.4.

    >>> round(running_age(ResponseLengths(500.0, 0.0, 1000.0))), round(running_age(ResponseLengths(500.0, 1.0, 20000.0)))
    (250, 500)
    """
    return second_moment_tokens2(lengths) / (2.0 * lengths.mean_tokens)


@dataclass(frozen=True, slots=True)
class Courses:
    """Course of batches through slots, by decode step: full until the queue is empty, then the tail. Axes [case], [case, node].

    Nodes divide the tail, which ends at the limit, more finely where fewer slots are still taken. Ages are decode steps since a response began.
    """

    full_steps: Floats  # until the queue is empty; 0 where every response has a slot at once
    full_age: Floats  # mean of those running until then
    running: Floats  # share of the slots, or of the responses where these are fewer, that still run in each node
    age: Floats  # mean of those
    node_steps: Floats  # length of each node


@dataclass(frozen=True, slots=True)
class _Grid:
    """Lengths on a grid: probability and survival by cell, and the starts of one slot that is refilled for ever."""

    cell: float  # [token]
    longer: Floats  # [cell] share longer than so many cells
    starts: Floats  # [cell] mean number of starts of a slot in it, the first at 0
    mean: float  # [cell]
    second: float  # mean of the square [cell^2]


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
    return _Grid(lengths.mean_tokens / mean, longer, _renewals(share, WAVES * cells + 1), mean, second)


def _renewals(share: Floats, count: int) -> Floats:
    """Compute the mean starts of a slot in each of its first cells, the first at 0: the power series 1 / (1 - sum_n share_n z^n), by Newton's method."""
    rest = np.zeros(count)
    rest[: min(len(share), count)] = -share[:count]
    rest[0] = 1.0
    found = np.ones(1)
    while len(found) < count:
        size = min(2 * len(found), count)
        product = _convolved(found, rest[:size])[:size]
        wider = np.concatenate([found, np.zeros(size - len(found))])
        found = 2.0 * wider - _convolved(found, product)[:size]
    return np.clip(found, 0.0, 1.0)


def _convolved(a: Floats, b: Floats) -> Floats:
    """Convolve two sequences by their Fourier transforms, as `scipy.signal.fftconvolve` does, whose import takes a second."""
    count = len(a) + len(b) - 1
    size = fft.next_fast_len(count, real=True)
    product: Floats = fft.irfft(fft.rfft(a, size) * fft.rfft(b, size), size)[:count]
    return product


def courses(lengths: ResponseLengths, waves: ArrayLike) -> Courses:
    """Follow batches of `waves` responses per slot through slots that are refilled until none waits: a renewal process, then its tail.

    Responses started up to step t: 1 + M(t) per slot, M the renewal function; the queue is empty at 1 + M(t*) = waves. After that
    r(x) = sum_u S(t* + x - u) over the starts u. After some lengths of the limit M has its constant slope 1/m, and ages are in
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
    full, full_age, running, age, steps = (np.array(part)[place] for part in zip(*found, strict=True))
    return Courses(full * grid.cell, full_age * grid.cell, running, age * grid.cell, steps * grid.cell)


def _course(grid: _Grid, waves: float) -> tuple[float, float, Floats, Floats, Floats]:
    """Follow one batch, in cells: (steps until the queue is empty, mean age until then, running, mean age and length by node)."""
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
        weight = grid.starts[max(last - cells, 0) : last + 1].copy()
        weight[-1] = waves - (started[last - 1] if last else 0.0)  # the queue is empty before all of these begin
        # A slot that began `a` cells ago still runs x cells later with longer[a + x].
        alive, aged = (
            _convolved(part, weight)[len(weight) - 1 :][:cells] for part in (longer[:cells], longer[:cells] * x)
        )
        alive, aged, full = np.clip(alive, 0.0, 1.0), np.maximum(aged, 0.0), float(last)
    every = waves if waves > 1.0 else 1.0
    total_age = every * 0.5 * grid.second  # responses of one slot, over all their steps
    full_age = max(total_age - float(aged.sum()), 0.0) / full if full else 0.0
    edges = _edges(alive)
    width = np.diff(edges)
    sums, aged_sums = (np.diff(np.concatenate([[0.0], np.cumsum(part)])[edges]) for part in (alive, aged))
    with np.errstate(invalid="ignore", divide="ignore"):
        running = np.where(width > 0, sums / width, 0.0)
        age = np.where(sums > 0, aged_sums / sums, 0.0)
    return full, full_age, np.minimum(running, 1.0), age, width.astype(float)


def _edges(alive: Floats) -> Ints:
    """Divide the cells of a tail into nodes: most where the logarithm of what still runs falls, the others evenly."""
    cells = len(alive)
    fallen = -np.log(np.maximum(np.minimum.accumulate(alive), LEAST_RUNNING))
    fallen = np.append(fallen, fallen[-1]) - fallen[0]
    place = (1.0 - FALLING_NODES) * np.arange(cells + 1) / cells + FALLING_NODES * fallen / max(
        float(fallen[-1]), 1e-300
    )
    edges = np.searchsorted(place, np.linspace(0.0, 1.0, NODES + 1))
    edges[0], edges[-1] = 0, cells
    return np.maximum.accumulate(np.minimum(edges, cells))
