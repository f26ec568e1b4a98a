"""Compare every part of a resolved spec with known figures, and keep the notes for the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from models.transformer.architecture import Architecture
from planner.facts import Fact
from planner.problem.facts import OfferFacts, SiteFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.context import ResolveContext
from planner.resolve.plausibility.offers import (
    catalog_price_facts,
    export_facts,
    offer_facts,
    owned_facts,
    rented_facts,
)
from planner.resolve.plausibility.records import record_facts
from planner.resolve.plausibility.sites import money_facts, name_facts, site_facts
from planner.resolve.plausibility.workloads import workload_facts
from planner.resolve.workloads import ResolvedWorkloads


def add_facts(
    context: ResolveContext, workloads: ResolvedWorkloads, sites: Sequence[SiteFacts], offers: Sequence[OfferFacts]
) -> None:
    """Note what in a spec is at odds with known figures, and how its prices were understood; what cannot be right becomes a problem."""
    for fact in (*_facts(context, workloads, sites), *export_facts(context, sites, offers)):
        context.add_fact(fact)


def _facts(context: ResolveContext, workloads: ResolvedWorkloads, sites: Sequence[SiteFacts]) -> Iterator[Fact]:
    spec, shapes = context.spec, _shapes(workloads)
    for i, workload in enumerate(spec.workloads):
        path = f"workloads[{i}]"
        yield from workload_facts(context.ledger, path, workload, shapes.get(path, {}))
    yield from name_facts(context)
    yield from offer_facts(context)
    yield from catalog_price_facts(context)
    yield from owned_facts(context)
    yield from rented_facts(context)
    yield from site_facts(context, sites)
    yield from money_facts(context)
    yield from record_facts(context.catalog, spec.catalog, spec.overrides)


def _shapes(workloads: ResolvedWorkloads) -> dict[str, dict[str, Architecture]]:
    """Return the networks of each workload by its place in the spec."""
    found = {each.path: {"architecture": each.architecture} for each in workloads.training}
    found |= {each.path: {"architecture": each.architecture} for each in workloads.serving if each.is_own}
    for job in workloads.training:
        if isinstance(job, ReinforcementFacts):
            found[job.path] |= {key: shape for key in ("reward", "critic") if (shape := getattr(job, key)) is not None}
    return found
