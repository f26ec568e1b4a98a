"""Constants of the closed forms, as `planner.resolve.constants` reads them from the catalog."""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.energy.power import PowerConstants
from models.reinforcement.constants import ReinforcementConstants
from models.serving.constants import ServingConstants
from models.training.constants import TrainingConstants
from planner.problem.intervals import Calibration


@dataclass(frozen=True, slots=True)
class Reliability:
    """Rates of failures, and the times of checkpoints, recovery and repair of a long run."""

    chip_interruption_s: float  # chip time per interruption of any cause
    chip_failure_s: float  # chip time per failure of a chip
    recovery_s: float
    repair_s: float
    checkpoint_bytes_per_parameter: float
    chip_checkpoint_bytes_per_s: float  # at which the share of a chip is written and read back
    availability: float  # share of the time in which a job has all its systems
    unspared_s: float  # by how much longer a job on systems of our own stands still after an interruption
    # Rate of a site that states none, and whether a restart reads the checkpoint back: other than this in plans of earlier releases only.
    site_checkpoint_bytes_per_s: float = math.inf
    reads_back: bool = True


@dataclass(frozen=True, slots=True)
class Loading:
    """Time until a replica serves."""

    engine_start_s: float  # beside the reading of weights
    storage_bytes_per_s: float  # bandwidth at which weights are read where the spec states none for the site


@dataclass(frozen=True, slots=True)
class ModelConstants:
    """Constants of the closed forms that depend on neither the spec nor the hardware."""

    training: TrainingConstants
    serving: ServingConstants
    power: PowerConstants
    reinforcement: ReinforcementConstants
    reliability: Reliability
    loading: Loading
    measured_training: Calibration
    measured_serving: Calibration
