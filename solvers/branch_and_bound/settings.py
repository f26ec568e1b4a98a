"""Tolerances and effort limits of branch and bound and of its rounding heuristics."""

from __future__ import annotations

import math
from dataclasses import dataclass

INTEGRALITY_TOL = 1e-6
"""A value this close to an integer counts as integer."""
CLOSING_SLACK = 1e-4
"""Share of the gap by which a child's LP goes beyond the bound that closes it, so that rounding does not leave it open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchAndBoundSettings:
    """When the search is used, how much it tries at a node, and when it stops."""

    least_columns: int = 3000
    """Smallest program [columns] that the search solves under `method: auto`; HiGHS is faster on smaller ones."""
    most_binaries: int = 400
    """Largest number of binaries that the search takes on under `method: auto`."""
    node_limit: int = 100
    """Nodes opened before HiGHS takes over."""
    small_columns: int = 18_000
    """Programs up to this size [columns] go to HiGHS as soon as the search proves slow under `method: auto`:"""
    slow_iterations: int = 25_000
    """after so many simplex iterations, where the decomposition has no part in the search,"""
    small_root_gap: float = 0.05
    """or where the incumbent of the root is this far from its bound, relative: cuts close such a gap, and branching alone does not."""
    earlier_solutions_tried: int = 2
    """Solutions of similar programs that are tried as MIP starts."""
    strong_branching_candidates: int = 4
    """Candidates without a pseudocost whose two children are solved at a node."""
    pseudocost_history: int = 16
    """Latest observations that a pseudocost averages over."""
    child_cutoff: float = 0.002
    """A child's LP stops once its value exceeds the parent's by this much, relative; it is solved in full when its turn comes."""
    leaf_gap_share: float = 0.5
    """Share of the gap to which a sub-MIP with fixed binaries is solved: a leaf's bound may be better than its node's."""
    rounding_share: float = 0.1
    """Share of the gap that the stopping test keeps back for rounding errors."""
    most_rounding_gap: float = 1e-5
    """Most that the stopping test keeps back, as a relative gap."""
    value_tol: float = 1e-9
    """Relative difference of two optima below which they are equal."""
    hard_root_iterations: int = 12_000
    """Simplex iterations of the root relaxation from which on the search asks for a MIP start."""
    hard_iterations: int = 25_000
    """Simplex iterations of all relaxations from which on the search asks for a MIP start."""

    def tested_gap(self, gap: float) -> float:
        """Relative gap at which the search stops: `gap`, less a reserve for rounding."""
        return max(gap - min(self.rounding_share * gap, self.most_rounding_gap), self.value_tol)

    def target(self, bound: float, gap: float) -> float:
        """Largest value within the gap of a bound."""
        return bound + self.tested_gap(gap) * abs(bound) + self.value_tol

    def closing_bound(self, value: float, gap: float) -> float:
        """Bound from which on a node is closed by an incumbent of this value, and a little more."""
        if not math.isfinite(value):
            return math.inf
        tested = self.tested_gap(gap)
        return value - tested / (1 + tested) * abs(value) * (1 - CLOSING_SLACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingSettings:
    """Tolerances of rounding, and the size of the neighbourhood searched around the best counts."""

    row_tol: float = 1e-9
    """Violation of a scaled row that rounding may cause."""
    propagation_rounds: int = 3
    """Passes of bound propagation over all rows."""
    fixed_width_tol: float = 1e-12
    """A column whose bounds are this close is fixed; a multiplier this small, relative to the largest, is 0."""
    neighbours_evaluated: int = 40
    """Vectors of counts around the best one that are evaluated."""
    neighbourhood_radius: int = 3
    """Largest change of one count within that neighbourhood."""


DIVE_SLACK_SHARE = 0.1
"""Share of the gap that one step of a dive may cost before the other side is tried as well."""
DIVE_VALUE_TOL = 1e-9
"""Least relative increase that a step of a dive may always cost."""

SETTINGS = BranchAndBoundSettings()
ROUNDING = RoundingSettings()
