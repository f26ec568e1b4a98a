"""Rows of confidence: outcomes in sampled scenarios, robust plans, the plan of highest confidence."""

from __future__ import annotations

from typing import NotRequired, final

from typing_extensions import TypedDict

from planner.plan.rows.points import Pool
from planner.plan.rows.values import Coded, Number, Text, Whole


class Outcome(TypedDict):
    """State in which share of scenarios a plan keeps its promises."""

    scenarios: Whole
    kept: Number
    workloads: dict[str, Number]
    budget: Number
    mean_undone: dict[str, Number]
    cost: dict[str, Number]


class SeededOutcome(Outcome):
    """State an outcome with the seed of its scenarios."""

    seed: Whole


class NominalOutcome(Outcome):
    """State how the plan without the promise fares in the fresh scenarios."""

    seed: NotRequired[Whole]
    value: Number


class StatedRange(TypedDict):
    """State the range of an uncertain price."""

    path: Text
    low: Number
    typical: Number
    high: Number
    unit: Text


class PriceRange(StatedRange):
    """State the range of an uncertain price, and the amount of the cost that depends on it."""

    amount: Number


class Uncertain(TypedDict):
    """State the factors of an uncertain prediction at `levels`."""

    what: Text
    of: Text
    metric: Text
    factors: list[Number]


class StandingBy(TypedDict):
    """Describe a layout for scenarios in which chips are slower."""

    workload: Text
    site: Text
    power_cap: NotRequired[Number]
    capacity: NotRequired[Number]
    pools: list[Pool]


@final
class Robustness(TypedDict):
    """State the promise of a robust plan, and how it fared in sampled and fresh scenarios."""

    confidence: Number
    measure: Text
    sampled: SeededOutcome
    fresh: SeededOutcome
    nominal: NominalOutcome
    price: Number
    scenarios_in_program: Whole
    left_out: list[Text]
    prices: list[PriceRange]
    uncertain: list[Uncertain]
    levels: list[Number]
    standing_by: list[StandingBy]


class BreaksFirst(TypedDict):
    """Name the promise that is kept in fewest scenarios."""

    workload: Text
    promise: Text
    kept: Number


class FurtherSystem(TypedDict):
    """State a number of systems to add."""

    site: Text
    system: Text
    how: Text
    count: Whole


class LateJob(TypedDict):
    """State why a job ends in time in few scenarios, and what would keep its deadline in `Upgrade.share` of them.

    `slack`: share by which its steps may take longer than predicted with this fleet; `slower`: share by which they do, at most, in that share
    of scenarios; `count` further systems, which widen the run, at most so dear (`cost`, null where a price depends on more).
    """

    workload: Text
    kept: Number
    slack: Number
    slower: Number
    site: Text
    system: Text
    how: Text
    count: Whole
    cost: Number | None


class Upgrade(TypedDict):
    """State the further systems with which a share of the scenarios is kept."""

    share: Number
    cost: Number
    systems: list[FurtherSystem]


class HiredSystem(TypedDict):
    """State the most systems of an offer by the hour that a scenario hires at once, beside the systems of the plan."""

    site: Text
    system: Text
    how: Text
    offer: Text
    most: Whole


class Hired(TypedDict):
    """State about what keeping `share` of the scenarios costs on average over all scenarios, beside the plan, where systems are hired by the hour in
    the scenarios that need them, `used_in` of all; the others that fail are left to fail."""

    share: Number
    cost: Number
    used_in: Number
    systems: list[HiredSystem]


class Confidence(TypedDict):
    """State in which share of sampled scenarios the plan keeps its promises, and what breaks first."""

    scenarios: Whole
    seed: Whole
    kept: Number
    open: Number
    workloads: dict[str, Number]
    breaks_first: BreaksFirst | None
    upgrade: Upgrade | None
    hired: NotRequired[Hired | None]
    late_jobs: NotRequired[list[LateJob]]
    left_out: list[Text]


@final
class NotRobust(TypedDict):
    """State that no plan keeps the promise asked for."""

    confidence: Number
    reached: Number
    words: Text
    words_message: NotRequired[Coded]


class ConfidenceGain(TypedDict):
    """State that a plan of higher confidence within the band was chosen."""

    within: Number
    plans: Whole
    kept: Number
    kept_before: Number
    value_before: Number
    further: list[FurtherSystem]
