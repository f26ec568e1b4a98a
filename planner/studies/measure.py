"""Find the measurements that pay next: the expected worth of a measurement for the decision on the fleet, in money.

In each sampled scenario a fleet costs what it comes to once the scenario is known: its own systems, further ones at a higher price, and
work left undone (`solvers.fixed_fleet.recourse`). The decision now is the fleet of least expected cost; after a measurement, the one of
least expected cost given its result. The worth of a measurement is the difference of the two expectations. What a fleet is expected
to cost given a result is estimated by regression over the scenarios, and the decision is judged on scenarios that the regression has not seen.

Reference: Strong, Oakley and Brennan, Estimating multiparameter partial expected value of perfect information from a probabilistic
sensitivity analysis sample, Medical Decision Making 34 (2014); the worth of a sample follows with the noise of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.calibration.own_spread import USUAL_SPREAD
from planner.candidates.cache import OutOfMemory, OutOfTime
from planner.errors import Issue, LimitReached, SpecError
from planner.estimate.limits import SearchLimits
from planner.messages import Message
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import SERVING, Scenarios, draw, with_robust
from planner.report.words import whole, with_unit
from planner.scenarios.redispatch import left_out
from planner.solving.variants import resolved_anew
from planner.spec.model import parse_spec
from planner.studies.engines import Engine, EngineError
from planner.studies.engines.calls import solved_on
from planner.studies.engines.local import LocalEngine
from planner.studies.measure_cases import Case, cases_of
from planner.studies.measure_fleets import UNDONE, FleetModel, fleet_model
from planner.verify.quality import as_chosen
from solvers.fixed_fleet.recourse import Extended, Recourse, RecourseData, outcomes

T = TypeVar("T")

SCENARIOS, SEED = 240, 2
SCREENED = 40  # scenarios whose best fleets say which fleet options matter
STEPS, QUANTILES, SAFE = 8, (0.4, 0.6, 0.75, 0.9), (0.5, 0.6, 0.7, 0.8, 0.9)  # fleets among which the decision is made
LATE = 1.5  # price of a system that is added once the scenario is known, over that of one in the plan
MOST_CASES = 5  # cases of the best set
WHOLE = 1e3  # times the price of work left undone at which a fleet that can do all of it does
FOLDS = 5  # folds of the scenarios: a decision is judged on the one that it was not learned from
RIDGE = 1.0  # penalty of the regression, in scenarios
AT_ONCE = 20  # scenarios solved one from the other, the same here and on every engine

Part = tuple[Floats, Floats]
"""Requests/s [way, scenario] and work units/s [use, scenario] of some scenarios."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Fleets [F, K] in scenarios: cost [F, S], whether all is done [F, S], and the least that any fleet would cost [S]."""

    model: FleetModel
    scenarios: Scenarios
    fleets: Floats
    cost: Floats
    kept: Bools
    least: Floats

    @property
    def now(self) -> int:
        """Return the fleet of least expected cost."""
        return int(np.argmin(self.cost.mean(axis=1)))

    @property
    def planned(self) -> int:
        """Return the fleet of the plan."""
        return int(np.flatnonzero((self.fleets == self.model.held).all(axis=1))[0])

    def held_cost(self, fleet: int) -> float:
        """Return what the systems of a fleet cost from start to end of the horizon."""
        return float(self.fleets[fleet] @ self.model.data.option_cost)


@dataclass(frozen=True, slots=True)
class Worth:
    """A case, and what knowing its result is worth [currency]."""

    case: Case
    worth: float

    @property
    def net(self) -> float:
        """Return the worth less the price of measuring."""
        return self.worth - self.case.price

    def row(self) -> dict[str, Any]:
        """Write it as a row of the document."""
        return {**self.case.document(), "worth": self.worth, "net": self.net}


@dataclass(frozen=True, slots=True)
class Planned:
    """What the plan comes to beside the figures of this study.

    `cost`: total of the plan; `systems`: of that, its systems from start to end; `expected`: what this fleet comes to over the scenarios.
    """

    cost: float
    systems: float
    expected: float

    def document(self) -> dict[str, float]:
        """Write it as JSON."""
        return {"cost": self.cost, "systems": self.systems, "expected_cost": self.expected}


