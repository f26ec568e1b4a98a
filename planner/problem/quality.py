"""Quality floors: find the architectures that may answer a workload, and reduce the problem to those chosen.

Each architecture is a serving workload of the problem with points, pools and weights of its own; they share one demand
(`solvers.model.choice`). The chosen one then stands for the workload of the spec. Not here: solving and reporting the choice
(`planner.solving.quality`), and its verification (`planner.verify.quality`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar, cast

from planner.problem.facts import ResolvedSpec, ServingFacts

NONE, EACH, HOUR, MEAN = "none", "each", "hour", "mean"
MEANS = (HOUR, MEAN)

K = TypeVar("K", bound=tuple[str, ...])  # a key that begins with the name of a workload
V = TypeVar("V")


# -- the program -------------------------------------------------------------------------------------------------------


def is_open(problem: ResolvedSpec) -> bool:
    """Tell whether the program has to choose an architecture."""
    return any(len(facts.members) > 1 for facts in problem.quality)


def below_floors(problem: ResolvedSpec, of_choices: bool = True) -> frozenset[str]:
    """List the serving workloads of the problem that are below their floor; `of_choices`: also where the program chooses."""
    open_to = [facts for facts in problem.quality if of_choices or len(facts.members) == 1]
    return frozenset(
        name for facts in open_to for architecture, name in facts.members.items() if not facts.is_able(architecture)
    )


# -- once it is chosen -------------------------------------------------------------------------------------------------

Chosen = Mapping[str, Collection[str]]  # workload of the spec -> names of architectures


def settled(problem: ResolvedSpec, chosen: Chosen) -> ResolvedSpec:
    """Reduce the problem to the chosen architectures. A single one takes over the name of its workload."""
    name_of: dict[str, str | None] = {}
    quality = []
    for facts in problem.quality:
        kept = [architecture for architecture in facts.members if architecture in chosen[facts.workload]]
        left = {
            architecture: facts.workload if len(kept) == 1 else facts.members[architecture] for architecture in kept
        }
        name_of |= {old: left.get(architecture) for architecture, old in facts.members.items()}
        quality.append(replace(facts, members=left))

    def name(old: str) -> str | None:
        return name_of.get(old, old)

    def by_name(found: Mapping[str, V]) -> dict[str, V]:
        """Rename the keys; workloads that are not chosen drop out."""
        return {new: value for old, value in found.items() if (new := name(old)) is not None}

    def by_tuple(found: Mapping[K, V]) -> dict[K, V]:
        """Rename the first part of each key; workloads that are not chosen drop out."""
        return {cast(K, (new, *rest)): value for (old, *rest), value in found.items() if (new := name(old)) is not None}

    lines = problem.lines
    return replace(
        problem,
        serving=tuple(
            _named(workload, new) for workload in problem.serving if (new := name(workload.name)) is not None
        ),
        paths=by_tuple(problem.paths),
        trees=by_name(problem.trees),
        lines=None
        if lines is None
        else replace(
            lines,
            requests=by_tuple(lines.requests),
            streams=by_tuple(lines.streams),
            hops=by_name(lines.hops),
            rates=by_tuple(lines.rates),
        ),
        porting=tuple(
            replace(facts, workloads=users)
            for facts in problem.porting
            if (users := tuple(new for old in facts.workloads if (new := name(old)) is not None))
        ),
        quality=tuple(quality),
    )


def _named(workload: ServingFacts, name: str) -> ServingFacts:
    """Rename a workload."""
    if name == workload.name:
        return workload
    return replace(workload, spec=workload.spec.model_copy(update={"name": name}), part_of="")
