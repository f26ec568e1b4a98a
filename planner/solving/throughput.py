"""Tell when the most throughput is none at all, and ask for the least that would be some, so that the reason can be found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.problem.facts import ResolvedSpec
from planner.spec.document import Edits, edited
from planner.spec.workloads import DEMANDS
from solvers.solution import Solution

SOME = 1e-3  # share of the stated demand whose conflict explains why nothing is served
LEAST_REQUESTS_PER_S = 1e-6  # that a spec may state
NONE = 1e-9  # x demand: what is below is nothing


def is_none(problem: ResolvedSpec, solution: Solution) -> bool:
    """Tell whether a solution that maximises throughput serves no share of the demand."""
    return problem.spec.objective.maximise is not None and solution.value is not None and solution.value <= NONE


def asking_for_some(document: Mapping[str, Any], problem: ResolvedSpec) -> dict[str, Any]:
    """Copy the spec with a small share of the demand to be served at least cost, instead of as much of it as possible."""
    asked = problem.spec.objective.workload
    edits: Edits = (("objective", {"minimise": "cost"}),)
    for workload in problem.demands():
        if asked in (None, workload.asked):
            requests = SOME * workload.spec.mean_requests_per_s
            edits += (
                *((f"{workload.path}.demand.{key}", None) for key in DEMANDS),
                (f"{workload.path}.demand.requests_per_s", max(requests, LEAST_REQUESTS_PER_S)),
            )
    return edited(document, edits)
