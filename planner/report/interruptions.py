"""Format the tables of pre-empted jobs and of the storage of sites. Their contents: `planner.interpret.preemption`, `planner.interpret.storage`."""

from __future__ import annotations

from typing import Any

from catalog.units import HOUR_S, show
from planner.messages import say
from planner.plan import Plan

PREEMPTIONS, STORAGE = "preemptions", "storage"
TABLES = (PREEMPTIONS, STORAGE)


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of both tables."""
    rows: dict[str, list[dict[str, Any]]] = {
        PREEMPTIONS: [
            {
                "workload": row["workload"], "point": row["point"], "each_costs": show(row["restart_s"], "s"),
                "resumptions": f"{row['resumptions']:,.1f}", "hours_lost": f"{row['lost_s'] / HOUR_S:,.1f}", "of_its_time": f"{row['lost_share']:.2%}",
            }
            for row in plan.document.get("preemptions", ())
        ],
        STORAGE: [
            {
                "site": row["site"], "workload": row["workload"], "point": row["point"], "reads": show(row["read_bytes_per_s"], "byte/s"),
                "writes_checkpoints": show(row["checkpoint_bytes_per_s"], "byte/s"), "to_load": show(row["load_bytes"], "byte"), "takes": show(row["load_s"], "s"),
            }
            for row in plan.document.get("storage", ())
        ],
    }  # fmt: skip
    return [(say(f"heading.{table}"), rows[table]) for table in TABLES]
