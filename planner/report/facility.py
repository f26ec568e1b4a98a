"""Format the table of racks that our own systems fill. Its contents: `planner.interpret.facility`."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.plan import Plan

TABLE = "facility"
TABLES = (TABLE,)
HEADING = "Racks of our own systems"
NOTES = {
    HEADING: "Where the most systems are held at once. Racks of the network come on top. Power: nameplate of the fullest rack."
}


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of the table."""
    rows = [
        {
            "site": row["site"],
            "system": row["system"],
            "systems": f"{row['systems']:,}",
            "racks": f"{row['racks']:,.10g}",
            "systems per rack": f"{1 / row['racks_per_system']:,.4g}",
            "power of a rack": show(row["rack_power_w"], "W"),
            "cooling": " or ".join(row["cooling"]),
        }
        for row in plan.document.get("facility", ())
    ]
    return [(HEADING, rows)]
