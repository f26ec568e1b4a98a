"""A plan in whole numbers, and the slots' answer to it."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.decomposition.recovery_master import Point
from solvers.decomposition.reformulation import Level
from solvers.decomposition.subproblems import SlotAnswer
from solvers.interface import SolverError
from solvers.model.data import Floats


@dataclass(frozen=True, slots=True)
class WholePlan:
    """Everything decided once, whole, with the running of jobs, and what it costs."""

    level: Level
    point: Point
    value: float


def settle(plan: WholePlan) -> tuple[SlotAnswer, Floats, Floats] | None:
    """(answer of the slots, flows [A, T], replicas [points, T]) with nothing missing; None where a slot has no such answer."""
    level = plan.level
    for tolerance in (1e-9, 1e-7):
        level.programs.forbid_missing(tolerance)
        try:
            answer = level.programs.answer(*level.master.given(plan.point))
        except SolverError:
            continue
        flows, replicas, _ = level.programs.flows()
        return answer, flows, replicas
    return None
