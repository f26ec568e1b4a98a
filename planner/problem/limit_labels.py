"""Labels of the limits that a spec can state: path in the spec, and name in a plan.

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
MOST_SITES = LimitLabel("simplicity.most_sites", "sites with systems")
MOST_KINDS = LimitLabel("simplicity.most_kinds", "kinds of systems at a site")
LEAST_SYSTEMS = LimitLabel("simplicity.least_systems", "least systems of a kind at a site")


def phase_capital(phase: PhaseFacts) -> LimitLabel:
    """Label the limit on purchases in a phase."""
    return LimitLabel(f"{phase.path}.capital", f"purchase price in {phase.name}")


def phase_budget(phase: PhaseFacts) -> LimitLabel:
    """Label the limit on payments in a phase."""
    return LimitLabel(f"{phase.path}.budget", f"payments in {phase.name}")


def connection(site: SiteFacts) -> LimitLabel:
    """Label the limit on the grid connection of a site; the site must have an `electricity` block."""
    assert site.electricity is not None
    return LimitLabel(f"{site.electricity.path}.connection", f"connection of {site.region}")


def storage_bandwidth(site: SiteFacts) -> LimitLabel:
    """Label the limit on storage reads and writes at a site."""
    return LimitLabel(f"{site.path}.storage_bandwidth", f"storage in {site.region}")


def rack_positions(site: SiteFacts) -> LimitLabel:
    """Label the limit on the racks of our own systems at a site."""
    return LimitLabel(f"{site.path}.rack_positions", f"rack positions in {site.region}")


def rack_power(site: SiteFacts) -> LimitLabel:
    """Label the limit on the power of one rack at a site."""
    return LimitLabel(f"{site.path}.rack_power", f"power of one rack in {site.region}")


def fabric_size(site: SiteFacts, fabric: str, system: str) -> LimitLabel:
    """Label the limit on the number of systems on one network."""
    return LimitLabel(f"{site.path}.topologies", f"size of one {fabric} network of {system} in {site.region}")


def line_units(line: LineFacts) -> LimitLabel:
    """Label the limit on the rented units of a line."""
    return LimitLabel(f"{line.path}.units", f"units of {line.kind} {line.name}")


def largest_share(workload: ServingFacts) -> LimitLabel:
    """Label the limit on the share of a workload served by one zone."""
    return LimitLabel(f"{workload.path}.spread.largest_share", f"largest share of {workload.asked} in one zone")


def latency(workload: ServingFacts, limit: LatencyLimit) -> LimitLabel:
    """Label the limit on one percentile of a latency."""
    return LimitLabel(
        f"{workload.path}.slo.{limit.key}", f"{limit.metric.upper()} {limit.percentile} of {workload.name}"
    )


def job_time(job: TrainingFacts) -> LimitLabel:
    """Label the limit on the run time of a job."""
    return LimitLabel(f"{job.path}.deadline", f"full-width time of {job.name} between start and deadline")
