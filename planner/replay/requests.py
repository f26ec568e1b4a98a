"""Requests of a replay: when each arrives, its tokens and the prefix that it shares; drawn from a spec, or read from a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import gammaincinv

from models.arrays import Bools, Floats, Ints
from models.serving.workload import Lengths
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.ways_in.trace_rows import read_rows

WARM_UP, STAYS = (
    0.10,
    5.0,
)  # further requests before those that count: a share of their number, and those that come in this number of mean stays
COOL_DOWN, LAST_STAYS = 0.03, 3.0  # the same after them, so that the last that count meet the usual load
LEAST_OUTPUT = 2  # tokens of a drawn answer, for there to be a time per output token


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests in order of arrival; `counted`: those whose latencies count. `prefixes`: the prefix of each by its number, -1 for none."""

    arrivals_s: Floats
    prompts: Ints
    outputs: Ints
    counted: Bools
    prefixes: Ints
    blocks: Sequence[Sequence[int]] = ()  # blocks of each prompt, where a trace has them
    left_out: int = 0  # rows of a trace without prompt or answer

    def __len__(self) -> int:
        return len(self.arrivals_s)

    @property
    def longest(self) -> int:
        """Return the most tokens that a request holds."""
        return int((self.prompts + self.outputs).max())

    def take(self, chosen: Bools) -> Requests:
        """Select some of the requests, in the same order."""
        blocks = [block for block, kept in zip(self.blocks, chosen) if kept] if len(self.blocks) else ()
        return Requests(
            self.arrivals_s[chosen], self.prompts[chosen], self.outputs[chosen], self.counted[chosen], self.prefixes[chosen], blocks,
            self.left_out,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of requests to draw: rate [1/s], squared coefficient of variation of its gaps, lengths, and popularity of prefixes.

    With `prefix_tokens` each prompt begins with a prefix of that length, so that the rest alone varies, by as much as is stated for the whole.
    """

    requests_per_s: float
    lengths: Lengths
    arrival_scv: float = 1.0
    prefixes: int = 0
    exponent: float = 0.0
    prefix_tokens: float = 0.0


def drawn(stream: Stream, count: int, seed: int, inside: float = 0.0) -> Requests:
    """Draw `count` requests that count, with others before and after them; gaps and lengths follow gamma distributions.

    `inside`: requests that are there at once on average, which is how many come in a mean stay.

    Each draw takes one of as many slices of equal chance, in random order, so that the mean load is the stated one.
    """
    rng = np.random.default_rng(seed)
    before = int(np.ceil(max(WARM_UP * count, STAYS * inside)))
    after = int(np.ceil(max(COOL_DOWN * count, LAST_STAYS * inside)))
    total = before + count + after
    gaps = _gamma(rng, 1.0 / stream.requests_per_s, stream.arrival_scv, total)
    lengths = stream.lengths
    mean = float(lengths.prompt)
    own = max(mean - stream.prefix_tokens, 1.0)
    prompts = stream.prefix_tokens + _gamma(rng, own, float(lengths.scv_of_input) * (mean / own) ** 2, total)
    prompts = np.maximum(np.rint(prompts), 1)
    outputs = _gamma(rng, float(lengths.output), float(lengths.scv_of_output), total)
    outputs = np.maximum(np.rint(outputs), LEAST_OUTPUT)
    counted = np.zeros(total, dtype=bool)
    counted[before : before + count] = True
    prefixes = _popular(rng, stream.prefixes, stream.exponent, total)
    return Requests(np.cumsum(gaps), prompts.astype(np.int64), outputs.astype(np.int64), counted, prefixes)


def _gamma(rng: np.random.Generator, mean: float, scv: float, count: int) -> Floats:
    if scv == 0:
        return np.full(count, mean)
    places = rng.permutation(np.arange(count) + rng.random(count)) / count
    if scv == 1.0:
        return np.asarray(-mean * np.log1p(-places), dtype=np.float64)
    return np.asarray(mean * scv * gammaincinv(1.0 / scv, places), dtype=np.float64)


def _popular(rng: np.random.Generator, prefixes: int, exponent: float, count: int) -> Ints:
    """Draw the prefix of each request, the k-th most popular in proportion to k^-exponent."""
    if prefixes <= 0:
        return np.full(count, -1)
    weights = np.arange(1, prefixes + 1.0) ** -exponent
    reached = np.cumsum(weights) / weights.sum()
    return np.searchsorted(reached, rng.random(count)).astype(np.int64)


def traced(path: Path, stream: Stream, most: int, seed: int) -> Requests:
    """Read the first `most` requests of a trace, all of which count; without times they arrive at random at the rate of the stream.

    Raises SpecError for a file that is no trace or has no request, OSError for a missing one.
    """
    _, batches = read_rows(path)
    seconds: list[float] = []
    inputs: list[int] = []
    outputs: list[int] = []
    blocks: list[Sequence[int]] = []
    for batch in batches:
        seconds += batch.seconds
        inputs += batch.inputs
        outputs += batch.outputs
        blocks += batch.blocks
    prompts, answers = np.asarray(inputs, dtype=np.int64), np.asarray(outputs, dtype=np.int64)
    kept = (prompts > 0) & (answers > 0)
    if not kept.any():
        raise SpecError([Issue(path.name, Message.of("replay.trace_without_requests").text())])
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(kept)
    if seconds:
        times = np.asarray(seconds, float)[places]
        order = np.argsort(times, kind="stable")[:most]
        arrivals: Floats = times[order] - times[order[0]]
    else:
        order = np.arange(min(most, len(places)))
        arrivals = np.cumsum(_gamma(rng, 1.0 / stream.requests_per_s, stream.arrival_scv, len(order)))
    chosen = places[order]
    prefixes = _popular(rng, 0 if blocks else stream.prefixes, stream.exponent, len(chosen))
    return Requests(
        arrivals, prompts[chosen], answers[chosen], np.ones(len(chosen), dtype=bool), prefixes,
        [blocks[i] for i in chosen.tolist()] if blocks else (), int((~kept).sum()),
    )  # fmt: skip


def decode_steps(requests: Requests, acceptance: float, drafts: int, seed: int) -> Ints:
    """Draw the decode steps of each answer after its first token: one a token, or with speculation as many as its accepted drafts leave.

    A step yields one token and each draft with the chance `acceptance`, given that those before it were accepted.
    """
    later = np.maximum(requests.outputs - 1, 0)
    if drafts <= 0:
        return later
    rng = np.random.default_rng(seed)
    left, steps = later.copy(), np.zeros(len(later), dtype=np.int64)
    while (going := np.flatnonzero(left > 0)).size:
        accepted = np.ones((going.size, drafts)) if acceptance >= 1.0 else rng.random((going.size, drafts)) < acceptance
        left[going] -= 1 + np.cumprod(accepted, axis=1).sum(axis=1).astype(np.int64)
        steps[going] += 1
    return steps
