"""Read the stated policy as data of the dispatch: commitments, ways to serve by class of demand, jobs, prices and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.plan.rows.adapt import Adaptation
from planner.plan.rows.adapt_policy import Layout
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.intervals import network
from planner.scenarios.redispatch import BatchCurve
from planner.verify.adapt.dispatch import Fleet
from planner.verify.adapt.hours import Hours, hours_of
from planner.verify.adapt.rows import Pricer
from planner.verify.adapt.worlds import LATENCIES_AND_RATE
from planner.verify.fleet.options import CheckedOption, HeldKey, key_at, key_of
from planner.verify.points.reinforcement import slots_per_s
from planner.verify.power import power_at
from planner.verify.robust.fixed_fleet import CheckedDeployment
from planner.verify.robust.operation import (
    energy_price,
    may_buy,
    near_enough,
    tokens_by_price,
    traffic_price,
    worth_s,
)

BY_USE = ("on_demand", "spot", "api")


@dataclass(frozen=True, slots=True)
class Served:
    """A way to serve one class of demand: its layouts, each with the systems of a replica, over one route."""

    workload: ServingFacts
    klass: int
    option: int
    rtt_s: float
    per_byte: float
    layouts: tuple[tuple[Layout, CheckedDeployment], ...]


class PolicyReader:
    """Read the section on the problem that is cut at its dates."""

    def __init__(self, document: Mapping[str, Any], found: Adaptation, pricer: Pricer, unserved: float):
        self.problem, self.document, self.found, self.pricer = pricer.problem, document, found, pricer
        self.unserved = unserved  # price of work left undone, in multiples of the plan's cost
        problem = self.problem
        self.plan, self.calendar = pricer.plan, problem.calendar
        keys = [key_of(row) for row in found["commitments"]]
        keys += [key_at(row["site"], row["pools"][0]) for row in found["layouts"]]
        self.keys: dict[HeldKey, int] = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        self.options: list[CheckedOption] = [self.plan.fleet_options[key] for key in self.keys]
        self.classes: list[tuple[ServingFacts, str, Floats]] = [
            (workload, origin.region, rates)
            for workload in problem.serving
            for origin, rates in zip(workload.spec.origins, workload.requests_by_slot(self.calendar), strict=True)
            if rates.any()
        ]
        self.jobs: list[tuple[TrainingFacts, Layout, int]] = [
            (self.plan.training[row["workload"]], row, self.keys[key_at(row["site"], row["pools"][0])])
            for row in found["layouts"]
            if row["workload"] in self.plan.training
        ]
        self.ways = self._ways()
        self._curves: dict[str, BatchCurve] = {}

    def _ways(self) -> list[Served]:
        """List every way of every class: layouts of one option, over one route to its site."""
        found = []
        for c, (workload, origin, _) in enumerate(self.classes):
            by_key: dict[HeldKey, list[tuple[Layout, CheckedDeployment]]] = {}
            for row in self.found["layouts"]:
                if row["workload"] == workload.name:
                    key = key_at(row["site"], row["pools"][0])
                    by_key.setdefault(key, []).append((row, self._deployment(workload, row)))
            for key, layouts in by_key.items():
                site = self.plan.sites[key[0]]
                for route in self.problem.routes(workload.name, origin, key[0]).values():
                    if site.api is not None and not (
                        may_buy(self.plan, workload, site) and near_enough(workload, site, route.rtt_s)
                    ):
                        continue
                    found.append(Served(workload, c, self.keys[key], route.rtt_s, route.price_per_byte, tuple(layouts)))
        return found

    def _deployment(self, workload: ServingFacts, row: Layout) -> CheckedDeployment:
        pools: tuple[Mapping[str, Any], ...] = tuple({**pool} for pool in row["pools"])
        options = tuple(self.plan.fleet_options[key_at(row["site"], pool)] for pool in pools)
        return CheckedDeployment(workload, row["site"], options, pools, (), 0.0)

    def hours(self) -> tuple[Hours, Bools]:
        """Choose the hours, and tell when each job may run, [job, hour]."""
        calendar = self.calendar
        masks = np.array(
            [calendar.within(job.spec.start, job.spec.deadline) for job in self.problem.training], dtype=bool
        )
        masks = masks.reshape(-1, calendar.slots)
        demand = np.array([rates for *_, rates in self.classes]).reshape(-1, calendar.slots)
        found = hours_of(demand, np.asarray(calendar.window), masks, np.asarray(calendar.seconds, dtype=float))
        return found, masks[:, found.first]

    def fleet(self) -> tuple[Fleet, Ints]:
        """Build the data of the dispatch; returns also the window of each hour."""
        hours, mask = self.hours()
        calendar, problem, plan, slots = self.calendar, self.problem, self.plan, self.calendar.slots
        window = np.asarray(calendar.window)[hours.first]
        worth = worth_s(plan)
        served, undone = self._prices()
        lack = np.array([served[w.name] for w, *_ in self.classes]).reshape(-1, 1) * worth
        number = {site.region: r for r, site in enumerate(problem.sites)}
        use = np.array([self.pricer.by_use(key) if key[2] in BY_USE else np.zeros(slots) for key in self.keys])
        use = use.reshape(-1, slots)
        rows = self.found["commitments"]
        option = np.array([self.keys[key_of(row)] for row in rows], dtype=np.int64)
        begins = np.asarray(calendar.edges_s, dtype=float)[window]
        there = np.array(
            [(begins >= row["from_s"] - 1.0) & (begins < row["until_s"] - 1.0) for row in rows], dtype=float
        ).reshape(-1, len(window))
        returns = np.array([row["returns"] for row in rows], dtype=bool)
        there[returns] *= -1.0
        offers = [key[5] for key in self.keys]
        limited = [offer.path for offer in problem.offers if offer.path in offers and math.isfinite(offer.supply)]
        supply = {offer.path: float(offer.supply) for offer in problem.offers}
        room = np.array([[power_at(problem, site, int(w))[2] for w in window] for site in problem.sites])
        fleet = Fleet(
            seconds=hours.total(np.asarray(calendar.seconds, dtype=float)), demand=hours.demand, lack_price=hours.total(lack),
            way_class=_ints(way.klass for way in self.ways), way_option=_ints(way.option for way in self.ways),
            way_watts=np.array([self._watts(way.layouts[0][0]) for way in self.ways]),
            way_price=hours.total(np.array([self._energy(way.layouts[0][0]) for way in self.ways]).reshape(-1, slots)),
            request_price=np.array([self._request(way, hours) for way in self.ways]).reshape(-1, len(window)),
            option_site=_ints(number[key[0]] for key in self.keys), by_use=np.array([key[2] in BY_USE for key in self.keys], dtype=bool),
            use_price=hours.total(use), option=option, there=there, returns=returns, price=np.array([row["cost"] for row in rows]),
            most=np.array([np.inf if row["most"] is None else row["most"] for row in rows]),
            idle_watts=np.array([each.idle_at_meter_w if each.owned else 0.0 for each in self.options]), room_watts=room,
            supply=np.array([supply[path] for path in limited]),
            supply_of=_ints(limited.index(path) if path in limited else -1 for path in offers),
            job_of=_ints(problem.training.index(job) for job, *_ in self.jobs), job_option=_ints(k for *_, k in self.jobs),
            job_watts=np.array([self._watts(row) for _, row, _ in self.jobs]),
            job_price=hours.total(np.array([self._energy(row) + self._environments(job, row) for job, row, _ in self.jobs]).reshape(-1, slots)),
            job_work=np.array([job.spec.tokens for job in problem.training], dtype=float), job_mask=mask,
            undone_price=np.array([undone[job.name] for job in problem.training]),
        )  # fmt: skip
        return fleet, window

    def _prices(self) -> tuple[dict[str, float], dict[str, float]]:
        """Price a request, and a job, that is left undone: a multiple of the plan's cost of one."""
        paid = {row["name"]: row["cost"] for row in self.document["workloads"]}
        worth = worth_s(self.plan)
        served = {
            w.name: self.unserved
            * paid[w.name]
            / sum(float(rates @ worth) for other, _, rates in self.classes if other is w)
            for w in self.problem.serving
        }
        return served, {job.name: self.unserved * paid[job.name] for job in self.problem.training}

    def _watts(self, row: Layout) -> float:
        """Return what one system of a layout draws above idle, at the meter; 0 of a rented one."""
        systems = sum(pool["systems_per_replica"] for pool in row["pools"])
        options = [self.plan.fleet_options[key_at(row["site"], {**pool})] for pool in row["pools"]]
        drawn = [
            pool["extra_power_w"] * option.pue if option.owned else 0.0
            for pool, option in zip(row["pools"], options, strict=True)
        ]
        return sum(drawn) / systems

    def _energy(self, row: Layout) -> Floats:
        """Price the energy of one system at work above idle over each slot."""
        found: Floats = self._watts(row) * energy_price(self.plan, self.plan.sites[row["site"]])
        return found

    def _environments(self, job: TrainingFacts, row: Layout) -> Floats:
        """Price the environments that one system of a job keeps busy over each slot."""
        each = slots_per_s(job) / sum(pool["systems_per_replica"] for pool in row["pools"])
        found: Floats = each * worth_s(self.plan)
        return found

    def _request(self, way: Served, hours: Hours) -> Floats:
        """Price one request/s of a way over each hour: its answer, and the tokens of an API."""
        site = self.options[way.option].site
        price = traffic_price(self.plan, way.workload, way.per_byte)
        for _, tokens in tokens_by_price(self.plan, way.workload, site):
            price = price + tokens
        return hours.total(price)

    def rates(self, errors: Mapping[str, Mapping[str, Floats]], count: int) -> Floats:
        """Compute requests/s of one system of each way, then work/s of one system of each job, [world, way and job]."""
        found = np.zeros((count, len(self.ways) + len(self.jobs)))
        for g, way in enumerate(self.ways):
            for row, deployment in way.layouts:
                np.maximum(found[:, g], self._rate(way, row, deployment, errors, count), out=found[:, g])
        for h, (job, row, k) in enumerate(self.jobs):
            label = network(job.architecture.experts)
            slower = errors.get(self.options[k].system.chip, {}).get(label, np.ones(count))
            found[:, len(self.ways) + h] = row["capacity"] / slower
        return found

    def _rate(
        self, way: Served, row: Layout, deployment: CheckedDeployment, errors: Mapping[str, Mapping[str, Floats]], count: int
    ) -> Floats:  # fmt: skip
        systems = sum(pool["systems_per_replica"] for pool in row["pools"])
        if row["pools"][0]["role"] == "api":
            return np.full(count, row["capacity"])
        key = deployment.curve_key
        if key not in self._curves:
            self._curves[key] = deployment.curve(self.problem)
        chips = [option.system.chip for option in deployment.options]
        none = dict.fromkeys(LATENCIES_AND_RATE, np.ones(count))
        each = [{**none, **errors.get(chip, {})} for chip in chips]
        worst = {name: np.max([one[name] for one in each], axis=0) for name in LATENCIES_AND_RATE[:2]}
        worst["throughput"] = np.min([one["throughput"] for one in each], axis=0)
        found: Floats = self._curves[key].capacity(way.workload.spec.limits(), way.rtt_s, worst) / systems
        return found


def demanded(
    worlds: Mapping[str, Floats], classes: Sequence[tuple[ServingFacts, str, Floats]], window: Ints, count: int
) -> Floats:
    """Return the factor on the demand of each class in each hour, [world, class, hour]."""
    found = [worlds[workload.name][:, window] for workload, *_ in classes]
    return np.array(found).reshape(len(classes), count, len(window)).transpose(1, 0, 2)


def _ints(values: Any) -> Ints:
    return np.array(list(values), dtype=np.int64)
