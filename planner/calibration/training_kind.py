"""What fits and scores need to know of a kind of measurements, and the kind "training". Fits are in calibrate.py, scores in validate.py;
both work on observations and know neither kind. The kind "serving" is in serving_kind.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from catalog.lookup import Catalog
from catalog.units import TERA
from models.statistics.fitting import ANCHOR_SPREAD, RATIO_SCALE, Predict
from models.training.layer import Run
from models.training.layouts import Layouts
from models.training.many_runs import Case, Predictor
from models.training.priors import TRAINING_PRIORS
from models.training.step import TRAINING_PASSES, TrainingConstants, recomputed_flops_per_token
from models.transformer.architecture import forward_flops_per_token
from planner.calibration.kind import Kind
from planner.calibration.measurements import Row, kind_mark
from planner.calibration.training_cases import Measured, measured_case

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
