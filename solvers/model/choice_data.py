"""Data of the choice block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceData:
    """`group` [W]: number of the group, -1 outside any; `one` [G]: whether exactly one workload answers; `able` [W]: whether it may;
    `score` [W]; `least` [G]: of the mean score, -inf where any will do; `hourly` [G]: whether in each slot, not over all."""

    group: Ints
    one: Bools
    able: Bools
    score: Floats
    least: Floats
    hourly: Bools

    def leads(self) -> Ints:
        """[W]: the workload whose demand each answers."""
        first = {int(g): w for w, g in reversed(list(enumerate(self.group))) if g >= 0}
        return np.array([first.get(int(g), w) for w, g in enumerate(self.group)], dtype=np.int64)

    def problems(self, workloads: int, demand: Floats) -> Iterator[str]:
        if (
            any(part.shape != (workloads,) for part in (self.group, self.able, self.score))
            or not self.one.shape == self.least.shape == self.hourly.shape
        ):
            yield f"choice: expected {workloads} workloads, and as many `least` as groups"
        elif (
            self.group.max(initial=-1) >= len(self.one)
            or not np.isfinite(self.score).all()
            or np.isnan(self.least).any()
        ):
            yield "choice: index outside its groups, or a score that is not a number"
        elif demand[self.leads() != np.arange(workloads)].any():
            yield "choice: the demand of a group is that of its first workload; the others have none"
