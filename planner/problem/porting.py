"""What it costs to port an architecture to a family of chips."""

from __future__ import annotations

from dataclasses import dataclass

from planner.messages import Message


@dataclass(frozen=True, slots=True)
class PortingFacts:
    """One-off cost of porting the architecture of the `workloads` to a chip family, or of an exchange of KV caches between two vendors."""

    path: str
    family: str
    architecture: str
    cost: float
    workloads: tuple[str, ...]
    exchange: bool = False  # whether KV caches are exchanged, in place of a ported family

    @property
    def label(self) -> str:
        if self.exchange:
            return Message.of("path.exchange", workload=self.workloads[0]).text()
        return f"{self.architecture} on {self.family}"
