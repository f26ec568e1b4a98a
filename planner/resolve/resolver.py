"""Resolve a parsed spec into a `ResolvedSpec`: names become records, texts become SI, gaps become assumptions or errors.

Each part has a file of its own; here they are put together. What they share: `planner.resolve.context`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.units import YEAR_S
from planner.errors import SpecError, close_matches
from planner.messages import Message
from planner.problem.calendar import TYPICAL_DAYS, Calendar, build_calendar
from planner.problem.economics import Economics
from planner.problem.facts import (
    OfferFacts,
    PhaseFacts,
    ResolvedSpec,
    ServingFacts,
    SiteFacts,
    SystemFacts,
    TrainingFacts,
)
from planner.problem.phases import borders
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.apis import resolve_apis
from planner.resolve.constants import model_constants
from planner.resolve.context import ResolveContext
from planner.resolve.facility import with_cooling, with_racks
from planner.resolve.money.economics import resolve_economics, with_ownership
from planner.resolve.money.owned import resolve_owned, with_worth
from planner.resolve.money.rented import check_rented, resolve_rented
from planner.resolve.names import catalog_of, unknown_names
from planner.resolve.offers import resolve_offers
from planner.resolve.overrides import unread
from planner.resolve.phases import demand_borders, grows, phase_facts, with_growth
from planner.resolve.plausibility.guesses import book_guesses
from planner.resolve.plausibility.spec import add_facts
from planner.resolve.porting import resolve_porting
from planner.resolve.representative_days import representative
from planner.resolve.routes import lines
from planner.resolve.routes.traffic import resolve_routes
from planner.resolve.sites import resolve_sites
from planner.resolve.stack.anchors import anchor_facts
from planner.resolve.stack.formats import format_facts
from planner.resolve.stack.kv_tiers import with_kv_tiers
from planner.resolve.stack.own import architecture_facts, unused_run_facts
from planner.resolve.systems import assume_unmeasured_families, systems_on_offer
from planner.resolve.workloads import resolve_workloads
from planner.spec.model import PlanSpec, SolverOptions, parse_spec
from planner.spec.old_keys import in_written_keys, with_new_keys
from planner.spec.requirements.redundancy import NPLUS1
from planner.spec.workloads import Serving


def resolve_document(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> ResolvedSpec:
    """Parse and resolve a spec as read from JSON. Raises SpecError with the problems of its form and of its names at once."""
    return resolve(parsed(document, overlays), overlays)


def parsed(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> PlanSpec:
    """Parse a spec as read from JSON. Raises SpecError with the problems of its form and, beside them, of its names."""
    try:
        return parse_spec(document)
    except SpecError as error:
        known, (today, renamed) = {problem.path for problem in error.problems}, with_new_keys(document)
        unknown = in_written_keys(unknown_names(today, overlays), renamed)
        raise SpecError([*error.problems, *(p for p in unknown if p.path not in known)]) from None


def resolve(
    spec: PlanSpec, overlays: Sequence[Path] = (), recorded: Mapping[str, Mapping[str, Any]] | None = None
) -> ResolvedSpec:
    """Look up every name of `spec`, and put every figure in SI and in the spec's currency.

    `recorded`: figures by their path that take the place of the catalog's and of `overrides`. Raises SpecError with all unknown
    names and missing figures at once.
    """
    context = ResolveContext.of(spec, catalog_of(spec, overlays, recorded or {}))
    try:
        problem = build_problem(context)
    except SpecError as error:
        raise SpecError(in_written_keys(error.problems, spec.renamed)) from None
    if recorded is None:  # an earlier plan is checked with the figures that it recorded
        context.problems.extend(unread(spec.overrides, context.ledger, "spec"))
        context.raise_problems()
    if spec.horizon.calendar == TYPICAL_DAYS and spec.horizon.days is not None:
        return representative(problem, spec.horizon.days)
    return problem


def build_problem(context: ResolveContext) -> ResolvedSpec:
    """Resolve every part of the spec, and put the problem together. Raises SpecError with all problems of the spec at once."""
    spec, ledger = context.spec, context.ledger
    _book_own_records(context)
    _book_horizon(context)
    money = resolve_economics(context)
    workloads = resolve_workloads(context)
    phases = phase_facts(context)
    sites = resolve_sites(context, money, phases)
    offers = resolve_offers(context, sites, phases)
    offers += resolve_owned(context, sites, phases) + resolve_rented(context, sites)
    money = with_ownership(context, money, offers)
    if spec.owned:
        context.raise_problems()
    offers = with_worth(offers, money)
    systems = with_racks(context, systems_on_offer(context, offers), offers, sites)
    systems = with_cooling(context, systems, offers, sites)
    sites, offers, systems, money = with_kv_tiers(context, sites, offers, systems, money)
    if workloads.training:
        assume_unmeasured_families(ledger, systems)
    _note_own_figures(context, (*workloads.serving, *workloads.training), tuple(systems.values()))
    for api in resolve_apis(context):
        sites.append(api.site)
        offers.append(api.offer)
        systems[api.system.name] = api.system
    add_facts(context, workloads, sites, offers)
    _check_objective(context)
    _check_price_levels(context)
    _check_robust(context)
    porting = resolve_porting(context, (*workloads.serving, *workloads.training), systems)
    offered = lines.offered_lines(context)
    limits = spec.limits.model_copy(update={"licences": _licences(context)})
    check_rented(context, offers, sites, systems, limits)
    _check_redundancy(context)
    budget = context.ceiling(limits.budget, "limits.budget")
    capital = context.ceiling(limits.capital, "limits.capital")
    per_usd = {code: context.per_usd(code, "currency") for code in {"USD", spec.currency}}
    for fact in book_guesses(spec, ledger):
        context.add_fact(fact)
    context.raise_problems()
    calendar = _calendar(context, money, workloads.training, offered, phases, offers, sites)
    serving = [with_growth(context, workload, calendar, phases) for workload in workloads.serving]
    routes = resolve_routes(context, sites, serving, workloads.training, calendar, offered)
    context.raise_problems()
    return ResolvedSpec(
        spec=spec.model_copy(update={"limits": limits, "solver": _solver(spec)}),
        calendar=calendar,
        economics=money,
        per_usd=per_usd,
        sites=tuple(sites),
        systems=systems,
        offers=tuple(offers),
        serving=tuple(serving),
        training=tuple(workloads.training),
        paths=routes.paths,
        trees=routes.trees,
        budget=budget,
        capital=capital,
        carbon_kg=math.inf if limits.carbon is None else limits.carbon,
        bytes_per_token=ledger.default(
            "text_bytes_per_token",
            "traffic.bytes_per_token",
            Message.of("resolve.bytes_per_token").text(),
            ("egress", "*", "*"),
        ),
        constants=model_constants(
            ledger,
            bool(workloads.training),
            bool(workloads.serving) and context.spec.solver.replicas != "divisible",
            any(isinstance(job, ReinforcementFacts) for job in workloads.training),
        ),
        assumptions=tuple(sorted(ledger.assumptions.values(), key=lambda assumption: assumption.path)),
        citations=tuple(sorted(ledger.citations.values(), key=lambda citation: citation.path)),
        catalog_digest=context.catalog.digest,
        lines=routes.lines,
        phases=phases,
        porting=porting,
        quality=tuple(workloads.quality),
        notes=tuple(sorted(set(context.notes))),
    )


def _calendar(
    context: ResolveContext,
    money: Economics,
    training: Sequence[TrainingFacts],
    offered: Sequence[lines.Offered] | None,
    phases: Sequence[PhaseFacts],
    offers: Sequence[OfferFacts],
    sites: Sequence[SiteFacts],
) -> Calendar:
    """Cut the horizon into windows at the start and end of jobs, the set-up of lines, and all deliveries, retirements and changes."""
    spec = context.spec
    with_crews = any(site.crew_per_s for site in sites)
    yearly = (with_crews and money.escalation.staff != 0.0) or money.escalation.by_window or grows(spec)
    return build_calendar(
        spec.horizon.years,
        money.discount_rate,
        (
            *(edge for job in training for edge in (job.spec.start, job.spec.deadline)),
            *lines.borders(offered),
            *borders(phases, offers, sites, money, yearly),
            *demand_borders(spec),
        ),
        spec.horizon.start,
        context.represented_by,
        money.payments_per_year,
    )


def _book_horizon(context: ResolveContext) -> None:
    """Book start and length of the horizon as assumptions where the spec leaves them out, and the holidays that it states."""
    horizon = context.spec.horizon
    if "start" not in horizon.model_fields_set:
        start = Message.of("resolve.start_unstated").text()
        context.ledger.assume("horizon.start", horizon.start.isoformat(), "-", start)
    if "years" not in horizon.model_fields_set:
        years = Message.of("resolve.years_unstated").text()
        context.ledger.assume("horizon.years", horizon.years * YEAR_S, "s", years)
    if horizon.holidays:
        days = ", ".join(f"{day}" for day in sorted(horizon.holidays))
        context.assume_stated("horizon.holidays", days, "", ("energy", "*", "*"))


def _book_own_records(context: ResolveContext) -> None:
    """Book each figure of the records in the spec's `catalog` block as an assumption: the user's own word."""
    for kind, records in context.spec.catalog.items():
        for entry in records:
            record = context.catalog.get(kind, entry["name"])
            for name in entry.get("figures", {}):
                figure = record.figure(name)
                where = f"{kind}/{record.name}/{name}"
                context.assume_stated(where, figure.printed, figure.unit, note=figure.note)


def _note_own_figures(
    context: ResolveContext, workloads: Sequence[ServingFacts | TrainingFacts], systems: Sequence[SystemFacts]
) -> None:
    """Say which own runs a workload does not use, and how architectures of the user's own were read."""
    for workload in workloads:
        record = context.catalog.get("architectures", workload.spec.architecture)
        read = architecture_facts(record, workload.architecture)
        for fact in (*unused_run_facts(context.catalog, workload.path, workload, systems), *read):
            context.add_fact(fact)
        if isinstance(workload, ServingFacts):
            published = anchor_facts(context.catalog, workload.path, workload, systems)
            for fact in (*format_facts(workload, workload.runs, systems), *published):
                context.add_fact(fact)


