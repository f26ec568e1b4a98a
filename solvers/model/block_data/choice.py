"""Input of the choice block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceData:
    """Groups G of workloads W that share the demand of their first member, the lead.

    `group` [W]: number of the group, -1 outside any. `one` [G]: exactly one workload answers. `able` [W]: the workload may answer.
    `score` [W]: quality score. `least` [G]: least mean score, -inf where any will do. `hourly` [G]: the mean of each slot counts, not
    that over all slots.
    """

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
        """Describe wrong shapes, indices and values."""
        by_workload = (self.group, self.able, self.score)
        if any(part.shape != (workloads,) for part in by_workload) or not (
            self.one.shape == self.least.shape == self.hourly.shape
        ):
            yield f"choice: expected {workloads} workloads, and as many `least` as groups"
            return
        if self.group.max(initial=-1) >= len(self.one):
            yield "choice.group: index outside its groups"
            return
        if not np.isfinite(self.score).all() or np.isnan(self.least).any():
            yield "choice: a score that is not a number"
        if demand[self.leads() != np.arange(workloads)].any():
            yield "choice: only the first workload of a group has demand; the others have none"
