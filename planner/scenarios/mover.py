"""Move operating points to a problem that differs from their own in a price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.points import Candidates, OperatingPoint
from planner.problem.facts import ResolvedSpec


@dataclass(frozen=True, slots=True)
class Mover:
    """Fleet options and workloads of another problem, by name, and the candidates of a problem in terms of them."""

    options: Mapping[tuple[str, str], FleetOption]
    workloads: Mapping[str, Any]
    candidates: Candidates

    @classmethod
    def to(cls, problem: ResolvedSpec, candidates: Candidates) -> Mover:
        """Move candidates to a problem; fleet options that it rules out stay as they are."""
        options = {(option.name, option.offer.path): option for option in build_fleet_options(problem)[0]}
        serving = {workload.name: workload for workload in problem.serving}
        found = cls(options, serving | {job.name: job for job in problem.training}, candidates)
        moved = replace(
            candidates, fleet_options=tuple(found.option(each) for each in candidates.fleet_options),
            pools=tuple(replace(pool, workload=serving[pool.workload.name], points=found.points(pool.points)) for pool in candidates.pools),
            training={job: found.points(points) for job, points in candidates.training.items()},
        )  # fmt: skip
        return replace(found, candidates=moved)

    def option(self, option: FleetOption) -> FleetOption:
        """Return the fleet option of the same name and offer."""
        return self.options.get((option.name, option.offer.path), option)

    def points(self, points: Iterable[OperatingPoint]) -> tuple[OperatingPoint, ...]:
        """Return the same points on the options of the other problem."""
        return tuple(
            replace(
                point,
                workload=self.workloads[point.workload.name],
                uses=tuple(replace(use, option=self.option(use.option)) for use in point.uses),
            )
            for point in points
        )
