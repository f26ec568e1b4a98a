"""How the plan of a document fares in sampled worlds, read from the document alone: what `robustness` says, and its re-check.

Any plan can be asked, also one that was not made to be robust. Shared with the way to a plan: figures, closed forms, the worlds and
their re-dispatch; not its candidates, programs or accounts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.problem.derating import scaled
from planner.problem.facts import Problem, ServingFacts
from planner.problem.intervals import network
from planner.problem.scenarios import Scenarios
from planner.resolve.price_steps import STEP, Raised
from planner.scenarios.redispatch import BatchCurve, ScenarioOutcome, curve_at, worst_errors
from planner.verify.decisions import Decisions, key_of
from planner.verify.fleet import CheckedOption
from planner.verify.power import power_at
from solvers.fixed_fleet.redispatch import FixedFleet, Redispatch

NEGLIGIBLE = 1e-7  # part of a cost that is the rounding of a difference


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
    )


def price_amounts(problem: Problem, cost_of: Callable[[Problem], float], steps: Raised) -> dict[str, float]:
    """By uncertain price: the part of a plan's cost that goes up and down with it; `cost_of`: what it comes to at a problem's prices."""
    base = cost_of(problem)
    found = {path: (cost_of(other) - base) / STEP for path, other in steps.items()}
    return {path: amount if abs(amount) > NEGLIGIBLE * abs(base) else 0.0 for path, amount in found.items()}


def _held(check: Decisions):
    """(fleet, layouts, (layout, round trip) of each serving point, (job, point, fleet option) of each job)."""
    problem, document, fleet_options = check.problem, check.document, check.fleet_options
    calendar = problem.calendar
    serving, training = check.serving, check.training
    keys = {key: number for number, key in enumerate(check.held)}
    held = np.array([np.asarray(counts)[calendar.window] for counts in check.held.values()], dtype=float).reshape(
        -1, calendar.slots
    )
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    room = np.array([[power_at(problem, site, int(window))[2] for window in calendar.window] for site in problem.sites])
    for key, number in keys.items():
        option = fleet_options[key]
        if option.owned:
            room[site_of[key[0]]] -= held[number] * option.idle_it_w * option.site.pue
    rows = [(w["name"], point) for w in document["workloads"] if w["name"] in serving for point in w["points"]]
    rows += [(row["workload"], row) for row in (document.get("robustness") or {}).get("standing_by", ())]
    stands: dict[str, Stand] = {}
    extra_w: dict[str, float] = {}
    for name, row in rows:
        numbers = tuple(keys.get(_key(row["site"], pool), -1) for pool in row["pools"])
        if min(numbers) < 0:
            continue  # no such systems are held
        key = repr(
            [
                name,
                numbers,
                row.get("power_cap"),
                [(p["precision"], sorted(p["layout"].items()), p["workers"], p["role"]) for p in row["pools"]],
            ]
        )
        if key in stands:
            continue
        own = tuple(fleet_options[_key(row["site"], pool)] for pool in row["pools"])
        plain = Stand(serving[name], row["site"], own, tuple(row["pools"]), 1.0, numbers)
        speed = (
            1.0
            if row.get("power_cap") is None
            else row["capacity"] / plain.curve(problem).at(row["pools"][-1]["batch"])
        )
        stands[key] = Stand(serving[name], row["site"], own, tuple(row["pools"]), speed, numbers)
        extra_w[key] = sum(
            pool["extra_power_w"] * option.site.pue for pool, option in zip(row["pools"], own) if option.owned
        )
    order = list(stands)
    factor = document["objective"]["value"] if problem.spec.objective.maximise else 1.0
    demand, class_workload, arcs, pool_site, ways, point_pool = [], [], [], [], [], []
    for w, workload in enumerate(problem.serving):
        grows = factor if scaled(problem, workload.name) else 1.0
        for origin, rate in zip(workload.spec.origins, workload.requests_by_slot(calendar), strict=True):
            if not rate.any():
                continue
            demand.append(rate * grows)
            class_workload.append(w)
            for site in problem.sites:
                for route in problem.routes(workload.name, origin.region, site.region).values():
                    here = [
                        i
                        for i, key in enumerate(order)
                        if stands[key].workload is workload and stands[key].region == site.region
                    ]
                    if here:
                        arcs.append((len(demand) - 1, len(pool_site)))
                        ways += [(i, route.rtt_s) for i in here]
                        point_pool += [len(pool_site)] * len(here)
                        pool_site.append(site_of[site.region])
    jobs = []
    for w in document["workloads"]:
        for point in w["points"] if w["name"] in training else ():
            jobs.append((training[w["name"]], point, fleet_options[_key(point["site"], point["pools"][0])]))
    names = list(stands.values())
    uses = [
        (p, number, pool["systems_per_replica"])
        for p, (i, _) in enumerate(ways)
        for number, pool in zip(names[i].option_numbers, names[i].pools)
    ]
    whole = lambda values, *shape: np.array(values, dtype=np.int64).reshape(*shape)
    job_rows = [point["pools"][0] for _, point, _ in jobs]
    fleet = FixedFleet(
        demand=np.array(demand).reshape(-1, calendar.slots), class_workload=whole(class_workload, -1), arcs=whole(arcs, -1, 2), pools=len(pool_site),
        point_pool=whole(point_pool, -1), point_uses=whole([row[:2] for row in uses], -1, 2), point_systems=np.array([row[2] for row in uses], dtype=float),
        point_power_w=np.array([extra_w[order[i]] for i, _ in ways], dtype=float), point_site=whole([pool_site[q] for q in point_pool], -1),
        job_uses=whole([(j, keys[_key(point["site"], point["pools"][0])]) for j, (_, point, _) in enumerate(jobs)], -1, 2),
        job_systems=np.array([row["systems_per_replica"] for row in job_rows], dtype=float),
        job_power_w=np.array([row["extra_power_w"] * option.site.pue if option.owned else 0.0 for row, (_, _, option) in zip(job_rows, jobs)], dtype=float),
        job_site=whole([site_of[point["site"]] for _, point, _ in jobs], -1),
        job_mask=np.array([calendar.within(facts.spec.start, facts.spec.deadline) for facts, _, _ in jobs], dtype=bool).reshape(-1, calendar.slots),
        job_work=np.array([facts.spec.tokens for facts, _, _ in jobs], dtype=float), option_count=held,
        room_w=room * (1 + 1e-9), seconds=np.asarray(calendar.seconds, dtype=float), workloads=len(problem.serving),
    )  # fmt: skip
    return fleet, names, ways, jobs


def _key(region: str, row: Mapping[str, Any]) -> tuple:
    return key_of({**row, "site": region})
