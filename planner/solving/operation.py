"""Price the dispatch of a fleet in scenarios where an API sells tokens.

Purchases of tokens are decided once the scenario is known, so a scenario's cost has its own tokens, traffic and electricity above idle in place of
the plan's. Not here: the cost of a fleet by scenario (`planner.robust.prices`), and the check (`planner.verify.robust.operation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Floats, Ints
from planner.candidates.points import OperatingPoint
from planner.formulate.apis import token_costs
from planner.formulate.costs import point_terms, slot_rates
from planner.formulate.formulation import Formulation
from planner.money.components import REPLICA
from planner.money.terms import COST, coefficients
from planner.problem.derating import scaled
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import Deployment, is_api
from solvers.fixed_fleet.redispatch import FixedFleet, OperatingCost
from solvers.model.data import PlanData

if TYPE_CHECKING:
    from planner.solving.variants import Answer

Class = tuple[int, int]
"""Serving workload and origin."""


def with_apis(
    fleet: FixedFleet, answer: Answer, deployments: Sequence[Deployment], classes: Sequence[Class], slots: Ints
) -> FixedFleet:
    """Let the APIs among the deployments of a fleet sell as much as their supply, and price dispatch.

    `slots`: of the calendar, for which the slots of the answer's program stand.
    """
    form, data = answer.form, answer.form.data
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    covers = data.covers()[:, data.slot_window]
    uses, count = fleet.point_uses.copy(), fleet.option_count.copy()
    first: dict[str, int] = {}
    for row, (p, _) in enumerate(fleet.point_uses):
        point = deployments[p].point
        if not is_api(point):
            continue
        option = point.uses[0].option
        k = first.setdefault(option.site.region, option_of[id(option)])  # what tenants buy is of one supply
        there = covers[data.holding_option == k].any(axis=0)
        uses[row, 1], count[k] = k, np.where(there, option.offer.supply, 0.0)
    return replace(
        fleet,
        point_uses=uses,
        option_count=count,
        operating=_operating(answer, [d.point for d in deployments], fleet.arcs, classes, slots),
    )


def _operating(
    answer: Answer, points: Sequence[OperatingPoint], arcs: Ints, classes: Sequence[Class], slots: Ints
) -> OperatingCost:
    """Price points and arcs (class, pool) by slot of the answer's program."""
    prices, data = arc_prices(answer.problem, answer.form, slots), answer.form.data
    known = {(w, o, q): a for a, (w, o, _, q) in reversed(list(enumerate(answer.form.arcs)))}
    of = np.array([known[(*classes[c], int(q))] for c, q in arcs], dtype=np.int64)
    by_price = {path: values[of] for path, values in prices.by_price.items()}
    return OperatingCost(replicas_price(answer.problem, data, points, slots), prices.arc[of], by_price)


def replicas_price(problem: ResolvedSpec, data: PlanData, points: Sequence[OperatingPoint], slots: Ints) -> Floats:
    """Compute what a replica of each point costs over each slot of a program that stands for `slots` of the calendar, [point, slot]."""
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    scale = data.slot_hours_s / problem.calendar.seconds[slots]
    terms = [term for term in point_terms(problem, points, site_of, slot_rates(problem)) if term.functional == COST]
    cost: Floats = coefficients(terms, REPLICA, (len(points), problem.calendar.slots))[:, slots] * scale
    return cost


def arc_prices(problem: ResolvedSpec, form: Formulation, slots: Ints) -> OperatingCost:
    """Split the cost of the arcs of a program by the prices of tokens; without points."""
    data, calendar = form.data, problem.calendar
    scale = data.slot_hours_s / calendar.seconds[slots]
    arc: Floats = data.arc_cost[COST].copy()
    by_price: dict[str, Floats] = {}
    for a, (w, _, r, _) in enumerate(form.arcs):
        for path, cost in token_costs(problem.sites[r], problem.serving[w], calendar).items():
            tokens = cost[slots] * scale
            by_price.setdefault(path, np.zeros(arc.shape))[a] = tokens
            arc[a] -= tokens
    return OperatingCost(np.zeros((0, data.slots)), arc, by_price)


def planned_operation(answer: Answer) -> float:
    """Add up what the dispatch of an answer costs, by the same prices."""
    data, values = answer.form.data, answer.solution.values
    serving = data.point_pool >= 0
    replicas = float((data.point_cost[COST][serving] * values["x"][serving]).sum())
    return replicas + float((data.arc_cost[COST] * values["f"]).sum())


def growth_of(answer: Answer, classes: Sequence[Class], scenarios: Scenarios) -> Floats:
    """Return the requests of each class of demand in each scenario over the requests of the program, [class, scenario]."""
    found = np.ones((len(classes), scenarios.count))
    for c, (w, _) in enumerate(classes):
        workload = answer.problem.serving[w]
        if not scaled(answer.problem, workload.asked):
            found[c] = scenarios.demand[workload.name]
    return found
