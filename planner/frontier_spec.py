"""Block of a spec about frontiers: other architectures that a workload could run, each with a score of its quality."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.blocks import Block
from planner.quantities import Name, Real


class Alternative(Block):
    """An architecture with its score. Scores compare within one source only."""

    architecture: Name
    """An architecture of the catalog."""
    quality: Real
    """Its score; more is better."""
    source: Annotated[str, Field(min_length=1, max_length=300)]
    """Where the score was published, and which one it is."""


def of_one_source(alternatives: list[Alternative] | None) -> list[Alternative] | None:
    """Raises ValueError where the scores do not compare."""
    sources = list(dict.fromkeys(alternative.source for alternative in alternatives or ()))
    if len(sources) > 1:
        raise ValueError(f'scores of "{sources[0]}" and of "{sources[1]}" do not compare; take all from one source')
    names = [alternative.architecture for alternative in alternatives or ()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(twice)} stands twice; give one score")
    return alternatives
