"""Robust plans: a fleet that keeps what the plan promises in the asked share of sampled worlds, and what that costs.

The fleet is decided before it is known which world comes; batches and routes after. Worlds are added to the program one by one until
the asked share of all sampled ones is kept: of those that fail, the hardest that is still needed. Layouts that stand by for worlds with
slower chips are those that would be chosen were all errors at a higher level at once (`planner.problem.derating`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates
from planner.candidates.search import Grids, find_candidates
from planner.formulate.formulation import Formulation, formulate
from planner.formulate.functionals import COST
from planner.problem.derating import derating_at
from planner.problem.facts import Problem
from planner.problem.scenarios import draw
from planner.resolve.price_steps import Raised
from planner.robust.deployments import fared
from planner.robust.prices import prices_of
from planner.scenarios.redispatch import Capacities, Deployment, Outcome, deployment_of, deployments_of
from planner.solving.variants import Answer
from solvers.fixed_fleet.full_year_dispatch import restricted_to_slots
from solvers.fixed_fleet.redispatch import undominated_slots
from solvers.interface import Options
from solvers.joint import solve
from solvers.model.data import PlanData
from solvers.model.scenario_data import Risk, Scenario, ScenarioData

LEVELS = (0.7, 0.85, 0.95)  # of all errors at once, at which layouts are sought
ROUGH = 0.03  # gap of what only shows which systems are worth while
CLOSE = 0.01  # gap of a fleet that carries some worlds
MOST_ROUNDS = 40
PATIENCE = 15.0  # times the solver's time limit after which no further world enters the program
MOST_PRICES = 200  # worlds over which the dearest prices are looked for
SPARE = 8.0  # more systems of a fleet option than would carry the whole demand as predicted

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A fleet, the layouts that stand by for the worlds in the program, and how it fares in all that were sampled."""

    answer: Answer
    further: tuple[Deployment, ...]
    outcome: Outcome


def needed(problem: Problem) -> int:
    """Worlds to keep: the asked share and one standard error of it, so that it holds in worlds that were not sampled."""
    asked = problem.spec.robust
    share = asked.confidence + np.sqrt(asked.confidence * (1.0 - asked.confidence) / asked.worlds)
    return int(np.ceil(min(share, 1.0) * asked.worlds - 1e-9))


