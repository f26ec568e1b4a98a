"""Derate predictions for a robust plan: all errors at one level at once, by chip and metric, never better than predicted.

Limits on latency are divided by the error of that latency on the chips of a point; its capacity is multiplied by the error of the
rate and divided by the growth of demand. The robust search: `planner.robust.search`.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.problem.facts import Derating, ResolvedSpec, SystemFacts, WorkloadFacts
from planner.problem.intervals import DENSE, EXPERTS
from planner.problem.scenarios import SERVING, chips_of, demand_at, error_at

NOMINAL = 0.5  # at and below this level nothing is derated


def derating_at(problem: ResolvedSpec, level: float) -> Derating:
    """Take all errors at one level of their distributions, except those that help; demand that is maximised does not grow."""
    asked = problem.robust
    chips = chips_of(problem) if asked.times and level > NOMINAL else ()
    serving, training = problem.constants.measured_serving, problem.constants.measured_training

    def of(chip: str, label: str) -> float:
        if label == "throughput":
            return min(float(error_at(serving, chip, label, 1.0 - level)), 1.0)
        return max(float(error_at(serving, chip, label, level)), 1.0)

    return Derating(
        level=level,
        demand={
            w.name: max(float(demand_at(problem, w, level)), 1.0)
            for w in problem.serving
            if not scaled(problem, w.asked)
        },
        serving={chip: {label: of(chip, label) for label in SERVING} for chip in chips} if problem.serving else {},
        training={
            chip: {label: max(float(error_at(training, chip, label, level)), 1.0) for label in (DENSE, EXPERTS)}
            for chip in chips
        }
        if problem.training
        else {},
    )


def scaled(problem: ResolvedSpec, workload: str) -> bool:
    """Tell whether the objective maximises the demand of a workload."""
    asked = problem.spec.objective
    return bool(asked.maximise) and asked.workload in (None, workload)


def counted_share(derating: Derating | None, workload: WorkloadFacts, systems: Iterable[SystemFacts]) -> float:
    """Return the share of a predicted capacity that the plan counts on; 1 in a plan that is not robust."""
    return 1.0 if derating is None else derating.capacity(workload, systems)


def stretch_of(derating: Derating | None, systems: Iterable[SystemFacts]) -> dict[str, float]:
    """Return the factor on each latency metric; none in a plan that is not robust."""
    return {} if derating is None else derating.stretch(systems)
