"""A job of reinforcement learning with its names resolved."""

from __future__ import annotations

from dataclasses import dataclass

from models.transformer.architecture import Architecture
from planner.problem.engine import EngineSettings
from planner.problem.facts import TrainingFacts, WorkloadFacts
from planner.spec.reinforcement import Reinforcement


@dataclass(frozen=True, slots=True)
class ReinforcementFacts(TrainingFacts):
    """Reinforcement learning; as a training job it is its update, one mini-batch a step, and its work are the trained tokens."""

    spec: Reinforcement
    engine: EngineSettings  # engine of the rollout
    reward: Architecture | None = None  # None: a rule
    critic: Architecture | None = None  # None: no critic
    slot_price_per_s: float = 0.0  # price of an environment slot, in the currency of the plan

    @property
    def environments_per_s(self) -> float:
        """Compute what the environment slots cost while the job is at work [currency/s]."""
        tools = self.spec.tools
        return 0.0 if tools is None or tools.environments is None else tools.environments * self.slot_price_per_s


def environments_per_s(workload: WorkloadFacts) -> float:
    """Compute what the environment slots of a workload cost while it is at work [currency/s]; 0 where it has none."""
    return workload.environments_per_s if isinstance(workload, ReinforcementFacts) else 0.0
