"""Program data of porting: the ports that operating points need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.formulate.functionals import COST
from planner.problem.facts import ResolvedSpec
from planner.problem.porting import PortingFacts
from solvers.model.block_data.porting import PortData

if TYPE_CHECKING:
    from planner.candidates.points import OperatingPoint


def port_data(problem: ResolvedSpec, points: Sequence[OperatingPoint]) -> PortData | None:
    """Build the data of the ports that points need; None where no porting is required."""
    if not problem.porting:
        return None
    member = [
        (p, g) for p, point in enumerate(points) for g, facts in enumerate(problem.porting) if needs(facts, point)
    ]
    cost = {COST: np.array([facts.cost for facts in problem.porting], dtype=float)}
    return PortData(member=np.array(member, dtype=np.int64).reshape(-1, 2), cost=cost, groups=len(problem.porting))


def needs(facts: PortingFacts, point: OperatingPoint) -> bool:
    """Tell whether a point runs one of the architectures on chips of the family."""
    return point.workload.name in facts.workloads and any(
        use.option.system.family == facts.family for use in point.uses
    )
