"""Choose the calibration target that a file of measurements belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from planner.calibration.measurements import MeasuredCase
from planner.calibration.target import AnyTarget
from planner.calibration.training_cases import MeasuredTraining
from planner.calibration.training_target import TRAINING


def target_named(name: str) -> AnyTarget:
    """Return the target "training" or "serving"; the modules of the latter are imported on first use."""
    if name == TRAINING.name:
        return TRAINING
    from planner.calibration.serving_target import SERVING

    return SERVING


def target_of(cases: Sequence[MeasuredCase]) -> AnyTarget:
    """Return the target of rows read from one file; training where there are none."""
    return TRAINING if not cases or isinstance(cases[0], MeasuredTraining) else target_named("serving")
