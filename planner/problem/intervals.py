"""The 80 % interval of every predicted time, and corrections from a user's own measurements of a chip, from the catalog's calibration.

Fitting: `planner.calibration.fit`; closed forms: `models.statistics.intervals`. No plan is itself a measured run, so its tier is that
of a new source; on a chip without measurements, of a new chip, or where its whole generation has none, of a new generation; and on one
that the user measured, of a known run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from catalog.lookup import Catalog
from catalog.records import Record
from models.arrays import Floats
from models.statistics.intervals import TIERS, tier_of

DENSE, EXPERTS = "dense", "moe"
KNOWN = TIERS[0]
Z80 = 1.2816  # standard deviations of a normal distribution that bound its middle 80 %
LABELS = {
    "training": (DENSE, EXPERTS),
    "serving": ("tpot", "ttft", "throughput"),
}  # keys of the bands of each model
# The band of each figure of a serving point; end to end and tasks are mostly decode.
SERVING_LABEL = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "task": "tpot", "capacity": "throughput"}


@dataclass(frozen=True, slots=True)
class Interval:
    """Factors on a predicted time: the correction from own measurements, and the bounds of 80 % of runs."""

    factor: float
    low: float
    high: float
    tier: str

    def around(self, time_s: float) -> list[float]:
        """Return [low, high] of a time that already includes the correction [s]."""
        return [time_s * self.low, time_s * self.high]

    def around_rate(self, rate: float) -> list[float]:
        """Return [low, high] of a rate, which falls as the time grows."""
        return [rate / self.high, rate / self.low]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The measurements behind the fit of one model, and its errors on held-out runs."""

    bands: Mapping[tuple[str, str], tuple[float, float]]  # (tier, label) -> bounds of measured / predicted
    chips: frozenset[str]  # that were measured
    relatives: frozenset[str]  # chips of the generations of those
    anchors: Mapping[
        tuple[str, str, str], float
    ]  # (chip, precision, label) -> measured / predicted of the user's own runs
    spreads: Mapping[tuple[str, str, str], float] = field(
        default_factory=dict
    )  # the same keys -> standard deviation of ln(measured / predicted) of the user's further runs, where they were enough
    levels: tuple[float, ...] = ()  # of the quantiles below
    residuals: Mapping[tuple[str, str], tuple[float, ...]] = field(
        default_factory=dict
    )  # (tier, label) -> quantiles of measured / predicted
    rank_correlation: Floats | None = None  # [label, label] of the errors of one run
    narrowed: Mapping[tuple[str, str], float] = field(
        default_factory=dict
    )  # (chip, label) -> factor on the logarithms of the bounds where the user probed the chip

    def tier(self, chip: str, precision: str, label: str) -> str:
        """Classify how far a run on `chip` is from the measurements behind the model."""
        return tier_of((chip, precision, label) in self.anchors, chip in self.chips, chip in self.relatives)

    def interval(self, chip: str, precision: str, label: str, tier: str | None = None) -> Interval:
        """Return the interval of a run on `chip`, at its own tier or at the given one."""
        tier = tier or self.tier(chip, precision, label)
        key = chip, precision, label
        return Interval(self.anchors.get(key, 1.0), *self._bounds(key, tier), tier)

    def _bounds(self, key: tuple[str, str, str], tier: str) -> tuple[float, float]:
        """Return the bounds of measured / predicted of 80 % of runs: those of own runs where they are known, else those of the tier."""
        if tier == KNOWN and key in self.spreads:
            reach = float(np.exp(Z80 * self.spreads[key]))
            return 1.0 / reach, reach
        low, high = self.bands[tier, key[-1]]
        share = self.narrowed.get((key[0], key[-1]), 1.0)
        return low**share, high**share


def training_bounds(interval: Interval, times_s: Mapping[str, float], capacity: float) -> dict[str, list[float]]:
    """Return [low, high] of the times of a job and of its tokens/s."""
    return {name: interval.around(time) for name, time in times_s.items()} | {
        "capacity": interval.around_rate(capacity)
    }


def serving_tier(known: Calibration, chips: Sequence[tuple[str, str]]) -> str:
    """Return the farthest tier over the (chip, precision) of the pools of a point."""
    return max((known.tier(*chip, label) for chip in chips for label in LABELS["serving"]), key=TIERS.index)


def serving_bounds(
    known: Calibration, chips: Sequence[tuple[str, str]], latency_s: Mapping[str, float], capacity: float
) -> dict[str, list[float]]:
    """Return [low, high] of each latency ("ttft.p95") and of the capacity of a serving point [s], [request/s].

    Of the pools' (chip, precision) the one counts whose figure is known least.
    """

    def around(name: str, value: float) -> list[float]:
        label = SERVING_LABEL[name.split(".")[0]]
        widest = max((known.interval(*chip, label) for chip in chips), key=lambda found: found.high / found.low)
        return [value * widest.low, value * widest.high]

    return {name: around(name, value) for name, value in (*latency_s.items(), ("capacity", capacity))}


def seen_chips(catalog: Catalog, model: str) -> frozenset[str]:
    """Read the chips that a model ("training" or "serving") was fitted on."""
    seen = catalog.get("constants", f"{model}_seen").figures
    return frozenset(name.removeprefix("chip ") for name in seen if name.startswith("chip "))


def generation_of(chip: Record) -> str:
    """Name the generation by which chips share figures; each TPU, and each chip without a family, is one of its own."""
    family = chip.words("family") or ""
    return chip.name if family in ("", "other", "tpu") else family


def relatives(catalog: Catalog, chips: frozenset[str]) -> frozenset[str]:
    """List all chips of the catalog of the same generations as `chips`."""
    records = list(catalog.records("chips"))
    seen = {generation_of(chip) for chip in records if chip.name in chips}
    return frozenset(chip.name for chip in records if generation_of(chip) in seen)


def network(experts: int) -> str:
    """Return the label of an architecture's bands: dense, or mixture of experts."""
    return EXPERTS if experts else DENSE
