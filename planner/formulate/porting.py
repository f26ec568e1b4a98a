"""Program data of porting: the ports that operating points need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.formulate.functionals import Functionals
from planner.money.components import PORT
from planner.problem.fabrics import crosses_vendors
from planner.problem.facts import ResolvedSpec
from planner.problem.porting import PortingFacts
from solvers.model.block_data.porting import PortData

if TYPE_CHECKING:
    from planner.candidates.points import OperatingPoint


def port_data(problem: ResolvedSpec, points: Sequence[OperatingPoint], costs: Functionals) -> PortData | None:
    """Build the data of the ports that points need; None where no porting is required."""
    if not problem.porting:
        return None
    member = [
        (p, g) for p, point in enumerate(points) for g, facts in enumerate(problem.porting) if needs(facts, point)
    ]
    groups = len(problem.porting)
    return PortData(member=np.array(member, dtype=np.int64).reshape(-1, 2), cost=costs.of(PORT, groups), groups=groups)


def needs(facts: PortingFacts, point: OperatingPoint) -> bool:
    """Tell whether a point runs one of the architectures on chips of the family, or exchanges KV caches between vendors."""
    if point.workload.name not in facts.workloads:
        return False
    systems = [use.option.system for use in point.uses]
    if facts.exchange:
        return crosses_vendors(systems[0], systems[-1])
    return any(system.family == facts.family for system in systems)
