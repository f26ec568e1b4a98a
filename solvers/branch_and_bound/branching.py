"""Branching candidates and their pseudocosts.

A candidate is a column, or a branching set: two sets of binaries of which only one may contain a nonzero (GUB branching). Sets are
numbered after the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.branch_and_bound.settings import INTEGRALITY_TOL

Candidate = int
LEAST_GAIN = 1e-9
"""Gain below which a child counts as unchanged, so that the product of two gains still ranks the other child."""


@dataclass(slots=True)
class Pseudocosts:
    """Observed increase of the LP value per unit of change, for each candidate and side (0 down, 1 up).

    Benichou et al., Mathematical Programming 1 (1971). Learnt by strong branching at first.
    """

    history: int = 16  # latest observations that count
    _observed: dict[tuple[Candidate, int], list[float]] = field(default_factory=dict)

    def known(self, candidate: Candidate) -> bool:
        """Whether both sides were observed."""
        return all((candidate, side) in self._observed for side in (0, 1))

    def record(self, candidate: Candidate, side: int, gain: float, distance: float) -> None:
        """Note that moving a candidate by `distance` raised the LP value by `gain`."""
        observed = self._observed.setdefault((candidate, side), [])
        observed.append(gain / distance)
        del observed[: -self.history]

    def ranked(self, shares: dict[Candidate, float]) -> list[Candidate]:
        """Sort candidates by the product of their expected gains, largest first, then by closeness to 1/2.

        A candidate without observations is expected to gain the mean of the others.
        """
        means = {key: float(np.mean(gains)) for key, gains in self._observed.items()}
        usual = float(np.mean(list(means.values()))) if means else 1.0

        def score(candidate: Candidate) -> tuple[float, float]:
            down = means.get((candidate, 0), usual) * shares[candidate]
            up = means.get((candidate, 1), usual) * (1 - shares[candidate])
            return -max(down, LEAST_GAIN) * max(up, LEAST_GAIN), abs(shares[candidate] - 0.5)

        return sorted(shares, key=score)


def branching_candidates(
    x: Floats, open_columns: Ints, branching_sets: Sequence[tuple[Ints, Ints]]
) -> dict[Candidate, float]:
    """Map each candidate to its fractional value: branching sets first, then the fractional columns outside all of those sets."""
    sets = {len(x) + number: float(x[first].sum()) for number, (first, _) in enumerate(branching_sets)}
    sets = {number: share for number, share in sets.items() if INTEGRALITY_TOL < share < 1 - INTEGRALITY_TOL}
    covered = {int(column) for number in sets for part in branching_sets[number - len(x)] for column in part}
    return sets | {int(column): float(x[column]) for column in open_columns if int(column) not in covered}


def restrict(
    lower: Floats, upper: Floats, candidate: Candidate, side: int, branching_sets: Sequence[tuple[Ints, Ints]]
) -> tuple[Floats, Floats]:
    """Bounds of a child: the column fixed at `side`, or the set of that side fixed at 0."""
    lower, upper = lower.copy(), upper.copy()
    if candidate < len(lower):
        lower[candidate] = upper[candidate] = side
    else:
        upper[branching_sets[candidate - len(lower)][side]] = 0.0
    return lower, upper
