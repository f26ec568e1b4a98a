"""Summarise a trace of requests: rate, shape over day and week, lengths with their joint distribution, reuse of prefixes.

The rows are streamed: counts by quarter hour, histograms of lengths, and at most MOST_PAIRS pairs of lengths are kept.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from catalog.units import DAY_S, HOUR_S, HOURS_PER_DAY
from models.arrays import Floats, Ints
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.problems import FileProblems
from planner.ways_in.trace_rows import BLOCK_TOKENS, Batch, Layout, read_rows

QUARTER_S = HOUR_S / 4  # zones lie whole quarters of an hour apart
DAYS_PER_WEEK = 7
MOST_PAIRS = 1_000_000
"""Pairs of lengths that are kept for the joint distribution; of longer traces every second, fourth … request."""
MOST_SPAN_S = 3 * 366 * DAY_S
SHARES = (0.5, 0.9, 0.95, 0.99)
BANDS = 4
"""Bands of the prompt length, each with as many requests, by which the joint distribution is told."""
EDGES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""Shares of the requests at whose quantiles of the prompt length the bands of the histogram end."""
CACHE_TOKENS = (1e6, 1e7, 1e8)
"""Sizes of a cache for which the reuse of prefixes is told, beside one without an end."""


@dataclass(frozen=True, slots=True)
class LengthFigures:
    """A distribution of lengths: mean, coefficient of variation, quantiles 0.5, 0.9, 0.95 and 0.99, and the longest [token]."""

    mean: float
    cv: float
    quantiles: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Band:
    """Answers to the prompts of a band: share of the requests, prompt lengths from `least` to `most`, mean prompt, mean answer, and the
    quantiles 0.5 and 0.95 of the answers [token]."""

    share: float
    least: int
    most: int
    input_mean: float
    output_mean: float
    output_p50: float
    output_p95: float


@dataclass(frozen=True, slots=True)
class HistogramBand:
    """A band of the joint histogram: its share of the requests, longest prompt, and mean and coefficient of variation of prompts and answers."""

    share: float
    most: int
    input_mean: float
    input_cv: float
    output_mean: float
    output_cv: float


