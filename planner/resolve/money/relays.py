"""Resolve what it costs that a system loads other weights, and how often it may."""

from __future__ import annotations

import math

from planner.problem.economics import RelayFacts
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
