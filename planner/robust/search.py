"""Search the cheapest fleet that keeps the plan's promise in the required share of sampled scenarios.

The fleet is a first-stage decision; batches and routes are recourse. Scenarios enter the program one by one until the asked share of all
sampled ones is kept: of the scenarios that fail, the hardest one still needed. Standby layouts for scenarios with slower chips are those
that would be chosen were all errors at a higher level at once (`planner.problem.derating`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Floats, Ints, sum_of
from planner.candidates.cache import Grids
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.formulation import Formulation, formulate
from planner.formulate.porting import needs
from planner.messages import Message
from planner.money.terms import COST
from planner.problem.derating import derating_at, scaled
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API
from planner.problem.scenarios import draw
from planner.resolve.price_steps import Raised
from planner.robust.prices import prices_of
from planner.scenarios.redispatch import (
    Capacities,
    Deployment,
    ScenarioOutcome,
    deployments_of,
    is_api,
    layout_key,
)
from planner.solving.held_fleet import evaluate_fleet
from planner.solving.operation import arc_prices, replicas_price
from planner.solving.variants import Answer, points_found
from solvers.fixed_fleet.full_year_dispatch import restricted_to_slots
from solvers.fixed_fleet.redispatch import alike_slots, undominated_slots
from solvers.interface import Options
from solvers.model.block_data.scenarios import Operation, Risk, Scenario, ScenarioData
from solvers.model.data import PlanData
from solvers.search.joint import solve

ERROR_LEVELS = (0.7, 0.85, 0.95)  # quantiles of all errors at once, at which layouts are sought
OPTION_CHOICE_GAP = 0.03  # relative gap of programs that only show which fleet options are worth holding
SCENARIO_GAP = 0.01  # relative gap of programs with scenarios
MAX_ROUNDS = 40
MAX_TIME_LIMITS = 15.0  # multiples of the solver's time limit after which no further scenario enters the program
MAX_PRICE_SCENARIOS = 200  # scenarios over which the conditional value at risk is taken
HOLDING_BOUND_FACTOR = 8.0  # bound on holdings, in multiples of what carries the whole demand as predicted
MOST_PRICED_COLUMNS = 20_000  # columns of the scenarios that only count in the risk of prices
MISSING_PRICE = 1.001  # price of a request that is not served, over its dearest tokens
USE_TOL = 1e-6  # share of a replica below which a standby layout counts as unused

Progress = Callable[[str], None]
OptionName = tuple[str, str]  # name of a fleet option and path of its offer, the same in all variants of a problem


@dataclass(frozen=True, slots=True)
class RobustFleet:
    """A fleet, its standby layouts for the scenarios in the program, and its outcome in all sampled scenarios."""

    answer: Answer
    further: tuple[Deployment, ...]
    outcome: ScenarioOutcome


def required_scenarios(problem: ResolvedSpec) -> int:
    """Count the scenarios to keep: the asked share plus one standard error, so that it also holds in other samples."""
    asked = problem.robust
    share = asked.confidence + np.sqrt(asked.confidence * (1.0 - asked.confidence) / asked.scenarios)
    return int(np.ceil(min(share, 1.0) * asked.scenarios - 1e-9))


class ScenarioSearch:
    """The program of one problem with a growing set of scenarios."""

    def __init__(
        self,
        problem: ResolvedSpec,
        candidates: Candidates,
        nominal: Answer,
        options: Options,
        steps: Raised,
        grids: Grids,
        progress: Progress,
    ):
        self.problem, self.candidates, self.nominal = problem, candidates, nominal
        self.options, self.progress = options, progress
        self.scenarios = draw(problem, problem.robust.scenarios, problem.robust.seed)
        self.with_apis = any(is_api(point) for pool in candidates.pools for point in pool.points)
        self.form = _with_room(problem, candidates)
        self.splits = self.form.data.choice is not None  # requests among several architectures
        self.prices = prices_of(candidates, self.form, steps)
        self.capacities = Capacities(problem, candidates.pools, self.scenarios)
        self.held, self.deployments = self._select(grids)
        self.short, self._blocks, self._slots = self._shortened()
        self._arc_prices = arc_prices(problem, replace(self.form, data=self.short), self._slots)
        self._bought = np.array([problem.sites[r].api is not None for r in self.short.arc_site], dtype=bool)
        self._alternatives = self._by_purpose()
        self.active: list[int] = []
        self.infeasible: set[int] = set()
        self.best = 0
        self.ends = time.perf_counter() + MAX_TIME_LIMITS * options.time_limit_s
        first = nominal if self._blocks.risk is None else self.solved(())[0]  # a budget may bind at high prices
        first = first if first.solution.values else nominal
        self.found = RobustFleet(first, (), self.outcome(first, ()))

    @property
    def starts_as_predicted(self) -> bool:
        """Tell whether the first fleet is that of the plan as predicted: the cheapest, where no risk of prices is weighed."""
        return self.found.answer is self.nominal

    def _select(self, grids: Grids) -> tuple[set[OptionName], list[Deployment]]:
        """Return the fleet options that a plan at some level of errors holds, and all layouts on them that a level would choose."""
        held = _held_options(self.nominal)
        found = {
            d.key: d
            for pool in self.candidates.pools
            for point in pool.points
            for d in deployments_of(point, self.candidates.pools)
        }
        fleet_options = {_name(option): option for option in self.candidates.fleet_options}
        for level in ERROR_LEVELS:
            derating = derating_at(self.problem, level)
            derated = replace(self.problem, derating=derating)
            candidates = points_found(derated, grids)
            form = formulate(derated, candidates)
            gap = max(self.options.gap, OPTION_CHOICE_GAP)
            solution = solve(form.data, replace(self.options, gap=gap, method="branch"))
            told = {"level": f"{level:g}", "status": solution.status, "seconds": f"{solution.seconds:.1f}"}
            self.progress(Message.of("progress.errors_at_level", **told).text())
            if not solution.values:
                continue
            held |= _held_options(Answer(derated, candidates, form, solution))
            for point in (point for pool in candidates.pools for point in pool.points):
                if all(_name(use.option) in fleet_options for use in point.uses):
                    uses = tuple(replace(use, option=fleet_options[_name(use.option)]) for use in point.uses)
                    share = derating.capacity(point.workload, (use.option.system for use in uses))
                    predicted = replace(point, uses=uses, capacity=point.capacity / share)
                    for d in deployments_of(predicted, self.candidates.pools):
                        found.setdefault(d.key, d)
        form = self.form
        always = np.atleast_1d(form.data.covers().all(axis=1))  # [holding]
        lasting = {_name(form.fleet_options[k]) for k in form.data.holding_option[always]}
        held = held & lasting or held  # holdings that come and go would keep windows of time apart
        held |= {_name(option) for option in self.candidates.fleet_options if option.offer.how == API}
        return held, [d for d in found.values() if all(_name(use.option) in held for use in d.point.uses)]

    def _shortened(self) -> tuple[PlanData, ScenarioData, Ints]:
        """Reduce the program to undominated slots, each standing for the time of those it dominates; no scenarios yet.

        Where prices are weighed, or a budget must hold, the cost of a fleet is its conditional value at risk over price scenarios.
        """
        data, asked = self.form.data, self.problem.robust
        risk = None
        if self.prices.paths and (asked.measure == "cvar" or math.isfinite(self.problem.budget)):
            risk = Risk(self.prices.of_scenarios(self.scenarios)[:MAX_PRICE_SCENARIOS], asked.confidence)
            data = replace(data, holding_cost={**data.holding_cost, COST: np.zeros(len(data.holding_option))})
        among = np.array([_name(self.form.fleet_options[k]) in self.held for k in data.holding_option])
        data = replace(data, holding_upper=np.where(among, data.holding_upper, 0.0))
        throughout = bool(data.covers()[among].all())
        window = (
            np.zeros((1, data.slots))
            if throughout
            else (data.slot_window[None, :] == np.arange(data.windows)[:, None]) * 1.0
        )
        slots, seconds = _standing_slots(data, window, self.with_apis)
        total = data.demand.sum(axis=(0, 1))
        scale = np.zeros(data.slots)
        scale[slots] = (
            seconds / data.slot_hours_s[slots] * (total @ data.slot_hours_s) / max(total[slots] @ seconds, 1e-300)
        )
        lengths_s = np.zeros(data.slots)
        lengths_s[slots] = seconds
        priced = replace(
            data, slot_hours_s=lengths_s, point_cost={name: values * scale for name, values in data.point_cost.items()},
            arc_cost={name: values * scale for name, values in data.arc_cost.items()},
        )  # fmt: skip
        short, _ = restricted_to_slots(priced, slots, data.job_work)
        return short, ScenarioData((), np.arange(len(slots)), seconds, risk), slots

    def _by_purpose(self) -> list[list[int]]:
        """Group the deployments that differ in nothing but layout; a scenario takes the best of each group."""
        same: dict[tuple[Any, ...], list[int]] = {}
        for i, d in enumerate(self.deployments):
            key = (d.pool, *dict.fromkeys(id(use.option) for use in d.point.uses), len(d.point.uses))
            same.setdefault(key, []).append(i)
        return list(same.values())

    def scenario(self, s: int) -> tuple[Scenario, list[Deployment]]:
        """Build the program data of a sampled scenario; returns also the deployments behind its serving points."""
        option_of = {id(option): k for k, option in enumerate(self.form.fleet_options)}
        chosen = []
        for members in self._alternatives:
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
            point_power_w=np.array([sum_of(u.extra_it_w * u.option.pue for u in d.point.uses if u.option.owned) for d in chosen]),
            capacity=np.array([self.capacities.of(d)[s] for d in chosen]),
            pace=pace,
            ports=np.array([(p, g) for p, d in enumerate(chosen) for g, facts in enumerate(self.problem.porting) if needs(facts, d.point)], dtype=np.int64).reshape(-1, 2),
        ), chosen  # fmt: skip

    # -- what dispatch costs, where tokens can be bought ---------------------------------------------------------------

    def _priced(self, scenario: Scenario, chosen: Sequence[Deployment], s: int, missing: bool = False) -> Scenario:
        """Count what the dispatch of a scenario costs in the risk of prices; `missing`: demand need not be served, at the dearest price of tokens."""
        risk = self._blocks.risk
        if risk is None or not self.with_apis or s >= len(risk.cost):
            return scenario
        problem, data, prices = self.problem, self.short, self._arc_prices
        growth = np.array(
            [1.0 if scaled(problem, w.asked) else float(self.scenarios.demand[w.name][s]) for w in problem.serving]
        )
        arc = prices.of_arcs({path: float(values[s]) for path, values in self.scenarios.prices.items()})
        arc = arc * growth[data.arc_workload][:, None]
        dearest = np.zeros((len(growth), data.slots))
        np.maximum.at(dearest, data.arc_workload, np.where(self._bought[:, None], arc, 0.0))
        dearest = np.where(dearest > 0, dearest, dearest.max(axis=0, initial=0.0))
        point = replicas_price(problem, data, [d.point for d in chosen], self._slots)
        return replace(scenario, operation=Operation(s, point, arc, dearest * MISSING_PRICE if missing else None))

    def _priced_only(self, active: Sequence[int]) -> list[Scenario]:
        """List the scenarios that the risk of prices counts, beside the active ones, as many as a program of moderate size holds."""
        risk = self._blocks.risk
        if risk is None or not self.with_apis:
            return []
        found: list[Scenario] = []
        columns = 0
        for s in range(len(risk.cost)):
            if s in active:
                continue
            scenario, chosen = self.scenario(s)
            columns += (len(chosen) + len(self.short.arc_pool)) * self.short.slots
            if columns > MOST_PRICED_COLUMNS:
                break
            found.append(self._priced(scenario, chosen, s, missing=True))
        return found

    def _slots_of(self, answer: Answer) -> Ints | None:
        """Return the slots of the calendar for which the slots of an answer's program stand; None where they are all there."""
        return self._slots if answer.form.data.slots == self.short.slots else None

    def over_all_slots(self) -> ScenarioData:
        """Return the scenarios in the program, for the program over all slots."""
        scenarios, data = [self.scenario(s)[0] for s in self.active], self.form.data
        blocks = replace(self._blocks, scenarios=scenarios, slots=self._slots, risk=None)
        if self.splits:  # a split may be another one in each slot
            blocks = replace(blocks, slots=np.arange(data.slots), seconds=data.slot_hours_s)
        return blocks

    def solved(self, active: Sequence[int]) -> tuple[Answer, tuple[Deployment, ...]]:
        """Solve for the cheapest fleet that serves these scenarios; returns also its standby layouts in use."""
        blocks = [self.scenario(s) for s in active]
        options = replace(self.options, gap=max(self.options.gap, SCENARIO_GAP), method="direct")
        hard = [self._priced(scenario, chosen, s) for s, (scenario, chosen) in zip(active, blocks, strict=True)]
        scenarios = replace(self._blocks, scenarios=[*hard, *self._priced_only(active)])
        solution = solve(replace(self.short, scenarios=scenarios), options)
        further: dict[tuple[Any, ...], Deployment] = {}
        for i, (_, chosen) in enumerate(blocks if solution.values else ()):
            x = solution.values[f"scenario {i} x"].max(axis=1, initial=0.0)
            used = (chosen[p] for p in np.flatnonzero(x > USE_TOL))
            further |= {layout_key(d.point): d for d in used if not is_api(d.point)}
        answer = Answer(self.problem, self.candidates, replace(self.form, data=self.short), solution)
        return answer, tuple(further.values())

    def outcome(self, answer: Answer, further: Iterable[Deployment]) -> ScenarioOutcome:
        """Dispatch the fleet of an answer in all sampled scenarios, at the prices of each."""
        values, other_cost = answer.solution.values, answer.solution.functionals[COST]
        held = np.rint(values["n"])
        if (risk := self._blocks.risk) is not None and "quantile" in values:
            tail = values["beyond"].sum() / ((1.0 - risk.share) * len(risk.cost))
            other_cost -= float(values["quantile"].sum() + tail)
        else:
            other_cost -= float(self.prices.typical @ held)
        cost: Floats = other_cost + self.prices.of_scenarios(self.scenarios) @ held
        return evaluate_fleet(answer, self.scenarios, cost, further, self.capacities, self._slots_of(answer))

    def run(self, wanted: int) -> bool:
        """Add scenarios until `wanted` of the sampled ones are kept; False where no such fleet is found within the limits."""
        while True:
            outcome = self.found.outcome
            kept = int(outcome.kept.sum())
            self.best = max(self.best, kept)
            told = {"active": len(self.active), "kept": kept, "all": self.scenarios.count, "wanted": wanted}
            self.progress(Message.of("progress.scenarios_in_program", **told).text())
            if kept >= wanted:
                return True
            failing = [
                s
                for s in np.argsort(outcome.undone.sum(axis=1), kind="stable").tolist()
                if not outcome.kept[s] and s not in self.infeasible and s not in self.active
            ]
            exhausted = len(self.active) + len(self.infeasible) >= MAX_ROUNDS or time.perf_counter() > self.ends
            if exhausted or len(failing) < wanted - kept:
                return False
            picked = failing[wanted - kept - 1]
            answer, further = self.solved([*self.active, picked])
            if not answer.solution.values:
                self.infeasible.add(picked)
                continue
            self.active.append(picked)
            self.found = RobustFleet(answer, further, self.outcome(answer, further))


