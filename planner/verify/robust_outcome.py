"""Outcome of a plan in sampled scenarios, read from its document alone: what `robustness` states, and what its check computes again.

Any plan can be asked, also one that was not made to be robust. Shared with the way to a plan: figures, closed forms, scenarios and
their redispatch; not its candidates, programs or accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from models.arrays import Floats
from planner.problem.derating import scaled
from planner.problem.facts import Problem
from planner.problem.intervals import network
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised
<<<<<<< HEAD
from planner.scenarios.redispatch import BatchCurve, ScenarioOutcome, curve_at, worst_errors
from planner.verify.decisions import Decisions, key_of
from planner.verify.fleet import CheckedOption
from planner.verify.power import power_at
from solvers.fixed_fleet.redispatch import FixedFleet, Redispatch
=======
from planner.scenarios.redispatch import Curve, Outcome, worst_errors
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fixed_fleet import FleetReader
from solvers.fixed_fleet.redispatch import Redispatch
>>>>>>> 9ae4abc (verify: one file per feature, and no figure shared with the plan's rows)

COST_DIFFERENCE_TOL = 1e-7  # of a cost: a smaller difference of two costs is rounding


<<<<<<< HEAD
@dataclass(frozen=True, slots=True)
class Stand:
    """A layout of a document on its fleet options."""

    workload: ServingFacts
    region: str
    fleet_options: tuple[CheckedOption, ...]
    pools: tuple[Mapping[str, Any], ...]
    speed: float  # below 1 under a power cap
    option_numbers: tuple[int, ...]

    def curve(self, problem: Problem) -> BatchCurve:
        uses = [
            (option.system, option.scaleout_bytes_per_s, pool["precision"], pool["layout"], pool["workers"])
            for option, pool in zip(self.fleet_options, self.pools)
        ]
        return curve_at(problem, self.workload, uses, self.speed)


def outcome_of(check: Decisions, worlds: Scenarios, amounts: Mapping[str, float]) -> ScenarioOutcome:
    """How a plan fares that was read through by `check`; `amounts` by price: the part of its cost that goes with it."""
    problem, document = check.problem, check.document
    fleet, stands, ways, jobs = _held(check)
    program = Redispatch(fleet.without_dominated_slots())
    curves: dict[str, BatchCurve] = {}
    capacity = np.zeros((len(ways), worlds.count))
    for i, (number, rtt_s) in enumerate(ways):
        stand = stands[number]
        key = repr(
            [
                stand.workload.name,
                stand.speed,
                [
                    (
                        option.system.name,
                        option.scaleout_bytes_per_s,
                        p["precision"],
                        sorted(p["layout"].items()),
                        p["workers"],
                    )
                    for option, p in zip(stand.fleet_options, stand.pools)
                ],
            ]
        )
        if key not in curves:
            curves[key] = stand.curve(problem)
        found = curves[key].capacity(
            stand.workload.spec.slo.limits(),
            rtt_s,
            worst_errors(worlds, [option.system.chip for option in stand.fleet_options]),
        )
        capacity[i] = found if scaled(problem, stand.workload.name) else found / worlds.demand[stand.workload.name]
    rate = np.zeros((len(jobs), worlds.count))
    for j, (facts, point, option) in enumerate(jobs):
        slow = worlds.training.get((option.system.chip, network(facts.architecture.experts)), np.ones(worlds.count))
        rate[j] = point["capacity"] / slow
    undone = np.array([program.shortfall(capacity[:, s], rate[:, s]) for s in range(worlds.count)])
    cost = document["totals"]["cost"] + sum(
        (amount * (worlds.prices[path] - 1.0) for path, amount in amounts.items()), np.zeros(worlds.count)
    )
    return ScenarioOutcome(
        tuple(w.name for w in (*problem.serving, *(facts for facts, _, _ in jobs))), undone, cost, problem.budget
=======
def outcome_of(plan: CheckedPlan, scenarios: Scenarios, amounts: Mapping[str, float]) -> Outcome:
    """Redispatch a plan that has been read through in each scenario; `amounts`: by uncertain price, the part of the cost that scales with it."""
    problem, document = plan.problem, plan.document
    reader = FleetReader(plan)
    program = Redispatch(reader.fleet().without_dominated_slots())
    capacity = _capacities(problem, reader, scenarios)
    rate = np.zeros((len(reader.jobs), scenarios.count))
    for j, (facts, point, option) in enumerate(reader.jobs):
        key = option.system.chip, network(facts.architecture.experts)
        rate[j] = point["capacity"] / scenarios.training.get(key, np.ones(scenarios.count))
    undone = np.array([program.shortfall(capacity[:, s], rate[:, s]) for s in range(scenarios.count)])
    cost = document["totals"]["cost"] + sum(
        (amount * (scenarios.prices[path] - 1.0) for path, amount in amounts.items()), np.zeros(scenarios.count)
>>>>>>> 9ae4abc (verify: one file per feature, and no figure shared with the plan's rows)
    )
    names = (*(w.name for w in problem.serving), *(facts.name for facts, _, _ in reader.jobs))
    return Outcome(names, undone, cost, problem.budget)


def _capacities(problem: Problem, reader: FleetReader, scenarios: Scenarios) -> Floats:
    """Compute the capacity of each serving point [point, scenario], in requests/s over the growth of demand."""
    curves: dict[str, Curve] = {}
    capacity = np.zeros((len(reader.points), scenarios.count))
    for i, (number, rtt_s) in enumerate(reader.points):
        deployed = reader.deployments[number]
        if deployed.curve_key not in curves:
            curves[deployed.curve_key] = deployed.curve(problem)
        name = deployed.workload.name
        found = curves[deployed.curve_key].capacity(
            deployed.workload.spec.slo.limits(),
            rtt_s,
            worst_errors(scenarios, [option.system.chip for option in deployed.options]),
        )
        capacity[i] = found if scaled(problem, name) else found / scenarios.demand[name]
    return capacity


def price_amounts(problem: Problem, cost_of: Callable[[Problem], float], steps: Raised) -> dict[str, float]:
    """Compute by uncertain price the part of a plan's cost that scales with it, by finite differences of `cost_of`."""
    base = cost_of(problem)
    found = {path: (cost_of(other) - base) / STEP for path, other in steps.items()}
    return {path: amount if abs(amount) > COST_DIFFERENCE_TOL * abs(base) else 0.0 for path, amount in found.items()}
