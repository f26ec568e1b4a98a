"""Format the table of packing. Its contents: `planner.interpret.load.packing`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from planner.plan import Plan
from planner.plan.rows.fleet import Packed
from planner.report.words import how_words

Row = dict[str, Any]
HEADING = "How full the systems are"
NOTES = {
    HEADING: "In the slot that fills most systems, workers moved together. Stranded: free chips that no further block of the largest size fits on."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where replicas are divisible."""
    return [(HEADING, [_row(row) for row in plan.document.get("packing", ())])]


def _row(row: Packed) -> Row:
    shapes: Counter[int] = Counter()
    for shape in row["shapes"]:
        shapes[shape["chips"]] += shape["workers"]
    kept, mean = row["nodes_without_moves"], row["mean_nodes_without_moves"]
    return {
        "site": row["site"],
        "system": f"{how_words(row['how'])} {row['system']}",
        "held": row["held"],
        "filled": row["nodes"],
        "partly": row["partly"],
        "chips free": row["free_chips"],
        "stranded": row["stranded_chips"],
        "workers": ", ".join(f"{count} of {chips}" for chips, count in sorted(shapes.items(), reverse=True) if count),
        "lost with one": f"{row['lost_packed']} packed, {row['lost_spread']} spread",
        "without moves": "" if kept is None else f"{kept} ({mean:.4g} on average, {row['mean_nodes']:.4g} with)",
    }
