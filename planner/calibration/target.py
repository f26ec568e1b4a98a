"""Base of calibration targets: the models (training, serving) whose constants are fitted to measurements and whose predictions are scored.

Fits and scores work on observations and read all that differs between the models from a target. The targets are in
`training_target.py` and `serving_target.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from catalog.lookup import Catalog
from models.arrays import Floats
from models.statistics.fitting import Predict, Prior
from planner.calibration.measurements import MeasuredCase, Row

TRUSTED_GRADES = ("A", "B")  # grades that may enter a fit

M = TypeVar("M", bound=MeasuredCase)


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured figure of a row, in the unit of its metric."""

    case: int  # index of the row among those read
    metric: str
    value: float
    fits: bool  # whether it may enter a fit
    label: str  # the group of observations whose interval it shares


@dataclass(frozen=True, slots=True)
class CalibrationTarget(Generic[M]):
    """A model to calibrate, as fits and scores see it. The catalog's constants and records of it carry `name` as prefix."""

    name: str
    build_case: Callable[[Row, Catalog, Mapping[str, float]], M]  # raises Unpredictable with the reason
    metrics_of: Callable[[M], Mapping[str, float]]  # metric -> measured value
    no_metric_reason: str  # code of the message why a row without any of them is not predictable
    predictor: Callable[[Sequence[Any], Sequence[tuple[int, str]]], Predict]  # ln(predicted) of (case, metric)
    in_metric_unit: Callable[[M, str, float, Mapping[str, float]], float]  # a prediction in the unit of its metric
    memory: Callable[[M, Mapping[str, float]], tuple[float, float]]  # (needed, usable) on the fullest chip [byte]
    priors: Mapping[str, Prior]
    level_of: Callable[[str], str]  # names the level of a constant, within which constants are shrunk alike
    fitted_metrics: tuple[str, ...]
    outlier_scale: Mapping[str, float]  # by metric: |ln(predicted / measured)| above which an observation is an outlier
    offset_spread: Mapping[str, float]  # by metric: standard deviation of ln(value) between whole sources
    in_score: Callable[[Row], bool]
    interval_label: Callable[[M, str], str]
    interval_labels: tuple[str, ...]
    offset_key: Callable[[M, str], str]  # names the offset that the user's measurements of one environment share
    offset_words: str  # format string that turns the parts of such a key into words
    source_evenness: float = 1.0  # 1: all sources weigh alike in a fit; 0: all rows do
    rate_label: str = ""  # the label whose interval is that of the rate which a run serves
    at_other_rate: Callable[[Sequence[M], Sequence[Observation], Mapping[str, float], float], Floats] | None = (
        None  # ln of the factor on each observation at so many times the rate of its run, infinite beyond what it serves
    )
    by_other_ways: Callable[[Sequence[M], Sequence[Observation], Mapping[str, float]], tuple[Floats, Floats]] | None = (
        None  # ln of the least and of the most factor on each observation over the ways of loading that its row leaves open
    )
    data_weight: float = (
        1.0  # mean square of the weights of rows against the priors; below 1 where rows repeat a setting
    )

    def observations(self, cases: Sequence[M]) -> list[Observation]:
        """List all measured figures of the rows, in their order."""
        found = []
        for i, case in enumerate(cases):
            trusted = case.row.grade in TRUSTED_GRADES and self.in_score(case.row)
            found += [
                Observation(
                    i, metric, value, trusted and metric in self.fitted_metrics, self.interval_label(case, metric)
                )
                for metric, value in self.metrics_of(case).items()
            ]
        return found

    def predict(self, cases: Sequence[M], observations: Sequence[Observation]) -> Predict:
        """Build the function from constants to ln(predicted) of the observations."""
        used = sorted({o.case for o in observations})
        place = {case: i for i, case in enumerate(used)}
        return self.predictor([cases[i].case for i in used], [(place[o.case], o.metric) for o in observations])


AnyTarget = CalibrationTarget[Any]  # the class of its cases depends on the file that is read