class Search:
    """The program of one question with more and more worlds."""

    def __init__(
        self,
        problem: Problem,
        candidates: Candidates,
        nominal: Answer,
        options: Options,
        steps: Raised,
        grids: Grids,
        say: Say,
    ):
        self.problem, self.candidates, self.nominal, self.options, self.say = problem, candidates, nominal, options, say
        self.worlds = draw(problem, problem.spec.robust.worlds, problem.spec.robust.seed)
        self.form = _roomy(problem, candidates)
        self.prices = prices_of(candidates, self.form, steps)
        self.capacities = Capacities(problem, candidates.pools, self.worlds)
        self.deployments = self._deployments(grids)
        self.short, self._slots = self._shortened()
        self._numbers = self._by_purpose()
        self.active: list[int] = []
        self.hopeless: set[int] = set()
        self.best = 0
        self.ends = time.perf_counter() + PATIENCE * options.time_limit_s
        first = nominal if self._slots.risk is None else self.solved(())[0]  # a budget may bind at dear prices
        first = first if first.solution.values else nominal
        self.found = Found(first, (), self.outcome(first, ()))

    def _deployments(self, grids: Grids) -> list[Deployment]:
        """All layouts that any level of errors would choose, on fleet options that some plan at one level holds."""
        held = _held_options(self.nominal)
        found = {
            d.key: d
            for pool in self.candidates.pools
            for point in pool.points
            for d in deployments_of(point, self.candidates.pools)
        }
        fleet_options = {_name(option): option for option in self.candidates.fleet_options}
        for level in LEVELS:
            derated = replace(self.problem, derating=derating_at(self.problem, level))
            candidates = find_candidates(derated, grids)
            form = formulate(derated, candidates)
            solution = solve(form.data, replace(self.options, gap=max(self.options.gap, ROUGH), method="branch"))
            self.say(f"all errors at level {level:g}: {solution.status}, {solution.seconds:.1f} s")
            if not solution.values:
                continue
            held |= _held_options(Answer(derated, candidates, form, solution))
            for pool in candidates.pools:
                for point in pool.points:
                    if all(_name(use.option) in fleet_options for use in point.uses):
                        plain = replace(
                            point,
                            uses=tuple(replace(use, option=fleet_options[_name(use.option)]) for use in point.uses),
                        )
                        share = derated.derating.capacity(plain.workload, (use.option.system for use in plain.uses))
                        for d in deployments_of(replace(plain, capacity=plain.capacity / share), self.candidates.pools):
                            found.setdefault(d.key, d)
        form = self.form
        lasting = {
            _name(form.fleet_options[k])
            for k, always in zip(form.data.holding_option, form.data.covers().all(axis=1), strict=True)
            if always
        }
        self.held = held & lasting or held  # systems that come and go would keep windows of time apart
        return [d for d in found.values() if all(_name(use.option) in self.held for use in d.point.uses)]

    def _shortened(self) -> tuple[PlanData, ScenarioData]:
        """The program over the slots that count, each for the time of those that are easier; without worlds as yet.

        Where prices are to be weighed, or a budget must hold, a fleet costs its mean over the dearest worlds.
        """
        data, asked = self.form.data, self.problem.spec.robust
        risk = None
        if self.prices.paths and (asked.measure == "cvar" or math.isfinite(self.problem.budget)):
            risk = Risk(self.prices.of_worlds(self.worlds)[:MOST_PRICES], asked.confidence)
            data = replace(data, holding_cost={**data.holding_cost, COST: np.zeros(len(data.holding_option))})
        among = np.array([_name(self.form.fleet_options[k]) in self.held for k in data.holding_option])
        data = replace(data, holding_upper=np.where(among, data.holding_upper, 0.0))
        throughout = bool(data.covers()[among].all())
        apart = (
            np.zeros((1, data.slots))
            if throughout
            else (data.slot_window[None, :] == np.arange(data.windows)[:, None]) * 1.0
        )
        slots, seconds = undominated_slots(
            data.demand.reshape(-1, data.slots), apart, data.job_window_mask, data.slot_hours_s
        )
        total = data.demand.sum(axis=(0, 1))
        scale = np.zeros(data.slots)
        scale[slots] = (
            seconds / data.slot_hours_s[slots] * (total @ data.slot_hours_s) / max(total[slots] @ seconds, 1e-300)
        )
        stands = np.zeros(data.slots)
        stands[slots] = seconds
        priced = replace(
            data, slot_hours_s=stands, point_cost={name: values * scale for name, values in data.point_cost.items()},
            arc_cost={name: values * scale for name, values in data.arc_cost.items()},
        )  # fmt: skip
        short, _ = restricted_to_slots(priced, slots, data.job_work)
        self._among = slots
        return short, ScenarioData((), np.arange(len(slots)), seconds, risk)

    def _by_purpose(self) -> dict[tuple, list[int]]:
        """Deployments that differ in nothing but layout: in a world the best of them is taken."""
        same: dict[tuple, list[int]] = {}
        for i, d in enumerate(self.deployments):
            same.setdefault(
                (d.pool, *dict.fromkeys(id(use.option) for use in d.point.uses), len(d.point.uses)), []
            ).append(i)
        return same

    def world(self, s: int) -> tuple[Scenario, list[Deployment]]:
        """What the program sees of a world, and the deployments behind its points."""
        option_of = {id(option): k for k, option in enumerate(self.form.fleet_options)}
        chosen = []
        for members in self._numbers.values():
            able = [(self.capacities.of(self.deployments[i])[s], i) for i in members]
            if len(self.deployments[members[0]].point.uses) == 1:
                best = max(able, key=lambda pair: pair[0] / self.deployments[pair[1]].point.uses[0].systems)
                able = [best]
            chosen += [self.deployments[i] for rate, i in able if rate > 0]
        uses = [(p, option_of[id(use.option)], use.systems) for p, d in enumerate(chosen) for use in d.point.uses]
        data = self.form.data
        pace = np.zeros(len(data.point_pool))
        for p in np.flatnonzero(data.point_job >= 0):
            pace[p] = self.capacities.rate(self.form.points[p])[s] / data.job_work[data.point_job[p]]
        return Scenario(
            point_pool=np.array([d.pool for d in chosen], dtype=np.int64),
            point_uses=np.array([row[:2] for row in uses], dtype=np.int64).reshape(-1, 2),
            point_systems=np.array([row[2] for row in uses]),
            point_power_w=np.array([sum(u.extra_it_w * u.option.site.pue for u in d.point.uses if u.option.owned) for d in chosen]),
            capacity=np.array([self.capacities.of(d)[s] for d in chosen]),
            pace=pace,
        ), chosen  # fmt: skip

    def on_all_hours(self) -> ScenarioData:
        """The worlds in the program, for the program over all slots."""
        return replace(self._slots, scenarios=[self.world(s)[0] for s in self.active], slots=self._among, risk=None)

    def solved(self, active: Sequence[int]) -> tuple[Answer, tuple[Deployment, ...]]:
        """The plan that carries these worlds, and the layouts that stand by for them."""
        blocks = [self.world(s) for s in active]
        rough = replace(self.options, gap=max(self.options.gap, CLOSE), method="direct")
        solution = solve(
            replace(self.short, scenarios=replace(self._slots, scenarios=[world for world, _ in blocks])), rough
        )
        further: dict[tuple, Deployment] = {}
        for i, (_, chosen) in enumerate(blocks if solution.values else ()):
            x = solution.values[f"scenario {i} x"].max(axis=1, initial=0.0)
            further |= {deployment_of(chosen[p].point): chosen[p] for p in np.flatnonzero(x > 1e-6)}
        return Answer(self.problem, self.candidates, replace(self.form, data=self.short), solution), tuple(
            further.values()
        )

    def outcome(self, answer: Answer, further: Iterable[Deployment]) -> Outcome:
        values, rest = answer.solution.values, answer.solution.functionals[COST]
        held = np.rint(values["n"])
        if "quantile" in values:
            risk = self._slots.risk
            rest -= float(values["quantile"].sum() + values["beyond"].sum() / ((1.0 - risk.share) * len(risk.cost)))
        else:
            rest -= float(self.prices.typical @ held)
        return fared(answer, self.worlds, rest + self.prices.of_worlds(self.worlds) @ held, further, self.capacities)

    def run(self, wanted: int) -> bool:
        """Adds worlds until so many of the sampled ones are kept; False where no fleet within the limits was found to keep them."""
        while True:
            kept = int(self.found.outcome.kept.sum())
            self.best = max(self.best, kept)
            self.say(f"{len(self.active)} worlds in the program: {kept} of {self.worlds.count} kept, {wanted} wanted")
            if kept >= wanted:
                return True
            undone = self.found.outcome.undone.sum(axis=1)
            failing = [
                s
                for s in np.argsort(undone, kind="stable").tolist()
                if not self.found.outcome.kept[s] and s not in self.hopeless and s not in self.active
            ]
            tired = len(self.active) + len(self.hopeless) >= MOST_ROUNDS or time.perf_counter() > self.ends
            if tired or len(failing) < wanted - kept:
                return False
            picked = failing[wanted - kept - 1]
            answer, further = self.solved([*self.active, picked])
            if not answer.solution.values:
                self.hopeless.add(picked)
                continue
            self.active.append(picked)
            self.found = Found(answer, further, self.outcome(answer, further))


def _name(option: FleetOption) -> tuple[str, str]:
    return option.name, option.offer.path


def _held_options(answer: Answer) -> set[tuple[str, str]]:
    counts = answer.solution.values["n"]
    return {_name(answer.form.fleet_options[k]) for u, (k, _) in enumerate(answer.form.holdings) if counts[u] > 0.5}


def _roomy(problem: Problem, candidates: Candidates) -> Formulation:
    """The program's input with room for fleets that are slower than predicted."""
    slow = lambda points: tuple(replace(p, capacity=p.capacity / SPARE) for p in points)
    wide = replace(candidates, pools=tuple(replace(pool, points=slow(pool.points)) for pool in candidates.pools))
    upper = formulate(problem, wide).data.holding_upper
    form = formulate(problem, candidates)
    return replace(form, data=replace(form.data, holding_upper=np.maximum(upper, form.data.holding_upper)))
