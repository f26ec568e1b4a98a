"""State how sure a plan is: the share of sampled scenarios in which its fleet keeps all promises, and what keeping more would cost.

Scenarios, errors and redispatch are as in robust plans (`planner.problem.scenarios`), with the defaults of the block `robust` and
prices as typical. Not here: fleets chosen for a share of scenarios (`planner.robust`), and the check (`planner.verify.robust.confidence`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from models.arrays import Floats
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.formulation import Formulation
from planner.money.terms import COST
from planner.plan import Plan
from planner.plan.rows.robust import BreaksFirst, Confidence, FurtherSystem, LateJob, Upgrade
from planner.problem.facts import ResolvedSpec
from planner.problem.intervals import SERVING_LABEL, network
from planner.problem.scenarios import CONFIDENCE_SCENARIOS, CONFIDENCE_SEED, SERVING, Scenarios, draw, with_robust
from planner.scenarios.redispatch import layout_key, left_out
from planner.solving.adapt.hired import hired_promise
from planner.solving.held_fleet import RoutedFleet, routed_fleet
from planner.solving.variants import Answer
from solvers.fixed_fleet.many_scenarios import MOST_COLUMNS, Settled, settle
from solvers.fixed_fleet.redispatch import Extension, Redispatch
from solvers.model.preemption import working_share
from solvers.solution import Solution

PRICED_SHARE = 0.8  # share of the scenarios: the promise that is priced where the plan keeps fewer
WHOLE_TOL = 1e-6  # part of a system
DEMAND, DEADLINE = "demand", "deadline"  # promises beside latencies


def with_confidence(
    plan: Plan, problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution, known: InScenarios | None = None
) -> Plan:  # fmt: skip
    """Return the plan with the section `confidence`; a robust plan states its promise instead.

    `known`: an answer in the scenarios already, used where it is this one.
    """
    if problem.spec.robust is not None:
        return plan
    same = known is not None and known.answer.form is form and known.answer.solution.values is solution.values
    sure = known if known is not None and same else measured(Answer(problem, candidates, form, solution))
    return Plan({**plan.document, "confidence": confidence_section(sure)})


@dataclass(frozen=True)
class InScenarios:
    """An answer in the scenarios: its fleet, what it can do there, and which promises are kept."""

    answer: Answer
    scenarios: Scenarios
    routed: RoutedFleet
    capacity: Floats  # [point, scenario]
    rate: Floats  # rates of jobs [job, scenario]
    found: Settled

    @property
    def kept(self) -> float:
        """Return the share of scenarios in which all promises are kept."""
        return float(self.found.kept.mean())

    @cached_property
    def further(self) -> tuple[Extension, list[int]]:
        """Further systems that the fleet could get, and the holdings of which they would be more."""
        return further_systems(self.answer)

    @cached_property
    def needs(self) -> list[Floats]:
        """The least of the further systems [E] that keep all promises, for each scenario in which they are enough."""
        return further_needs(self, self.further[0])


def measured(answer: Answer) -> InScenarios:
    """Dispatch the fleet of an answer in the scenarios of `confidence`."""
    problem = with_robust(answer.problem)
    scenarios = draw(problem, CONFIDENCE_SCENARIOS, CONFIDENCE_SEED)
    routed = routed_fleet(answer)
    capacity, rate = routed.capacities(problem, scenarios), _rates(answer, routed, scenarios)
    return InScenarios(answer, scenarios, routed, capacity, rate, settle(routed.fleet, capacity, rate))


def confidence_section(sure: InScenarios) -> Confidence:
    """Build the section `confidence` of a plan."""
    answer = sure.answer
    problem, routed, scenarios, found = with_robust(answer.problem), sure.routed, sure.scenarios, sure.found
    names = [w.name for w in problem.serving] + [point.workload.name for point in routed.jobs]
    hired = hired_promise(answer, scenarios, found, sure.rate)
    section: Confidence = {
        "scenarios": CONFIDENCE_SCENARIOS, "seed": CONFIDENCE_SEED, "kept": float(found.kept.mean()), "open": float(found.open.mean()),
        "workloads": {name: float(found.done[:, i].mean()) for i, name in enumerate(names)},
        "breaks_first": _breaks_first(answer, routed, scenarios, found, names),
        "upgrade": _upgrade(sure), "late_jobs": _late_jobs(sure),
        "left_out": left_out(problem, pauses=True),
    }  # fmt: skip
    if hired is not None:
        section["hired"] = hired
    return section


def _rates(answer: Answer, routed: RoutedFleet, scenarios: Scenarios) -> Floats:
    """Compute the rate of each job at full width, net of the pauses of the plan, [job, scenario] [token/s]."""
    found = np.zeros((len(routed.jobs), scenarios.count))
    for j, point in enumerate(routed.jobs):
        found[j] = point.capacity * _share_at_work(answer, point) / _slower(point, scenarios)
    return found


def _share_at_work(answer: Answer, point: OperatingPoint) -> float:
    """Return the share of the time at work of a job that its pauses leave."""
    data, p = answer.form.data, _position(answer, point)
    share = np.clip(answer.solution.values["v"][p], 0.0, 1.0)
    run_s = float(share @ data.slot_hours_s)
    return float(working_share(data, p, share) @ data.slot_hours_s) / run_s if run_s else 1.0


def _slower(point: OperatingPoint, scenarios: Scenarios) -> Floats:
    """Return the time of a step of a job over that predicted, by scenario."""
    key = point.uses[0].option.system.chip, network(point.job.architecture.experts)
    found: Floats = scenarios.training.get(key, np.ones(scenarios.count))
    return found


def _position(answer: Answer, point: OperatingPoint) -> int:
    return next(i for i, each in enumerate(answer.form.points) if each is point)


# -- the promise that breaks first -------------------------------------------------------------------------------------


def _breaks_first(
    answer: Answer, routed: RoutedFleet, scenarios: Scenarios, found: Settled, names: list[str]
) -> BreaksFirst | None:
    """Name the workload whose promise is kept in fewest scenarios, and the promise; None where all are kept in all.

    Of a serving workload it is that whose error takes most of the capacity away: the latency limit, or the demand at the throughput.
    """
    shares = found.done.mean(axis=0)
    if shares.min(initial=1.0) >= 1.0:
        return None
    worst = int(np.argmin(shares))
    promise = DEADLINE if worst >= len(answer.problem.serving) else _scarcest(answer, routed, scenarios, names[worst])
    return {"workload": names[worst], "promise": promise, "kept": float(shares[worst])}


def _scarcest(answer: Answer, routed: RoutedFleet, scenarios: Scenarios, workload: str) -> str:
    """Find the promise of a workload without whose error most capacity would come back, up to that predicted."""
    problem = answer.problem
    limits = next(w for w in problem.serving if w.name == workload).spec.limits()
    mine = np.array([routed.deployments[i].workload.name == workload for i, _ in routed.points])
    peak = _peak_replicas(answer, routed)

    def offered(errors: Scenarios) -> Floats:
        total: Floats = peak[mine] @ routed.capacities(with_robust(problem), errors)[mine]
        return total

    none = {chip: {label: np.ones(scenarios.count) for label in SERVING} for chip in scenarios.serving}
    ones = {name: np.ones(scenarios.count) for name in scenarios.demand}
    predicted = offered(replace(scenarios, serving=none, demand=ones))

    def gain(label: str) -> float:
        without = {chip: {**errors, label: np.ones(scenarios.count)} for chip, errors in scenarios.serving.items()}
        there = replace(scenarios, serving=without, demand=ones if label == "throughput" else scenarios.demand)
        return float((np.minimum(offered(there), predicted) - np.minimum(offered(scenarios), predicted)).mean())

    promises = {DEMAND: "throughput"} | {limit.key: SERVING_LABEL[limit.metric] for limit in limits}
    return max(promises, key=lambda promise: gain(promises[promise]))


def _peak_replicas(answer: Answer, routed: RoutedFleet) -> Floats:
    """Return the most replicas of the deployment of each point, [point]."""
    active = answer.solution.values["x"]
    most: dict[Any, Floats] = {}
    for p in np.flatnonzero(answer.form.data.point_pool >= 0):
        if active[p].any():
            key = layout_key(answer.form.points[p])
            most[key] = most.get(key, 0.0) + active[p]
    peaks = [float(most[layout_key(point)].max()) for point in routed.deployments]
    return np.array([peaks[i] for i, _ in routed.points])


# -- what keeping more would cost --------------------------------------------------------------------------------------


def _upgrade(sure: InScenarios) -> Upgrade | None:
    """Price a promise of `PRICED_SHARE` by further systems of the kinds held, as many as the cheapest scenarios need together.

    A cheaper way may exist, such as other layouts. None where the plan keeps the share already, where a holding or a limit makes the
    price of one system more than its cost (phases, halls, ceilings on totals), or where no number of these systems is enough.
    """
    answer, found = sure.answer, sure.found
    count = len(found.kept)
    wanted = int(np.ceil(PRICED_SHARE * count)) - int(found.kept.sum())
    data = answer.form.data
    if wanted <= 0 or found.open.any() or data.windows > 1 or not _has_plain_prices(answer):
        return None
    extension, holdings = sure.further
    needs = sorted(sure.needs, key=lambda systems: float(extension.cost @ systems))
    if len(needs) < wanted:
        return None
    systems = np.max(needs[:wanted], axis=0)
    if not supplied(answer.form, answer.solution.values["n"], holdings, systems):
        return None
    rows: list[FurtherSystem] = []
    for e, u in enumerate(holdings):
        option = answer.form.fleet_options[data.holding_option[u]]
        if systems[e] > 0:
            count = int(systems[e])
            rows.append(
                {"site": option.site.region, "system": option.system.name, "how": option.offer.how, "count": count}
            )
    return {"share": PRICED_SHARE, "cost": float(extension.cost @ systems), "systems": rows}


def _late_jobs(sure: InScenarios) -> list[LateJob]:
    """Price the slack of each job whose deadline is kept in fewer than `PRICED_SHARE` of the scenarios, by systems that widen the run.

    In a scenario a job needs f U seconds at full width: U as predicted, f the error of its step. The fleet has given it as much as the
    largest f U of the scenarios in which it was in time, at least U and at most the time A until its deadline. Of w systems at work,
    ceil(w (q U - that)/A) more, at work throughout, do the rest for the f up to the quantile q. None of a job of reinforcement
    learning, whose pools do not widen alike, of one that is late for want of systems rather than by its step, and where supplies or the
    network have no room.
    """
    answer, found, routed = sure.answer, sure.found, sure.routed
    values = answer.solution.values
    calendar, rows = answer.problem.calendar, list[LateJob]()
    for j, point in enumerate(routed.jobs):
        done = found.done[:, len(answer.problem.serving) + j]
        if found.open.any() or done.mean() >= PRICED_SHARE or point.iteration is not None:
            continue
        used_s = float(np.clip(values["v"][_position(answer, point)], 0.0, 1.0) @ calendar.seconds)
        there_s = float(calendar.seconds @ calendar.within(point.job.spec.start, point.job.spec.deadline))
        slower = _slower(point, sure.scenarios)
        quantile = float(np.sort(slower)[math.ceil(PRICED_SHARE * len(slower)) - 1])
        given_s = min(max(used_s, used_s * float(slower[done].max(initial=0.0))), there_s)
        use = point.uses[0]
        count = math.ceil((use.systems - use.spares) * (quantile * used_s - given_s) / there_s - WHOLE_TOL)
        cost = None if count < 1 else _cost_of_more(answer, use.option, count)
        if cost is None:
            continue
        rows.append(
            {
                "workload": point.workload.name, "kept": float(done.mean()), "slack": given_s / used_s - 1.0, "slower": quantile - 1.0,
                "site": point.site, "system": use.option.system.name, "how": use.option.offer.how, "count": count,
                "cost": cost if _has_plain_prices(answer) else None,
            }
        )  # fmt: skip
    return rows


def _cost_of_more(answer: Answer, option: FleetOption, count: int) -> float | None:
    """Compute what further systems of an option cost: on its network, or, where that is full, all of them on the cheapest larger one.

    None where the option is not held, and where neither supplies nor a network have room.
    """
    form, held = answer.form, np.rint(answer.solution.values["n"])
    price, largest = form.data.holding_cost[COST], network_sizes(form)
    kinds = [form.fleet_options[k] for k, _ in form.holdings]
    mine = next((u for u in np.flatnonzero(held > 0) if kinds[u] is option), None)
    if mine is None:
        return None
    total, costs = held[mine] + count, []
    for u, kind in enumerate(kinds):
        alike = (kind.site, kind.system, kind.offer, kind.fabric) == (
            option.site,
            option.system,
            option.offer,
            option.fabric,
        )
        if u == mine or (
            alike and held[u] == 0 and form.holdings[u][1] == form.holdings[mine][1] and total <= largest[u]
        ):
            moved = held.copy()
            moved[mine], moved[u] = 0.0, total
            if supplied(form, moved, [u], np.zeros(1)):
                costs.append(float(total * price[u] - held[mine] * price[mine]))
    return min(costs, default=None)


def _has_plain_prices(answer: Answer) -> bool:
    """Tell whether one more system costs what its holding does: no phases, halls, parts, systems by the hour, or ceilings on totals."""
    data, limits = answer.form.data, answer.problem.spec.limits
    totals = (limits.budget, limits.capital, limits.carbon)
    if answer.problem.phases or data.objective.maximises or any(totals):
        return False
    return data.site_racks is None and data.parts is None and data.hourly is None


def further_needs(sure: InScenarios, extension: Extension) -> list[Floats]:
    """List the least further systems [E] that keep all promises, of each scenario in which the fleet fails and these are enough.

    None of them where programs of all scenarios would take too long.
    """
    program, lost = Redispatch(sure.routed.fleet, extension), ~sure.found.kept
    if not len(extension.option) or program.columns * lost.sum() > MOST_COLUMNS:
        return []
    needs = []
    for s in np.flatnonzero(lost).tolist():
        undone = program.shortfall(sure.capacity[:, s], sure.rate[:, s])
        if undone.max(initial=0.0) <= WHOLE_TOL:
            needs.append(np.ceil(program.further() - WHOLE_TOL))
    return needs


def further_systems(answer: Answer) -> tuple[Extension, list[int]]:
    """Return the further systems of the holdings in use, and those holdings; what costs nothing is no choice."""
    data, held = answer.form.data, answer.solution.values["n"]
    most = _room_in_supplies(answer.form, held)
    holdings = [int(u) for u in np.flatnonzero(held > 0.5) if most[u] >= 1 and data.holding_cost[COST][u] > 0]
    option = data.holding_option[holdings]
    idle_w = data.holding_power_w[holdings]
    return Extension(
        option, data.holding_cost[COST][holdings], most[holdings], idle_w, data.option_site[option]
    ), holdings


def _room_in_supplies(form: Formulation, held: Floats) -> Floats:
    """Return how many further systems of each holding its supplies and the size of its network allow, [holding]."""
    data = form.data
    room = network_sizes(form) - np.rint(held)
    supply, holding = data.supply_member.T
    used = np.bincount(supply, weights=np.rint(held)[holding], minlength=len(data.supply_limit))
    np.minimum.at(room, holding, (data.supply_limit - used)[supply])
    whole: Floats = np.floor(np.maximum(room, 0.0) + WHOLE_TOL)
    return whole


def network_sizes(form: Formulation) -> Floats:
    """[U]: systems that the network of each holding joins; holdings that share a network share it as a supply too."""
    return np.array([form.fleet_options[k].largest for k, _ in form.holdings], dtype=np.float64)


def supplied(form: Formulation, held: Floats, holdings: list[int], systems: Floats) -> bool:
    """Tell whether supplies and networks have room for the held and the further systems together."""
    data, total = form.data, np.rint(held)
    total[holdings] += systems
    supply, holding = data.supply_member.T
    used = np.bincount(supply, weights=total[holding], minlength=len(data.supply_limit))
    within = (used <= data.supply_limit + WHOLE_TOL) | data.supply_by_slot()  # none of these gets further systems
    fits = within.all() and (total <= network_sizes(form) + WHOLE_TOL).all()
    return bool(fits)
