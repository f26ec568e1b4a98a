"""Base of the kinds of work that constants are fitted and scored for, and what an observation of one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.lookup import Catalog
from models.statistics.fitting import Predict, Prior
from planner.calibration.measurements import Row

TRUSTED = ("A", "B")  # grades that may enter a fit


Question = Any  # a row as a question to the models: training_cases.Measured or serving_cases.MeasuredServing


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured figure of a row, in the unit of its metric."""

    case: int  # index of the row among those read
    metric: str
    value: float
    fits: bool  # whether it may enter a fit
    label: str  # what the bands of its interval are told apart by


@dataclass(frozen=True, slots=True)
class Kind:
    """What fits and scores need to know of one kind of measurements. Its constants and records carry `name` as prefix."""

    name: str
    question: Callable[[Row, Catalog, Mapping[str, float]], Question]  # raises Unpredictable with the reason
    measured: Callable[[Question], Mapping[str, float]]  # metric -> value
    nothing: str  # the reason why a row without any is not predictable
    predictor: Callable[[Sequence[Any], Sequence[tuple[int, str]]], Predict]  # ln(predicted) of (case, metric)
    shown: Callable[
        [Question, str, float, Mapping[str, float]], float
    ]  # the predicted figure in the unit of its metric
    priors: Mapping[str, Prior]
    fitted: tuple[str, ...]  # metrics that may enter a fit
    scale: Mapping[str, float]  # ln(predicted / measured) beyond which an observation counts as an outlier, by metric
    offset: Mapping[str, float]  # how much whole sources differ, in ln(value), by metric
    in_score: Callable[[Row], bool]
    label: Callable[[Question, str], str]
    labels: tuple[str, ...]
    anchor: Callable[[Question, str], str]  # key of the offset that own measurements share
    anchor_words: str  # of the parts of such a key, for people
    evenness: float = 1.0  # 1: all sources weigh alike in a fit; 0: all rows do
    weight: float = 1.0  # mean square of the weights against the priors; less where many rows repeat one setting

    def observations(self, questions: Sequence[Question]) -> list[Observation]:
        """All measured figures of the rows, in their order."""
        found = []
        for i, m in enumerate(questions):
            trusted = m.row.grade in TRUSTED and self.in_score(m.row)
            found += [
                Observation(i, metric, value, trusted and metric in self.fitted, self.label(m, metric))
                for metric, value in self.measured(m).items()
            ]
        return found

    def predict(self, questions: Sequence[Question], observations: Sequence[Observation]) -> Predict:
        """ln(predicted) of the observations as a function of the constants."""
        used = sorted({o.case for o in observations})
        place = {case: i for i, case in enumerate(used)}
        return self.predictor([questions[i].case for i in used], [(place[o.case], o.metric) for o in observations])
