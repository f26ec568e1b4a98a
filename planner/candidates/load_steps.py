"""Find the loads at which the least cost of a group changes: up to there a whole number of workers is enough, and one more request takes another.

The least cost of a deployment is a staircase in its load, since its workers are whole. Of several deployments that carry a demand together,
each may be loaded to the end of a step at no cost, so that only groups that reach the end of one are of use. Shares of the demand fixed
beforehand miss ends. The low steps matter most: they fill what a large deployment leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Ints
from planner.candidates.worker_numbers import TIE_TOL, NumbersSearch, Question

MOST_STEPS = 32
"""Steps whose ends are sought, the lowest first: four servers of eight chips, chip by chip."""
MOST_ROUNDS = 12  # part of questions beyond the ends known
HALVINGS = 52  # part of an interval of loads


@dataclass(frozen=True, slots=True)
class Steps:
    """Ends of the lowest steps of the least cost, ascending, and the least load that each step does not carry."""

    ends: tuple[float, ...]
    beyond: tuple[float, ...]

    @property
    def reach(self) -> float:
        """Return the load up to which the end of every step is known."""
        return self.ends[-1] if self.ends else 0.0


def find_steps(search: NumbersSearch, questions: Sequence[Question]) -> Steps:
    """Search groups until none is left that raises the end of a step; the most load is the largest that the questions after the first ask about.

    Each round asks for the least cost just beyond the ends known so far, so that the bounds of the search prove each end. Without such
    questions nothing is sought: divisible replicas have no steps.
    """
    most = max((question.load for question in questions[1:]), default=0.0)
    steps, asked = Steps((), ()), {question.load for question in questions[1:]}
    for _ in range(MOST_ROUNDS):
        steps = _steps_found(search, questions[0], most)
        fresh = [load for load in steps.beyond if load < most and load not in asked]
        if not fresh:
            return steps
        asked.update(fresh)
        search.ask([_at(questions[0], load) for load in fresh])
        search.run()
    known = next((i for i, load in enumerate(steps.beyond) if load < most and load not in asked), len(steps.ends))
    return Steps(steps.ends[:known], steps.beyond[:known])


def at_ends(question: Question, steps: Steps) -> list[Question]:
    """List the questions for the group of least cost at the end of each step, at the prices and round trip of a question."""
    return [_at(question, load) for load in steps.ends]


def _at(question: Question, load: float) -> Question:
    return replace(question, load=load, most_rate=np.inf)


def _steps_found(search: NumbersSearch, question: Question, most: float) -> Steps:
    """Compute the ends of the steps of the groups found so far, from no load to the most."""
    ends: list[float] = []
    beyond: list[float] = []
    load = 0.0
    while len(ends) < MOST_STEPS and load < most:
        cost = search.costs(_at(question, load))
        least = cost.min(initial=np.inf)
        if not np.isfinite(least):
            break
        able = np.flatnonzero(cost <= least * (1 + TIE_TOL))
        end, load = _most_carried(search, question, able, least, (load, most))
        ends.append(end)
        beyond.append(load)
    return Steps(tuple(ends), tuple(beyond))


def _most_carried(
    search: NumbersSearch, question: Question, groups: Ints, budget: float, between: tuple[float, float]
) -> tuple[float, float]:
    """Compute the most load between two that some groups carry at a cost, and the least that they do not; twice the upper one where they carry that."""

    def carry(load: float) -> bool:
        return bool(search.costs(_at(question, load), groups).min() <= budget * (1 + TIE_TOL))

    low, high = between
    if carry(high):
        return high, high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if carry(middle) else (low, middle)
    return low, high
