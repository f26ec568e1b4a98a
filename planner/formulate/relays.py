"""Terms and program data of loads: what it costs that a worker loads its weights on systems that ran something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.candidates.points import OperatingPoint, Use
from planner.formulate.costs import Rates
from planner.formulate.functionals import Functionals
from planner.formulate.residency import point_load_s, serves_on_systems
from planner.money import components
from planner.money.components import LOAD
from planner.money.terms import AnyTerms, Flowing
from planner.problem.economics import NUISANCE_S
from planner.problem.facts import ResolvedSpec
from solvers.model.block_data.relays import RelayData


def relay_terms(problem: ResolvedSpec, points: Sequence[OperatingPoint], rates: Rates) -> list[AnyTerms]:
    """Build the terms of one worker of each role of a point that loads its weights in a slot, each time that the slot comes round."""
    if problem.economics.relays is None or not problem.spec.solver.whole:
        return []
    uses = [(point, use) for point in points for use in point.uses]
    known = {id(point): point_load_s(problem, point) for point in points if serves_on_systems(point)}
    rows = [i for i, (point, _) in enumerate(uses) if id(point) in known]
    loading = [uses[i] for i in rows]
    return [
        Flowing(
            component=components.RELAYS.key,
            decision=LOAD,
            at=np.array(rows, dtype=np.int64),
            places=tuple((use.option.site.region, use.option.system.name, use.option.offer.how) for _, use in loading),
            dates=rates.dates,
            workload=tuple(point.workload.name for point, _ in loading),
            per_unit=np.array([worker_price(problem, use, known[id(point)]) for point, use in loading], dtype=float),
            profile=(rates.worth / problem.calendar.step_s)[None, :],
            follows=np.zeros(len(rows), dtype=np.int64),
        )
    ]


def worker_price(problem: ResolvedSpec, use: Use, load_s: float) -> float:
    """Compute what it costs that a worker of a role loads its weights for a time, on all its systems; 0 where loads only take their time."""
    if problem.economics.relays is None:
        return 0.0
    each = problem.economics.relays.cost
    if each is None:
        offer, region = use.option.offer, use.option.site.region
        lasts_s = offer.life_s(problem.economics) if use.option.owned else 1.0
        each = (load_s + NUISANCE_S) * offer.prices[region] / lasts_s
    return use.systems_per_worker * each


def relay_arrays(problem: ResolvedSpec, points: Sequence[OperatingPoint], costs: Functionals) -> dict[str, Any]:
    """Build the field of `PlanData`; none where replicas are divisible, or loads only take their time."""
    if problem.economics.relays is None or not problem.spec.solver.whole or not any(map(serves_on_systems, points)):
        return {}
    uses = sum(len(point.uses) for point in points)
    cost = costs.of(LOAD, uses, problem.calendar.slots)
    return {"relays": RelayData(cost=cost, per_day=problem.economics.relays.per_day)}
