"""Format the table of routed prefixes. Its contents: `planner.interpret.load.prefix_routing`."""

from __future__ import annotations

from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.workloads import PrefixRouting
from planner.report.heads import Row

HEADING = say("heading.prefix_routing")


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload says how its prefixes are routed."""
    return [
        (HEADING, [_row(w["name"], w["prefix_routing"]) for w in plan.document["workloads"] if "prefix_routing" in w])
    ]


def _row(name: str, row: PrefixRouting) -> Row:
    return {
        "workload": name,
        "routing": say("prefix_routing.by_prefix" if row["policy"] == "prefix" else "prefix_routing.at_random"),
        "systems": say("prefix_routing.systems", systems=f"{row['systems']:,.4g}", stated=row["workers"]),
        "hit_rate": commas(
            say("amount.with_parts", amount=f"{p['hit_rate']:.1%}", parts=f"{p['hit_rate_other']:.1%}")
            for p in row["points"]
        ),
        "fullest_system": f"{row['imbalance']:.2f}",
        "throughput_of_the_other_way": commas(f"{p['capacity_other']:.0%}" for p in row["points"]),
    }
