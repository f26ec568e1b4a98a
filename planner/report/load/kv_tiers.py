"""Format the table of tiers of KV cache. Its contents: `planner.interpret.load.kv_tiers`."""

from __future__ import annotations

from catalog.units import show
from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.fleet import KvTier
from planner.report.heads import Row
from planner.report.words import amount

HEADING = say("heading.kv_tiers")


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no tiers are bought."""
    return [(HEADING, [_row(row) for row in plan.document.get("kv_tiers", ())])]


def _row(row: KvTier) -> Row:
    size = show(row["bytes"], "byte")
    return {
        "site": row["site"],
        "system": row["system"],
        "tier": row["tier"],
        "size": say("kv_tiers.shared", size=size, count=f"{row['shared_by']}") if row["shared_by"] > 1 else size,
        "price_in_currency": amount(row["price"]),
        "power": show(row["power_w"], "W"),
        "prompt_computed": commas(
            say("kv_tiers.computed", share=f"{p['computed_share']:.1%}", without=f"{p['computed_without']:.1%}")
            for p in row["points"]
        ),
        "systems_saved": amount(row["systems_saved"]),
        "earns": amount(row["earns"]),
    }
