"""Which architectures may answer a workload with a quality floor, and what is left once the program has chosen.

An architecture is a serving workload of the problem like any other: its own points, pools and weights. What they share is the
demand (`solvers.model.choice`). Once one is chosen it stands for the workload of the spec. Not here: how the choice is solved and
told (`planner.solving.quality`), and its re-check (`planner.verify.quality`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from catalog.errors import MissingFigure
from catalog.records import Record
from planner.candidates.points import Candidates
from planner.problem.facts import Problem, QualityFacts, ServingFacts
from planner.problem.provenance import Ledger
from planner.resolve.architectures import shape_of, weights_bytes
from planner.spec.model import PlanSpec, Serving
from solvers.model.choice_data import ChoiceData

NONE, EACH, HOUR, MEAN = "none", "each", "hour", "mean"
MEANS = (HOUR, MEAN)
Find = Callable[[str, str, str], Record | None]
Wrong = Callable[[str, str], None]
CLEARED = {"alternatives": None, "quality_floor": None}


def members_of(own: ServingFacts, workload: Serving, spec: PlanSpec, find: Find, ledger: Ledger, wrong: Wrong) -> tuple[list[ServingFacts], list[QualityFacts]]:
    """The workload on each of the architectures that could answer it, and what is asked of them; `own`: on the one that it names.

    One alternative alone keeps the workload's name.
    """
    floor, path = workload.quality_floor, f"{own.path}.quality_floor"
    if message := unsupported(spec, workload):
        wrong(path, message)
    places = [f"{own.path}.alternatives[{i}].architecture" for i in range(len(workload.alternatives))]
    records = [find("architectures", each.architecture, place) for each, place in zip(workload.alternatives, places, strict=True)]
    if None in records:
        return [own], []
    names = [record.name for record in records]
    if own.runs not in names:
        wrong(f"{own.path}.architecture", f'"{own.runs}" has no score among the alternatives; add it there, or name one of them')
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
        wrong(f"{own.path}.name", f'"{clash}" is the name of another workload, and of this one on an architecture; choose another')
    scores = {name: alternative.quality for name, alternative in zip(names, workload.alternatives, strict=True)}
    called = {architecture: each.name for architecture, each in members.items()}
    return list(members.values()), [QualityFacts(path, workload.name, floor.least, floor.source, floor.mix, scores, called)]


def unsupported(spec: PlanSpec, workload: Serving) -> str | None:
    """What a workload with a quality floor cannot have yet, in words."""
    if spec.robust is not None:
        return 'cannot stand beside "robust" yet; remove one of them'
    if workload.spread is not None and workload.spread.survive:
        return 'cannot stand beside "survive" of a spread yet; remove one of them'
    if workload.quality_floor.mix != NONE and (workload.spread is not None or workload.demand.deferral):
        return 'with a mix cannot stand beside a spread or a deferral yet; write "mix": "none"'
    if workload.quality_floor.mix != NONE and spec.horizon.dispatch and spec.horizon.calendar != "full-year":
        shaped = workload.demand.week or workload.demand.months or spec.horizon.calendar != "representative-day" or any(site.hourly for site in spec.sites)
        return 'with a mix cannot be run through all hours of the year yet; write "dispatch": false under "horizon"' if shaped else None
    return None


# -- the program -------------------------------------------------------------------------------------------------------


def is_open(problem: Problem) -> bool:
    """Whether the program has to choose an architecture."""
    return any(len(facts.members) > 1 for facts in problem.quality)


def below_floors(problem: Problem, of_choices: bool = True) -> frozenset[str]:
    """Serving workloads of the problem that may not answer, since they are below the floor; `of_choices`: where the program chooses, too."""
    open_to = [facts for facts in problem.quality if of_choices or len(facts.members) == 1]
    return frozenset(name for facts in open_to for architecture, name in facts.members.items() if not facts.is_able(architecture))


def choice_data(problem: Problem) -> ChoiceData | None:
    """None where no demand can be answered by several architectures."""
    group, score = np.full(len(problem.serving), -1), np.zeros(len(problem.serving))
    place = {workload.name: w for w, workload in enumerate(problem.serving)}
    one, least, hourly = [], [], []
    for facts in problem.quality:
        mine = {architecture: place[name] for architecture, name in facts.members.items() if name in place}
        if len(facts.members) < 2 or not mine:
            continue
        for architecture, w in mine.items():
            group[w], score[w] = len(one), facts.scores[architecture]
        one.append(facts.mix == NONE)
        least.append(facts.least if facts.mix in MEANS else -np.inf)
        hourly.append(facts.mix == HOUR)
    if not one:
        return None
    held = below_floors(problem)
    return ChoiceData(group=group, one=np.array(one), able=np.array([workload.name not in held for workload in problem.serving]), score=score, least=np.array(least), hourly=np.array(hourly))


# -- once it is chosen -------------------------------------------------------------------------------------------------

Chosen = Mapping[str, Collection[str]]  # workload of the spec -> names of architectures


def settled(problem: Problem, chosen: Chosen) -> Problem:
    """The problem with just these architectures. One alone stands for its workload under the workload's own name."""
    name_of: dict[str, str | None] = {}
    quality = []
    for facts in problem.quality:
        kept = [architecture for architecture in facts.members if architecture in chosen[facts.workload]]
        left = {architecture: facts.workload if len(kept) == 1 else facts.members[architecture] for architecture in kept}
        name_of |= {old: left.get(architecture) for architecture, old in facts.members.items()}
        quality.append(replace(facts, members=left))

    def name(old: str) -> str | None:
        return name_of.get(old, old)

    def moved(found: Mapping) -> dict:
        """Under the new names; keys are names, or begin with one."""
        at = [(key, (name(key[0]), *key[1:]) if isinstance(key, tuple) else name(key)) for key in found]
        return {new: found[old] for old, new in at if (new[0] if isinstance(new, tuple) else new) is not None}

    lines = problem.lines
    return replace(
        problem,
        serving=tuple(_named(workload, new) for workload in problem.serving if (new := name(workload.name)) is not None),
        paths=moved(problem.paths),
        trees=moved(problem.trees),
        lines=None if lines is None else replace(lines, requests=moved(lines.requests), streams=moved(lines.streams), hops=moved(lines.hops), rates=moved(lines.rates)),
        porting=tuple(
            replace(facts, workloads=users)
            for facts in problem.porting
            if (users := tuple(new for old in facts.workloads if (new := name(old)) is not None))
        ),
        quality=tuple(quality),
    )


def _named(workload: ServingFacts, name: str) -> ServingFacts:
    if name == workload.name:
        return workload
    return replace(workload, spec=workload.spec.model_copy(update={"name": name}), part_of="")


def settled_points(candidates: Candidates, before: Problem, after: Problem) -> Candidates:
    """The points of a problem for what is left of it; lots stay as they are."""
    known = {workload.name: workload for workload in after.serving}
    left = {
        facts.members[architecture]: known[name]
        for facts, kept in zip(before.quality, after.quality, strict=True)
        for architecture, name in kept.members.items()
    }
    gone = {name for facts in before.quality for name in facts.members.values()} - set(left)
    pools = tuple(
        pool if (workload := left.get(pool.workload.name)) is None
        else replace(pool, workload=workload, points=tuple(replace(point, workload=workload) for point in pool.points))
        for pool in candidates.pools
        if pool.workload.name not in gone
    )  # fmt: skip
    return replace(candidates, pools=pools)
