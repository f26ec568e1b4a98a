"""All errors at one level at once, by chip and metric, never better than predicted: the world for which a layout is sought.

A point's limits on latency are divided by the error of that latency on its chips, its capacity is multiplied by the error of the rate
and divided by the growth of demand. What a robust plan does with such layouts: `planner.robust.search`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.problem.facts import Problem, ServingFacts, SystemFacts, TrainingFacts
from planner.problem.intervals import DENSE, EXPERTS, SERVING_LABEL, network
from planner.problem.scenarios import SERVING, chips_of, demand_at, error_at

NOMINAL = 0.5  # at and below this level nothing is derated


@dataclass(frozen=True, slots=True)
class Derating:
    """Factors at a level: on latencies and step times at least 1, on rates at most 1, on demand at least 1."""

    level: float
    demand: Mapping[str, float]  # by serving workload
    serving: Mapping[str, Mapping[str, float]]  # chip -> tpot, ttft, throughput
    training: Mapping[str, Mapping[str, float]]  # chip -> dense, moe

    def capacity(self, workload: ServingFacts | TrainingFacts, systems: Iterable[SystemFacts]) -> float:
        """Share of a point's predicted capacity that is counted on."""
        chips = {system.chip for system in systems}
        if isinstance(workload, TrainingFacts):
            label = network(workload.architecture.experts)
            return 1.0 / max((self.training[chip][label] for chip in chips if chip in self.training), default=1.0)
        rate = min((self.serving[chip]["throughput"] for chip in chips if chip in self.serving), default=1.0)
        return rate / self.demand.get(workload.name, 1.0)

    def stretch(self, systems: Iterable[SystemFacts]) -> dict[str, float]:
        """Factor on each latency metric of a point on these systems."""
        known = [self.serving[system.chip] for system in systems if system.chip in self.serving]
        return {metric: max((errors[label] for errors in known), default=1.0) for metric, label in SERVING_LABEL.items() if metric != "capacity"}


def derating_at(problem: Problem, level: float) -> Derating:
    """All errors at one level of their distributions, those that help left out; demand that is itself asked for does not grow."""
    asked = problem.spec.robust
    chips = chips_of(problem) if asked.times and level > NOMINAL else ()
    serving, training = problem.constants.measured_serving, problem.constants.measured_training

    def of(chip: str, label: str) -> float:
        if label == "throughput":
            return min(float(error_at(serving, chip, label, 1.0 - level)), 1.0)
        return max(float(error_at(serving, chip, label, level)), 1.0)

    return Derating(
        level=level,
        demand={w.name: max(float(demand_at(problem, level)), 1.0) for w in problem.serving if not scaled(problem, w.name)},
        serving={chip: {label: of(chip, label) for label in SERVING} for chip in chips} if problem.serving else {},
        training={chip: {label: max(float(error_at(training, chip, label, level)), 1.0) for label in (DENSE, EXPERTS)} for chip in chips} if problem.training else {},
    )


def scaled(problem: Problem, workload: str) -> bool:
    """Whether a workload's demand is what the question maximises."""
    asked = problem.spec.objective
    return bool(asked.maximise) and asked.workload in (None, workload)


def counted_share(derating: Derating | None, workload: ServingFacts | TrainingFacts, systems: Iterable[SystemFacts]) -> float:
    """Share of a predicted capacity that is counted on; all of it in a plan that is not robust."""
    return 1.0 if derating is None else derating.capacity(workload, systems)


def stretch_of(derating: Derating | None, systems: Iterable[SystemFacts]) -> dict[str, float]:
    """Factor on each latency; none in a plan that is not robust."""
    return {} if derating is None else derating.stretch(systems)
