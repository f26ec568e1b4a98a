"""Rows of money and limits: cost and carbon lines, phases, electricity, limits."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from planner.messages import Message
from planner.plan.rows.values import Coded, Number, Text, Whole

BY_THE_BOUND = Message.of("limit.by_the_bound").text()
"""Note on a marginal value that comes from the bound of the search."""


class CostLine(TypedDict):
    """State an amount of one cost or carbon component at a site, by system and way to obtain it."""

    component: Text
    site: Text
    system: Text
    how: Text
    amount: Number


class Limit(TypedDict):
    """State a limit, how far the plan is from it, and what one more unit is worth."""

    path: Text
    name: Text
    name_message: NotRequired[Coded]
    value: Number
    limit: Number
    unit: Text
    slack: Number
    marginal_value: Number | None
    marginal_unit: Text | None
    marginal_value_divisible: NotRequired[Number | None]
    note: NotRequired[Text]
    note_message: NotRequired[Coded]


class PhasePool(TypedDict):
    """State the peak number of chips at work in a phase."""

    workload: Text
    role: Text
    system: Text
    chips: Number


class Phase(TypedDict):
    """State what one phase of the spec buys, pays and serves."""

    name: Text
    start: Text
    end: Text
    windows: list[Whole]
    capital: Number
    paid: Number | None
    residual: Number
    chips: Whole
    cost: Number
    tokens: dict[str, Number]
    cost_per_million_tokens: Number | None
    pools: list[PhasePool]


class Meter(TypedDict):
    """State one purchase of electricity: grid, peak, contract or battery."""

    site: Text
    item: Text
    name: Text
    size: Number
    unit: Text
    energy_j: Number | None
    cost: Number
    carbon_kg: Number | None


class PriceContents(TypedDict):
    """State what the price of electricity at a site holds, where a part is unknown, and the plan's cost at what industry pays there."""

    path: Text
    site: Text
    energy: Text
    delivery: Text
    demand: Text
    levies: Text
    price_per_j: Number
    industrial_per_j: Number
    industrial_source: Text
    energy_j: Number
    cost: Number
    cost_at_industrial: Number


class Totals(TypedDict):
    """Sum cost, carbon, energy at the meter, tokens, chips and peak power over the plan."""

    cost: Number
    carbon_kg: Number
    energy_j: Number
    tokens: Number
    chips: Whole
    peak_power_w: Number
