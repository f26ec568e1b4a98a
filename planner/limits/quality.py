"""Limits on quality: the floors of workloads that several architectures may answer (`planner.problem.quality`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from planner.limits.limit import Limit
from planner.messages import Message, listed
from planner.problem.facts import QualityFacts, ResolvedSpec
from planner.problem.quality import HOUR, MEAN, MEANS
from planner.spec.document import at

ANSWERS = {MEAN: "limit.quality_mean", HOUR: "limit.quality_hour"}
"""Codes of what must keep a floor, by how requests may be mixed."""
STEPS = 10  # so many parts of the range between the floor of a mean and the lowest score are tried in turn


def quality_limits(document: Mapping[str, Any], problem: ResolvedSpec, names: Collection[str]) -> Iterator[Limit]:
    """Yield the floor of each of these workloads that bars any mix of its architectures."""
    for facts in problem.quality:
        lowest = min(facts.scores.values())
        if facts.workload in names and facts.least > lowest:
            path = f"{facts.path}.least"
            floor = Message.of(
                ANSWERS.get(facts.mix, "limit.quality_answers"),
                workload=facts.workload,
                least=f"{facts.least:g}",
                source=facts.source,
            )
            words = listed([floor.text(), _best(facts)])
            choices = tuple(((path, level),) for level in _levels(facts, lowest))
            yield Limit(
                path,
                Message.of("limit.quality", workload=facts.workload).text(),
                words,
                at(document, path),
                loose=((path, lowest),),
                choices=choices,
            )


def _best(facts: QualityFacts) -> str:
    """State that even the best alternative is below the floor; empty where it is not."""
    best = max(facts.scores, key=facts.scores.__getitem__)
    if facts.scores[best] >= facts.least:
        return ""
    return Message.of("limit.quality_best", name=best, score=f"{facts.scores[best]:g}").text()


def _levels(facts: QualityFacts, lowest: float) -> list[float]:
    """List lower floors to try, the highest first."""
    levels = {score for score in facts.scores.values() if score < facts.least}
    if facts.mix in MEANS:
        most = min(facts.least, max(facts.scores.values()))
        levels |= {float(f"{lowest + (most - lowest) * i / STEPS:.4g}") for i in range(1, STEPS)}
    return sorted((level for level in levels if level < facts.least), reverse=True)
