"""All limits that a spec states, gathered from the features.

Not here: which of them are in conflict and how far one must give way (`planner.solving.infeasibility`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from catalog.lookup import Catalog
from planner.limits.electricity import electricity_limits
from planner.limits.facility import facility_limits
from planner.limits.limit import Limit, money_limit
from planner.limits.lines import line_limits
from planner.limits.offers import export_limits, least_limits, region_limits, supply_limits
from planner.limits.parts import part_limits
from planner.limits.phases import phase_limits
from planner.limits.quality import quality_limits
from planner.limits.sites import site_limits, site_power_limits
from planner.limits.storage import storage_limits
from planner.limits.workloads import workload_limits
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import BUDGET, CAPITAL, CARBON
from planner.spec.document import at


def basic_limits(
    document: Mapping[str, Any], problem: ResolvedSpec, catalog: Catalog, names: Collection[str]
) -> list[Limit]:
    """List the limits that every spec can state, amounts first; `names`: workloads of the spec."""
    return [
        *_totals(document, problem),
        *site_power_limits(document, problem),
        *supply_limits(document, problem),
        *workload_limits(document, problem, names),
        *export_limits(document, problem, catalog),
        *site_limits(problem, catalog),
        *region_limits(problem),
    ]


def every_limit(
    document: Mapping[str, Any], problem: ResolvedSpec, catalog: Catalog, names: Collection[str]
) -> list[Limit]:
    """List the limits of all features that bear on these workloads."""
    return [
        *basic_limits(document, problem, catalog, names),
        *quality_limits(document, problem, names),
        *electricity_limits(document, problem, names),
        *line_limits(document, problem, catalog, names),
        *phase_limits(document, problem),
        *storage_limits(document, problem),
        *facility_limits(document, problem, names),
        *part_limits(document, problem),
        *least_limits(document, problem),
    ]


def _totals(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the limits on money and carbon of the whole plan."""
    for key, held, words in (
        (BUDGET, problem.budget, "limit.budget_words"),
        (CAPITAL, problem.capital, "limit.capital_words"),
    ):
        if at(document, key.path) is not None:
            yield money_limit(document, problem, key, held, words)
    written = at(document, CARBON.path)
    if written is not None:
        words = Message.of("limit.carbon_words", mass=written).text()
        yield Limit(*CARBON, words, written, is_row=True, unit="kg", amount=problem.carbon_kg)