def _check_objective(context: ResolveContext) -> None:
    """Check that an objective of throughput covers serving workloads: a named one or all."""
    asked = context.spec.objective
    names = [workload.name for workload in context.spec.workloads if isinstance(workload, Serving)]
    if asked.workload is not None and asked.workload not in names:
        close = close_matches(asked.workload, names)
        message = Message.of("resolve.unknown_serving_workload", name=asked.workload, close=close).text()
        context.add_problem("objective.workload", message)
    elif asked.maximise is not None and not names:
        message = Message.of("resolve.throughput_of_nothing").text()
        context.add_problem("objective.maximise", message)


def _check_price_levels(context: ResolveContext) -> None:
    """Check that prices are not both set to a level and sampled."""
    prices, robust = context.spec.prices, context.spec.robust
    if prices is not None and prices.moved and robust is not None and robust.prices:
        context.add_problem(
            "prices",
            Message.of("resolve.price_levels_beside_robust").text(),
        )


def _solver(spec: PlanSpec) -> SolverOptions:
    """Return the options of the solver; spare systems belong to whole replicas."""
    whole = spec.solver.replicas == "auto" and _with_spares(spec)
    return spec.solver.model_copy(update={"replicas": "whole"}) if whole else spec.solver


def _with_spares(spec: PlanSpec) -> list[int]:
    """List the positions of the workloads that hold a spare system in each deployment."""
    return [
        i
        for i, workload in enumerate(spec.workloads)
        if isinstance(workload, Serving) and workload.redundancy == NPLUS1
    ]


