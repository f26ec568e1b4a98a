"""Answer many specs that differ in prices, limits or demand from one kept program: points are evaluated once, the search starts from points known to be good.

Every spec is resolved, formulated, bounded and verified by itself; evaluations and points kept only save time. Evaluations are kept by a digest of
the facts of the resolved spec that they read: add to it whatever a new evaluation reads. The points known depend on the specs asked first
(`planner.studies.batches.groups`), never on the process that answered.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from planner.candidates.cache import Grids
    from planner.candidates.points import Candidates, OperatingPoint
    from planner.problem.facts import ResolvedSpec
    from solvers.interface import Options
    from solvers.model.data import PlanData
    from solvers.solution import Solution

MOST_EVALUATIONS = 500  # entries of one digest; about 0.2 MB each at most
MOST_DIGESTS = 2  # evaluations of other systems are forgotten, the longest unused first

PointKey = tuple[Hashable, ...]


def points_digest(problem: ResolvedSpec) -> str:
    """Hash what the evaluations of points read of a resolved spec beside workloads and networks, which their own keys hold."""
    spec = problem.spec
    read = (
        problem.catalog_digest,
        spec.overrides,
        spec.kv_tiers,
        spec.packing,
        problem.systems,
        problem.constants,
        problem.derating,
    )
    return hashlib.sha256(repr(read).encode()).hexdigest()


def key_of(point: OperatingPoint) -> PointKey:
    """Identify a point in specs that differ in prices, limits or demand: by how it runs, on which offer and where, whatever its batch."""
    uses = tuple(
        (use.role, use.option.name, use.option.offer.path, use.choice, tuple(sorted(use.layout.items())), use.workers)
        for use in point.uses
    )
    way = None if point.exchange is None else (point.exchange.way.kind, point.exchange.kept(0.0))
    return point.workload.name, point.sites, way, point.power_cap, uses


@dataclass(slots=True)
class Evaluations:
    """Evaluations of points that a process keeps, by digest."""

    _by_digest: OrderedDict[str, Grids] = field(default_factory=OrderedDict)

    def forget(self) -> None:
        """Drop all evaluations."""
        self._by_digest.clear()

    def of(self, problem: ResolvedSpec) -> Grids:
        """Return the evaluations of a problem, to be read and filled."""
        digest = points_digest(problem)
        grids = self._by_digest.pop(digest, {})
        if len(grids) > MOST_EVALUATIONS:
            grids = {}
        self._by_digest[digest] = grids
        while len(self._by_digest) > MOST_DIGESTS:
            self._by_digest.popitem(last=False)
        return grids


@dataclass(slots=True)
class Kept:
    """What one answer takes over from others, and leaves to them.

    `known`: points of the plans of similar specs; `used`: filled with the points of this answer.
    """

    evaluations: Evaluations = field(default_factory=Evaluations)
    known: frozenset[PointKey] = frozenset()
    used: set[PointKey] = field(default_factory=set)

    def solver(
        self, solve: Callable[..., Solution], problem: ResolvedSpec, candidates: Candidates
    ) -> Callable[[PlanData, Options], Solution]:
        """Return the solver of a problem's program that starts from the points known and notes those of its solution."""
        from planner.formulate.formulation import list_points

        points, _, _ = list_points(candidates, problem)
        known = np.array([key_of(point) in self.known for point in points], dtype=bool)

        def solve_from_known(data: PlanData, options: Options) -> Solution:
            found = solve(data, options, known=known if known.any() else None)
            self._learn(points, found)
            return found

        return solve_from_known

    def _learn(self, points: Sequence[OperatingPoint], solution: Solution) -> None:
        """Note the points of a solution, of the best one before it, and of others nearly as good."""
        from solvers.search.parts import points_in_use

        earlier: Iterable[Any] = () if solution.earlier is None else (solution.earlier.values,)
        for values in (solution.values, *earlier, *solution.others):
            if values:
                some = points_in_use(values) | (values["y"] > 0.5)
                self.used.update(key_of(points[p]) for p in np.flatnonzero(some).tolist())
