"""All errors at one level at once, by chip and metric, never better than predicted: the world for which a layout is sought.

A point's limits on latency are divided by the error of that latency on its chips, its capacity is multiplied by the error of the rate
and divided by the growth of demand. What a robust plan does with such layouts: `planner.robust.search`.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.problem.facts import Derating, Problem, ServingFacts, SystemFacts, TrainingFacts
from planner.problem.intervals import DENSE, EXPERTS
from planner.problem.scenarios import SERVING, chips_of, demand_at, error_at

NOMINAL = 0.5  # at and below this level nothing is derated


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
        demand={
            w.name: max(float(demand_at(problem, level)), 1.0) for w in problem.serving if not scaled(problem, w.name)
        },
        serving={chip: {label: of(chip, label) for label in SERVING} for chip in chips} if problem.serving else {},
        training={
            chip: {label: max(float(error_at(training, chip, label, level)), 1.0) for label in (DENSE, EXPERTS)}
            for chip in chips
        }
        if problem.training
        else {},
    )


def scaled(problem: Problem, workload: str) -> bool:
    """Whether a workload's demand is what the question maximises."""
    asked = problem.spec.objective
    return bool(asked.maximise) and asked.workload in (None, workload)


def counted_share(
    derating: Derating | None, workload: ServingFacts | TrainingFacts, systems: Iterable[SystemFacts]
) -> float:
    """Share of a predicted capacity that is counted on; all of it in a plan that is not robust."""
    return 1.0 if derating is None else derating.capacity(workload, systems)


def stretch_of(derating: Derating | None, systems: Iterable[SystemFacts]) -> dict[str, float]:
    """Factor on each latency; none in a plan that is not robust."""
    return {} if derating is None else derating.stretch(systems)
