"""Format the table of packing. Its contents: `planner.interpret.load.packing`."""

from __future__ import annotations

from collections import Counter

from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.fleet import Packed
from planner.report.heads import Row
from planner.report.words import how_words

HEADING = say("heading.packing")


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
        "system": say("had.system", how=how_words(row["how"]), system=row["system"]),
        "held": row["held"],
        "filled": row["nodes"],
        "partly": row["partly"],
        "chips_free": row["free_chips"],
        "stranded": row["stranded_chips"],
        "workers": commas(
            say("packing.workers", count=f"{count}", chips=f"{chips}")
            for chips, count in sorted(shapes.items(), reverse=True)
            if count
        ),
        "lost_with_one": say("packing.lost", packed=f"{row['lost_packed']}", spread=f"{row['lost_spread']}"),
        "without_moves": ""
        if kept is None
        else say("packing.without_moves", most=f"{kept}", mean=f"{mean:.4g}", moved=f"{row['mean_nodes']:.4g}"),
    }
