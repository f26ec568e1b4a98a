"""Hold the plan document: typed rows, its JSON Schema, reading and writing."""

from planner.plan.plan import (
    KEYS,
    PLAN_SCHEMA_VERSION,
    TABLES,
    Plan,
    binds,
    is_by_the_bound,
    load_plan,
    parse_plan,
)
from planner.plan.rows.money import BY_THE_BOUND

__all__ = [
    "BY_THE_BOUND",
    "KEYS",
    "PLAN_SCHEMA_VERSION",
    "TABLES",
    "Plan",
    "binds",
    "is_by_the_bound",
    "load_plan",
    "parse_plan",
]