def _name(option: FleetOption) -> OptionName:
    return option.name, option.offer.path


def _held_options(answer: Answer) -> set[OptionName]:
    """Name the fleet options of which an answer holds at least one system."""
    counts = answer.solution.values["n"]
    return {_name(answer.form.fleet_options[k]) for u, (k, _) in enumerate(answer.form.holdings) if counts[u] > 0.5}


def _with_room(problem: ResolvedSpec, candidates: Candidates) -> Formulation:
    """Formulate the program with bounds on holdings that leave room for fleets slower than predicted."""

    def slowed(points: Iterable[OperatingPoint]) -> tuple[OperatingPoint, ...]:
        return tuple(replace(p, capacity=p.capacity / HOLDING_BOUND_FACTOR) for p in points)

    wide = replace(candidates, pools=tuple(replace(pool, points=slowed(pool.points)) for pool in candidates.pools))
    upper = formulate(problem, wide).data.holding_upper
    form = formulate(problem, candidates)
    return replace(form, data=replace(form.data, holding_upper=np.maximum(upper, form.data.holding_upper)))


def _standing_slots(data: PlanData, window: Floats, priced: bool) -> tuple[Ints, Floats]:
    """Return the slots of the short program, and the time that each stands for; `priced`: dispatch is.

    They are the undominated ones, and all but repeated ones where it is priced or a mean quality must be kept. A slot in which
    zones fail is dominated by another such slot only.
    """
    demand = data.demand.reshape(-1, data.slots)
    if data.spread is not None:
        demand = np.vstack([demand, np.isin(np.arange(data.slots), data.spread.tried_slots)])
    means = data.choice is not None and bool((np.isfinite(data.choice.least) & ~data.choice.hourly).any())
    if not priced and not means:
        return undominated_slots(demand, window, data.job_window_mask, data.slot_hours_s)
    costs = [values[COST] / data.slot_hours_s for values in (data.point_cost, data.arc_cost)]
    groups = alike_slots((demand, window, data.job_window_mask, *costs))
    first = np.array([group[0] for group in groups], dtype=np.int64)
    return first, np.array([data.slot_hours_s[group].sum() for group in groups])
