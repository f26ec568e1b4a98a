"""Blocks of a spec about quality: the architectures that a workload could run with their scores, and how good its answers must be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import Name, Real

Source = Annotated[str, Field(min_length=1, max_length=300)]


class Alternative(Block):
    """An architecture with its score. Scores compare within one source only."""

    architecture: Name
    """An architecture of the catalog."""
    quality: Real
    """Its score; more is better."""
    source: Source
    """Where the score was published, and which one it is."""


class QualityFloor(Block):
    """How good the answers must be at least; which of the `alternatives` give them is then a part of the plan."""

    least: Real
    """A score."""
    source: Source
    """Where scores of this kind are published: that of the alternatives."""
    mix: Literal["none", "each", "hour", "mean"] = "none"
    """"none": one architecture answers all requests. Else several may share them: "each" of at least that quality, or with a mean of it over the
    requests of every "hour", or with a "mean" of it over all requests, so that those of busy hours may be answered worse."""


def of_one_source(alternatives: list[Alternative] | None) -> list[Alternative] | None:
    """Raises ValueError where the scores do not compare."""
    sources = list(dict.fromkeys(alternative.source for alternative in alternatives or ()))
    if len(sources) > 1:
        raise ValueError(f'scores of "{sources[0]}" and of "{sources[1]}" do not compare; take all from one source')
    names = [alternative.architecture for alternative in alternatives or ()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} stands twice; give one score")
    return alternatives


def comparable(floor: QualityFloor | None, alternatives: list[Alternative] | None) -> QualityFloor | None:
    """Raises ValueError where no score can be held against the floor."""
    if floor is None:
        return None
    if not alternatives:
        raise ValueError('needs "alternatives": architectures with their scores')
    if floor.source != alternatives[0].source:
        raise ValueError(
            f'a floor by "{floor.source}" and scores by "{alternatives[0].source}" do not compare; take both from one source'
        )
    return floor
