"""What it costs once to bring an architecture to a family of chips: who must pay, and the arrays for the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import close_matches
from planner.problem import PortingFacts, Problem, SystemFacts
from planner.spec import PlanSpec
from solvers.porting import PortData

if TYPE_CHECKING:
    from planner.points import Point

Money = Callable[..., float]
Wrong = Callable[[str, str], None]


def porting_facts(
    spec: PlanSpec, architectures: Mapping[str, str], named: Mapping[int, str], systems: Mapping[str, SystemFacts], convert: Money, wrong: Wrong
) -> tuple[PortingFacts, ...]:
    """An entry for each architecture and family. `architectures`: by workload; `named`: those that the entries of the spec name."""
    families = sorted({system.family for system in systems.values()} - {""})
    found: dict[tuple[str, str], PortingFacts] = {}
    for i, porting in enumerate(spec.porting or ()):
        path = f"porting[{i}]"
        if porting.family not in families:
            wrong(f"{path}.family", f'no system on offer has chips of the family "{porting.family}"{close_matches(porting.family, families)}; known here: {", ".join(families)}')
        if porting.architecture is not None and i in named and named[i] not in architectures.values():
            wrong(f"{path}.architecture", f'no workload runs "{porting.architecture}"; remove it, or name one of {", ".join(sorted(set(architectures.values())))}')
        for architecture in dict.fromkeys(architectures.values()):
            if porting.architecture is None or named.get(i) == architecture:
                users = tuple(name for name, of in architectures.items() if of == architecture)
                if found.setdefault((architecture, porting.family), PortingFacts(path, porting.family, architecture, convert(*porting.cost, path=f"{path}.cost"), users)).path != path:
                    wrong(path, f'"{architecture}" on "{porting.family}" stands above already; remove one of them')
    if found and spec.robust is not None:
        wrong("porting", 'cannot stand beside "robust" yet; remove one of them')
    if found and any(getattr(w, "spread", None) is not None and w.spread.survive for w in spec.workloads):
        wrong("porting", 'cannot stand beside "survive" of a spread yet; remove one of them')
    return tuple(found.values())


def port_data(problem: Problem, points: Sequence[Point], cost: str) -> PortData | None:
    """None where nothing is to be ported."""
    if not problem.porting:
        return None
    member = [(p, g) for p, point in enumerate(points) for g, facts in enumerate(problem.porting) if needs(facts, point)]
    prices = np.array([facts.cost for facts in problem.porting])
    return PortData(member=np.array(member, dtype=np.int64).reshape(-1, 2), cost={cost: prices}, groups=len(problem.porting))


def needs(facts: PortingFacts, point: Point) -> bool:
    """Whether a point runs an architecture on chips of a family."""
    return point.workload.name in facts.workloads and any(use.lot.system.family == facts.family for use in point.uses)
