"""Answers to questions that bound each other: no bound may lie above the value of a plan that the other question admits too.

Each law names two questions, of which every plan of the second is a plan of the first for at most `factor` times its value, so that
the bound of the first may not exceed that. Where both are the same question the law holds both ways.

Left out is what the model tells apart on purpose (docs/plan.md, "What the bound covers"): a plan of one workload is taken for two of half
its demand only where that half fills every replica in use, since replicas hold the requests of their own workload and run smaller batches
where these are few, and with the weights loaded twice; and never with whole replicas, of which two halves may need one more.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import planner
from planner.errors import SpecError
from planner.plan import Plan
from tests.fuzz import questions
from tests.fuzz.questions import Spec

NEAR = 1e-6  # rounding of values and bounds
WHOLE = {"replicas": "whole", "gap": 0.05, "time_limit": "3 s"}
LOOSER = 1.3
TIGHTER = (0.98, 0.9)  # shares of what the plan without the limit takes


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of a plan, infinite where there is none, and what is proven of the least value: infinite where there is proven to be no plan."""

    value: float
    bound: float
    plan: Plan

    @classmethod
    def of(cls, plan: Plan) -> Answer:
        """Read a plan."""
        if plan.has_answer:
            bound = plan["bound"]
            return cls(plan.objective["value"], -math.inf if bound is None else bound, plan)
        return cls(math.inf, math.inf if plan.status == "infeasible" else -math.inf, plan)


@dataclass(frozen=True, slots=True)
class Law:
    """No plan of `other` is proven to be out of reach of `one`: its bound is at most `factor` times the value of `other`, plus `also`."""

    name: str
    one: Answer
    other: Answer
    factor: float = 1.0
    also: float = 0.0

    @property
    def excess(self) -> float:
        """Compute by which share the bound lies above the value; nothing or less where the law holds."""
        most = self.other.value * self.factor + self.also
        if most == math.inf or self.one.bound == -math.inf:
            return 0.0
        return (self.one.bound - most) / max(abs(most), 1e-300)

    @property
    def holds(self) -> bool:
        """Tell whether the law holds but for rounding."""
        return self.excess <= NEAR

    def __str__(self) -> str:
        return f"{self.name}: bound {self.one.bound!r} is {self.excess:.2g} above {self.other.value!r} x {self.factor:g} + {self.also:g}"


def solved(spec: Spec, **solver: Any) -> Answer:
    """Solve a question, with other options of the solver."""
    return Answer.of(planner.solve({**copy.deepcopy(spec), "solver": {**spec["solver"], **solver}}))


def check_consistency(rng: random.Random) -> None:
    """Draw a question, and test all laws on it. Raises AssertionError with those that do not hold."""
    try:
        broken = [str(law) for law in laws(questions.question(rng), rng) if not law.holds]
    except SpecError as error:
        raise AssertionError(f"a question that should be answered was refused: {error}") from error
    assert not broken, "; ".join(broken)


def laws(spec: Spec, rng: random.Random) -> Iterator[Law]:
    """Solve a question, and others about it, and yield the laws between their answers."""
    base, whole = solved(spec), solved(spec, **WHOLE)
    yield Law("bound of a value", base, base)
    yield Law("bound of a value of whole replicas", whole, whole)
    yield Law("divisible and whole", base, whole)
    yield from _of_the_same(spec, base)
    yield from _halves(spec, base, whole)
    yield from _twice(spec, base)
    yield from _owned(spec, base, whole)
    yield from _tighter(spec, base)
    yield from _frontier(spec, rng)


def _of_the_same(spec: Spec, base: Answer) -> Iterator[Law]:
    """Yield the laws of other solvers, paths and ways to write the question."""
    for solver in ({"backend": "pulp"}, *({"method": name} for name in ("direct", "branch", "decomposed", "general"))):
        yield from _same(", ".join(solver.values()), base, solved(spec, **solver))
    for written in (questions.renamed, questions.reordered, questions.in_other_units):
        yield from _same(written.__name__.replace("_", " "), base, solved(written(spec)))


