"""Format the table of tiers of KV cache. Its contents: `planner.interpret.load.kv_tiers`."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.plan import Plan
from planner.plan.rows.fleet import KvTier
from planner.report.words import amount

Row = dict[str, Any]
HEADING = "Tiers of KV cache"
NOTES = {
    HEADING: "Prompt computed: share of the prompts' tokens that is not found in a cache, with all tiers and without this one. "
    "Earns: price of the systems that would be needed more without it, layouts and batches kept, less its own price."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no tiers are bought."""
    currency = plan.document["spec"].get("currency", "USD")
    return [(HEADING, [_row(row, currency) for row in plan.document.get("kv_tiers", ())])]


def _row(row: KvTier, currency: str) -> Row:
    shared = f" of pools for {row['shared_by']}" if row["shared_by"] > 1 else ""
    return {
        "site": row["site"],
        "system": row["system"],
        "tier": row["tier"],
        "size": f"{show(row['bytes'], 'byte')}{shared}",
        f"price ({currency})": amount(row["price"]),
        "power": show(row["power_w"], "W"),
        "prompt computed": ", ".join(
            f"{p['computed_share']:.1%} ({p['computed_without']:.1%} without)" for p in row["points"]
        ),
        "systems saved": amount(row["systems_saved"]),
        f"earns ({currency})": amount(row["earns"]),
    }
