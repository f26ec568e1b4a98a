"""Input of the block that limits how many parts a plan has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solvers.arrays import Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLimits:
    """Limits on sites, on kinds of systems at a site, and on the systems of a kind; `counted` [U]: holdings that they concern."""

    counted: Bools
    most_sites: float = float("inf")
    most_kinds: float = float("inf")
    least_systems: int = 1

    def problems(self, holdings: int) -> Iterator[str]:
        """Describe wrong shapes and values."""
        if self.counted.shape != (holdings,):
            yield f"parts.counted: expected {holdings} values"
        if min(self.most_sites, self.most_kinds) < 0 or self.least_systems < 1:
            yield "parts: expected limits of at least 0, and at least one system"
