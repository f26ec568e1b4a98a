"""Blocks of a spec about quality: alternative architectures of a workload with their scores, and the floor on the quality of its answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import Name, Real

Source = Annotated[str, Field(min_length=1, max_length=300)]


class Alternative(Block):
    """An architecture with its score. Scores are comparable within one source only."""

    architecture: Name
    """An architecture of the catalog."""
    quality: Real
    """Its score; more is better."""
    source: Source
    """Publication and name of the score."""


class QualityFloor(Block):
    """Least quality of the answers; the plan then chooses which of the `alternatives` answer."""

    least: Real
    """A score."""
    source: Source
    """Source of the score: the same as that of the alternatives."""
    mix: Literal["none", "each", "hour", "mean"] = "none"
    """"none": one architecture answers all requests. Otherwise several may share them: "each" keeps the floor, or the mean over the requests of
    every "hour" does, or the "mean" over all requests does, so that quality may drop in busy hours."""


def of_one_source(alternatives: list[Alternative] | None) -> list[Alternative] | None:
    """Check that all scores are from one source. Raises ValueError otherwise."""
    sources = list(dict.fromkeys(alternative.source for alternative in alternatives or ()))
    if len(sources) > 1:
        raise ValueError(Message.of("spec.scores_of_two_sources", one=sources[0], other=sources[1]).text())
    names = [alternative.architecture for alternative in alternatives or ()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(Message.of("spec.score_stated_twice", names=", ".join(twice)).text())
    return alternatives


def comparable(floor: QualityFloor | None, alternatives: list[Alternative] | None) -> QualityFloor | None:
    """Check that the scores are comparable with the floor. Raises ValueError otherwise."""
    if floor is None:
        return None
    if not alternatives:
        raise ValueError(Message.of("spec.floor_needs_alternatives").text())
    if floor.source != alternatives[0].source:
        raise ValueError(
            Message.of("spec.floor_of_another_source", one=floor.source, other=alternatives[0].source).text()
        )
    return floor
