"""Test whether variants of one spec have a plan, and cache every answer.

Finding conflicts and repairs asks about many combinations of limits and edits, and about many of them again. A variant is
resolved and formulated once, its LP relaxation is loaded once, and its integer program is solved only where the relaxation
proves nothing. Not here: which variants to ask about (`planner.solving.repair_search`).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates
from planner.errors import SpecError
from planner.formulate.formulation import formulate
from planner.limits.limit import Limit
from planner.problem.facts import ResolvedSpec
from planner.resolve.names import catalog_of
from planner.solving.marginal_values import rows_by_path
from planner.solving.variants import Variants, some
from planner.spec.document import Edits
from planner.spec.model import Objective
from solvers.analysis.elastic import ElasticProgram
from solvers.analysis.relief import LimitKey, is_feasible, with_limits
from solvers.interface import Options
from solvers.memory import most_for_a_step, resident_bytes
from solvers.model.data import PlanData

LEAST_S = 0.2  # that a program gets when the time is up, so that it can end in order


def merged(first: Edits, second: Edits) -> Edits:
    """Combine edits: the second replace the first where both edit one path; of two horizons the longer holds."""
    old, new = dict(first), dict(second)
    if "horizon.years" in old and "horizon.years" in new:
        new["horizon.years"] = max(old["horizon.years"], new["horizon.years"])
    return tuple({**old, **new}.items())


@dataclass(frozen=True)
class Variant:
    """Program of a spec with some edits and some of its workloads."""

    data: PlanData | None  # None where a workload has no operating point at all
    rows: Mapping[str, LimitKey] = field(default_factory=dict)  # the program's limits by path
    fleet_options: tuple[FleetOption, ...] = ()  # those with a point
    options: Options = field(default_factory=Options)
    ends: float = math.inf  # on the performance counter [s]

    @cached_property
    def elastic(self) -> ElasticProgram | None:
        """Load the LP relaxation in which limits can be taken away; None without operating points."""
        return (
            None if self.data is None else ElasticProgram(self.data, list(self.rows.values()), self.options, self.ends)
        )

    def rows_at(self, paths: Collection[str]) -> list[LimitKey]:
        """List the rows of the limits at some places of the spec."""
        return [row for path, row in self.rows.items() if path in paths]


class Trials:
    """Cached answers about variants; None once the time is up."""

    def __init__(
        self,
        problem: ResolvedSpec,
        candidates: Candidates | None,
        document: Mapping[str, Any],
        overlays: Sequence[Path],
        options: Options,
    ):
        self.document, self.overlays, self.options = document, overlays, options
        self.catalog = catalog_of(problem.spec, overlays, {})
        self.ends = time.perf_counter() + options.time_limit_s
        self.most_bytes = most_for_a_step(problem.spec.solver.memory)
        self.asked_s = problem.spec.solver.time_limit  # limit of the whole answer, the same in every run
        self._all = Variants(document, overlays, problem, candidates)
        self._all.until = self.ends
        self._variants: dict[tuple[frozenset[str], str, frozenset[int]], Variant] = {}
        self._answers: dict[tuple[frozenset[str], str, frozenset[int | None], frozenset[str]], bool | None] = {}

    @property
    def seconds_left(self) -> float:
        """Return the time that is left for all further answers [s]; none when the process holds as much memory as it may."""
        return 0.0 if resident_bytes() > self.most_bytes else self.ends - time.perf_counter()

    def limited_options(self) -> Options:
        """Return the solver options, with no more than the time that is left."""
        return replace(self.options, time_limit_s=max(min(self.seconds_left, self.options.time_limit_s), LEAST_S))

    # -- questions -------------------------------------------------------------------------------------------------

    def relaxation_fails(self, names: frozenset[str], edits: Edits, loose: Collection[Limit] = ()) -> bool:
        """Tell whether the LP relaxation proves that there is no plan without the `loose` limits."""
        if self.seconds_left <= 0:
            return False
        variant, gone = self._loosened(names, edits, loose)
        return variant.elastic is None or variant.elastic.is_infeasible_without(variant.rows_at(gone))

    def has_plan(self, names: frozenset[str], edits: Edits, loose: Collection[Limit] = ()) -> bool | None:
        """Tell whether there is a plan without the `loose` limits; None if out of time."""
        every = json.dumps(merged(edits, _edits(loose)))
        key = (
            names,
            every,
            frozenset(limit.network_of for limit in loose),
            frozenset(limit.path for limit in loose if limit.is_row),
        )
        if key not in self._answers:
            self._answers[key] = self._solve(names, edits, loose)
        return self._answers[key]

    def note_plan(self, names: frozenset[str], edits: Edits) -> None:
        """Record that this variant has a plan."""
        self._answers[names, json.dumps(edits), frozenset(), frozenset()] = True

    def _solve(self, names: frozenset[str], edits: Edits, loose: Collection[Limit]) -> bool | None:
        """Ask the LP relaxation first, and the integer program only where that proves nothing."""
        if self.relaxation_fails(names, edits, loose):
            return False
        if self.seconds_left <= 0:
            return None
        variant, gone = self._loosened(names, edits, loose)
        if variant.data is None:
            return False
        loosened = with_limits(variant.data, dict.fromkeys(variant.rows_at(gone), math.inf))
        return is_feasible(loosened, self.limited_options())

    def ways_with_points(self, names: frozenset[str], edits: Edits) -> set[tuple[str, str]]:
        """Find (system, how) of all points with one pool; none where some workload has no point for some origin."""
        if self.seconds_left <= 0:
            return set()
        return {
            (option.system.name, option.offer.how)
            for option in self.variant(names, merged(edits, self.one_pool(names))).fleet_options
        }

    def one_pool(self, names: Collection[str]) -> Edits:
        """Return edits that leave out separate pools, which take most of the search: a plan without them stays one with them."""
        return tuple((f"{w.path}.disaggregation", "never") for w in self._all.base.serving if w.asked in names)

    # -- variants --------------------------------------------------------------------------------------------------

    def _loosened(
        self, names: frozenset[str], edits: Edits, loose: Collection[Limit]
    ) -> tuple[Variant, frozenset[str]]:
        """Return the variant without the `loose` limits, and the places of those that are rows of the program."""
        networks = frozenset(limit.network_of for limit in loose if limit.network_of is not None)
        return self.variant(names, merged(edits, _edits(loose)), networks), frozenset(
            limit.path for limit in loose if limit.is_row
        )

    def problem(self, edits: Edits) -> ResolvedSpec:
        """Resolve the spec with some edits."""
        return self._all.problem(edits)

    def answerable(self, names: frozenset[str], edits: Edits) -> tuple[ResolvedSpec, Candidates]:
        """Return the problem of these workloads with its own objective, and its candidates."""
        problem = some(self.problem(edits), names, ())
        return problem, self._all.candidates(problem, edits)

    def variant(self, names: frozenset[str], edits: Edits, networks: frozenset[int] = frozenset()) -> Variant:
        """Formulate the program of these workloads, once; `networks`: sites whose networks may be of any size."""
        key = (names, json.dumps(edits), networks)
        if key not in self._variants:
            try:
                self._variants[key] = self._formulated(some(self.problem(edits), names, networks), edits, networks)
            except SpecError:  # the edited spec needs a figure that is not known
                self._variants[key] = Variant(None)
        return self._variants[key]

    def _formulated(self, problem: ResolvedSpec, edits: Edits, networks: frozenset[int]) -> Variant:
        """Search operating points and build the program; without data where some demand or job has no point."""
        found = self._all.candidates(problem, edits, networks)
        served = {(pool.workload.asked, origin) for pool in found.pools for origin in pool.origins}
        for workload in problem.serving:
            asked = (
                origin.region for origin, rate in zip(workload.spec.origins, workload.requests_per_s) if rate.any()
            )
            if any((workload.asked, region) not in served for region in asked):
                return Variant(None)
        if not all(found.training.values()):
            return Variant(None)
        # whether there is a plan does not depend on the objective, and a least cost exists whenever there is one
        cheapest = problem.spec.model_copy(update={"objective": Objective(minimise="cost")})
        form = formulate(replace(problem, spec=cheapest), found, by_need=True)
        return Variant(form.data, rows_by_path(problem, form), found.fleet_options, self.limited_options(), self.ends)


def _edits(loose: Collection[Limit]) -> Edits:
    return tuple(edit for limit in loose for edit in limit.loose)
