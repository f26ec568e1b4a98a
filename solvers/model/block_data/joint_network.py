"""Input of the block of networks that several kinds of systems may share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solvers.arrays import Floats, Ints
from solvers.model.checks import negative_values, wrong_indices


@dataclass(frozen=True, slots=True, kw_only=True)
class JointNetworks:
    """Networks M, and memberships N of a kind of systems in one; a kind alone never exceeds the size of its network.

    `member` [., 2]: rows (membership, holding). `pooled` [., 2]: rows (membership, row of `point_uses`) of the points whose pools stand on
    two kinds, which then share the network.
    """

    size: Floats  # [M] what a network holds
    network: Ints  # [N] network of a membership
    unit: Floats  # [N] what one system takes of the size
    member: Ints
    pooled: Ints

    def problems(self, holdings: int, uses: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        count = len(self.network)
        yield from wrong_indices(
            [
                ("network", self.network, 0, len(self.size)),
                ("member", self.member[:, 0], 0, count),
                ("member", self.member[:, 1], 0, holdings),
                ("pooled", self.pooled[:, 0], 0, count),
                ("pooled", self.pooled[:, 1], 0, uses),
            ],
            "joint.",
        )
        yield from negative_values({"size": self.size, "unit": self.unit}, "joint.")
        if self.unit.shape != (count,):
            yield f"joint.unit: expected {count} values"
