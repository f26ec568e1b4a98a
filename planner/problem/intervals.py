"""The 80 % interval of every predicted time, and corrections from a user's own measurements of a chip, from the catalog's calibration.

Fitting: `planner.calibration.fit`; closed forms: `models.statistics.intervals`. No plan is itself a measured run, so its tier is that
of a new source; on a chip without measurements, of a new chip, or where its whole generation has none, of a new generation; and on one
that the user measured, of a known run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from catalog.lookup import Catalog
from catalog.records import Record
from models.arrays import Floats
from models.formats import FORMATS
from models.statistics.intervals import TIERS, Band, tier_of, widened
from models.statistics.reach import beyond, distance
from models.transformer.architecture import Architecture

DENSE, EXPERTS = "dense", "moe"
KNOWN = TIERS[0]
Z80 = 1.2816  # standard deviations of a normal distribution that bound its middle 80 %
LABELS = {
    "training": (DENSE, EXPERTS),
    "serving": ("tpot", "ttft", "throughput"),
}  # keys of the bands of each model
EVERY = "every family"  # name under which the range over all families stands
BITS = 8.0  # bits of a byte
FEATURES = ("layers", "experts", "chips", "context", "batch", "bits")
# The band of each figure of a serving point; end to end and tasks are mostly decode.
SERVING_LABEL = {"ttft": "ttft", "tpot": "tpot", "e2e": "tpot", "task": "tpot", "capacity": "throughput"}

AtRate = Callable[[str, float], float]  # factor on a latency at so many times the rate of its point


def features_of_run(arch: Architecture, chips: float, context: float, batch: float, bits: float) -> dict[str, float]:
    """Describe a replica (tokens of a request, requests in decode, bits of a weight) or a job (tokens of a sequence, sequences of a step).

    Networks without experts have none to compare.
    """
    experts = {"experts": float(arch.experts)} if arch.experts else {}
    return {
        "layers": float(arch.layers),
        **experts,
        "chips": float(chips),
        "context": float(context),
        "batch": float(batch),
        "bits": bits,
    }


@dataclass(frozen=True, slots=True)
class Reach:
    """Fitted ranges by family and feature, and by label how much wider intervals grow for each factor e outside them [1]."""

    ranges: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    slopes: Mapping[str, float] = field(default_factory=dict)

    def of(self, family: str) -> Mapping[str, tuple[float, float]]:
        """Return the ranges of a family, or of all where no run of it was fitted."""
        return self.ranges.get(family, self.ranges.get(EVERY, {}))

    def outside(self, family: str, features: Mapping[str, float]) -> dict[str, float]:
        """Return the distance of each feature that lies outside what the family was fitted on [1]."""
        return beyond(features, self.of(family))

    def power(self, label: str, family: str, features: Mapping[str, float]) -> float:
        """Compute the factor on the logarithms of an interval's bounds [1]."""
        return 1.0 + self.slopes.get(label, 0.0) * distance(self.outside(family, features))


@dataclass(frozen=True, slots=True)
class Run:
    """What an interval asks of a run beside its chip: the kind of its network, and its features (`features_of_run`)."""

    kind: str
    features: Mapping[str, float]

    @classmethod
    def of(cls, arch: Architecture, chips: float, context: float, batch: float, precision: str) -> Run:
        """Describe a replica, or a job, by the format of its weights or products."""
        return cls(kind_of_network(arch), features_of_run(arch, chips, context, batch, bits_of(precision)))


