"""Format the table of routed prefixes. Its contents: `planner.interpret.load.prefix_routing`."""

from __future__ import annotations

from typing import Any

from planner.plan import Plan
from planner.plan.rows.workloads import PrefixRouting

Row = dict[str, Any]
HEADING = "Requests routed by prefix"
NOTES = {
    HEADING: "Hit rate: share of requests that find their prefix, in brackets with the other way. Fullest system: its load over the mean, "
    "which takes as much of the throughput. Where the systems at work are not as many as stated, state them as `workers` of the cache."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload says how its prefixes are routed."""
    return [
        (HEADING, [_row(w["name"], w["prefix_routing"]) for w in plan.document["workloads"] if "prefix_routing" in w])
    ]


def _row(name: str, row: PrefixRouting) -> Row:
    return {
        "workload": name,
        "routing": "by prefix" if row["policy"] == "prefix" else "at random",
        "systems": f"{row['systems']:,.4g} at work, {row['workers']:,} stated",
        "hit rate": ", ".join(f"{p['hit_rate']:.1%} ({p['hit_rate_other']:.1%})" for p in row["points"]),
        "fullest system": f"{row['imbalance']:.2f}",
        "throughput of the other way": ", ".join(f"{p['capacity_other']:.0%}" for p in row["points"]),
    }
