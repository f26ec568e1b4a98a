"""What it costs to port an architecture to a family of chips."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortingFacts:
    """One-off cost of porting the architecture of the `workloads` to a chip family."""

    path: str
    family: str
    architecture: str
    cost: float
    workloads: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.architecture} on {self.family}"
