"""Plan rows of reinforcement learning: iterations, and what one costs. The row of an iteration is written in `planner.evaluate.reinforcement`."""

from __future__ import annotations

from planner.problem.facts import WorkloadFacts
from planner.problem.reinforcement import ReinforcementFacts


def iterations_of(workload: WorkloadFacts, tokens: float, worth: float, cost: float) -> dict[str, float | None]:
    """Count the iterations of a job from its trained tokens, and divide its cost by them; nothing for another workload.

    `worth`: its tokens, discounted as its cost is.
    """
    if not isinstance(workload, ReinforcementFacts):
        return {}
    each = workload.spec.iteration_tokens
    return {"iterations": tokens / each, "cost_per_iteration": cost / worth * each if worth else None}