@dataclass(frozen=True, slots=True)
class Measure:
    """The measurements that pay next, most net worth first, and the best set."""

    plan: str
    currency: str
    ranked: tuple[Worth, ...]
    chosen: tuple[Case, ...]
    chosen_worth: float
    expected: float  # cost of the decision now
    perfect: float  # the same if the errors were known, among the fleets considered
    least: float  # lower bound on the same over all fleets
    planned: Planned
    settings: dict[str, Any]
    left_out: tuple[str, ...]

    @property
    def document(self) -> dict[str, Any]:
        """Write the study as JSON."""
        return {
            "plan": self.plan, "currency": self.currency, **self.settings, "planned": self.planned.document(), "expected_cost": self.expected,
            "worth_of_everything": self.expected - self.perfect, "bound": self.expected - self.least,
            "cases": [found.row() for found in self.ranked],
            "best_set": {"cases": [case.name for case in self.chosen], "worth": self.chosen_worth, "price": sum(case.price for case in self.chosen)},
            "left_out": list(self.left_out),
        }  # fmt: skip

    @property
    def words(self) -> list[str]:
        """Say what to measure in sentences."""

        def amount(value: float) -> str:
            return with_unit(value, self.currency)

        added = amount(self.planned.expected - self.planned.systems)
        lines = [
            Message.of("measure.plan", cost=amount(self.planned.cost), systems=amount(self.planned.systems)).text(),
            Message.of(
                "measure.expected",
                scenarios=self.settings["scenarios"],
                expected=amount(self.planned.expected),
                added=added,
                late=LATE,
                undone=UNDONE,
            ).text(),
            Message.of(
                "measure.decision",
                expected=amount(self.expected),
                errors=amount(self.expected - self.perfect),
                most=amount(self.expected - self.least),
            ).text(),
        ]
        if not self.chosen:
            return [*lines, Message.of("measure.none").text()]
        names = ", ".join(case.name for case in self.chosen)
        lines.append(
            Message.of(
                "measure.best",
                names=names,
                worth=amount(self.chosen_worth),
                price=amount(sum(case.price for case in self.chosen)),
            ).text()
        )
        lines.append(Message.of("measure.feed").text())
        if self.left_out:
            lines.append(Message.of("measure.not_modelled", names=", ".join(self.left_out)).text())
        return lines

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """List the tables."""
        ranked = [
            {
                "case": found.case.name, "workload": found.case.workload, "system": found.case.system, "hours": f"{found.case.hours:g}", "of systems": f"{found.case.systems:g}",
                f"price, {self.currency}": whole(found.case.price), f"worth, {self.currency}": whole(found.worth),
            }
            for found in self.ranked
        ]  # fmt: skip
        commands = [{"case": found.case.name, "run": line} for found in self.ranked for line in found.case.commands]
        return [
            (Message.of("studies.head_measuring").text(), ranked),
            (Message.of("studies.head_running").text(), commands),
        ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """List the cases flat."""
        return [
            {
                **{key: value for key, value in found.row().items() if key != "commands"},
                "commands": "; ".join(found.case.commands),
            }
            for found in self.ranked
        ]


def measure(
    plan: Plan, *, overlays: Sequence[Path] = (), budget: float | None = None, scenarios: int = SCENARIOS, seed: int = SEED, limits: SearchLimits | None = None,
    engine: Engine | None = None,
) -> Measure:  # fmt: skip
    """Rank the measurements for a plan, and choose the best set of at most `MOST_CASES` within a budget.

    `engine`: where what fleets come to in the scenarios is solved, in parts (`planner.studies.engines`); in this process without one, with the same result.
    Raises LimitReached where the `limits` of time or memory end it: of part of the scenarios there is no ranking. Raises EngineError; SpecError for a plan without an answer, and for questions that the model of fleets does not cover.
    """
    if not plan.has_answer:
        raise SpecError([Issue("plan", Message.of("studies.nothing_to_measure_for").text())])
    spec = parse_spec(plan.document["spec"])
    problem = with_robust(as_chosen(resolved_anew(spec, overlays), plan.document))
    if problem.phases or spec.objective.maximise or spec.apis:
        raise SpecError([Issue("plan", Message.of("studies.not_covered_by_measure").text())])
    limits = limits or SearchLimits()
    sampled = sample(_model_in_time(problem, plan, limits), draw(problem, scenarios, seed), limits, engine)
    cases = _checked(cases_of(sampled.model, plan), limits)
    ranked = sorted((Worth(case, worth_of(sampled, [case], seed)) for case in cases), key=lambda found: -found.net)
    chosen, worth = best_set(sampled, [found.case for found in ranked], budget, seed, limits)
    return Measure(
        plan=plan.document["name"], currency=plan.document["spec"].get("currency", "USD"), ranked=tuple(ranked), chosen=tuple(chosen), chosen_worth=worth,
        expected=float(sampled.cost[sampled.now].mean()), perfect=float(sampled.cost.min(axis=0).mean()), least=float(sampled.least.mean()),
        settings={"scenarios": scenarios, "seed": seed, "fleets": len(sampled.fleets), "late_price": LATE, "budget": budget}, left_out=tuple(left_out(problem)),
        planned=Planned(plan.totals["cost"], sampled.held_cost(sampled.planned), float(sampled.cost[sampled.planned].mean())),
    )  # fmt: skip


def _model_in_time(problem: ResolvedSpec, plan: Plan, limits: SearchLimits) -> FleetModel:
    """Build the model of fleets within the limits. Raises LimitReached."""
    limits.check()
    try:
        return fleet_model(problem, plan.document, limits.began_s + limits.time_limit_s)
    except OutOfTime as ended:
        by = "memory" if isinstance(ended, OutOfMemory) else "time"
        raise LimitReached(Message.of("limits.nothing", reason=limits.reason(by).text()).text()) from None


def _checked(parts: Iterable[T], limits: SearchLimits) -> Iterator[T]:
    """Yield parts of a study that needs all of them. Raises LimitReached where the time or the memory is used up."""
    for part in parts:
        limits.check()
        yield part


def sample(
    model: FleetModel, scenarios: Scenarios, limits: SearchLimits | None = None, engine: Engine | None = None
) -> Sampled:
    """Choose fleets to decide among, and find what each comes to in every scenario. Raises LimitReached; EngineError."""
    limits = limits or SearchLimits()
    efficiency, rate = model.efficiencies(scenarios)
    none = np.zeros((1, len(model.options)))
    some = slice(0, SCREENED)

    def solved(data: RecourseData, part: Part, fleets: Floats, late: float) -> list[list[Extended]]:
        return _in_parts(partial(_solver, data, fleets, late), part, engine, limits)

    few = efficiency[:, some], rate[:, some]
    first = np.array([found[0].systems for found in solved(model.data, few, none, 1.0)])
    whole = np.array([found[0].systems for found in solved(_whole(model.data), few, none, 1.0)])
    used = (np.maximum(first, whole).max(axis=0) > 1e-6) | (model.held > 0)
    ways, uses = used[model.data.way_option], used[model.data.use_option]
    model, efficiency, rate = model.restricted(used), efficiency[ways], rate[uses]
    best = [found[0] for found in solved(model.data, (efficiency, rate), none[:, used], 1.0)]
    least, systems = np.array([found.cost for found in best]), np.array([found.systems for found in best])
    fleets = np.unique(np.vstack([model.held, _candidates(model, efficiency, rate, systems, least)]), axis=0)
    every = solved(model.data, (efficiency, rate), fleets, LATE)
    cost = np.array([[found.cost for found in row] for row in every]).T
    fixed = fleets @ model.data.option_cost
    return Sampled(model, scenarios, fleets, cost, cost <= fixed[:, None] * (1.0 + 1e-9), least)


def _solver(
    data: RecourseData, fleets: Floats, late: float, overlays: Sequence[Path]
) -> Callable[[Part], list[list[Extended]]]:
    """Make what finds, in any process, what fleets come to in some scenarios."""
    return lambda part: list(outcomes(data, *part, fleets, late))


def _in_parts(
    make: Callable[[Sequence[Path]], Callable[[Part], list[list[Extended]]]], every: Part, engine: Engine | None, limits: SearchLimits
) -> list[list[Extended]]:  # fmt: skip
    """Solve scenarios in parts of `AT_ONCE`, and return their results in order. Raises LimitReached; EngineError where a part was lost with its workers."""
    efficiency, rate = every
    starts = range(0, efficiency.shape[1], AT_ONCE)
    parts = [(efficiency[:, start : start + AT_ONCE], rate[:, start : start + AT_ONCE]) for start in starts]
    found: dict[int, list[list[Extended]]] = {}
    for number, result in _checked(solved_on(engine or LocalEngine(), make, parts, ()), limits):
        if result is None:
            raise EngineError(Message.of("engine.part_lost").text())
        found[number] = result
    return [row for number in range(len(parts)) for row in found[number]]


def _candidates(model: FleetModel, efficiency: Floats, rate: Floats, systems: Floats, cost: Floats) -> Floats:
    """Choose fleets as far as supplies and power allow: fleets of scenarios at even steps of cost, quantiles of every count over all scenarios,
    and those that grow from one of the cheapest scenarios to the next.
    """
    order = np.argsort(cost, kind="stable")
    steps = np.unique(np.linspace(0, len(order) - 1, STEPS).round().astype(int))
    quantiles = np.quantile(systems, QUANTILES, axis=0)
    most = _grown(model, efficiency, rate)
    found = []
    for counts in np.vstack([systems[order[steps]], quantiles, most]):
        able = [whole for whole in (np.ceil(counts - 1e-6), np.floor(counts + 1e-6)) if _is_able(model, whole)]
        found += able[:1]
    return np.array(found).reshape(-1, len(model.options))


def _grown(model: FleetModel, efficiency: Floats, rate: Floats) -> Floats:
    """Extend a fleet for one scenario after another until it does all of the work there, where any can, those that need the least fleet first.

    Returns the fleet once it does so in each share of `SAFE` of the scenarios.
    """
    data = _whole(model.data)
    program, held, found = Recourse(data), np.zeros(len(model.options)), []
    alone = [each[0].cost for each in outcomes(data, efficiency, rate, held[None], 1.0)]
    ends = {int(share * len(alone)) for share in SAFE}
    for i, s in enumerate(np.argsort(alone, kind="stable"), start=1):
        program.enter(efficiency[:, s], rate[:, s])
        held = np.maximum(program.extend(held, 1.0).systems, held)
        found += [held.copy()] if i in ends else []
    return np.array(found).reshape(-1, len(held))


def _whole(data: RecourseData) -> RecourseData:
    """Price work left undone so high that leaving it pays nowhere."""
    return replace(data, undone=WHOLE * data.undone)


def _is_able(model: FleetModel, fleet: Floats) -> bool:
    """Tell whether supplies provide a fleet and the power of its sites carries it, idle."""
    data = model.data
    supplied = np.bincount(
        data.supply_member[:, 0], weights=fleet[data.supply_member[:, 1]], minlength=len(data.supply_limit)
    )
    idle_w = np.bincount(data.option_site, weights=fleet * data.option_idle_w, minlength=len(data.room_w))
    return bool((supplied <= data.supply_limit).all() and (idle_w[:, None] <= data.room_w).all())


# -- the worth of measurements -----------------------------------------------------------------------------------------


def results(scenarios: Scenarios, case: Case, seed: int) -> Floats:
    """Draw what a case would show in each scenario, [scenario, metric]: ln(measured / predicted), with the spread among runs of a source."""
    rng = np.random.default_rng([seed, case.number])
    if case.kind == "serving":
        labels = {label: scenarios.serving[case.chip][label] for label in SERVING}
    else:
        labels = {label: scenarios.training[case.chip, label] for label in (case.label,)}
    spread = [USUAL_SPREAD.get(label, USUAL_SPREAD["step_time"]) for label in labels]
    truth = np.log(np.array(list(labels.values()))).T
    found: Floats = truth + rng.standard_normal(truth.shape) * spread
    return found


def worth_of(sampled: Sampled, cases: Sequence[Case], seed: int) -> float:
    """Estimate what the results of some cases together are worth; never less than nothing, since they can be ignored."""
    if not cases:
        return 0.0
    shown = np.hstack([results(sampled.scenarios, case, seed) for case in cases])
    chosen = decide(sampled.cost, _features(shown), np.arange(sampled.scenarios.count) % FOLDS)
    expected = sampled.cost[chosen, np.arange(sampled.scenarios.count)].mean()
    return max(float(sampled.cost[sampled.now].mean() - expected), 0.0)


def decide(cost: Floats, features: Floats, folds: Ints) -> Ints:
    """Choose for each scenario the fleet of least expected cost given what was shown there, as learned from scenarios of other folds."""
    chosen = np.zeros(len(features), dtype=np.int64)
    for fold in np.unique(folds):
        learn, judge = folds != fold, folds == fold
        x, y = features[learn], cost[:, learn].T
        penalty = RIDGE * np.eye(x.shape[1])
        penalty[0, 0] = 0.0  # the mean is not shrunk
        weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        chosen[judge] = np.argmin(features[judge] @ weights, axis=1)
    return chosen


def _features(shown: Floats) -> Floats:
    """Return constant, standardised results, their squares, and how far each is on either side of its median."""
    z = (shown - shown.mean(axis=0)) / np.maximum(shown.std(axis=0), 1e-12)
    return np.hstack([np.ones((len(z), 1)), z, z**2 - 1.0, np.maximum(z, 0.0)])


def best_set(
    sampled: Sampled, cases: Sequence[Case], budget: float | None, seed: int, limits: SearchLimits | None = None
) -> tuple[list[Case], float]:
    """Add the case that raises the worth of the set most over its price, while one does, within the budget."""
    chosen: list[Case] = []
    worth = 0.0
    while len(chosen) < MOST_CASES:
        left = np.inf if budget is None else budget - sum(case.price for case in chosen)
        able = [case for case in cases if case not in chosen and case.price <= left]
        gains = [
            worth_of(sampled, [*chosen, case], seed) - worth - case.price
            for case in _checked(able, limits or SearchLimits())
        ]
        if not gains or max(gains) <= 0:
            break
        best = int(np.argmax(gains))
        worth += gains[best] + able[best].price
        chosen.append(able[best])
    return chosen, worth
