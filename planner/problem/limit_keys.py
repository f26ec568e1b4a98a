"""Limits that a spec can state: where each stands in the spec, and what a plan calls it.

Power and supplies bring their keys along (`planner.problem.phases`). `planner.verify` writes all of them on its own.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.problem.facts import PhaseFacts, ServingFacts, SiteFacts, TrainingFacts
from planner.problem.lines import LineFacts
from planner.spec.slo import LatencyLimit


class LimitKey(NamedTuple):
    """Path of a limit in the spec, and its name in a plan."""

    path: str
    name: str


BUDGET = LimitKey("limits.budget", "present value of all costs")
CAPITAL = LimitKey("limits.capital", "purchase price of systems and fabric")
CARBON = LimitKey("limits.carbon", "carbon")


def phase_capital(phase: PhaseFacts) -> LimitKey:
    """Name the limit on what is bought in a phase."""
    return LimitKey(f"{phase.path}.capital", f"purchase price in {phase.name}")


def phase_budget(phase: PhaseFacts) -> LimitKey:
    """Name the limit on what is paid in a phase."""
    return LimitKey(f"{phase.path}.budget", f"payments in {phase.name}")


def connection(site: SiteFacts) -> LimitKey:
    """Name the limit on what the grid delivers to a site; the site must have an `electricity` block."""
    assert site.electricity is not None
    return LimitKey(f"{site.electricity.path}.connection", f"connection of {site.region}")


def storage_bandwidth(site: SiteFacts) -> LimitKey:
    """Name the limit on what jobs read and write at a site."""
    return LimitKey(f"{site.path}.storage_bandwidth", f"storage in {site.region}")


def fabric_size(site: SiteFacts, fabric: str, system: str) -> LimitKey:
    """Name the limit on the systems that one network joins."""
    return LimitKey(f"{site.path}.fabrics", f"size of one {fabric} network of {system} in {site.region}")


def line_units(line: LineFacts) -> LimitKey:
    """Name the limit on the rented units of a line."""
    return LimitKey(f"{line.path}.units", f"units of {line.kind} {line.name}")


def largest_share(workload: ServingFacts) -> LimitKey:
    """Name the limit on the part of a workload that one zone serves."""
    return LimitKey(f"{workload.path}.spread.largest_share", f"largest share of {workload.name} in one zone")


def latency(workload: ServingFacts, limit: LatencyLimit) -> LimitKey:
    """Name the limit on one percentile of a latency."""
    return LimitKey(f"{workload.path}.slo.{limit.key}", f"{limit.metric.upper()} {limit.percentile} of {workload.name}")


def job_time(job: TrainingFacts) -> LimitKey:
    """Name the limit on the time that a job may run."""
    return LimitKey(f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline")
