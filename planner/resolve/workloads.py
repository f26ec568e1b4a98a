"""Resolve the workloads: their architectures, the demand of each origin by hour, residency and quality floors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from catalog.errors import MissingFigure
from catalog.records import Record
from catalog.units import HOUR_S, YEAR_S
from models.transformer.architecture import Architecture
from planner.errors import words_of
from planner.messages import Message
from planner.money.components import ENVIRONMENTS
from planner.problem.batches import nearest_batch
from planner.problem.calendar import TYPICAL_DAY
from planner.problem.engine import EngineSettings
from planner.problem.facts import QualityFacts, ServingFacts, TrainingFacts
from planner.resolve.architectures import shape_of, weights_bytes
from planner.resolve.context import ResolveContext
from planner.resolve.demand import demand_by_hour
from planner.resolve.ledger import Ledger
from planner.resolve.names import residency_zones, wrong_zone
from planner.resolve.quality import members_of
from planner.resolve.reinforcement import reinforcement_facts
from planner.resolve.stack.engines import ROLES, engine_settings, wrong_role
from planner.resolve.stack.routing import with_routing, wrong_routing
from planner.spec.model import PlanSpec
from planner.spec.reinforcement import Reinforcement
from planner.spec.requirements.preemption import Preemption
from planner.spec.requirements.redundancy import NPLUS1
from planner.spec.workloads import Serving, Training, Workload

TrainingOrLearning = TypeVar("TrainingOrLearning", Training, Reinforcement)


@dataclass(frozen=True, slots=True)
class ResolvedWorkloads:
    """The workloads of a spec that could be resolved, and what each quality floor asks for."""

    serving: list[ServingFacts] = field(default_factory=list)
    training: list[TrainingFacts] = field(default_factory=list)
    quality: list[QualityFacts] = field(default_factory=list)


def resolve_workloads(context: ResolveContext) -> ResolvedWorkloads:
    """Resolve every workload of the spec; one with a wrong name or a missing figure is left out, with a problem added."""
    result = ResolvedWorkloads()
    for index, workload in enumerate(context.spec.workloads):
        path = f"workloads[{index}]"
        record = context.find("architectures", workload.architecture, f"{path}.architecture")
        _check_residency(context, workload, path)
        _book_formats(context, workload, path)
        origins: list[Record] | None = []
        extra: dict[str, Architecture | None] = {}
        if isinstance(workload, Reinforcement):
            workload, extra = _learning(context, workload, path)
        if isinstance(workload, Serving) and workload.session is not None and context.spec.robust is not None:
            context.add_problem(f"{path}.session", Message.of("resolve.sessions_beside_robust").text())
        if isinstance(workload, Serving) and workload.pools is not None:
            context.add_problem(f"{path}.pools", Message.of("resolve.pools_not_divided").text())
        if isinstance(workload, Serving) and workload.demand.sessions is not None:
            context.add_problem(
                f"{path}.demand.sessions",
                Message.of("resolve.sessions_without_rate").text(),
            )
        if isinstance(workload, Serving) and workload.redundancy == NPLUS1 and context.spec.packing.free:
            context.add_problem(
                "packing.free",
                Message.of("resolve.spares_twice", system=workload.name).text(),
            )
        if isinstance(workload, Serving) and workload.classes is not None and context.spec.robust is not None:
            context.add_problem(
                f"{path}.classes",
                Message.of("resolve.classes_beside_robust").text(),
            )
        if not isinstance(workload, Serving):
            _check_deadline(context, workload, path)
        else:
            origins = _origins(context, workload, path)
        if record is None or origins is None:
            continue
        try:
            shape = shape_of(record, context.ledger)
        except (MissingFigure, ValueError) as error:
            context.add_problem(f"{path}.architecture", words_of(error))
            continue
        context.problems.extend(wrong_routing(shape, workload, path))
        shape = with_routing(shape, workload)
        if isinstance(workload, Training):
            result.training.append(_training(context, path, workload, shape))
            continue
        if isinstance(workload, Reinforcement):
            slot = _slot_price(context, workload, path)
            learner = with_priced_pauses(context.spec, workload)
            result.training.append(
                reinforcement_facts(context.ledger, path, learner, shape, **extra, slot_price_per_s=slot)
            )
            continue
        own = replace(_serving(context, path, workload, shape, origins), runs=record.name)
        if workload.quality_floor is None:
            result.serving.append(own)
        else:
            serving, quality = members_of(context, own, workload)
            result.serving.extend(serving)
            result.quality.extend(quality)
    return result


def _book_formats(context: ResolveContext, workload: Workload, path: str) -> None:
    """Book the formats of weights that a workload may run in as an assumption where the spec leaves them out."""
    for key in ("precision", "rollout_precision"):
        if (formats := getattr(workload, key, None)) and key not in workload.model_fields_set:
            code = "resolve.formats_unstated" if len(formats) > 1 else "resolve.format_unstated"
            context.ledger.assume(f"{path}.{key}", ", ".join(formats), "-", Message.of(code).text())


def _origins(context: ResolveContext, workload: Serving, path: str) -> list[Record] | None:
    """Look up the regions of a workload's users; None unless all are known."""
    found = [context.find("regions", o.region, f"{path}.origins[{i}].region") for i, o in enumerate(workload.origins)]
    context.check_distinct(found, f"{path}.origins", Message.of("resolve.join_origins").text())
    known = [region for region in found if region is not None]
    return known if len(known) == len(found) else None


