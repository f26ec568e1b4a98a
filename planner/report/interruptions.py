"""Format the tables of pre-empted jobs and of the storage of sites. Their contents: `planner.interpret.preemption`, `planner.interpret.storage`."""

from __future__ import annotations

from typing import Any

from catalog.units import HOUR_S, show
from planner.plan import Plan

PREEMPTIONS, STORAGE = "preemptions", "storage"
TABLES = (PREEMPTIONS, STORAGE)
HEADINGS = {PREEMPTIONS: "How often jobs make room", STORAGE: "What runs through storage"}
NOTES = {
    HEADINGS[
        PREEMPTIONS
    ]: "Resumptions: how often a job's whole width comes back over the horizon; half of it counts half.",
    HEADINGS[
        STORAGE
    ]: "Rates at full width, in the mean. To load: the weights of a replica, or the state of a job, with the storage to itself.",
}


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of both tables."""
    rows = {
        PREEMPTIONS: [
            {
                "workload": row["workload"], "point": row["point"], "each costs": show(row["restart_s"], "s"),
                "resumptions": f"{row['resumptions']:,.1f}", "hours lost": f"{row['lost_s'] / HOUR_S:,.1f}", "of its time": f"{row['lost_share']:.2%}",
            }
            for row in plan.document.get("preemptions", ())
        ],
        STORAGE: [
            {
                "site": row["site"], "workload": row["workload"], "point": row["point"], "reads": show(row["read_bytes_per_s"], "byte/s"),
                "writes checkpoints": show(row["checkpoint_bytes_per_s"], "byte/s"), "to load": show(row["load_bytes"], "byte"), "takes": show(row["load_s"], "s"),
            }
            for row in plan.document.get("storage", ())
        ],
    }  # fmt: skip
    return [(HEADINGS[key], rows[key]) for key in TABLES]
