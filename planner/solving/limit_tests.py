"""Test whether some workloads have a plan without some limits, by the cheapest program that can prove it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from planner.limits.limit import Limit
from planner.solving.trials import Trials, merged
from planner.spec.document import Edits
from solvers.analysis.elastic import ElasticProgram
from solvers.analysis.relief import LimitKey, with_limits


class LimitTests:
    """Answers for the workloads `names` of a spec with `edits` made; `rows`: limits that are rows of the program.

    Three programs can prove that there is no plan, each at a higher price:
    - one LP relaxation for all sets of amounts, on the points that exist with every amount taken away, of which there
      are never fewer (`by_all_points`),
    - the LP relaxation of each set on its own points (`by_relaxation`),
    - the integer program of each set.
    A cheaper one is used as long as it proves that the spec as it stands has no plan.
    """

    def __init__(self, trials: Trials, names: frozenset[str], edits: Edits, rows: Sequence[Limit]):
        self.trials, self.names, self.edits, self.rows = trials, names, edits, rows
        self._relaxed: dict[int, ElasticProgram] = {}
        self.by_all_points = any(limit.loose for limit in rows) and self._fails_on_all_points(())
        self.by_relaxation = self.by_all_points or self.relaxation_fails(())
        failing = self._fails_on_all_points(rows) if self.by_all_points else self.relaxation_fails(rows)
        self.rows_suffice = not failing  # whether taking away amounts alone can give a plan

    def relaxation_fails(self, loose: Collection[Limit], edits: Edits = ()) -> bool:
        """Tell whether the LP relaxation proves that there is no plan without the `loose` limits."""
        return self.trials.relaxation_fails(self.names, merged(self.edits, edits), loose)

    def has_plan(self, loose: Collection[Limit], edits: Edits = ()) -> bool | None:
        """Tell whether there is a plan without the `loose` limits; None if out of time."""
        return self.trials.has_plan(self.names, merged(self.edits, edits), loose)

    def is_infeasible(self, loose: Collection[Limit]) -> bool:
        """Tell whether there is proof that no plan exists without the `loose` limits."""
        if not self.by_relaxation:
            return self.has_plan(loose) is False
        return self._fails_on_all_points(loose) if self.by_all_points else self.relaxation_fails(loose)

    def needed_rows(self, rows: Sequence[Limit]) -> list[Limit]:
        """Drop the amounts that the proof by all points does without; any minimal conflict is among the rest."""
        if not self.by_all_points:
            return list(rows)
        relaxed, row_of = self.on_all_points(())
        if relaxed is None:
            return list(rows)
        needed = set(relaxed.infeasible_subset([row_of[limit.path] for limit in rows]))
        return [limit for limit in rows if row_of[limit.path] in needed]

    def relief_bound(self, limits: Sequence[Limit], *, exact: bool) -> float:
        """Bound from below the sum of relative changes of these limits that gives a plan.

        `exact`: the least change in the LP relaxation; otherwise what earlier solutions of it already prove.
        """
        if not all(limit.is_row for limit in limits):
            return 0.0
        relaxed, rows = self.on_all_points(())
        if relaxed is None:
            return math.inf
        named = [rows[limit.path] for limit in limits]
        return relaxed.least_relief(named) if exact else relaxed.relief_bound(named)

    def on_all_points(self, loose: Sequence[Limit]) -> tuple[ElasticProgram | None, Mapping[str, LimitKey]]:
        """Build the relaxation on the points that exist with every amount taken away, under the amounts as asked."""
        edits = tuple(edit for limit in (*loose, *self.rows) for edit in limit.loose)
        networks = frozenset(limit.network_of for limit in loose if limit.network_of is not None)
        variant = self.trials.variant(self.names, merged(self.edits, edits), networks)
        if variant.data is not None and id(variant) not in self._relaxed:  # trials keep their variants
            amounts = {variant.rows[limit.path]: limit.amount / limit.scale for limit in self.rows}
            self._relaxed[id(variant)] = ElasticProgram(
                with_limits(variant.data, amounts), list(amounts), self.trials.limited_options(), self.trials.ends
            )
        return self._relaxed.get(id(variant)), variant.rows

    def _fails_on_all_points(self, loose: Collection[Limit]) -> bool:
        """As `relaxation_fails`, with one linear program for all sets of amounts."""
        if self.trials.seconds_left <= 0:
            return False
        relaxed, rows = self.on_all_points([limit for limit in loose if not limit.is_row])
        return relaxed is None or relaxed.is_infeasible_without([rows[limit.path] for limit in loose if limit.is_row])
