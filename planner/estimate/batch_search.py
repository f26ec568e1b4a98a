"""Search batch sizes of serving configurations: a coarse grid for all, a fine one for the best few, bisection for the winner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from catalog.units import MEGA
from models.arrays import Floats, Ints
from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s, within_slo
from planner.estimate.case import CaseFacts
from planner.estimate.serving_configuration import MAX, Load
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import batch_grid, limits_at_site

FRACTIONS = np.geomspace(1 / 64, 0.75, 10)  # batches below one request at a time, for small loads
MAX_REFINED = 8  # configurations tried on the fine grid
FINE_BATCHES = 49  # batches of each between two neighbours of the coarse grid
BISECTIONS = 40

Selection = Ints | slice | int
"""Which configurations to evaluate."""
Batches = Floats | float


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """The chosen configuration, as its row among those searched or None, and its batch."""

    row: int | None
    batch: float
    counts: tuple[int, int, int]  # points, fitting, meeting
    score: float = (
        -np.inf
    )  # throughput of the configuration, or by the time end to end, one more where it meets the limits


def choose_batch(
    facts: CaseFacts,
    load: Load,
    copies: Floats,
    attention_ranks: Ints,
    evaluate: Callable[[Selection, Batches], ServingPoint],
) -> BatchChoice:
    """Find the configuration that serves most, or that carries the given rate best, and its batch.

    `copies`, `attention_ranks` [configuration]: replicas of each, and ranks of the one that decodes; `evaluate`: operating points of some configurations at some batches. All configurations
    are tried on a coarse grid and the best few on a fine one; under a given rate, the batch of the winner is then found by bisection.
    """
    every = np.arange(copies.size)
    batches = np.concatenate([np.tile(FRACTIONS, (copies.size, 1)), batch_grid(attention_ranks)], axis=1)
    coarse = evaluate(every[:, None], batches)
    score, column, counts = _scores(facts, load, coarse, copies[:, None])
    best = every[np.isfinite(score)]
    if not best.size:
        return BatchChoice(None, 0.0, counts)
    best = best[np.argsort(-score[best], kind="stable")][:MAX_REFINED]
    low, high = (batches[best, np.clip(column[best] + step, 0, batches.shape[1] - 1)] for step in (-1, 1))
    between = np.geomspace(low, high, FINE_BATCHES, axis=1)
    score, column, _ = _scores(facts, load, evaluate(best[:, None], between), copies[best][:, None])
    if not np.isfinite(score).any():
        return BatchChoice(None, 0.0, counts)
    winner = int(score.argmax())
    row, grid, place = int(best[winner]), between[winner], int(column[winner])
    if load.kind == MAX:
        return BatchChoice(row, float(grid[place]), counts, float(score[winner]))
    return BatchChoice(
        row,
        _batch_at_rate(lambda b: float(evaluate(row, b).requests_per_s * copies[row]), load.value, grid, place),
        counts,
        float(score[winner]),
    )


def _scores(
    facts: CaseFacts, load: Load, point: ServingPoint, copies: Floats
) -> tuple[Floats, Ints, tuple[int, int, int]]:
    """Score each configuration at its best batch; returns (score, index of the batch, counts).

    The score is minus infinity where a configuration cannot carry the load. Meeting the limits ranks first, then the throughput or,
    under a given rate, the mean end-to-end latency.
    """
    total = np.asarray(point.requests_per_s) * copies
    shape = total.shape
    able = np.broadcast_to(np.asarray(point.fits) & np.isfinite(point.ttft_s), shape)
    meets = (
        able
        & np.asarray(within_slo(point, limits_at_site(facts.serving.spec, 0.0)))
        & meets_classes(facts.serving.spec.classes, point, 0.0)
    )
    counts = total.size, int(np.count_nonzero(np.broadcast_to(point.fits, shape))), int(meets.sum())
    rows = np.arange(shape[0])
    if load.kind == MAX:
        rates = np.where(meets, total, -np.inf)
        return rates.max(axis=1), rates.argmax(axis=1), counts
    enough = able & (total >= load.value)
    place = enough.argmax(axis=1)
    able_to = enough[rows, place]
    good = able_to & meets[rows, place]
    score = 1.0 / (1.0 + np.broadcast_to(latency_s(point, "e2e", "mean"), shape)[rows, place])
    return np.where(able_to, score + good, -np.inf), place, counts


def busiest_row(facts: CaseFacts, point: ServingPoint, copies: Floats) -> BatchChoice:
    """Find the row with the largest throughput in a closed loop, one that meets the limits if any does; and the counts."""
    able = np.asarray(point.fits) & np.isfinite(point.ttft_s)
    meets = (
        able
        & np.asarray(within_slo(point, limits_at_site(facts.serving.spec, 0.0)))
        & meets_classes(facts.serving.spec.classes, point, 0.0)
    )
    rate = np.where(able, point.requests_per_s * copies, -np.inf)
    best = int(np.lexsort((-rate, ~meets))[0])
    counts = able.size, int(able.sum()), int(meets.sum())
    return BatchChoice(best if able[best] else None, float(np.broadcast_to(point.batch, able.shape)[best]), counts)


def _batch_at_rate(carried: Callable[[float], float], wanted: float, grid: Floats, column: int) -> float:
    """Bisect for the batch that carries the rate `wanted`, between two entries of the grid; the upper one where no batch does."""
    low, high = (grid[column - 1] if column else grid[0] / MEGA), grid[column]
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if carried(middle) < wanted else (low, middle)
    return float(high)
