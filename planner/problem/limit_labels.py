"""Limits that a spec can state: where each stands in the spec, and what a plan calls it.

Power and supplies bring their keys along (`planner.problem.phases`). `planner.verify` writes all of them on its own.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.problem.facts import PhaseFacts, ServingFacts, SiteFacts, TrainingFacts
from planner.problem.lines import LineFacts
from planner.spec.slo import LatencyLimit


class LimitLabel(NamedTuple):
    """Path of a limit in the spec, and its name in a plan."""

    path: str
    name: str


BUDGET = LimitLabel("limits.budget", "present value of all costs")
CAPITAL = LimitLabel("limits.capital", "purchase price of systems and fabric")
CARBON = LimitLabel("limits.carbon", "carbon")


def phase_capital(phase: PhaseFacts) -> LimitLabel:
    """Name the limit on what is bought in a phase."""
    return LimitLabel(f"{phase.path}.capital", f"purchase price in {phase.name}")


def phase_budget(phase: PhaseFacts) -> LimitLabel:
    """Name the limit on what is paid in a phase."""
    return LimitLabel(f"{phase.path}.budget", f"payments in {phase.name}")


def connection(site: SiteFacts) -> LimitLabel:
    """Name the limit on what the grid delivers to a site; the site must have an `electricity` block."""
    assert site.electricity is not None
    return LimitLabel(f"{site.electricity.path}.connection", f"connection of {site.region}")


def storage_bandwidth(site: SiteFacts) -> LimitLabel:
    """Name the limit on what jobs read and write at a site."""
    return LimitLabel(f"{site.path}.storage_bandwidth", f"storage in {site.region}")


def fabric_size(site: SiteFacts, fabric: str, system: str) -> LimitLabel:
    """Name the limit on the systems that one network joins."""
    return LimitLabel(f"{site.path}.fabrics", f"size of one {fabric} network of {system} in {site.region}")


def line_units(line: LineFacts) -> LimitLabel:
    """Name the limit on the rented units of a line."""
    return LimitLabel(f"{line.path}.units", f"units of {line.kind} {line.name}")


def largest_share(workload: ServingFacts) -> LimitLabel:
    """Name the limit on the part of a workload that one zone serves."""
    return LimitLabel(f"{workload.path}.spread.largest_share", f"largest share of {workload.name} in one zone")


def latency(workload: ServingFacts, limit: LatencyLimit) -> LimitLabel:
    """Name the limit on one percentile of a latency."""
    return LimitLabel(
        f"{workload.path}.slo.{limit.key}", f"{limit.metric.upper()} {limit.percentile} of {workload.name}"
    )


def job_time(job: TrainingFacts) -> LimitLabel:
    """Name the limit on the time that a job may run."""
    return LimitLabel(f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline")
