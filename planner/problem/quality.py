"""Which architectures may answer a workload with a quality floor, and what is left once the program has chosen.

An architecture is a serving workload of the problem like any other: its own points, pools and weights. What they share is the
demand (`solvers.model.choice`). Once one is chosen it stands for the workload of the spec. Not here: how the choice is solved and
told (`planner.solving.quality`), and its re-check (`planner.verify.quality`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from planner.problem.facts import Problem, ServingFacts

NONE, EACH, HOUR, MEAN = "none", "each", "hour", "mean"
MEANS = (HOUR, MEAN)


# -- the program -------------------------------------------------------------------------------------------------------


def is_open(problem: Problem) -> bool:
    """Whether the program has to choose an architecture."""
    return any(len(facts.members) > 1 for facts in problem.quality)


def below_floors(problem: Problem, of_choices: bool = True) -> frozenset[str]:
    """Serving workloads of the problem that may not answer, since they are below the floor; `of_choices`: where the program chooses, too."""
    open_to = [facts for facts in problem.quality if of_choices or len(facts.members) == 1]
    return frozenset(
        name for facts in open_to for architecture, name in facts.members.items() if not facts.is_able(architecture)
    )


# -- once it is chosen -------------------------------------------------------------------------------------------------

Chosen = Mapping[str, Collection[str]]  # workload of the spec -> names of architectures


def settled(problem: Problem, chosen: Chosen) -> Problem:
    """The problem with just these architectures. One alone stands for its workload under the workload's own name."""
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

    def moved(found: Mapping) -> dict:
        """Under the new names; keys are names, or begin with one."""
        at = [(key, (name(key[0]), *key[1:]) if isinstance(key, tuple) else name(key)) for key in found]
        return {new: found[old] for old, new in at if (new[0] if isinstance(new, tuple) else new) is not None}

    lines = problem.lines
    return replace(
        problem,
        serving=tuple(
            _named(workload, new) for workload in problem.serving if (new := name(workload.name)) is not None
        ),
        paths=moved(problem.paths),
        trees=moved(problem.trees),
        lines=None
        if lines is None
        else replace(
            lines,
            requests=moved(lines.requests),
            streams=moved(lines.streams),
            hops=moved(lines.hops),
            rates=moved(lines.rates),
        ),
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
