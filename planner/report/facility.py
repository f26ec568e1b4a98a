"""Format the table of racks that our own systems fill. Its contents: `planner.interpret.facility`."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.messages import enumerated, say
from planner.plan import Plan

TABLE = "facility"
TABLES = (TABLE,)


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of the table."""
    rows = [
        {
            "site": row["site"],
            "system": row["system"],
            "systems": f"{row['systems']:,}",
            "racks": f"{row['racks']:,.10g}",
            "systems_per_rack": f"{1 / row['racks_per_system']:,.4g}",
            "power_of_a_rack": show(row["rack_power_w"], "W"),
            "cooling": enumerated(row["cooling"], "or"),
        }
        for row in plan.document.get("facility", ())
    ]
    return [(say("heading.racks"), rows)]
