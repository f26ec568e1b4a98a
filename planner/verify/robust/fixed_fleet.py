"""The fleet of a plan's document as the data of the redispatch program (`solvers.fixed_fleet.redispatch`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Floats, Ints
from planner.problem.derating import scaled
from planner.problem.facts import ResolvedSpec, ServingFacts, SiteFacts, TrainingFacts
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import BatchCurve, curve_at
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import CheckedOption, key_at
from planner.verify.points.serving import choice_of
from planner.verify.power import power_at
from planner.verify.robust.operation import (
    energy_price,
    may_buy,
    near_enough,
    supply_of,
    tokens_by_price,
    traffic_price,
)
from solvers.fixed_fleet.redispatch import FixedFleet, OperatingCost

POWER_ROOM_TOL = 1e-9  # share of the power that is left at a site


@dataclass(frozen=True, slots=True)
class CheckedDeployment:
    """A layout of the document on its fleet options; its batch is chosen in each scenario."""

    workload: ServingFacts
    region: str
    options: tuple[CheckedOption, ...]
    pools: tuple[Row, ...]
    option_numbers: tuple[int, ...]
    extra_power_w: float  # per replica at the meter, on our own systems
    speed: float = 1.0  # less under a power cap
    stated_capacity: float = math.inf  # requests/s of an API; inf where it is predicted

    @property
    def curve_key(self) -> str:
        """Identify the batch curve; deployments at several sites may share one."""
        pools = [
            (
                option.system.name,
                option.scaleout,
                choice_of(self.workload, option, p),
                sorted(p["layout"].items()),
                p["workers"],
            )
            for option, p in zip(self.options, self.pools, strict=True)
            if p["role"] != "encode"
        ]
        return repr([self.workload.name, self.speed, pools])

    def curve(self, problem: ResolvedSpec) -> BatchCurve:
        """Evaluate the layout at every batch."""
        uses = [
            (option.system, option.scaleout, choice_of(self.workload, option, pool), pool["layout"], pool["workers"])
            for option, pool in zip(self.options, self.pools, strict=True)
            if pool["role"] != "encode"
        ]
        return curve_at(problem, self.workload, uses, self.speed)


class FleetReader:
    """Read deployments, their serving points and jobs from a plan.

    `points`: (deployment, round trip [s]), one for each deployment and route that reaches its site. `jobs`: (job, its row, fleet option).
    `buying`: APIs sell as much as their supply, not as much as the plan buys, and dispatch is priced.
    """

    def __init__(self, plan: CheckedPlan, buying: bool = False):
        self.apis = [site for site in plan.problem.sites if buying and site.api is not None]
        self.plan, self.problem, self.document = plan, plan.problem, plan.document
        self.calendar = plan.problem.calendar
        self.numbers = {key: number for number, key in enumerate(plan.held)}
        self.site_of = {site.region: r for r, site in enumerate(plan.problem.sites)}
        self.deployments = self._deployments()
        self.jobs: list[tuple[TrainingFacts, Row, CheckedOption]] = [
            (plan.training[row["name"]], point, plan.fleet_options[key_at(point["site"], point["pools"][0])])
            for row in self.document["workloads"]
            if row["name"] in plan.training
            for point in row["points"]
        ]
        self.demand: list[Floats] = []  # by class: one origin of one workload
        self.class_workload: list[int] = []
        self.arcs: list[tuple[int, int]] = []  # (class, pool)
        self.pool_site: list[int] = []
        self.routes: list[tuple[ServingFacts, SiteFacts, float]] = []  # route of each arc, with the price of a byte
        self.points: list[tuple[int, float]] = []
        self.point_pool: list[int] = []
        self._read_demand()

    def _deployments(self) -> list[CheckedDeployment]:
        """List the active and the standby layouts, each once, if their systems are held."""
        rows = [
            (workload["name"], point)
            for workload in self.document["workloads"]
            if workload["name"] in self.plan.serving
            for point in workload["points"]
        ]
        rows += [(row["workload"], row) for row in (self.document.get("robustness") or {}).get("standing_by", ())]
        if self.apis:
            rows = [(name, row) for name, row in rows if row["pools"][0]["role"] != "api"]
        found: dict[str, CheckedDeployment] = {}
        for name, row in rows:
            numbers = tuple(self.numbers.get(key_at(row["site"], pool), -1) for pool in row["pools"])
            pools = [
                (p["precision"], p.get("kv_precision"), sorted(p["layout"].items()), p["workers"], p["role"])
                for p in row["pools"]
            ]
            key = repr([name, numbers, row.get("power_cap"), pools])
            if min(numbers) >= 0 and key not in found:
                found[key] = self._deployment(name, row, numbers)
        return [*found.values(), *self._bought()]

    def _bought(self) -> list[CheckedDeployment]:
        """List what each API sells to each workload: requests/s, each of which takes the tokens of an answer; the APIs stand after all options."""
        return [
            CheckedDeployment(
                workload,
                site.region,
                (),
                ({"systems_per_replica": float(workload.spec.lengths.output)},),
                (len(self.numbers) + i,),
                0.0,
                stated_capacity=1.0,
            )
            for i, site in enumerate(self.apis)
            for workload in self.problem.serving
            if may_buy(self.plan, workload, site)
        ]

    def _deployment(self, name: str, row: Row, numbers: tuple[int, ...]) -> CheckedDeployment:
        options = tuple(self.plan.fleet_options[key_at(row["site"], pool)] for pool in row["pools"])
        extra_power_w = sum(
            pool["extra_power_w"] * option.pue
            for pool, option in zip(row["pools"], options, strict=True)
            if option.owned
        )
        plain = CheckedDeployment(
            self.plan.serving[name], row["site"], options, tuple(row["pools"]), numbers, extra_power_w
        )
        if row["pools"][0]["role"] == "api":
            return replace(plain, stated_capacity=row["capacity"])
        if row.get("power_cap") is None:
            return plain
        speed = row["capacity"] / plain.curve(self.problem).at(
            [pool for pool in row["pools"] if pool["role"] != "encode"][-1]["batch"]
        )
        return CheckedDeployment(plain.workload, plain.region, options, plain.pools, numbers, extra_power_w, speed)

    def _read_demand(self) -> None:
        """Read the demand by origin, and the routes to sites with a deployment of the workload."""
        value = self.document["objective"]["value"] if self.problem.spec.objective.maximise else 1.0
        for w, workload in enumerate(self.problem.serving):
            factor = value if scaled(self.problem, workload.asked) else 1.0
            rates = workload.requests_by_slot(self.calendar) * factor
            if workload.part_of:  # one of several architectures: it answers what it answers as planned
                rates = self._planned(workload)
            for origin, rate in zip(workload.spec.origins, rates, strict=True):
                if rate.any():
                    self.demand.append(rate)
                    self.class_workload.append(w)
                    self._read_routes(workload, origin.region)

    def _planned(self, workload: ServingFacts) -> Floats:
        """Add up the requests/s of a workload by the routes of the plan, [origin, slot]."""
        place = {origin.region: o for o, origin in enumerate(workload.spec.origins)}
        found = np.zeros((len(place), self.calendar.slots))
        for row in self.document["routes"]:
            if row["workload"] == workload.name:
                found[place[row["origin"]], row["slot"]] += row["tokens_per_s"] / workload.spec.lengths.output
        return found

    def _read_routes(self, workload: ServingFacts, origin: str) -> None:
        for site in self.problem.sites:
            here = [
                i
                for i, deployed in enumerate(self.deployments)
                if deployed.workload is workload and deployed.region == site.region
            ]
            routes = self.problem.routes(workload.name, origin, site.region).values() if here else ()
            for route in routes:
                if site in self.apis and not near_enough(workload, site, route.rtt_s):
                    continue
                self.routes.append((workload, site, route.price_per_byte))
                self.arcs.append((len(self.demand) - 1, len(self.pool_site)))
                self.points += [(i, route.rtt_s) for i in here]
                self.point_pool += [len(self.pool_site)] * len(here)
                self.pool_site.append(self.site_of[site.region])

    def fleet(self) -> FixedFleet:
        """Build the data of the program."""
        point_uses, point_systems = self._point_uses()
        held = np.array([np.asarray(counts)[self.calendar.window] for counts in self.plan.held.values()], dtype=float)
        held = held.reshape(-1, self.calendar.slots)
        held = np.vstack([held, *(supply_of(self.plan, site)[None] for site in self.apis)])
        job_pools = [
            (j, row["site"], pool, self.plan.fleet_options[key_at(row["site"], pool)])
            for j, (_, row, _) in enumerate(self.jobs)
            for pool in row["pools"]
        ]
        job_power_w = np.zeros(len(self.jobs))
        for j, _, pool, option in job_pools:
            job_power_w[j] += pool["extra_power_w"] * option.pue if option.owned else 0.0
        job_mask = [self.calendar.within(facts.spec.start, facts.spec.deadline) for facts, _, _ in self.jobs]
        return FixedFleet(
            demand=np.array(self.demand).reshape(-1, self.calendar.slots),
            class_workload=_integers(self.class_workload, -1),
            arcs=_integers(self.arcs, -1, 2),
            pools=len(self.pool_site),
            point_pool=_integers(self.point_pool, -1),
            point_uses=_integers(point_uses, -1, 2),
            point_systems=np.array(point_systems, dtype=float),
            point_power_w=np.array([self.deployments[i].extra_power_w for i, _ in self.points], dtype=float),
            point_site=_integers([self.pool_site[q] for q in self.point_pool], -1),
            job_uses=_integers([(j, self.numbers[key_at(site, pool)]) for j, site, pool, _ in job_pools], -1, 2),
            job_systems=np.array([pool["systems_per_replica"] for _, _, pool, _ in job_pools], dtype=float),
            job_power_w=np.array(job_power_w, dtype=float),
            job_site=_integers([self.site_of[row["site"]] for _, row, _ in self.jobs], -1),
            job_mask=np.array(job_mask, dtype=bool).reshape(-1, self.calendar.slots),
            job_work=np.array([facts.spec.tokens for facts, _, _ in self.jobs], dtype=float),
            option_count=held,
            room_w=self._room_w(held) * (1 + POWER_ROOM_TOL),
            seconds=np.asarray(self.calendar.seconds, dtype=float),
            workloads=len(self.problem.serving),
            operating=self._operating() if self.apis else None,
        )

    def _operating(self) -> OperatingCost:
        """Price electricity above idle, traffic and tokens by slot."""
        slots, plan = self.calendar.slots, self.plan
        point = [
            self.deployments[i].extra_power_w * energy_price(plan, self.problem.sites[self.pool_site[q]])
            for (i, _), q in zip(self.points, self.point_pool, strict=True)
        ]
        arc = [traffic_price(plan, workload, per_byte) for workload, _, per_byte in self.routes]
        by_price: dict[str, Floats] = {}
        for a, (workload, site, _) in enumerate(self.routes):
            for path, tokens in tokens_by_price(plan, workload, site):
                by_price.setdefault(path, np.zeros((len(arc), slots)))[a] = tokens
        return OperatingCost(np.array(point).reshape(-1, slots), np.array(arc).reshape(-1, slots), by_price)

    @property
    def token_prices(self) -> set[str]:
        """Return the paths of the prices of tokens, which count in the dispatch of each scenario."""
        return {f"{site.path}.{kind}" for site in self.apis for kind in ("input", "output")}

    def growth(self, scenarios: Scenarios) -> Floats:
        """Return the requests of each class in each scenario over the requests of the program, [class, scenario]."""
        workloads = [self.problem.serving[w] for w in self.class_workload]
        rows = [
            np.ones(scenarios.count) if scaled(self.problem, w.asked) else scenarios.demand[w.name] for w in workloads
        ]
        return np.array(rows).reshape(len(workloads), scenarios.count)

    def _point_uses(self) -> tuple[list[tuple[int, int]], list[float]]:
        """List the (point, fleet option) of every pool, and its systems per replica."""
        uses, systems = [], []
        for p, (i, _) in enumerate(self.points):
            deployed = self.deployments[i]
            for number, pool in zip(deployed.option_numbers, deployed.pools, strict=True):
                uses.append((p, number))
                systems.append(pool["systems_per_replica"])
        return uses, systems

    def _room_w(self, held: Floats) -> Floats:
        """Compute the power left at each site in each slot by the idle systems [site, slot]."""
        room = np.array(
            [
                [power_at(self.problem, site, int(window))[2] for window in self.calendar.window]
                for site in self.problem.sites
            ]
        )
        for key, number in self.numbers.items():
            option = self.plan.fleet_options[key]
            if option.owned:
                room[self.site_of[key[0]]] -= held[number] * option.idle_at_meter_w
        return room


def _integers(values: Sequence[Any], *shape: int) -> Ints:
    return np.array(values, dtype=np.int64).reshape(*shape)
