"""Solve a spec with a quote at some price: what the plan costs, its bound, and how much of the quote it takes.

One program per quote stays loaded: of the prices that are tried, only coefficients differ (`solvers.search.reoptimize`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from models.arrays import Floats
from planner.formulate.formulation import Formulation, formulate
from planner.formulate.limits import Unbounded
from planner.money.terms import COST
from planner.solving.variants import Answer
from planner.spec.document import Edits
from planner.studies.base.planned import solved
from planner.studies.quotes.quote import Quote, price_text
from planner.studies.quotes.start import OFFERS, Start, with_quotes
from planner.studies.quotes.threshold import Slopes, Trial
from solvers.search.reoptimize import Reoptimizer

Key = tuple[str, str, int, int]  # fleet option, offer, first and last window


@dataclass(frozen=True, slots=True)
class PerPrice:
    """Change of the cost per unit of a quote's price, by holding: of a system held, and in each slot of one that runs or starts."""

    held: Mapping[Key, float]
    running: Mapping[Key, Floats]
    starting: Mapping[Key, Floats]

    def of(self, answer: Answer) -> float:
        """Sum it over the decisions of a plan."""
        found, values = 0.0, answer.solution.values
        for u, key in enumerate(_keys(answer.form)):
            found += self.held[key] * float(values["n"][u])
            for rate, name in ((self.running, "on"), (self.starting, "started")):
                if key in rate and name in values:
                    found += float(rate[key] @ values[name][u])
        return found

    def slopes(self, windows: int, least: int, most: int | None) -> Slopes:
        """Bound how much a plan can rise with the price, by what of the quote it takes."""
        held = [rate for rate in self.held.values() if rate > 0.0]
        running = [float(rate) for rates in self.running.values() for rate in rates[rates > 0.0]]
        once = min([*(rate * least for rate in held), *running], default=0.0)
        throughout = 0.0
        for window in range(windows):
            here = (rate / (key[3] - key[2] + 1) for key, rate in self.held.items() if key[2] <= window <= key[3])
            throughout += max(here, default=0.0)
        for rates in (self.running, self.starting):
            throughout += float(np.max([*rates.values()], axis=0).sum()) if rates else 0.0
        everything = min(held) * most if most and held and not running else 0.0
        return Slopes(once, throughout, max(everything, once))


@dataclass(slots=True)
class Priced:
    """A quote in the spec, solved at several prices. `edits`: that add it; `position` among the offers."""

    start: Start
    quote: Quote
    edits: Edits
    position: int
    per_price: PerPrice | None = None
    slopes: Slopes = field(default_factory=lambda: Slopes(0.0, 0.0, 0.0))
    loaded: Reoptimizer = field(default_factory=Reoptimizer)

    @classmethod
    def of(cls, start: Start, quote: Quote) -> Priced:
        """Add a quote to the offers. Raises SpecError."""
        edits, _ = with_quotes(start, [quote])
        return cls(start, quote, edits, len(start.offers))

    def solve(self, amount: float | None = None) -> tuple[Trial, Answer | None]:
        """Solve with the quote at an amount, its own where None is given. Without a plan, neither value nor bound are known."""
        edits = self.edits_at(amount)
        amount = self.quote.amount if amount is None else amount
        try:
            answer = solved(self.start.variants, edits, self.start.options, solve_program=self.loaded.solve)
        except Unbounded:
            answer = None
        if answer is None:
            return Trial(amount, math.inf, -math.inf), None
        solution, sign = answer.solution, self.start.sign
        bound = math.inf if solution.status == "infeasible" else -math.inf
        bound = bound if solution.bound is None else sign * solution.bound
        if answer.value is None:
            return Trial(amount, math.inf, bound), None
        value = sign * answer.value
        if not self.start.is_of_cost:
            return Trial(amount, value, bound, taken(answer, self.position)), answer
        self._measure(answer, amount)
        slope = self._slope(answer)
        return Trial(amount, value, min(bound, value), taken(answer, self.position), slope), answer

    def edits_at(self, amount: float | None) -> Edits:
        """Return the edits that add the quote at another price."""
        if amount is None:
            return self.edits
        return (*self.edits, (f"{OFFERS}[{self.position}].price", price_text(amount, self.quote)))

    def _measure(self, answer: Answer, amount: float) -> None:
        """Compute once how coefficients change with the price: the difference between two prices, for they are linear in it."""
        if self.per_price is not None:
            return
        step = amount or 1.0
        forms = []
        for edits in (self.edits_at(amount), self.edits_at(amount + step)):
            problem = self.start.variants.problem(edits)
            forms.append(formulate(problem, self.start.variants.candidates(problem, edits)))
        self.per_price = _difference(forms[0], forms[1], step)
        least, most = self.quote.systems(_chips_of(answer, self.quote.system))
        self.slopes = self.per_price.slopes(answer.form.data.windows, least or 1, most)

    def _slope(self, answer: Answer) -> float:
        """Compute how the cost of a plan changes with the price; rounding counts as none."""
        assert self.per_price is not None
        slope = self.per_price.of(answer)
        return slope if slope > SLOPE_TOL * self.slopes.least else 0.0


SLOPE_TOL = 1e-6
"""Share of the smallest part of a quote that can be taken below which a plan takes nothing."""


def taken(answer: Answer, position: int) -> int:
    """Count the most systems of an offer that a plan holds at once; those paid for by the hour, that run at once."""
    form, values = answer.form, answer.solution.values
    held = np.asarray(values["n"], dtype=np.float64)
    if form.data.hourly is not None and "on" in values:
        held = np.where(form.data.hourly.holding, values["on"].max(axis=1, initial=0.0), held)
    windows = np.zeros(form.data.windows)
    for u, (k, term) in enumerate(form.holdings):
        if form.fleet_options[k].offer.order == f"{OFFERS}[{position}]":
            windows[term.first : term.last + 1] += held[u]
    return round(float(windows.max(initial=0.0)))


def counts(answer: Answer, positions: Sequence[int]) -> list[int]:
    """Count the systems of several offers."""
    return [taken(answer, position) for position in positions]


def _difference(one: Formulation, other: Formulation, step: float) -> PerPrice:
    """Divide the difference of two programs' coefficients by that of their prices."""
    keys = _keys(one)
    held = (other.data.holding_cost[COST] - one.data.holding_cost[COST]) / step
    first, second = one.data.hourly, other.data.hourly
    found = PerPrice(dict(zip(keys, held.tolist(), strict=True)), {}, {})
    if first is None or second is None:
        return found
    none = np.zeros((len(held), one.data.slots))
    running = (second.cost.get(COST, none) - first.cost.get(COST, none)) / step
    starting = (second.start_cost.get(COST, none) - first.start_cost.get(COST, none)) / step
    return replace(
        found, running=dict(zip(keys, running, strict=True)), starting=dict(zip(keys, starting, strict=True))
    )


def _keys(form: Formulation) -> list[Key]:
    """Identify the holdings of a program across prices."""
    options = form.fleet_options
    return [(options[k].name, options[k].offer.path, term.first, term.last) for k, term in form.holdings]


def _chips_of(answer: Answer, system: str) -> float:
    return float(answer.problem.systems[system].chips)
