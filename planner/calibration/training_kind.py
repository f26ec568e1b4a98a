"""What fits and scores need to know of a kind of measurements, and the kind "training". Fits are in calibrate.py, scores in validate.py;
both work on observations and know neither kind. The kind "serving" is in serving_kind.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from catalog.units import TERA
from models.statistics.fitting import ANCHOR_SPREAD, RATIO_SCALE, Predict, Prior
from models.training.layer import Run
from models.training.layouts import Layouts
from models.training.many_runs import Case, Predictor
from models.training.priors import TRAINING_PRIORS
from models.training.step import TRAINING_PASSES, TrainingConstants, recomputed_flops_per_token
from models.transformer.architecture import forward_flops_per_token
from planner.calibration.measurements import Row, kind_mark
from planner.calibration.training_cases import Measured, measured_case

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
    shown: Callable[[Question, str, float, Mapping[str, float]], float]  # the predicted figure in the unit of its metric
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


def kind_named(name: str) -> Kind:
    """The kind "training" or "serving"; the models of the latter are loaded when first asked for."""
    if name == TRAINING.name:
        return TRAINING
    from planner.calibration.serving_kind import SERVING

    return SERVING


def kind_of(questions: Sequence[Question]) -> Kind:
    """The kind of rows read from one file; training where there is none."""
    return TRAINING if not questions or isinstance(questions[0], Measured) else kind_named("serving")


# -- training ----------------------------------------------------------------------------------------------------------


def _training_question(row: Row, catalog: Catalog, values: Mapping[str, float]) -> Measured:
    return measured_case(row, catalog, TrainingConstants.from_values(values))


def _training_measured(m: Measured) -> dict[str, float]:
    """The step time; where only a rate was published, TFLOP/s per chip, which no fit sees because sources count FLOPs differently."""
    if m.step_s is not None:
        return {"step_time": m.step_s}
    return {"tflops": m.tflops} if m.tflops is not None else {}


def _training_predictor(cases: Sequence[Case], observations: Sequence[tuple[int, str]]) -> Predict:
    """ln(step time), from which _training_shown makes TFLOP/s."""
    return Predictor([cases[i] for i, _ in observations])


def _training_shown(m: Measured, metric: str, step_s: float, values: Mapping[str, float]) -> float:
    return step_s if metric == "step_time" else flops_per_chip(m.case, m.chips, m.hardware_flops, values) / step_s


def flops_per_chip(case: Case, chips: float, with_recompute: bool, constants: Mapping[str, float]) -> float:
    """Work of a step per chip [TFLOP]: three forward passes, and what is repeated where the source counts it."""
    per_token = TRAINING_PASSES * forward_flops_per_token(case.arch, case.sequence_tokens)
    if with_recompute:
        run = Run.of(case.arch, case.chip, Layouts.of(**case.layout), case.sequence_tokens, case.precision,
                     TrainingConstants.from_values(constants), case.family, case.recipe)  # fmt: skip
        per_token = per_token + float(np.ravel(recomputed_flops_per_token(run))[0])
    return float(per_token) * case.global_batch_sequences * case.sequence_tokens / chips / TERA


TRAINING = Kind(
    name="training",
    question=_training_question,
    measured=_training_measured,
    nothing="no step time, tokens/s, TFLOP/s or MFU",
    predictor=_training_predictor,
    shown=_training_shown,
    priors=TRAINING_PRIORS,
    fitted=("step_time",),
    scale={"step_time": RATIO_SCALE},
    offset={"step_time": ANCHOR_SPREAD},
    in_score=lambda row: True,
    label=lambda m, metric: "moe" if m.experts else "dense",
    labels=("dense", "moe"),
    anchor=lambda m, metric: f"{kind_mark(m.row.kind)}|{m.chip}|{m.precision}",
    anchor_words="offset of {1} at {2}",
    evenness=0.45,
)
