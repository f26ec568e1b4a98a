"""Data of the porting block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PortData:
    """`member`: rows (point, group); `cost`: functional -> [G]."""

    member: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    cost: Mapping[str, Floats] = field(default_factory=dict)
    groups: int = 0

    def problems(self, points: int) -> Iterator[str]:
        if self.member.size and (
            self.member.min() < 0 or self.member[:, 0].max() >= points or self.member[:, 1].max() >= self.groups
        ):
            yield "porting: index outside its points or groups"
        for functional, values in self.cost.items():
            if values.shape != (self.groups,) or not (np.isfinite(values).all() and (values >= 0).all()):
                yield f"porting: cost[{functional}]: expected {self.groups} finite values of at least 0"
