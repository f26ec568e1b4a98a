"""Evaluate operating points of separate prefill and decode pools on the chips of a case, to stand beside the points of one pool."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import latency_s, within_slo
from planner.estimate.case import CaseFacts
from planner.estimate.disaggregated_search import PoolBounds
from planner.estimate.power import capped_group
from planner.estimate.serving_configuration import allowed_layouts
from planner.evaluate import disaggregated
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import QUANTILES, layout_of, limits_at_site
from planner.problem.engine import EngineChoice
from planner.problem.fabrics import may_exchange
from planner.spec.slo import TPOT

LOADS = (0.95, 0.75)
"""Utilisations of the prefill pool for which its workers are counted: the busier, the more tokens of a chip and the longer its queue."""
MOST_SPLITS = 50_000
"""Splits that are evaluated; of many layouts, every second or third batch and so on."""
MOST = 3000
"""Points that are kept beside those that no other beats: an even part of all, which a browser draws without delay."""
Columns = dict[str, list[Any]]


def pooled_columns(facts: CaseFacts, choice: EngineChoice, percentile: str, away_s: float = 0.0) -> Columns:
    """List points of two pools as columns; `percentile` of the time per output token, `away_s`: round trip to the users [s].

    Of each decode layout and batch, over prefill layouts and splits of the chips, the point with the most tokens of a chip, and that
    with the most within all limits. Empty where the workload, the vendors or the network rule two pools out.
    """
    none: Columns = {name: [] for name in ("user", "chip", "meets", "layout", "batch")}
    if facts.serving.spec.disaggregation == "never" or facts.scaleout.bytes_per_s <= 0:
        return none
    if facts.serving.spec.session is not None or not may_exchange(facts.serving.spec, *facts.sides):
        return none
    stated = [None, None] if facts.case.pools is None else [facts.case.pools.prefill, facts.case.pools.decode]
    most = [facts.case.chips if side is None or not side.chips else side.chips for side in stated]
    sides = [
        allowed_layouts(facts, system, chips, None, "layout") for system, chips in zip(facts.sides, most, strict=True)
    ]
    if not all(len(side) for side in sides):
        return none
    bounds = PoolBounds.of(facts, sides, choice)
    kept = bounds.efficient(facts, choice, sides[0])
    sides[0], bounds = sides[0].take(kept), bounds.take(kept)
    shared = facts.sides[0] is facts.sides[1]
    first, second, batch, n_p, n_d = _splits(sides, bounds, (facts.case.chips,) if shared else tuple(most))
    every = _columns(facts, sides, (first, second, batch, n_p, n_d), choice, (percentile, away_s))
    user, chip = np.array(every["user"]), np.array(every["chip"])
    kept_rows = on_front(user, chip)
    kept_rows[:: max(1, -(-len(user) // MOST))] = True
    return {name: [values[i] for i in np.flatnonzero(kept_rows)] for name, values in every.items()}


def on_front(x: Floats, y: Floats) -> Bools:
    """Tell which points no other beats in both coordinates, the larger the better.

    >>> on_front(np.array([1.0, 2.0, 3.0, 2.0]), np.array([3.0, 2.0, 1.0, 1.0])).tolist()
    [True, True, True, False]
    """
    order = np.lexsort((-y, -x))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], y[order]]))[:-1]
    found = np.zeros(len(x), bool)
    found[order] = y[order] > best
    return found


def _splits(
    sides: list[ServingLayouts], bounds: PoolBounds, chips: tuple[int, ...]
) -> tuple[Ints, Ints, Floats, Ints, Ints]:
    """List splits of the chips in which prefill workers carry what decode workers ask: layouts, batch, and workers of both pools.

    `chips`: of all, or of each pool where both stand on systems of their own.
    """
    sizes = len(sides[0]), len(sides[1]), bounds.batches.shape[1]
    step = -(-math.prod(sizes) * len(LOADS) // MOST_SPLITS)
    batches = np.arange(0, sizes[2], step)
    p, d, b, load = (
        part.ravel()
        for part in np.meshgrid(np.arange(sizes[0]), np.arange(sizes[1]), batches, np.array(LOADS), indexing="ij")
    )
    c_p, c_d = np.asarray(sides[0].chips)[p], np.asarray(sides[1].chips)[d]
    each = bounds.rate_per_s[d, b] / (bounds.prompts_per_s[p] * load)  # prefill workers for a decode worker
    if len(chips) == 1:
        n_d = np.floor(chips[0] / (c_d + each * c_p))
        n_d = np.where(n_d * c_d + np.ceil(n_d * each) * c_p > chips[0], n_d - 1, n_d)
    else:
        n_d = np.minimum(chips[1] // c_d, np.floor(chips[0] // c_p / each))
    n_p = np.ceil(n_d * each)
    able = np.isfinite(each) & (n_d >= 1) & (n_p >= 1)
    return p[able], d[able], bounds.batches[d, b][able], n_p[able].astype(np.int64), n_d[able].astype(np.int64)


def _columns(
    facts: CaseFacts,
    sides: list[ServingLayouts],
    splits: tuple[Ints, Ints, Floats, Ints, Ints],
    choice: EngineChoice,
    shown: tuple[str, float],
) -> Columns:
    """Evaluate splits, and keep the best of each decode layout and batch."""
    (first, second, batch, n_p, n_d), (percentile, away_s) = splits, shown
    uncapped = disaggregated.evaluate(
        facts.serving, facts.sides, (facts.scaleout,) * 2, (sides[0].take(first), sides[1].take(second)), batch, (n_p, n_d), choice,
        facts.constants.serving,
    )  # fmt: skip
    found = capped_group(facts.power_cap, facts.sides, uncapped, facts.constants.power)
    point, spec = found.point, facts.serving.spec
    tpot_s = np.broadcast_to(np.asarray(latency_s(point, TPOT, QUANTILES[percentile]), float), first.shape)
    fits = np.asarray(point.fits) & np.isfinite(point.ttft_s) & np.isfinite(tpot_s) & (tpot_s > 0)
    meets = (
        fits & np.asarray(within_slo(point, limits_at_site(spec, away_s))) & meets_classes(spec.classes, point, away_s)
    )
    chip = tokens_of_chip(found, float(spec.lengths.output))
    kept = sorted({*_best(fits, chip, second, batch), *_best(meets, chip, second, batch)})
    words = [[layout_words(layout_of(side, i)) for i in range(len(side))] for side in sides]
    return {
        "user": (1.0 / tpot_s[kept]).tolist(),
        "chip": np.broadcast_to(chip, first.shape)[kept].tolist(),
        "meets": np.broadcast_to(meets, first.shape)[kept].tolist(),
        "layout": [f"{n_p[i]} × {words[0][first[i]]} + {n_d[i]} × {words[1][second[i]]}" for i in kept],
        "batch": batch[kept].tolist(),
    }


def tokens_of_chip(found: DisaggregatedPoint, output: float) -> Floats:
    """Return output tokens per second of each chip that a group uses; `output`: tokens of an answer."""
    rate: Floats = np.asarray(found.point.requests_per_s, float) * output / np.asarray(found.chips, float)
    return rate


def _best(able: Bools, score: Floats, layout: Ints, batch: Floats) -> list[int]:
    """Select the able row with the largest score of each layout and batch."""
    rows = np.flatnonzero(np.broadcast_to(able, layout.shape))
    order = rows[np.lexsort((-score[rows], batch[rows], layout[rows]))]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(layout[order]) != 0) | (np.diff(batch[order]) != 0)
    return [int(row) for row in order[new]]


def layout_words(layout: dict[str, int]) -> str:
    """Write the sizes of a layout that are not 1."""
    return " ".join(f"{name}{size}" for name, size in layout.items() if size != 1) or "tp1"