def _check_redundancy(context: ResolveContext) -> None:
    """Check that workloads with a spare system may have whole replicas."""
    spec = context.spec
    for i in _with_spares(spec):
        path = f"workloads[{i}].redundancy"
        if spec.solver.replicas == "divisible":
            context.add_problem(path, Message.of("resolve.spare_needs_whole_replicas").text())
        if spec.robust is not None:
            context.add_problem(
                path,
                Message.of("resolve.spare_beside_robust").text(),
            )


def _check_robust(context: ResolveContext) -> None:
    """Check that a robust plan is asked for of what scenarios are known of."""
    robust = context.spec.robust
    if robust is not None and context.spec.solver.whole:
        message = Message.of("resolve.whole_beside_robust").text()
        context.add_problem("solver.replicas", message)
    if robust is not None and robust.measure == "cvar" and context.spec.objective.minimise != "cost":
        message = Message.of("resolve.cvar_without_cost").text()
        context.add_problem("robust.measure", message)
    _check_adapt(context)


def _check_adapt(context: ResolveContext) -> None:
    """Check that later decisions are asked for of what their program holds."""
    spec = context.spec
    for i, offer in enumerate(spec.offers or ()):
        levels = None if offer.delivery is None else offer.delivery.levels
        if spec.robust is not None and levels is not None and levels[0] != levels[2]:
            context.add_problem(f"offers[{i}].delivery", Message.of("resolve.delivery_beside_robust").text())
    if spec.adapt is None:
        return
    if spec.robust is not None:
        context.add_problem("adapt", Message.of("resolve.adapt_beside_robust").text())
    if spec.objective.maximise or spec.objective.minimise != "cost":
        context.add_problem("adapt", Message.of("resolve.adapt_without_cost").text())
    for key in ("budget", "capital", "carbon"):
        if getattr(spec.limits, key) is not None:
            context.add_problem(f"limits.{key}", Message.of("resolve.limit_beside_adapt").text())
    for i, offer in enumerate(spec.offers or ()):
        if offer.supply_by_phase:
            context.add_problem(f"offers[{i}].supply_by_phase", Message.of("resolve.limit_beside_adapt").text())
    for i, phase in enumerate(spec.phases or ()):
        if phase.capital is not None or phase.budget is not None:
            context.add_problem(f"phases[{i}]", Message.of("resolve.limit_beside_adapt").text())


def _licences(context: ResolveContext) -> list[str]:
    """Return the chips and systems that have an export licence, by the names of their records."""
    catalog, found = context.catalog, []
    for i, name in enumerate(context.spec.limits.licences):
        kind = next((kind for kind in ("chips", "systems") if catalog.has(kind, name)), None)
        if kind is None:
            close = close_matches(name, [*catalog.names("chips"), *catalog.names("systems")])
            context.add_problem(
                f"limits.licences[{i}]", Message.of("resolve.unknown_licence", name=name, close=close).text()
            )
        else:
            found.append(catalog.get(kind, name).name)
    return found
