"""Find the price below which a quote is taken, and the one below which all of it is, from solves at some prices.

A plan costs fixed + slope * price: the slope is the present value of what it takes for one unit of price. The least cost over all plans
is concave in the price, so a plan that takes something meets the least cost without the quote at one price, and the largest of these
prices over all plans is the threshold. A solve there returns a plan that meets it later, or none: Dinkelbach's method. The price below which
all is taken is found in the same way, between the plans that take all and the others.

Each solve also proves a bound. With it, a threshold lies in an interval that holds whatever better plan the search has missed. Where a
ceiling on money may rule a plan out at a higher price, thresholds lie between prices that were solved.

Reference: Dinkelbach, On nonlinear fractional programming, Management Science 13 (1967). Not here: how a price is solved
(`planner.studies.quotes.trial`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

SAME_PRICE = 1e-4
"""Share of a threshold by which two prices are one."""
MOST_TRIALS = 12
"""Prices solved for one threshold."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan at one price. `value` and `bound`: of the objective, the less the better; `taken`: systems; `slope`: change of cost per unit of price."""

    amount: float
    value: float
    bound: float
    taken: int = 0
    slope: float = 0.0

    @property
    def fixed(self) -> float:
        """Return what the plan costs besides the quote."""
        return self.value - (self.slope * self.amount if self.slope else 0.0)

    @property
    def takes(self) -> bool:
        """Tell whether the plan takes something that costs."""
        return self.slope > 0.0 and math.isfinite(self.value)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A price below which something is taken: `at` that of the plans found, None for no price; it lies between `low` and `high` for certain."""

    at: float | None
    low: float
    high: float

    def row(self) -> dict[str, float | None]:
        """Write it as JSON; no number for a price without end."""
        return {"at": self.at, "low": self.low, "high": self.high if math.isfinite(self.high) else None}


@dataclass(frozen=True, slots=True)
class Slopes:
    """How much the cost rises with the price: `least` if anything is taken, `most` for one system held throughout, `all` for all of it at least."""

    least: float
    most: float
    all: float


@dataclass(frozen=True, slots=True)
class Question:
    """What thresholds are asked for. `without`: the plan without the quote; `count`: all of it, None where it has no end; `limited`: ceilings on money."""

    without: Trial
    slopes: Slopes
    count: int | None
    limited: bool

    def improved(self, trials: Sequence[Trial]) -> Question:
        """Return the question with the best plan without the quote that was found, and the best bound on it: that of any price, for it may be left."""
        value = min([self.without.value, *(each.value for each in trials if not each.slope and not each.taken)])
        bound = min(max([self.without.bound, *(each.bound for each in trials)]), value)
        return replace(self, without=replace(self.without, value=value, bound=bound))


def first_threshold(asked: Question, trials: Sequence[Trial]) -> Threshold:
    """Find the price below which anything is taken."""
    asked = asked.improved(trials)
    value, bound = asked.without.value, asked.without.bound
    taking = [each for each in trials if each.takes]
    ends = (each.amount + max(value - each.bound, 0.0) / asked.slopes.least for each in trials)
    high = min(ends, default=math.inf) if asked.slopes.least > 0.0 else math.inf
    if asked.limited:
        at = max((each.amount for each in taking if each.value < value), default=None)
        low = max((each.amount for each in taking if each.value < bound), default=0.0)
    else:
        at = max(((value - each.fixed) / each.slope for each in taking), default=None)
        low = max(((bound - each.fixed) / each.slope for each in taking), default=0.0)
    if at is None or at < 0.0:
        return Threshold(None, 0.0, high)
    return Threshold(at, min(max(low, 0.0), at), max(high, at))


def full_threshold(asked: Question, trials: Sequence[Trial]) -> Threshold | None:
    """Find the price below which all is taken; None where there is no end to it."""
    count = asked.count
    if count is None:
        return None
    asked = asked.improved(trials)
    full = [each for each in trials if each.takes and each.taken >= count]
    part = [asked.without, *(each for each in trials if each not in full and math.isfinite(each.value))]
    high = min((_beaten(each, part, asked.slopes.all) for each in trials), default=math.inf)
    at = max((_crossing(each, part, asked.limited) for each in full), default=None)
    if at is None or at < 0.0:
        return Threshold(None, 0.0, high)
    others = asked.slopes.most * (count - 1)
    low = max((_proven(each, trials, others, asked.limited) for each in full), default=0.0)
    return Threshold(at, min(max(low, 0.0), at), max(high, at))


def _crossing(full: Trial, part: Sequence[Trial], limited: bool) -> float:
    """Return the price up to which a plan that takes all costs no more than those that take less."""
    meets = [(each.fixed - full.fixed) / (full.slope - each.slope) for each in part if full.slope > each.slope]
    at = min(meets, default=math.inf)
    if not math.isfinite(at):
        return full.amount
    return min(at, full.amount) if limited else at


def _beaten(trial: Trial, part: Sequence[Trial], all_of_it: float) -> float:
    """Return the price from which a plan that takes less costs no more than any that takes all, by the bound at one price.

    What takes all costs at least bound + (price - amount) * `all_of_it` at higher prices.
    """
    meets = (
        max((each.fixed - trial.bound + trial.amount * all_of_it) / (all_of_it - each.slope), trial.amount)
        for each in part
        if all_of_it > each.slope
    )
    return min(meets, default=math.inf)


def _proven(full: Trial, trials: Sequence[Trial], others: float, limited: bool) -> float:
    """Return the price up to which a plan that takes all beats every one that takes less, by the bounds at all prices.

    What takes less costs at least bound - (amount - price) * `others` at lower prices.
    """
    if full.slope <= others:
        return 0.0
    found = max(
        min((each.bound - each.amount * others - full.fixed) / (full.slope - others), each.amount) for each in trials
    )
    return min(found, full.amount) if limited else found


def searched(
    asked: Question,
    solve: Callable[[float], Trial | None],
    first: Trial,
    find: Callable[[Question, Sequence[Trial]], Threshold | None],
    known: Sequence[Trial] = (),
) -> list[Trial]:
    """Solve at the prices that a threshold needs. `solve` returns None once the time is up; `known`: solved already."""
    trials = list(known) or [first]
    tried = {each.amount for each in trials}
    bracket = 0
    while len(trials) - len(known) < MOST_TRIALS:
        found = find(asked, trials)
        if found is None:
            return trials
        unlimited = find(replace(asked, limited=False), trials)
        at = None if unlimited is None else unlimited.at
        if at is None:
            amount = 0.0
        elif asked.limited and any(abs(each - at) <= SAME_PRICE * at for each in tried):
            above = min((each for each in tried if each > (found.at or 0.0)), default=None)
            amount = ((found.at or 0.0) + above) / 2 if above is not None and bracket < MOST_TRIALS // 2 else at
            bracket += 1
        else:
            amount = at
        if any(abs(each - amount) <= SAME_PRICE * amount for each in tried):
            return trials
        trial = solve(amount)
        if trial is None:
            return trials
        trials.append(trial)
        tried.add(amount)
    return trials
