"""Limits of the joint program: on functionals, power and supplies, and the largest useful count of each holding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint
from planner.formulate.costs import Holding
from planner.formulate.facility import rack_room
from planner.formulate.functionals import capital_of, paid_in
from planner.formulate.residency import is_spared, serves_on_systems, spare_workers
from planner.messages import Message
from planner.money.terms import CAPITAL, CARBON, COST
from planner.problem import limit_labels
from planner.problem.facts import ResolvedSpec, TrainingFacts
from planner.problem.phases import power_limits, supplies
from solvers.model.block_data.power_stages import PowerStages
from solvers.model.data import Limit

UNBOUNDED = Message.of("solving.unbounded").text()


class Unbounded(Exception):
    """Nothing in the spec limits the objective."""


def functional_limits(problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the upper bounds on money and carbon, of the whole plan and then phase by phase."""
    stated = [
        (limit_labels.BUDGET, COST, problem.budget),
        (limit_labels.CAPITAL, CAPITAL, problem.capital),
        (limit_labels.CARBON, CARBON, problem.carbon_kg),
    ]
    for phase in problem.phases:
        stated.append((limit_labels.phase_capital(phase), capital_of(phase), phase.capital))
        stated.append((limit_labels.phase_budget(phase), paid_in(phase), phase.budget))
    for key, functional, upper in stated:
        if math.isfinite(upper):
            yield Limit(key.path, functional, upper)


def power_fields(problem: ResolvedSpec) -> dict[str, Any]:
    """Build the fields of `PlanData` for power: limits that hold throughout, and those that change from window to window."""
    found = power_limits(problem)
    steady = np.full(len(problem.sites), np.inf)
    staged: list[tuple[int, tuple[int, int], float]] = []
    for limit in found:
        if limit.windows is None:
            steady[limit.site] = limit.most_w
        else:
            staged.append((limit.site, limit.windows, limit.most_w))
    if not staged:
        return {"site_power_limit_w": steady}
    return {
        "site_power_limit_w": steady,
        "power_stages": PowerStages(
            site=np.array([site for site, _, _ in staged], dtype=np.int64),
            first=np.array([first for _, (first, _), _ in staged], dtype=np.int64),
            last=np.array([last for _, (_, last), _ in staged], dtype=np.int64),
            limit_w=np.array([most_w for _, _, most_w in staged]),
        ),
    }


def supply_fields(
    problem: ResolvedSpec, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding]
) -> dict[str, Any]:
    """Build the fields of `PlanData` for supplies.

    Systems of one kind that are bought in several ways or phases share one network, so its size is a supply too.
    """
    limited = supplies(problem)
    members = [
        (s, u)
        for s, supply in enumerate(limited)
        for u, (k, term) in enumerate(holdings)
        if fleet_options[k].offer.order == supply.offer.path and supply.phase in (None, term.phase)
    ]
    on_network: dict[tuple[str, str, str, int | None], list[int]] = {}
    for u, (k, _) in enumerate(holdings):
        option = fleet_options[k]
        if option.plant is not None:
            key = (option.site.region, option.system.name, option.fabric, option.size)
            on_network.setdefault(key, []).append(u)
    shared = [held for held in on_network.values() if len(held) > 1]
    members += [(len(limited) + i, u) for i, held in enumerate(shared) for u in held]
    sizes = (fleet_options[holdings[held[0]][0]].largest for held in shared)
    return {
        "supply_limit": np.array([*(supply.most for supply in limited), *sizes]),
        "supply_member": np.array(members, dtype=np.int64).reshape(-1, 2),
    }


def largest_counts(
    problem: ResolvedSpec,
    fleet_options: Sequence[FleetOption],
    holdings: Sequence[Holding],
    points: Sequence[OperatingPoint],
    holding_cost: Mapping[str, Floats],
    limits: Sequence[Limit],
    by_need: bool,
) -> Floats:
    """Bound the count of each holding: no more than carries all demand alone and, unless `by_need`, than limits allow.

    Raises Unbounded where throughput is maximised and nothing limits a count.
    """
    need = _needed(problem, fleet_options, points)
    result = np.zeros(len(holdings))
    for u, (k, term) in enumerate(holdings):
        option = fleet_options[k]
        if option.offer.rented is not None:  # all of them are there, needed or not
            result[u] = option.offer.supply
            continue
        ceilings = [math.ceil(need[k]) if math.isfinite(need[k]) else math.inf, option.largest]
        if not by_need:
            draw_w = option.idle_at_meter_w if option.owned else 0.0
            ceilings += [
                option.offer.supply,
                option.offer.phase_supply[term.phase] if option.offer.phase_supply else math.inf,
                option.site.power_limit_w / draw_w if draw_w else math.inf,
                rack_room(option),
            ]
            amounts = ((limit.upper, holding_cost[limit.functional][u]) for limit in limits)
            ceilings += [upper / amount for upper, amount in amounts if amount > 0]
        result[u] = math.floor(min(ceilings)) if math.isfinite(min(ceilings)) else math.inf
    if not np.isfinite(result).all():
        raise Unbounded
    return result


def _needed(problem: ResolvedSpec, fleet_options: Sequence[FleetOption], points: Sequence[OperatingPoint]) -> Floats:
    """Compute for each fleet option the systems that would carry all work at its slowest points; inf if demand is open."""
    need = np.zeros(len(fleet_options))
    option_of = {id(option): k for k, option in enumerate(fleet_options)}
    per_request: dict[tuple[int, str], float] = {}
    for point in points:
        systems_of: dict[int, float] = {}
        for use in point.uses:  # both pools of a point may stand on one fleet option
            k = option_of[id(use.option)]
            systems_of[k] = systems_of.get(k, 0.0) + use.systems
            if is_spared(point):
                need[k] += spare_workers(use) * use.systems_per_worker
        for k, systems in systems_of.items():
            if isinstance(point.workload, TrainingFacts):
                need[k] += systems
            else:
                key = (k, point.workload.asked)
                per_request[key] = max(per_request.get(key, 0.0), systems / point.capacity)
                if problem.spec.solver.whole and serves_on_systems(point):
                    need[k] += systems  # replicas are whole: each point may hold one more than its load needs
    peaks = {workload.asked: workload.peak_requests_per_s for workload in problem.serving}
    maximises = problem.spec.objective.maximise == "throughput"
    for (k, name), systems in per_request.items():
        peak = peaks[name]
        need[k] += systems * peak if not maximises else (math.inf if peak > 0 else 0.0)
    fewest = problem.spec.simplicity.least_systems or 1
    least = np.array([max(option.offer.least, fewest) for option in fleet_options], dtype=np.float64)
    return np.where(need > 0, np.maximum(need, least), need)
