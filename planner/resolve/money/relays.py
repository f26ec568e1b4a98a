"""Resolve what it costs that a system loads other weights, and how often it may."""

from __future__ import annotations

import math
from dataclasses import replace

from planner.problem.calendar import SLOTS_PER_DAY
from planner.problem.economics import Economics, RelayFacts
from planner.resolve.context import ResolveContext
from planner.spec.model import PlanSpec


def resolve_relays(context: ResolveContext) -> RelayFacts | None:
    """Resolve the block `operation`, and book what it states; None where loads of weights only take their time."""
    asked = context.spec.operation
    if "relays_per_day" in asked.model_fields_set and asked.relays_per_day is not None:
        context.assume_stated("operation.relays_per_day", asked.relays_per_day, "1")
    if asked.relay_cost is not None:
        amount, currency = asked.relay_cost
        context.assume_stated("operation.relay_cost", amount, currency, ("relays", "*", "*"))
    if are_free(context.spec) and asked.relays_per_day is None:
        return None
    return RelayFacts(
        cost=0.0 if are_free(context.spec) else None if asked.relay_cost is None else context.convert(asked.relay_cost, "operation.relay_cost"),
        per_day=math.inf if asked.relays_per_day is None else asked.relays_per_day,
    )  # fmt: skip


def are_free(spec: PlanSpec) -> bool:
    """Tell whether the spec says that loads cost nothing."""
    return "relay_cost" in spec.operation.model_fields_set and spec.operation.relay_cost is None


def with_loads(spec: PlanSpec, money: Economics, slots: int) -> Economics:
    """Return the economics without price and limit of loads on calendars of more slots than a typical day has, unless the spec states one.

    Whole replicas of a large program are found slot by slot, where a price on loads that tie the slots together takes too long.
    """
    counted = slots <= SLOTS_PER_DAY or bool(spec.operation.model_fields_set)
    return money if counted else replace(money, relays=None)
