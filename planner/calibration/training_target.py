"""The calibration target "training": step times, or the rates published in place of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from catalog.lookup import Catalog
from catalog.units import TERA
from models.formats import kind_of
from models.statistics.fitting import ANCHOR_SPREAD, RATIO_SCALE, Predict
from models.training.flops import recomputed_flops_per_token, training_flops_per_token
from models.training.layouts import Layouts
from models.training.many_runs import Case, Predictor
from models.training.priors import TRAINING_PRIORS, training_level
from models.training.run import Run
from models.training.step import TrainingConstants
from planner.calibration.measurements import Row, kind_mark
from planner.calibration.target import CalibrationTarget
from planner.calibration.training_cases import MeasuredTraining, measured_training
from planner.messages import Message


def _build_case(row: Row, catalog: Catalog, values: Mapping[str, float]) -> MeasuredTraining:
    return measured_training(row, catalog, TrainingConstants.from_values(values))


def _metrics_of(m: MeasuredTraining) -> dict[str, float]:
    """Return the step time; where only a rate was published, TFLOP/s per chip, which no fit uses since sources count FLOPs differently."""
    if m.step_s is not None:
        return {"step_time": m.step_s}
    return {"tflops": m.tflops} if m.tflops is not None else {}


def _predictor(cases: Sequence[Case], observations: Sequence[tuple[int, str]]) -> Predict:
    """Predict ln(step time) of each observation; `_in_metric_unit` derives TFLOP/s from it."""
    return Predictor([cases[i] for i, _ in observations])


def _in_metric_unit(m: MeasuredTraining, metric: str, step_s: float, values: Mapping[str, float]) -> float:
    return step_s if metric == "step_time" else flops_per_chip(m.case, m.chips, m.hardware_flops, values) / step_s


def flops_per_chip(case: Case, chips: float, with_recompute: bool, constants: Mapping[str, float]) -> float:
    """Compute the FLOPs of a step per chip [TFLOP]: those that training needs, plus recomputation where the source counts it."""
    per_token = training_flops_per_token(case.arch, case.sequence_tokens, case.recipe)
    if with_recompute:
        run = Run.of(case.arch, case.chip, Layouts.of(**case.layout), case.sequence_tokens, case.precision,
                     TrainingConstants.from_values(constants), case.family, case.recipe)  # fmt: skip
        per_token = per_token + float(np.ravel(recomputed_flops_per_token(run))[0])
    return float(per_token) * case.global_batch_sequences * case.sequence_tokens / chips / TERA


def _memory(m: MeasuredTraining, values: Mapping[str, float]) -> tuple[float, float]:
    return m.case.memory_bytes(m.case.layout["recompute"], TrainingConstants.from_values(values)), m.capacity_bytes


TRAINING = CalibrationTarget(
    name="training",
    build_case=_build_case,
    metrics_of=_metrics_of,
    no_metric_reason="row.no_training_metric",
    predictor=_predictor,
    in_metric_unit=_in_metric_unit,
    memory=_memory,
    priors=TRAINING_PRIORS,
    level_of=training_level,
    fitted_metrics=("step_time",),
    outlier_scale={"step_time": RATIO_SCALE},
    offset_spread={"step_time": ANCHOR_SPREAD},
    in_score=lambda row: True,
    interval_label=lambda m, metric: "moe" if m.experts else "dense",
    interval_labels=("dense", "moe"),
    offset_key=lambda m, metric: f"{kind_mark(m.row.kind)}|{m.chip}|{kind_of((), m.precision)}",
    offset_words=Message.of("calibration.offset_of_chip", chip="{1}", precision="{2}").text(),
    source_evenness=0.45,
)
