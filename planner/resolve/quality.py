"""Resolve a quality floor into the architectures that may answer a workload, with their scores."""

from __future__ import annotations

from dataclasses import replace

from catalog.errors import MissingFigure
from planner.errors import words_of
from planner.messages import Message
from planner.problem.facts import QualityFacts, ServingFacts
from planner.problem.quality import NONE
from planner.resolve.architectures import shape_of, weights_bytes
from planner.resolve.context import ResolveContext
from planner.resolve.stack.routing import with_routing
from planner.spec.model import PlanSpec
from planner.spec.requirements.quality import QualityFloor
from planner.spec.workloads import Serving

CLEARED = {"alternatives": None, "quality_floor": None}


def members_of(
    context: ResolveContext, own: ServingFacts, workload: Serving
) -> tuple[list[ServingFacts], list[QualityFacts]]:
    """Build a workload with a quality floor once per architecture that could answer it; `own`: on the architecture that it names.

    A single alternative keeps the workload's name.
    """
    floor, alternatives, path = workload.quality_floor, workload.alternatives, f"{own.path}.quality_floor"
    if floor is None or alternatives is None:
        return [own], []
    if message := unsupported(context.spec, workload, floor):
        context.add_problem(path, message)
    places = [f"{own.path}.alternatives[{i}].architecture" for i in range(len(alternatives))]
    found = [
        context.find("architectures", each.architecture, place)
        for each, place in zip(alternatives, places, strict=True)
    ]
    records = [record for record in found if record is not None]
    if len(records) < len(found):
        return [own], []
    names = [record.name for record in records]
    if own.runs not in names:
        context.add_problem(
            f"{own.path}.architecture",
            Message.of("resolve.score_missing", name=own.runs).text(),
        )
    if twice := next((i for i, name in enumerate(names) if name in names[:i]), None):
        context.add_problem(places[twice], Message.of("resolve.score_twice", name=names[twice]).text())
    members: dict[str, ServingFacts] = {}
    for record, place in zip(records, places, strict=True):
        try:
            shape = shape_of(record, context.ledger)
        except (MissingFigure, ValueError) as error:
            context.add_problem(place, words_of(error))
            continue
        name = workload.name if len(names) == 1 else f"{workload.name} ({record.name})"
        members[record.name] = replace(
            own,
            spec=own.spec.model_copy(update={**CLEARED, "architecture": record.name, "name": name}),
            architecture=with_routing(shape, workload),
            weights_bytes=weights_bytes(shape, workload.precision),
            runs=record.name,
            is_own=record.name == own.runs,
            part_of="" if name == workload.name else workload.name,
        )
    taken = {other.name for other in context.spec.workloads} - {workload.name}
    if clash := next((each.name for each in members.values() if each.name in taken), None):
        context.add_problem(
            f"{own.path}.name",
            Message.of("resolve.workload_name_taken", name=clash).text(),
        )
    scores = {name: alternative.quality for name, alternative in zip(names, alternatives, strict=True)}
    called = {architecture: each.name for architecture, each in members.items()}
    facts = QualityFacts(path, workload.name, floor.least, floor.source, floor.mix, scores, called)
    return list(members.values()), [facts]


def unsupported(spec: PlanSpec, workload: Serving, floor: QualityFloor) -> str | None:
    """Describe the first feature that is not supported beside a quality floor, with the remedy; None without one."""
    if floor.mix == NONE:
        return None
    if spec.horizon.dispatch and spec.horizon.calendar != "full-year":
        shaped = workload.demand.week or workload.demand.months or any(site.hourly for site in spec.sites)
        if shaped or spec.horizon.calendar != "representative-day":
            return Message.of("resolve.mix_over_year").text()
    return None
