"""Program data of systems that are paid for in the hours in which they run, and starts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.arrays import Floats
from planner.candidates.fleet_options import FleetOption
from planner.formulate.costs import Holding
from planner.formulate.functionals import Functionals
from planner.money.components import HOUR, START
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import counted_by_hour, least_slots
from solvers.model.block_data.electricity import Chronology
from solvers.model.block_data.hourly import HourlyData
from solvers.model.data import PlanData


def hourly_arrays(
    problem: ResolvedSpec, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding], costs: Functionals
) -> dict[str, Any]:
    """Build the fields of `PlanData`; none where no system is counted by the hour."""
    offers = [fleet_options[k].offer for k, _ in holdings]
    counted = np.array([counted_by_hour(problem, offer) for offer in offers], dtype=bool)
    if not counted.any():
        return {}
    calendar, covers = problem.calendar, np.array([term.mask(problem.calendar) for _, term in holdings])
    hourly = HourlyData(
        holding=counted,
        least_slots=np.array([least_slots(problem, offer) for offer in offers], dtype=np.int64),
        cost={name: values * covers for name, values in costs.of(HOUR, *covers.shape).items()},
        start_cost={name: values * covers for name, values in costs.of(START, *covers.shape).items()},
    )
    order = Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s)
    return {"hourly": hourly, **({"order": order} if hourly.starts().any() else {})}


def least_costs(data: PlanData) -> dict[str, Floats]:
    """Return for each functional what a system of each holding costs at least [U]: throughout, or in its cheapest slot."""
    if data.hourly is None:
        return dict(data.holding_cost)
    covers, found = data.covers()[:, data.slot_window], dict(data.holding_cost)
    for functional, values in data.hourly.cost.items():
        least = np.where(covers, values, np.inf).min(axis=1, initial=np.inf)
        found[functional] = found.get(functional, np.zeros(len(covers))) + np.where(
            data.hourly.holding & np.isfinite(least), least, 0.0
        )
    return found
