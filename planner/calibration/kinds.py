"""Choice of the kind of work that a file of measurements holds."""

from __future__ import annotations

from collections.abc import Sequence

from planner.calibration.kind import Kind, Question
from planner.calibration.training_cases import Measured
from planner.calibration.training_kind import TRAINING


def kind_named(name: str) -> Kind:
    """The kind "training" or "serving"; the models of the latter are loaded when first asked for."""
    if name == TRAINING.name:
        return TRAINING
    from planner.calibration.serving_kind import SERVING

    return SERVING


def kind_of(questions: Sequence[Question]) -> Kind:
    """The kind of rows read from one file; training where there is none."""
    return TRAINING if not questions or isinstance(questions[0], Measured) else kind_named("serving")
