"""Enumeration of all ways in which a serving workload may run on one kind of system, to hold plans against, and the load of a day. Tests only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import planner
from models.serving.decode import ServingLayouts
from models.serving.percentiles import within_slo
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.serving import serving_layouts
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import (
    batch_grid,
    encoder_use,
    engine_choices,
    evaluate,
    limits_at_site,
    systems_per_replica,
)
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.plan import findings
from tests.conftest import ALL_CASES

CASES = 150 if ALL_CASES else 12  # cases of a drawn question
DAY = [0.2, 0.2, 0.2, 0.2, 0.2, 0.3, 0.5, 0.9, 1.4, 1.8, 1.9, 1.8, 1.5, 1.8, 1.9, 1.9, 1.8, 1.5, 1.0, 0.8, 0.7, 0.5, 0.4, 0.3]  # fmt: skip
"""Load of each hour over the mean."""


def said(document: dict[str, Any]) -> list[Any]:
    """List the findings on a plan document."""
    return list(findings(resolve(parse_spec(document["spec"])), document))


def fewest_systems(spec: dict[str, Any]) -> float:
    """Enumerate every way to run, layout and batch of a workload on the one system on offer: the fewest systems for its load under the limits."""
    problem = resolve(parse_spec(spec))
    (workload,), options = problem.serving, build_fleet_options(problem)[0]
    best, peak = math.inf, workload.peak_requests_per_s
    pairs = [(option, choice) for option in options for choice in engine_choices(workload, option.system)]
    for option, choice in pairs:
        system = option.system
        layouts = serving_layouts(workload.architecture, system, option.scaleout.bytes_per_s > 0)
        ways: list[tuple[float, float]] = []  # calls/s and systems of a replica
        for i in range(len(layouts)):
            layout = ServingLayouts(
                *(int(np.asarray(size)[i]) for size in (layouts.tp, layouts.pp, layouts.dp, layouts.ep))
            )
            points = evaluate(
                workload, system, option.scaleout, layout, batch_grid(layout.dp), choice, problem.constants.serving
            )
            each = float(systems_per_replica(system, np.array([layout.chips]), np.array([layout.pp]))[0])
            chips, _ = encoder_use(workload, system, choice, points.requests_per_s, problem.constants.serving)
            systems = np.broadcast_to(each + np.asarray(chips) / system.chips, np.shape(points.requests_per_s))
            meets = within_slo(points, limits_at_site(workload.spec, 0.0)) & meets_classes(
                workload.spec.classes, points, 0.0
            )
            ways += zip(points.requests_per_s[meets].tolist(), systems[meets].tolist(), strict=True)
        # No replica serves more than there is, but for the smallest one.
        most = max(peak, min((rate for rate, _ in ways), default=0.0))
        best = min([best, *(each / rate for rate, each in ways if rate <= most)])
    return best * workload.peak_requests_per_s


def assert_fewest(spec: dict[str, Any]) -> None:
    """Check that the plan of a spec takes the fewest systems of all ways to serve it, or is infeasible where none serves it."""
    plan, fewest = planner.solve(spec), fewest_systems(spec)
    if not math.isfinite(fewest):
        assert plan.status == "infeasible"
        return
    assert plan.status in ("optimal", "within_gap")
    assert sum(row["count"] for row in plan["fleet"]) == math.ceil(fewest - 1e-6)
