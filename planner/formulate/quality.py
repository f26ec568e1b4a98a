"""Program data of the architecture choice under a quality floor."""

from __future__ import annotations

import numpy as np

from planner.problem.facts import ResolvedSpec
from planner.problem.quality import HOUR, MEANS, NONE, below_floors
from solvers.model.block_data.choice import ChoiceData


def choice_data(problem: ResolvedSpec) -> ChoiceData | None:
    """Build the data of the choice; None where no demand can be answered by several architectures."""
    group, score = np.full(len(problem.serving), -1), np.zeros(len(problem.serving))
    place = {workload.name: w for w, workload in enumerate(problem.serving)}
    one: list[bool] = []
    least: list[float] = []
    hourly: list[bool] = []
    for facts in problem.quality:
        mine = {architecture: place[name] for architecture, name in facts.members.items() if name in place}
        if len(facts.members) < 2 or not mine:
            continue
        for architecture, w in mine.items():
            group[w], score[w] = len(one), facts.scores[architecture]
        one.append(facts.mix == NONE)
        least.append(facts.least if facts.mix in MEANS else -np.inf)
        hourly.append(facts.mix == HOUR)
    if not one:
        return None
    held = below_floors(problem)
    return ChoiceData(
        group=group,
        one=np.array(one),
        able=np.array([workload.name not in held for workload in problem.serving]),
        score=score,
        least=np.array(least),
        hourly=np.array(hourly),
    )
