"""Resolve a quality floor: which architectures may serve a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from catalog.errors import MissingFigure
from catalog.records import Record
from planner.problem.facts import QualityFacts, ServingFacts
from planner.problem.quality import NONE
from planner.resolve.architectures import shape_of, weights_bytes
from planner.resolve.ledger import Ledger
from planner.spec.model import PlanSpec, Serving

Find = Callable[[str, str, str], Record | None]


Wrong = Callable[[str, str], None]


CLEARED = {"alternatives": None, "quality_floor": None}


def members_of(
    own: ServingFacts, workload: Serving, spec: PlanSpec, find: Find, ledger: Ledger, wrong: Wrong
) -> tuple[list[ServingFacts], list[QualityFacts]]:
    """The workload on each of the architectures that could answer it, and what is asked of them; `own`: on the one that it names.

    One alternative alone keeps the workload's name.
    """
    floor, path = workload.quality_floor, f"{own.path}.quality_floor"
    if message := unsupported(spec, workload):
        wrong(path, message)
    places = [f"{own.path}.alternatives[{i}].architecture" for i in range(len(workload.alternatives))]
    records = [
        find("architectures", each.architecture, place)
        for each, place in zip(workload.alternatives, places, strict=True)
    ]
    if None in records:
        return [own], []
    names = [record.name for record in records]
    if own.runs not in names:
        wrong(
            f"{own.path}.architecture",
            f'"{own.runs}" has no score among the alternatives; add it there, or name one of them',
        )
    if twice := next((i for i, name in enumerate(names) if name in names[:i]), None):
        wrong(places[twice], f'"{names[twice]}" stands twice; give one score')
    members = {}
    for record, place in zip(records, places, strict=True):
        try:
            shape = shape_of(record, ledger)
        except (MissingFigure, ValueError) as error:
            wrong(place, str(error))
            continue
        name = workload.name if len(names) == 1 else f"{workload.name} ({record.name})"
        members[record.name] = replace(
            own, spec=own.spec.model_copy(update={**CLEARED, "architecture": record.name, "name": name}), architecture=shape,
            weights_bytes=weights_bytes(shape, workload.precision), runs=record.name, is_own=record.name == own.runs, part_of="" if name == workload.name else workload.name,
        )  # fmt: skip
    taken = {other.name for other in spec.workloads} - {workload.name}
    if clash := next((each.name for each in members.values() if each.name in taken), None):
        wrong(
            f"{own.path}.name",
            f'"{clash}" is the name of another workload, and of this one on an architecture; choose another',
        )
    scores = {name: alternative.quality for name, alternative in zip(names, workload.alternatives, strict=True)}
    called = {architecture: each.name for architecture, each in members.items()}
    return list(members.values()), [
        QualityFacts(path, workload.name, floor.least, floor.source, floor.mix, scores, called)
    ]


def unsupported(spec: PlanSpec, workload: Serving) -> str | None:
    """What a workload with a quality floor cannot have yet, in words."""
    if spec.robust is not None:
        return 'cannot stand beside "robust" yet; remove one of them'
    if workload.spread is not None and workload.spread.survive:
        return 'cannot stand beside "survive" of a spread yet; remove one of them'
    if workload.quality_floor.mix != NONE and (workload.spread is not None or workload.demand.deferral):
        return 'with a mix cannot stand beside a spread or a deferral yet; write "mix": "none"'
    if workload.quality_floor.mix != NONE and spec.horizon.dispatch and spec.horizon.calendar != "full-year":
        shaped = (
            workload.demand.week
            or workload.demand.months
            or spec.horizon.calendar != "representative-day"
            or any(site.hourly for site in spec.sites)
        )
        return (
            'with a mix cannot be run through all hours of the year yet; write "dispatch": false under "horizon"'
            if shaped
            else None
        )
    return None