def _learning(
    context: ResolveContext, workload: Reinforcement, path: str
) -> tuple[Reinforcement, dict[str, Architecture | None]]:
    """Look up the reward and the critic of a job, and end it with the horizon where it states no deadline."""
    found: dict[str, Architecture | None] = {}
    for key in ("reward", "critic"):
        name: str | None = getattr(workload, key)
        record = None if name is None else context.find("architectures", name, f"{path}.{key}")
        found[key] = None if record is None else shape_of(record, context.ledger)
    if context.spec.robust is not None:
        context.add_problem(path, Message.of("resolve.learning_beside_robust").text())
    if "deadline" not in workload.model_fields_set:
        workload = workload.model_copy(update={"deadline": context.spec.horizon.years * YEAR_S})
    return workload, found


def _slot_price(context: ResolveContext, workload: Reinforcement, path: str) -> float:
    """Convert the price of an environment slot to the currency of the plan [currency/s], and book it; 0 where none is stated."""
    if workload.tools is None or workload.tools.slot_price is None:
        return 0.0
    place = f"{path}.tools.slot_price"
    price = context.convert(workload.tools.slot_price, place)
    context.assume_stated(place, price * HOUR_S, f"{context.spec.currency}/h", (ENVIRONMENTS.key, "*", "*"))
    return price


def _check_deadline(context: ResolveContext, workload: Training | Reinforcement, path: str) -> None:
    years = context.spec.horizon.years
    if workload.deadline > years * YEAR_S:
        context.add_problem(f"{path}.deadline", Message.of("resolve.after_horizon", years=years).text())
    if workload.priority is not None and (context.spec.robust is not None or context.spec.objective.maximise):
        context.add_problem(
            f"{path}.priority",
            Message.of("resolve.priority_unfit").text(),
        )


def _check_residency(context: ResolveContext, workload: Workload, path: str) -> None:
    zones = residency_zones(context.catalog)
    for i, name in enumerate(workload.residency or []):
        if message := wrong_zone(name, zones):
            context.add_problem(f"{path}.residency[{i}]", message)


def _training(context: ResolveContext, path: str, workload: Training, shape: Architecture) -> TrainingFacts:
    """Resolve a training job, and book the batch where it had to be rounded."""
    job = TrainingFacts(path, with_priced_pauses(context.spec, workload), shape)
    assume_batch(context.ledger, path, job)
    if workload.preemption is not None and workload.preemption.restart is not None:
        context.assume_stated(f"{path}.preemption.restart", workload.preemption.restart, "s", note=workload.note)
    if workload.token_bytes is not None:
        context.assume_stated(f"{path}.token_bytes", workload.token_bytes, "byte", note=workload.note)
    return job


