"""Tables for people of the lines of a plan, of what travels on them, and of the spread over zones. The rest: `planner.report.report`."""

from __future__ import annotations

from typing import Any

from catalog.units import show
from planner.plan import Plan

LINES, PLACEMENTS, SPREAD, FAILURES = "lines", "placements", "spread", "failures"
TABLES = (LINES, PLACEMENTS, SPREAD, FAILURES)  # each there only where the spec asks for it
WORDS = {"requests": "requests", "control": "control", "telemetry": "telemetry", "weights": "weights"}


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """(heading, rows) of those that the plan has."""
    document = plan.document
    return [
        ("Lines to rent", [_line(row) for row in document.get(LINES, ())]),
        ("What travels beside requests", [_placement(row) for row in document.get(PLACEMENTS, ())]),
        ("Spread over zones", [_zone(row) for row in document.get(SPREAD, ())]),
        ("When a zone fails at the busiest hour", [_failure(row) for row in document.get(FAILURES, ())]),
    ]


def _line(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "line": row["line"],
        "kind": row["kind"],
        "units": "" if row["units"] is None else f"{row['units']}",
        "capacity": "by the byte"
        if row["capacity_bytes_per_s"] is None
        else show(row["capacity_bytes_per_s"], "byte/s"),
        "busiest": show(row["peak_bytes_per_s"], "byte/s"),
        "use": "" if row["use"] is None else f"{row['use']:.1%}",
        "cost": f"{sum(row['cost'].values()):,.0f}",
        "carries": "; ".join(
            f"{part['traffic']} of {part['workload']} {show(part['bytes'], 'byte')}" for part in row["traffic"]
        ),
    }


def _placement(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "workload": row["workload"],
        "traffic": WORDS[row["traffic"]],
        "from": row["from"],
        "to": row["to"],
        "line": row["kind"],
        "share": f"{row['share']:.0%}",
        "phases": ", ".join(map(str, row["phases"])),
    }


def _zone(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "workload": row["workload"],
        "zone": row["zone"],
        "sites": ", ".join(row["sites"]),
        "share of an hour's requests": f"{row['least_share']:.1%} to {row['largest_share']:.1%}",
    }


def _failure(row: dict[str, Any]) -> dict[str, Any]:
    sites: dict[tuple[str, str], float] = {}
    for route in row["routes"]:
        key = route["workload"], route["site"]
        sites[key] = sites.get(key, 0.0) + route["tokens_per_s"]
    served = "; ".join(f"{name} in {site} {rate:,.0f}" for (name, site), rate in sites.items())
    return {"zone that fails": row["zone"], "slot": row["slot"], "served elsewhere, output tokens/s": served}
