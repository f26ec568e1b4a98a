"""The 80 % interval of every predicted time, and what a user's own measurements say of a chip: read from the catalog's calibration.

Fitting is in calibrate.py, the closed forms in models/uncertainty.py. A plan is no run that was measured, so its tier is that
of a new source; on a chip that no measurement shows, that of a new chip; and on one that the user measured, a known one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.uncertainty import TIERS, tier_of
from planner.ledger import Ledger

DENSE, EXPERTS = "dense", "moe"
TIMES = {"training": (DENSE, EXPERTS)}  # what the bands of a model are told apart by


@dataclass(frozen=True, slots=True)
class Interval:
    """What a predicted time is multiplied by: its correction from own measurements, and the bounds of 80 % of runs."""

    factor: float
    low: float
    high: float
    tier: str

    def around(self, time_s: float) -> list[float]:
        """[low, high] of a time that carries the correction already [s]."""
        return [time_s * self.low, time_s * self.high]

    def around_rate(self, rate: float) -> list[float]:
        """[low, high] of a rate, which falls as the time grows."""
        return [rate / self.high, rate / self.low]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one model's fit has seen and missed."""

    bands: Mapping[tuple[str, str], tuple[float, float]]  # (tier, kind of time) -> bounds of measured / predicted
    chips: frozenset[str]
    anchors: Mapping[tuple[str, str], float]  # (chip, precision) -> measured / predicted of the user's own runs

    def interval(self, chip: str, precision: str, label: str, tier: str | None = None) -> Interval:
        """The interval of a run on `chip`; `tier` where it is stated already."""
        own = self.anchors.get((chip, precision))
        tier = tier or tier_of(own is not None, chip in self.chips)
        return Interval(own or 1.0, *self.bands[tier, label], tier)


def calibration(ledger: Ledger, model: str) -> Calibration:
    """The calibration of a model ("training"), its bands booked in the ledger."""
    catalog = ledger.catalog
    value = lambda name: ledger.value("constants", f"{model}_interval", name)  # noqa: E731
    bands = {
        (tier, label): (value(f"{tier}_{label}_low"), value(f"{tier}_{label}_high")) for tier in TIERS for label in TIMES[model]
    }
    seen = catalog.get("constants", f"{model}_seen").figures
    own: dict[tuple[str, str], list[float]] = {}
    for key in catalog.get("constants", f"{model}_anchor").figures:
        _, chip, precision = key.split("|")
        own.setdefault((chip, precision), []).append(ledger.value("constants", f"{model}_anchor", key))
    return Calibration(
        bands=bands,
        chips=frozenset(name.removeprefix("chip ") for name in seen if name.startswith("chip ")),
        anchors={key: float(np.exp(np.mean(np.log(factors)))) for key, factors in own.items()},
    )


def bounds(interval: Interval | None, times_s: Mapping[str, float], capacity: float) -> dict[str, list[float]]:
    """[low, high] of each time of a point and of its capacity; empty where nothing is known of the models' error."""
    if interval is None:
        return {}
    return {name: interval.around(time) for name, time in times_s.items()} | {"capacity": interval.around_rate(capacity)}


def network(experts: int) -> str:
    """The label of an architecture's bands."""
    return EXPERTS if experts else DENSE
