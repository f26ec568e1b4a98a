"""Decisions of a plan, in the units of the problem. How they are read from a solution: `planner.interpret.solution`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Pool
from planner.formulate.formulation import Formulation
from planner.formulate.porting import needs
from planner.interpret.electricity import ElectricityDecisions
from planner.interpret.failover import Failures
from planner.interpret.hourly import starts_of
from planner.interpret.lines import LineDecisions
from planner.interpret.spread import spread_rows
from planner.money.components import COPY, HOUR, LINE, LOAD, PORT, REPLICA, REQUEST, SITE, START, SYSTEM
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts
from planner.problem.lines import NO_TREE
from planner.problem.phases import Term
from planner.problem.porting import PortingFacts
from solvers.model.preemption import predecessors


@dataclass(frozen=True, slots=True)
class Decisions:
    """Holdings and activity of a plan, free of the solver's rounding."""

    problem: ResolvedSpec
    form: Formulation
    pools: tuple[Pool, ...]
    count: Ints  # [holding] systems; of an API, output tokens per second
    active: Floats  # [point, slot] replicas at work
    flow: Floats  # [arc, slot] requests/s
    point_ids: Mapping[int, str]  # names of the points that work in some slot, or when a zone fails
    running: Ints  # [holding, slot] systems that are paid for: all that are held, or those that run where they are counted by the hour
    opened: Bools  # [site] whether its fixed cost is paid
    resident: Mapping[int, Ints]  # [role, slot] workers that hold their weights, of each point whose replicas are whole
    failures: Failures
    lines: LineDecisions | None = None  # None where lines are no decision
    electricity: ElectricityDecisions | None = None  # None where no site's electricity is a decision

    @property
    def used(self) -> tuple[int, ...]:
        """Return the positions of the points that have a name."""
        return tuple(self.point_ids)

    def used_by(self, workload: ServingFacts | TrainingFacts) -> list[int]:
        """List the used points of a workload."""
        return [p for p in self.point_ids if self.form.points[p].workload is workload]

    def pool_name(self, q: int) -> str:
        """Name a pool by its workload, its site and the time that the round trip takes off the latency limits."""
        pool = self.pools[q]
        return f"{pool.workload.name}/{pool.site}/{pool.allowance_s * 1e3:.0f} ms"

    def held(self) -> Iterator[tuple[Term, int, FleetOption, Bools]]:
        """Yield (term, count, fleet option, mask of its slots) of each holding of the plan."""
        for u, (k, term) in enumerate(self.form.holdings):
            if self.count[u]:
                yield term, int(self.count[u]), self.form.fleet_options[k], term.mask(self.problem.calendar)

    def at_once(self) -> Iterator[tuple[FleetOption, Ints]]:
        """Yield (fleet option, systems in each slot) of each holding of the plan, of which those that are counted by the hour come and go."""
        for u, (k, _) in enumerate(self.form.holdings):
            if self.count[u]:
                yield self.form.fleet_options[k], self.running[u]

    def most_held(self) -> dict[int, tuple[FleetOption, int]]:
        """Find the most systems of each fleet option that are held at once, by the option's identity."""
        most: dict[int, tuple[FleetOption, Ints]] = {}
        for _, count, option, mask in self.held():
            _, held = most.setdefault(id(option), (option, np.zeros(len(mask), dtype=np.int64)))
            held += count * mask
        return {key: (option, int(held.max())) for key, (option, held) in most.items()}

    def units(self) -> dict[str, Floats]:
        """Return how many units of each decision the plan has, by position: what the terms of its program are multiplied by."""
        found = {
            SYSTEM: self.count.astype(float),
            HOUR: self.running.astype(float),
            START: starts_of(self.problem, self.form, self.running).astype(float),
            REPLICA: self.active,
            LOAD: self._loading(),
            REQUEST: self.flow,
            SITE: self.opened.astype(float),
            COPY: self._copies(),
            PORT: np.array([float(bool(self._users(facts))) for facts in self.problem.porting]),
        }
        found |= self.lines.taken() if self.lines is not None else {}
        return found | (self.electricity.units() if self.electricity is not None else {})

    def bearers(self, decision: str, position: int) -> Mapping[str, float]:
        """Return the shares of the workloads in a decision that several of them cause: a port, or a line."""
        if decision == LINE and self.lines is not None:
            return self.lines.shares(position)
        users = self._users(self.problem.porting[position])
        return dict.fromkeys(users, 1 / len(users))

    def arriving(self, workers: Ints) -> Floats:
        """Return the workers [role, slot] that hold their weights in a slot and did not in the slot before."""
        before = predecessors(np.asarray(self.problem.calendar.next, dtype=np.int64))
        found: Floats = np.maximum(workers - workers[:, before], 0).astype(float)
        return found

    def _loading(self) -> Floats:
        """Return the workers that load their weights in each slot [use of a point, slot], of the points that have a name."""
        point = self.form.data.point_uses[:, 0]
        found = np.zeros((len(point), self.problem.calendar.slots))
        for p in self.used:
            if p in self.resident:
                found[point == p] = self.arriving(self.resident[p])
        return found

    def _copies(self) -> Floats:
        """Mark the edges of the trees along which weights reach the sites that serve, one tree after the other."""
        marks: list[float] = []
        for workload in self.problem.serving:
            tree = self.problem.trees.get(workload.name, NO_TREE)
            hosts = {site for p in self.used_by(workload) for site in self.form.points[p].sites}
            above = {edge for site in hosts for edge in tree.edges_above.get(site, ())}
            marks += [float(edge in above) for edge in range(len(tree.edges))]
        return np.array(marks, dtype=float)

    def _users(self, facts: PortingFacts) -> list[str]:
        """Name the workloads with active or standby points that need a port."""
        points = [*(self.form.points[p] for p in self.used), *self.form.standing]
        return sorted({point.workload.name for point in points if needs(facts, point)})

    def spread(self) -> list[dict[str, Any]]:
        """Build the plan rows of how workloads are spread over zones."""
        return spread_rows(self.problem, self.form.arcs, self.flow)

    def site_power_w(self, owned_only: bool) -> Floats:
        """Add up the power at the meter [site, slot]; with `owned_only` the part that counts against a site's limit."""
        place = {site.region: r for r, site in enumerate(self.problem.sites)}
        power = np.zeros((len(place), self.problem.calendar.slots))
        for option, count in self.at_once():
            if option.owned or not owned_only:
                power[place[option.site.region]] += count * option.idle_at_meter_w
        for p in self.used:
            for use in self.form.points[p].uses:
                if use.option.owned or not owned_only:
                    power[place[use.option.site.region]] += use.extra_it_w * use.option.pue * self.active[p]
        return power
