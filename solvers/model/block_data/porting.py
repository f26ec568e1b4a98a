"""Input of the porting block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from solvers.arrays import Bools, Functionals, Ints, no_ints
from solvers.model.checks import wrong_costs


@dataclass(frozen=True, slots=True, kw_only=True)
class PortData:
    """Groups G of operating points that one payment enables: `member` [., 2] rows (point, group), `cost` [G] per group.

    `paid` [G]: groups that are paid for whatever runs; none where it is left out.
    """

    member: Ints = field(default_factory=lambda: no_ints(0, 2))
    cost: Functionals = field(default_factory=dict)
    groups: int = 0
    paid: Bools | None = None

    def problems(self, points: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        member = self.member
        if member.size and (member.min() < 0 or member[:, 0].max() >= points or member[:, 1].max() >= self.groups):
            yield "porting: index outside its points or groups"
        if self.paid is not None and self.paid.shape != (self.groups,):
            yield f"porting.paid: expected {self.groups} groups"
        yield from wrong_costs({"cost": (self.cost, (self.groups,))}, "porting.", least=0.0)