def with_priced_pauses(spec: PlanSpec, job: TrainingOrLearning) -> TrainingOrLearning:
    """Return the job with pauses at the catalog's cost where it states none and the program has slots in order anyway.

    Robust plans, calendars of many days, programs that are to be taken apart by slots, and sites whose electricity is a decision (idling may
    pay there, so that each return takes a binary) do not count pauses unless a job states them. A run of one step has no step between which
    it could pause.
    """
    stated = "preemption" in job.model_fields_set
    one_step = isinstance(job, Training) and job.tokens <= job.batch_tokens
    if (
        stated
        or one_step
        or any(site.electricity is not None for site in spec.sites)
        or spec.horizon.calendar != TYPICAL_DAY
        or spec.robust is not None
        or spec.solver.method == "decomposed"
    ):
        return job
    return job.model_copy(update={"preemption": Preemption()})


def assume_batch(ledger: Ledger, path: str, job: TrainingFacts) -> None:
    """Book the batch of a job where it had to be rounded, with the nearest one that divides among every power of two of replicas."""
    batch, workload = job.batch_sequences, job.spec
    if batch * workload.sequence_tokens == workload.batch_tokens:
        return
    power = 1 << max(round(math.log2(workload.batch_tokens / workload.sequence_tokens)), 0)
    sequences, tokens = nearest_batch(job.spec, power)
    reason = Message.of("resolve.batch_rounded", batch=batch, tokens=str(tokens), sequences=sequences).text()
    ledger.assume(f"{path}.batch_tokens", float(batch * workload.sequence_tokens), "token", reason)


def _serving(
    context: ResolveContext, path: str, workload: Serving, shape: Architecture, origins: Sequence[Record]
) -> ServingFacts:
    """Resolve a serving workload: its demand by origin and hour, the source of its weights, and its selling price."""
    demand, rate_per_s = workload.demand, workload.mean_requests_per_s
    by_hour = [
        rate_per_s * origin.share * demand_by_hour(demand, region.words("timezone"), context.clock)
        for origin, region in zip(workload.origins, origins, strict=True)
    ]
    for side in ("input_cv", "output_cv"):
        if side not in workload.lengths.model_fields_set:
            reason = Message.of("resolve.length_spread").text()
            context.ledger.assume(f"{path}.lengths.{side}", getattr(workload.lengths, side), "1", reason)
    for i, tier in enumerate(workload.cache.tiers if workload.cache else []):
        if tier.price is not None:
            context.add_problem(
                f"{path}.cache.tiers[{i}].price",
                Message.of("resolve.estimate_only").text(),
            )
    weights_from = origins[0].name
    if workload.weights_from is not None:
        source = context.find("regions", workload.weights_from, f"{path}.weights_from")
        weights_from = workload.weights_from if source is None else source.name
    named = [
        origin.model_copy(update={"region": region.name})
        for origin, region in zip(workload.origins, origins, strict=True)
    ]
    workload = workload.model_copy(update={"origins": named})  # from here on a region has one name, whatever its alias
    return ServingFacts(
        path,
        workload,
        shape,
        np.array(by_hour),
        weights_bytes(shape, workload.precision),
        weights_from,
        _engine(context, workload, path),
        sold_at=_sold_at(context, workload, path),
    )


def _engine(context: ResolveContext, workload: Serving, path: str) -> EngineSettings:
    """Resolve the engine and the compiler of a workload; a wrong name is reported, and left out."""
    found = workload
    for role in ROLES:
        name: str | None = getattr(workload, role)
        if name is None:
            continue
        record = context.find("engines", name, f"{path}.{role}")
        problems = [] if record is None else wrong_role(record, role, f"{path}.{role}")
        context.problems.extend(problems)
        if record is None or problems:
            found = found.model_copy(update={role: None})
    return engine_settings(context.ledger, found, path)


def _sold_at(context: ResolveContext, workload: Serving, path: str) -> float | None:
    """Convert the selling price to the plan's currency per output token, with the prompt tokens that go with one."""
    price = workload.selling_price
    if price is None:
        return None
    per_output = context.convert(price.output, path=f"{path}.selling_price.output")
    per_input = context.convert(price.input, path=f"{path}.selling_price.input")
    return per_output + workload.prompt_tokens / workload.lengths.output * per_input
