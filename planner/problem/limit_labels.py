"""Labels of the limits that a spec can state: path in the spec, and name in a plan, which keeps its message.

Power and supplies bring their keys along (`planner.problem.phases`). `planner.verify` writes all of their codes on its own.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.messages import Message
from planner.problem.facts import PhaseFacts, ServingFacts, SiteFacts, TrainingFacts
from planner.problem.lines import LineFacts
from planner.spec.slo import LatencyLimit


class LimitLabel(NamedTuple):
    """Path of a limit in the spec, and its name in a plan."""

    path: str
    name: str


BUDGET = LimitLabel("limits.budget", Message.of("limit.budget").text())
CAPITAL = LimitLabel("limits.capital", Message.of("limit.capital").text())
CARBON = LimitLabel("limits.carbon", Message.of("limit.carbon").text())
MOST_SITES = LimitLabel("simplicity.most_sites", Message.of("limit.most_sites").text())
MOST_KINDS = LimitLabel("simplicity.most_kinds", Message.of("limit.most_kinds").text())
LEAST_SYSTEMS = LimitLabel("simplicity.least_systems", Message.of("limit.least_systems").text())


def phase_capital(phase: PhaseFacts) -> LimitLabel:
    """Label the limit on purchases in a phase."""
    return LimitLabel(f"{phase.path}.capital", Message.of("limit.phase_capital", phase=phase.name).text())


def phase_budget(phase: PhaseFacts) -> LimitLabel:
    """Label the limit on payments in a phase."""
    return LimitLabel(f"{phase.path}.budget", Message.of("limit.phase_budget", phase=phase.name).text())


def connection(site: SiteFacts) -> LimitLabel:
    """Label the limit on the grid connection of a site; the site must have an `electricity` block."""
    assert site.electricity is not None
    return LimitLabel(f"{site.electricity.path}.connection", Message.of("limit.connection", site=site.region).text())


def storage_bandwidth(site: SiteFacts) -> LimitLabel:
    """Label the limit on storage reads and writes at a site."""
    return LimitLabel(f"{site.path}.storage_bandwidth", Message.of("limit.storage_bandwidth", site=site.region).text())


def rack_positions(site: SiteFacts) -> LimitLabel:
    """Label the limit on the racks of our own systems at a site."""
    return LimitLabel(f"{site.path}.rack_positions", Message.of("limit.rack_positions", site=site.region).text())


def rack_power(site: SiteFacts) -> LimitLabel:
    """Label the limit on the power of one rack at a site."""
    return LimitLabel(f"{site.path}.rack_power", Message.of("limit.rack_power", site=site.region).text())


def fabric_size(site: SiteFacts, fabric: str, system: str) -> LimitLabel:
    """Label the limit on the number of systems on one network."""
    return LimitLabel(
        f"{site.path}.topologies",
        Message.of("limit.fabric_size", fabric=fabric, system=system, site=site.region).text(),
    )


def line_units(line: LineFacts) -> LimitLabel:
    """Label the limit on the rented units of a line."""
    return LimitLabel(f"{line.path}.units", Message.of("limit.line_units", kind=line.kind, line=line.name).text())


def largest_share(workload: ServingFacts) -> LimitLabel:
    """Label the limit on the share of a workload served by one zone."""
    return LimitLabel(
        f"{workload.path}.spread.largest_share", Message.of("limit.largest_share", workload=workload.asked).text()
    )


def latency(workload: ServingFacts, limit: LatencyLimit) -> LimitLabel:
    """Label the limit on one percentile of a latency."""
    return LimitLabel(
        f"{workload.path}.slo.{limit.key}",
        Message.of(
            "limit.latency", metric=limit.metric.upper(), percentile=limit.percentile, workload=workload.name
        ).text(),
    )


def job_time(job: TrainingFacts) -> LimitLabel:
    """Label the limit on the run time of a job."""
    return LimitLabel(f"{job.path}.deadline", Message.of("limit.job_time", job=job.name).text())
