"""The 80 % interval of a used point, computed again from the bands of the calibration; `planner.problem.intervals` holds the bands only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.formats import FORMATS
from models.statistics.intervals import TIERS, tier_of
from models.transformer.architecture import Architecture
from planner.facts.reach import outside_messages
from planner.problem.facts import TrainingFacts
from planner.problem.intervals import EVERY, Calibration, Interval, Run, kind_of_network

Bounds = dict[str, list[float]]
SERVING_FIGURES = ("tpot", "ttft", "throughput")
KNOWN, OF_EIGHTY_PER_CENT = "known", 1.2816  # quantile of a normal distribution, in standard deviations to either side
ALIKE = 1e-9  # share of a distance that is rounding alone
BAND_OF = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "task": "tpot"}  # a request and a task are mostly decode


def serving_run(arch: Architecture, pools: Sequence[Mapping[str, Any]], tokens: float) -> Run:
    """Describe a serving point by its pool of most requests, whose requests have so many tokens."""
    largest = max(pools, key=lambda pool: float(pool["batch"]))
    layout = largest["layout"]
    features = {
        "layers": float(arch.layers), "experts": float(arch.experts), "chips": float(layout["tp"] * layout["pp"] * layout["dp"]),
        "context": float(tokens), "batch": float(largest["batch"]), "bits": 8.0 * FORMATS[largest["precision"]].value_bytes,
    }  # fmt: skip
    return Run(kind_of_network(arch), {name: value for name, value in features.items() if value > 0.0})


def outside(known: Calibration, chip: str, run: Run) -> dict[str, float]:
    """Return the features of a run that lie outside the fitted range of the chip's family, each with its distance on the log scale."""
    ranges = known.reach.ranges
    here, found = ranges.get(known.families.get(chip, chip), ranges.get(EVERY, {})), {}
    for name, (least, most) in here.items():
        value = run.features.get(name, least)
        gap = math.log(value / most) if value > most else math.log(least / value) if value < least else 0.0
        if gap > ALIKE:
            found[name] = gap
    return found


def outside_rows(
    known: Calibration, chips: Sequence[tuple[str, str]], figure: str, run: Run, model: str
) -> list[dict[str, Any]]:
    """Write the sentences on what of a run lies outside what was fitted, family by family."""
    found: dict[str, list[dict[str, Any]]] = {}
    for chip, precision in chips:
        family, gaps = known.families.get(chip, chip), outside(known, chip, run)
        fitted = known.reach.ranges.get(family, known.reach.ranges.get(EVERY, {}))
        near, wide = (_bounds(known, chip, precision, figure, each) for each in (Run(run.kind, {}), run))
        values = {name: (run.features[name], *fitted[name]) for name in gaps}
        found[family] = [message.row() for message in outside_messages(model, family, values, near, wide)]
    return [row for rows in found.values() for row in rows]


def training_run(job: TrainingFacts, layout: Mapping[str, int], precision: str) -> Run:
    """Describe a job as its interval sees it."""
    chips = layout["tp"] * layout["pp"] * layout["dp"] * layout.get("cp", 1)
    features = {
        "layers": float(job.architecture.layers), "experts": float(job.architecture.experts), "chips": float(chips),
        "context": float(job.spec.sequence_tokens), "batch": float(job.batch_sequences), "bits": 8.0 * FORMATS[precision].value_bytes,
    }  # fmt: skip
    return Run(kind_of_network(job.architecture), {name: value for name, value in features.items() if value > 0.0})


def serving_tier(known: Calibration, chips: Sequence[tuple[str, str]], kind: str) -> str:
    """Return the tier of a serving point: the least known over its pools' (chip, precision) and its figures."""
    ranks = [
        TIERS.index(_tier(known, chip, precision, figure, kind))
        for chip, precision in chips
        for figure in SERVING_FIGURES
    ]
    return TIERS[max(ranks)]


def _tier(known: Calibration, chip: str, precision: str, figure: str, kind: str) -> str:
    own = (chip, precision, figure) in known.anchors
    return tier_of(own, chip in known.chips, chip in known.relatives, kind in known.kinds)


def serving_bounds(
    known: Calibration,
    chips: Sequence[tuple[str, str]],
    latency_s: Mapping[str, float],
    capacity: float,
    run: Run,
    at_rate: Callable[[str, float], float] | None = None,
) -> Bounds:
    """Bound each latency and the capacity of a serving point, by the pool that is known least; open arrivals also by what another load does."""
    slow, fast = _widest(known, chips, "throughput", run)
    found: Bounds = {"capacity": [slow * capacity, fast * capacity]}
    for name, seconds in latency_s.items():
        low, high = _widest(known, chips, BAND_OF[name.partition(".")[0]], run)
        if at_rate is not None:
            low *= math.exp(
                abs(math.log(low))
                - math.hypot(math.log(low), math.log(at_rate(name, (1.0 / fast) ** known.load_power)))
            )
            high *= math.exp(
                math.hypot(math.log(high), math.log(at_rate(name, (1.0 / slow) ** known.load_power)))
                - abs(math.log(high))
            )
        found[name] = [low * seconds, high * seconds]
    return found


def stated_bounds(bounds: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    """Write bounds as a plan has them: JSON knows no infinity."""
    return {
        name: [None if math.isinf(bound) or math.isnan(bound) else bound for bound in pair]
        for name, pair in bounds.items()
    }


def _widest(known: Calibration, chips: Sequence[tuple[str, str]], figure: str, run: Run) -> tuple[float, float]:
    """Return the widest of the pools' bounds of a figure."""
    bounds = (_bounds(known, chip, precision, figure, run) for chip, precision in chips)
    return max(bounds, key=lambda pair: pair[1] / pair[0])


def _bounds(known: Calibration, chip: str, precision: str, figure: str, run: Run) -> tuple[float, float]:
    """Return the bounds of a figure on a chip, over the prediction."""
    tier = _tier(known, chip, precision, figure, run.kind)
    spread = known.spreads.get((chip, precision, figure))
    if tier == KNOWN and spread is not None:
        return math.exp(-OF_EIGHTY_PER_CENT * spread), math.exp(OF_EIGHTY_PER_CENT * spread)
    low, high = known.bands[tier, figure]
    far = math.hypot(*outside(known, chip, run).values())
    share = known.narrowed.get((chip, figure), 1.0) * (1.0 + known.reach.slopes.get(figure, 0.0) * far)
    return low**share, high**share


def training_bounds(interval: Interval, time_s: Mapping[str, float], tokens_per_s: float) -> Bounds:
    """Bound the times and the throughput of a job: the slowest run has the lowest throughput."""
    found = {name: [interval.low * seconds, interval.high * seconds] for name, seconds in time_s.items()}
    return {**found, "capacity": [tokens_per_s / interval.high, tokens_per_s / interval.low]}