def bits_of(precision: str) -> float:
    """Return the bits of a value in a format."""
    return BITS * FORMATS[precision].value_bytes


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
    kinds: frozenset[str]  # kinds of networks that were measured
    families: Mapping[str, str]  # by chip
    reach: Reach  # what each family was fitted on
    anchors: Mapping[
        tuple[str, str, str], float
    ]  # (chip, precision, label) -> measured / predicted of the user's own runs
    spreads: Mapping[tuple[str, str, str], float] = field(
        default_factory=dict
    )  # the same keys -> standard deviation of ln(measured / predicted) of the user's further runs, where they were enough
    load_power: float = 1.0  # a replica that serves f of its predicted rate is under f to minus this power of the load
    levels: tuple[float, ...] = ()  # levels of the quantiles below
    residuals: Mapping[tuple[str, str], tuple[float, ...]] = field(
        default_factory=dict
    )  # (tier, label) -> quantiles of measured / predicted
    rank_correlation: Floats | None = None  # [label, label] of the errors of one run
    narrowed: Mapping[tuple[str, str], float] = field(
        default_factory=dict
    )  # (chip, label) -> factor on the logarithms of the bounds where the user probed the chip

    def tier(self, chip: str, precision: str, label: str, kind: str | None = None) -> str:
        """Classify how far a run on `chip` is from the measurements behind the model; without the kind of its network, as of one that was measured."""
        own, kind_seen = (chip, precision, label) in self.anchors, kind is None or kind in self.kinds
        return tier_of(own, chip in self.chips, chip in self.relatives, kind_seen)

    def interval(
        self, chip: str, precision: str, label: str, tier: str | None = None, run: Run | None = None
    ) -> Interval:
        """Return the interval of a run on `chip`, at its own tier or at the given one, wider where it lies outside what was fitted."""
        tier = tier or self.tier(chip, precision, label, None if run is None else run.kind)
        key = chip, precision, label
        return Interval(self.anchors.get(key, 1.0), *self._bounds(key, tier, run), tier)

    def outside(self, chip: str, run: Run) -> dict[str, float]:
        """Return by how much each feature of a run lies outside what the chip's family was fitted on [1]."""
        return beyond(run.features, self.reach.of(self.family(chip)))

    def family(self, chip: str) -> str:
        """Name the family of a chip, or the chip where it is in no catalog."""
        return self.families.get(chip, chip)

    def _bounds(self, key: tuple[str, str, str], tier: str, run: Run | None) -> tuple[float, float]:
        """Return the 10th and 90th percentiles of measured/predicted: from the user's runs if there are any, otherwise from the tier's."""
        if tier == KNOWN and key in self.spreads:
            reach = float(np.exp(Z80 * self.spreads[key]))
            return 1.0 / reach, reach
        low, high = self.bands[tier, key[-1]]
        power = self.narrowed.get((key[0], key[-1]), 1.0)
        if run is not None:
            power *= self.reach.power(key[-1], self.family(key[0]), run.features)
        return low**power, high**power


def training_bounds(interval: Interval, times_s: Mapping[str, float], capacity: float) -> dict[str, list[float]]:
    """Return [low, high] of the times of a job and of its tokens/s."""
    return {name: interval.around(time) for name, time in times_s.items()} | {
        "capacity": interval.around_rate(capacity)
    }


def serving_tier(known: Calibration, chips: Sequence[tuple[str, str]], kind: str) -> str:
    """Return the farthest tier over the (chip, precision) of the pools of a point, which runs a network of a kind."""
    return max((known.tier(*chip, label, kind) for chip in chips for label in LABELS["serving"]), key=TIERS.index)


def serving_bounds(
    known: Calibration,
    chips: Sequence[tuple[str, str]],
    latency_s: Mapping[str, float],
    capacity: float,
    run: Run,
    at_rate: AtRate | None = None,
) -> dict[str, list[float]]:
    """Return [low, high] of each latency ("ttft.p95") and of the capacity of a serving point [s], [request/s].

    Of the pools' (chip, precision) the one counts whose figure is known least. A point that serves f of its predicted throughput is under
    1/f of the load, so that latencies that hold waits are also uncertain by what those are at 1/f of its rate (`at_rate`), at both bounds
    of f; None: of no open arrivals. An upper bound is infinite where that rate is more than the point serves.
    """

    def widest(label: str) -> Interval:
        return max((known.interval(*chip, label, run=run) for chip in chips), key=lambda found: found.high / found.low)

    served = widest(SERVING_LABEL["capacity"])

    def around(name: str, value: float) -> list[float]:
        found = widest(SERVING_LABEL[name.split(".")[0]])
        if at_rate is None or name == "capacity":
            return [value * found.low, value * found.high]
        calm, busy = (math.log(at_rate(name, f**-known.load_power)) for f in (served.high, served.low))
        wide = widened(Band(math.log(found.low), math.log(found.high)), calm, busy)
        return [value * math.exp(wide.low), value * math.exp(wide.high)]

    return {name: around(name, value) for name, value in (*latency_s.items(), ("capacity", capacity))}


def row_of(bounds: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    """Write bounds as a document states them: None for one that is infinite."""
    return {name: [bound if math.isfinite(bound) else None for bound in pair] for name, pair in bounds.items()}


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


def kind_of_network(arch: Architecture) -> str:
    """Name the kind of a network by its rarest features: how its layers mix tokens, then its experts."""
    ways = (
        ("state space", arch.state_layers), ("linear attention", arch.linear_layers), ("compressed attention", arch.csa_layers or arch.hca_layers),
        ("sparse attention", arch.sparse_topk), ("latent attention", arch.mla), ("experts", arch.experts),
    )  # fmt: skip
    return next((name for name, there in ways if there), DENSE)


def seen_kinds(catalog: Catalog, model: str) -> frozenset[str]:
    """Read the kinds of networks that a model was fitted on."""
    seen = catalog.get("constants", f"{model}_seen").figures
    return frozenset(name.removeprefix("network ") for name in seen if name.startswith("network "))


def network(experts: int) -> str:
    """Return the label of an architecture's bands: dense, or mixture of experts."""
    return EXPERTS if experts else DENSE
