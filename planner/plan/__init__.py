"""Hold the plan document: typed rows, its JSON Schema, reading and writing."""

from planner.plan.plan import (
    BY_THE_BOUND,
    KEYS,
    PLAN_SCHEMA_VERSION,
    TABLES,
    Plan,
    binds,
    load_plan,
    parse_plan,
)

__all__ = ["BY_THE_BOUND", "KEYS", "PLAN_SCHEMA_VERSION", "TABLES", "Plan", "binds", "load_plan", "parse_plan"]