def _same(name: str, base: Answer, other: Answer) -> Iterator[Law]:
    yield Law(f"{name}, bound of the first", base, other)
    yield Law(f"{name}, bound of the other", other, base)


def _halves(spec: Spec, base: Answer, whole: Answer) -> Iterator[Law]:
    halves = questions.in_halves(spec)
    two = solved(halves)
    yield Law("halves", base, two)
    yield Law("halves of whole replicas", whole, solved(halves, **WHOLE))
    if base.plan.has_answer and _fills_replicas(spec, base.plan):
        cost = spec["objective"]["minimise"] == "cost"
        yield Law(
            "halves, of replicas that half fills",
            two,
            base,
            also=base.plan["costs"].get("weights", 0.0) if cost else 0.0,
        )


def _fills_replicas(spec: Spec, plan: Plan) -> bool:
    """Tell whether half of the first workload's peak fills each replica in use."""
    first = spec["workloads"][0]
    demand = first["demand"]
    peak = demand["requests_per_s"] * max(demand.get("profile", (1.0,)))  # profiles have a mean of 1
    (row,) = (row for row in plan["workloads"] if row["name"] == first["name"])
    return all(point["capacity"] <= peak / 2 for point in row["points"])


def _twice(spec: Spec, base: Answer) -> Iterator[Law]:
    twice = solved(questions.times(spec, 2.0))
    yield Law("demand x 2", twice, base, 2.0)
    yield Law("demand x 2, bound of the smaller", base, twice)


def _owned(spec: Spec, base: Answer, whole: Answer) -> Iterator[Law]:
    """Yield that owning the systems that a plan buys, a month old, is no dearer."""
    prices = {offer["system"]: offer["price"] for offer in spec["offers"]}
    for kind, answer, solver in (("", base, {}), (" with whole replicas", whole, WHOLE)):
        rows = [row for row in answer.plan["fleet"] if row["how"] == "buy"] if answer.plan.has_answer else []
        if not rows:
            continue
        counts: dict[tuple[str, str], int] = {}
        for row in rows:
            counts[row["system"], row["site"]] = counts.get((row["system"], row["site"]), 0) + row["count"]
        owned = [
            {"system": system, "region": site, "count": count, "age": "30 d", "price": prices[system]}
            for (system, site), count in counts.items()
        ]
        yield Law(f"owned{kind}", solved({**spec, "owned": owned}, **solver), answer)


def _tighter(spec: Spec, base: Answer) -> Iterator[Law]:
    """Yield that a tighter limit is never cheaper: on carbon or cost, and on latency."""
    yield Law("looser latency", solved(questions.looser(spec, LOOSER)), base)
    if not base.plan.has_answer:
        return
    by_cost = spec["objective"]["minimise"] == "cost"
    limit, unit, taken = ("carbon", "kg", "carbon_kg") if by_cost else ("budget", "USD", "cost")
    wider = base
    for share in TIGHTER:
        most = base.plan["totals"][taken] * share
        narrow = solved({**spec, "limits": {limit: f"{most!r} {unit}"}})
        yield Law(f"limit on {limit} at {share:g}", wider, narrow)
        wider = narrow


def _frontier(spec: Spec, rng: random.Random) -> Iterator[Law]:
    """Yield that the points of a frontier fall, and that each agrees with its spec solved alone."""
    against = rng.choice(("carbon", "latency"))
    found = planner.frontier(copy.deepcopy(spec), against, 2).points
    for tight, loose in itertools.pairwise(found):
        yield Law(f"frontier against {against}", Answer.of(loose.plan), Answer.of(tight.plan))
    for point in found:
        alone = Answer.of(planner.solve(copy.deepcopy(point.plan["spec"])))
        yield from _same(f"frontier against {against}, point alone", Answer.of(point.plan), alone)
