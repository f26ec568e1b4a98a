"""Compute the outcome of a plan in sampled scenarios from its document alone: the figures of `robustness`, and of its check.

Any plan can be asked, also one that was not made to be robust. Shared with the way to a plan: figures, closed forms, scenarios and
their redispatch; not its candidates, programs or accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from models.arrays import Floats
from planner.problem.derating import scaled
from planner.problem.facts import ResolvedSpec
from planner.problem.intervals import network
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised
from planner.scenarios.redispatch import BatchCurve, ScenarioOutcome, worst_errors
from planner.verify.checked_plan import CheckedPlan
from planner.verify.robust.fixed_fleet import FleetReader
from planner.verify.robust.operation import planned_operation
from solvers.fixed_fleet.redispatch import Redispatch

COST_DIFFERENCE_TOL = 1e-7  # share of a cost: a smaller difference of two costs is rounding


Within = Callable[[Iterable[int]], Iterable[int]]
"""Which of the scenarios are tried, such as `SearchLimits.within`: those that the time and the memory allow."""


def outcome_of(
    plan: CheckedPlan, scenarios: Scenarios, amounts: Mapping[str, float], within: Within = iter
) -> ScenarioOutcome:
    """Redispatch a plan that has been read through in each scenario that `within` yields, from the first on.

    `amounts`: by uncertain price, the part of the cost that scales with it.
    """
    problem, document = plan.problem, plan.document
    reader = FleetReader(plan, buying=True)
    program = Redispatch(reader.fleet().without_dominated_slots())
    capacity = capacities(problem, reader, scenarios)
    rate = np.zeros((len(reader.jobs), scenarios.count))
    for j, (facts, point, option) in enumerate(reader.jobs):
        key = option.system.chip, network(facts.architecture.experts)
        rate[j] = point["capacity"] / scenarios.training.get(key, np.ones(scenarios.count))
    cost = document["totals"]["cost"] + sum(
        (
            amount * (scenarios.prices[path] - 1.0)
            for path, amount in amounts.items()
            if path not in reader.token_prices
        ),
        np.zeros(scenarios.count),
    )
    planned = planned_operation(plan) if reader.apis else 0.0
    undone, growth = [], reader.growth(scenarios)
    for s in within(range(scenarios.count)):
        undone.append(program.shortfall(capacity[:, s], rate[:, s]))
        cost[s] += program.operate(growth[:, s], {path: float(f[s]) for path, f in scenarios.prices.items()}) - planned
    names = (*(w.name for w in problem.serving), *(facts.name for facts, _, _ in reader.jobs))
    return ScenarioOutcome(names, np.array(undone), cost[: len(undone)], problem.budget)


def capacities(problem: ResolvedSpec, reader: FleetReader, scenarios: Scenarios) -> Floats:
    """Compute the capacity of each serving point [point, scenario], in requests/s over the growth of demand."""
    curves: dict[str, BatchCurve] = {}
    capacity = np.zeros((len(reader.points), scenarios.count))
    for i, (number, rtt_s) in enumerate(reader.points):
        deployed = reader.deployments[number]
        name, asked, found = (
            deployed.workload.name,
            deployed.workload.asked,
            np.full(scenarios.count, deployed.stated_capacity),
        )
        if not np.isfinite(deployed.stated_capacity):
            if deployed.curve_key not in curves:
                curves[deployed.curve_key] = deployed.curve(problem)
            errors = worst_errors(scenarios, [option.system.chip for option in deployed.options])
            found = curves[deployed.curve_key].capacity(deployed.workload.spec.limits(), rtt_s, errors)
        capacity[i] = found if scaled(problem, asked) else found / scenarios.demand[name]
    return capacity


def price_amounts(problem: ResolvedSpec, cost_of: Callable[[ResolvedSpec], float], steps: Raised) -> dict[str, float]:
    """Compute by uncertain price the part of a plan's cost that scales with it, by finite differences of `cost_of`."""
    base = cost_of(problem)
    found = {path: (cost_of(other) - base) / STEP for path, other in steps.items()}
    return {path: amount if abs(amount) > COST_DIFFERENCE_TOL * abs(base) else 0.0 for path, amount in found.items()}
