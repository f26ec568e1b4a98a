"""Evaluate what a job loses beside its computation: to interruptions, as shares of its time, and in an iteration of reinforcement learning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.evaluate.interruptions import RunTerms, goodput_losses_of
from planner.problem.constants import Reliability
from planner.problem.facts import TrainingFacts

ITERATION = {"controller": "host", "synchronisation": "synchronisation"}  # cause -> part of an iteration
_NO_PARTS: Mapping[str, float] = MappingProxyType({})


def losses_of(
    job: TrainingFacts,
    chips: int,
    facts: Reliability,
    terms: RunTerms,
    writers: int | None = None,
    parts: Mapping[str, float] = _NO_PARTS,
) -> dict[str, float]:
    """Compute the share of a job's time that each cause takes: causes of `goodput_losses_of`, which add up to 1 - goodput, and of an iteration.

    `parts`: shares of an iteration of reinforcement learning by part, overlapped or not. Units: chips, `writers` and results [1].
    Reference: `models.training.reliability.goodput_losses`, `models.reinforcement.iteration`.
    """
    lost = goodput_losses_of(job, chips, facts, terms, writers)
    return lost | {cause: parts[name] for cause, name in ITERATION.items() if name in parts}
