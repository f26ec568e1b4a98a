"""Find the loads at which the least cost of a group changes: up to there a whole number of workers is enough, and one more request takes another.

The least cost of a deployment is a staircase in its load, since its workers are whole. Of several deployments that carry a demand together,
each may be loaded to the end of a step at no cost, so that only groups that reach the end of one are of use. Shares of the demand fixed
beforehand miss ends. The low steps matter most: they fill what a large deployment leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.worker_numbers import TIE_TOL, NumbersSearch, Question

MOST_STEPS = 32
"""Steps whose ends are sought at most, the lowest first: four servers of eight chips, chip by chip; no more than may be kept besides."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Ends of the lowest steps of the least cost, ascending, and the least load that each step does not carry."""

    ends: tuple[float, ...] = ()
    beyond: tuple[float, ...] = ()

    @property
    def reach(self) -> float:
        """Return the load up to which the end of every step is known."""
        return self.ends[-1] if self.ends else 0.0


def find_steps(search: NumbersSearch, asked: Sequence[Sequence[Question]], steps_kept: int) -> list[Steps]:
    """Search groups until none is left that raises the end of a step of any of the asked; the most load is the largest that all but the first of its questions ask about.

    Each round asks for the least cost just beyond the ends known so far, so that the bounds of the search prove each end. Where the first is
    the only question nothing is sought. `steps_kept`: the most steps whose groups may be kept.
    """
    sought = min(MOST_STEPS, steps_kept)
    most = [max((question.load for question in mine[1:]), default=0.0) for mine in asked]
    answered = [{question.load for question in mine[1:]} for mine in asked]
    while True:  # ends: each round but the last finds groups, which are finitely many
        steps = [_steps_found(search, mine[0], load, sought) for mine, load in zip(asked, most, strict=True)]
        fresh = []
        for mine, known, loads in zip(asked, answered, steps, strict=True):
            new = set(loads.beyond) - known
            fresh += [_at(mine[0], load) for load in sorted(new)]
            known |= new
        if not fresh:
            return steps
        search.ask(fresh)
        search.run()


def at_ends(question: Question, steps: Steps) -> list[Question]:
    """List the questions for the group of least cost at the end of each step, at the prices and round trip of a question."""
    return [_at(question, load) for load in steps.ends]


def _at(question: Question, load: float) -> Question:
    return replace(question, load=load, most_rate=np.inf)


def _steps_found(search: NumbersSearch, question: Question, most: float, sought: int) -> Steps:
    """Compute the ends of the steps of the groups found so far, from no load to the most."""
    ends: list[float] = []
    beyond: list[float] = []
    load, budget = 0.0, -np.inf
    while load < most:
        cost = search.costs(_at(question, load))
        least = cost.min(initial=np.inf)
        if not np.isfinite(least):
            break
        if least > budget * (1 + TIE_TOL):
            if len(ends) == sought:
                break
            ends.append(0.0)
            beyond.append(0.0)
            budget = least
        end, load = search.carried(_at(question, load), np.flatnonzero(cost <= budget * (1 + TIE_TOL)))
        ends[-1], beyond[-1] = min(end, most), min(load, most)
    return Steps(tuple(ends), tuple(beyond))
