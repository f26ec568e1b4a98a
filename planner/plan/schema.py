"""Write the JSON Schema of a plan, and its keys as a page, from the typed rows."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from planner.plan.rows import (
    adapt,
    document,
    fleet,
    framing,
    length_pools,
    money,
    points,
    quality,
    robust,
    time,
    workloads,
)
from planner.spec.schema import DIALECT, described_keys, schema_page

ROWS = (adapt, document, fleet, framing, length_pools, money, points, quality, robust, time, workloads)


def plan_schema() -> dict[str, Any]:
    """Build the JSON Schema of a plan document, with the descriptions of its rows and keys."""
    schema = TypeAdapter(document.PlanDocument).json_schema()
    rows = {name: row for module in ROWS for name, row in vars(module).items() if isinstance(row, type)}
    for name, block in (*schema["$defs"].items(), ("PlanDocument", schema)):
        for key, text in described_keys(rows[name]).items():
            block["properties"][key]["description"] = text
    return {"$schema": DIALECT, **schema, "title": "flopwatt plan"}


def plan_schema_text(format: str) -> str:
    """Write the schema as JSON, or as a page of keys in Markdown."""
    schema = plan_schema()
    return json.dumps(schema, indent=1) + "\n" if format == "json" else schema_page(schema, "plan")