@dataclass(frozen=True, slots=True)
class PrefixReuse:
    """Reuse of prefixes with an endless cache: share of requests that find one, mean tokens found by those; and by size of an LRU cache
    (token) the share of all prompt tokens that is found."""

    hit_rate: float
    prefix_tokens: float
    found_by_size: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a trace says of its load; None where it does not say it.

    `rate`: mean requests/s, over a day the mean of its hours. `profile`: mean rate of each local hour of the day over `rate`; `week`: that of each weekday from Monday on.
    `left_out`: requests without a prompt or an answer. `correlation`: Pearson's, of prompt and answer lengths.
    """

    layout: str
    requests: int
    left_out: int
    span_s: float
    start: str
    rate: float | None
    profile: tuple[float, ...] | None
    week: tuple[float, ...] | None
    peak_to_mean: float | None
    input: LengthFigures
    output: LengthFigures
    correlation: float
    joint: tuple[Band, ...]
    histogram: tuple[HistogramBand, ...]
    reuse: PrefixReuse | None
    notes: tuple[Fact, ...]


def read_trace(path: Path, zone: str = "UTC") -> Trace:
    """Read and summarise a trace; `zone`: time zone whose hours and weekdays the shape is told by. Raises SpecError, or OSError for a missing file."""
    layout, batches = read_rows(path)
    sums = _Sums()
    for batch in batches:
        sums.add(batch)
    problems = FileProblems(path.name)
    if not sums.requests:
        raise problems.refuse("ways_in.no_request")
    if layout.times != "none" and sums.last - sums.first > MOST_SPAN_S:
        raise problems.refuse("ways_in.trace_too_long", years=3)
    return _summary(path.name, layout, sums, zone)


@dataclass(slots=True)
class _Sums:
    """Counts and lengths kept of the rows read so far."""

    requests: int = 0
    left_out: int = 0
    first: float = np.inf
    last: float = -np.inf
    quarters: Counter[int] = field(default_factory=Counter)
    inputs: Counter[int] = field(default_factory=Counter)
    outputs: Counter[int] = field(default_factory=Counter)
    pairs: list[Ints] = field(default_factory=list)
    stride: int = 1
    blocks: list[tuple[int, Sequence[int]]] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Add the requests of a batch that have a prompt and an answer."""
        pairs = np.column_stack([batch.inputs, batch.outputs]).astype(np.int64)
        good = (pairs > 0).all(axis=1)
        self.left_out += int((~good).sum())
        pairs = pairs[good]
        if batch.seconds and len(pairs):
            seconds = np.asarray(batch.seconds)[good]
            self.first, self.last = min(self.first, float(seconds.min())), max(self.last, float(seconds.max()))
            _count(self.quarters, (seconds // QUARTER_S).astype(np.int64))
        _count(self.inputs, pairs[:, 0])
        _count(self.outputs, pairs[:, 1])
        offset = -self.requests % self.stride
        self.pairs.append(pairs[offset :: self.stride])
        self.requests += len(pairs)
        if sum(map(len, self.pairs)) > MOST_PAIRS:
            self.pairs = [np.concatenate(self.pairs)[::2]]
            self.stride *= 2
        if batch.blocks:
            rows = [(batch.inputs[i], batch.blocks[i]) for i in np.flatnonzero(good).tolist()]
            self.blocks += [row for row in rows if row[1]]


def _count(counter: Counter[int], values: Ints) -> None:
    found, counts = np.unique(values, return_counts=True)
    for value, count in zip(found.tolist(), counts.tolist()):
        counter[value] += count


def _summary(name: str, layout: Layout, sums: _Sums, zone: str) -> Trace:
    timed = layout.times != "none"
    span = sums.last - sums.first if timed else 0.0
    rate = (sums.requests - 1) / span if span > 0.0 else None
    hours = _hourly(sums, ZoneInfo(zone) if layout.times == "dates" else None) if span > 0.0 else []
    profile = week = peak = None
    if rate is not None and span >= DAY_S and layout.times != "start":
        by_hour = _rates(hours, lambda moment: moment.hour, HOURS_PER_DAY)
        rate = float(by_hour.mean())
        profile = tuple((by_hour / rate).tolist())
        if span >= DAYS_PER_WEEK * DAY_S and layout.times == "dates":
            by_day = _rates(hours, lambda moment: moment.weekday(), DAYS_PER_WEEK)
            week = tuple((by_day / by_day.mean()).tolist())
    if rate is not None and (whole := [count / covered for _, count, covered in hours if covered >= HOUR_S]):
        peak = max(whole) / rate
    pairs = np.concatenate(sums.pairs).astype(float)
    return Trace(
        layout=layout.name,
        requests=sums.requests,
        left_out=sums.left_out,
        span_s=span,
        start=datetime.fromtimestamp(sums.first, UTC).isoformat()[:19] if layout.times == "dates" else "",
        rate=rate,
        profile=profile,
        week=week,
        peak_to_mean=peak,
        input=_figures(sums.inputs),
        output=_figures(sums.outputs),
        correlation=_correlation(pairs),
        joint=_bands(pairs),
        histogram=_histogram(pairs),
        reuse=_reuse(sums),
        notes=tuple(_notes(name, layout, sums, span, profile is not None)),
    )


def _hourly(sums: _Sums, zone: ZoneInfo | None) -> list[tuple[datetime, int, float]]:
    """List each hour that the trace touches by the clock of the zone: (its start, requests, seconds of it within the trace)."""
    found: dict[datetime, tuple[int, float]] = {}
    for quarter in range(int(sums.first // QUARTER_S), int(sums.last // QUARTER_S) + 1):
        start = quarter * QUARTER_S
        covered = min(start + QUARTER_S, sums.last) - max(start, sums.first)
        moment = datetime.fromtimestamp(start, UTC).astimezone(zone or UTC)
        hour = moment.replace(minute=0, second=0)
        count, before = found.get(hour, (0, 0.0))
        found[hour] = count + sums.quarters[quarter], before + covered
    return [(hour, count, covered) for hour, (count, covered) in found.items()]


def _rates(hours: Sequence[tuple[datetime, int, float]], part: Callable[[datetime], int], parts: int) -> Floats:
    """Compute the mean rate of each part of the day or the week: requests over seconds within the trace [request/s]."""
    counts, seconds = np.zeros(parts), np.zeros(parts)
    for moment, count, covered in hours:
        at = part(moment)
        counts[at] += count
        seconds[at] += covered
    return counts / seconds


def _figures(counts: Counter[int]) -> LengthFigures:
    values = np.array(sorted(counts))
    weights = np.array([counts[value] for value in values.tolist()], dtype=float)
    mean = float(np.average(values, weights=weights))
    variance = float(np.average((values - mean) ** 2, weights=weights))
    reached = np.cumsum(weights) / weights.sum()
    quantiles = tuple(int(values[np.searchsorted(reached, share - 1e-12)]) for share in SHARES)
    return LengthFigures(mean, variance**0.5 / mean, quantiles, int(values[-1]))


def _correlation(pairs: Floats) -> float:
    spread = pairs.std(axis=0)
    if not spread.all():
        return 0.0
    return float(((pairs - pairs.mean(axis=0)).prod(axis=1)).mean() / spread.prod())


def _bands(pairs: Floats) -> tuple[Band, ...]:
    """Cut the requests into bands of the prompt length, and tell the answers in each."""
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    bands = []
    for part in np.array_split(pairs, min(BANDS, len(pairs))):
        inputs, outputs = part[:, 0], part[:, 1]
        middle, high = np.quantile(outputs, (0.5, 0.95))
        bands.append(
            Band(
                len(part) / len(pairs), int(inputs[0]), int(inputs[-1]), float(inputs.mean()), float(outputs.mean()),
                float(middle), float(high),
            )
        )  # fmt: skip
    return tuple(bands)


def _histogram(pairs: Floats) -> tuple[HistogramBand, ...]:
    """Cut the requests at quantiles of the prompt length; prompts of one length stay in one band."""
    prompts = pairs[:, 0]
    found, below = [], 0.0
    for most in np.unique(np.quantile(prompts, EDGES, method="higher")).tolist():
        part = pairs[(prompts > below) & (prompts <= most)]
        (input_mean, output_mean), (input_cv, output_cv) = part.mean(axis=0), part.std(axis=0) / part.mean(axis=0)
        share = len(part) / len(pairs)
        found.append(HistogramBand(share, int(most), *map(float, (input_mean, input_cv, output_mean, output_cv))))
        below = most
    return tuple(found)


def _reuse(sums: _Sums) -> PrefixReuse | None:
    """Replay the blocks of the prompts against caches that evict the block used longest ago; None where the trace has no blocks."""
    if not sums.blocks:
        return None
    tokens = sum(length * count for length, count in sums.inputs.items())
    found = _found(sums, float("inf"))
    hits = [length for length in found if length]
    by_size = tuple((size, sum(_found(sums, size / BLOCK_TOKENS)) / tokens) for size in CACHE_TOKENS)
    return PrefixReuse(
        hit_rate=len(hits) / sums.requests,
        prefix_tokens=sum(hits) / len(hits) if hits else 0.0,
        found_by_size=(*by_size, (float("inf"), sum(found) / tokens)),
    )


def _found(sums: _Sums, blocks_held: float) -> list[int]:
    """Return the tokens of each prompt that lie in its first blocks that an LRU cache of `blocks_held` blocks holds."""
    held: OrderedDict[int, None] = OrderedDict()
    lengths = []
    for tokens, blocks in sums.blocks:
        first = 0
        while first < len(blocks) and blocks[first] in held:
            first += 1
        lengths.append(min(first * BLOCK_TOKENS, tokens))
        for block in blocks:
            held[block] = None
            held.move_to_end(block)
        while len(held) > blocks_held:
            held.popitem(last=False)
    return lengths


def _notes(name: str, layout: Layout, sums: _Sums, span: float, shaped: bool) -> list[Fact]:
    """Say how the trace was read, and what it is too short or too bare for."""
    notes = [Fact(name, Message.of("ways_in.trace_read", layout=layout.name, count=sums.requests))]
    if sums.left_out:
        notes.append(Fact(name, Message.of("ways_in.trace_left_out", count=sums.left_out)))
    if layout.times == "none":
        notes.append(Fact(name, Message.of("ways_in.trace_has_no_times")))
    elif not shaped:
        code = "ways_in.trace_has_no_clock" if layout.times == "start" else "ways_in.trace_is_short"
        notes.append(Fact(name, Message.of(code, hours=span / HOUR_S)))
    if sums.stride > 1:
        notes.append(Fact(name, Message.of("ways_in.trace_thinned", stride=sums.stride)))
    return notes
