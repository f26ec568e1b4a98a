"""A job of reinforcement learning with its names resolved."""

from __future__ import annotations

from dataclasses import dataclass

from models.transformer.architecture import Architecture
from planner.problem.engine import EngineSettings
from planner.problem.facts import TrainingFacts
from planner.spec.reinforcement import Reinforcement


@dataclass(frozen=True, slots=True)
class ReinforcementFacts(TrainingFacts):
    """Reinforcement learning; as a training job it is its update, one mini-batch a step, and its work are the trained tokens."""

    spec: Reinforcement
    engine: EngineSettings  # of the rollout
    reward: Architecture | None = None  # None: a rule
    critic: Architecture | None = None  # None: no critic
