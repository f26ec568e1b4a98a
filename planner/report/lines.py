"""Format and explain the lines of a plan, the traffic on them, and the spread over zones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from catalog.units import show
from planner.messages import commas, enumerated, listed, named, say
from planner.plan import Plan
from planner.plan.rows.time import Failure, Line, Spread, Stream
from planner.report.phases import span_words
from planner.report.plan_index import PlanIndex
from planner.report.words import between, whole

TB = 1e12  # bytes
LINES, PLACEMENTS, SPREAD, FAILURES = "lines", "placements", "spread", "failures"
TABLES = (LINES, PLACEMENTS, SPREAD, FAILURES)  # each there only where the spec asks for it


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """List (heading, rows) of the tables that the plan has."""
    document = plan.document
    return [
        (say("heading.lines"), [_line(row) for row in document.get("lines", ())]),
        (say("heading.placements"), [_placement(plan, row) for row in document.get("placements", ())]),
        (say("heading.spread"), [_zone(row) for row in document.get("spread", ())]),
        (say("heading.failures"), [_failure(row) for row in document.get("failures", ())]),
    ]


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain each line that carries traffic: its use, its main traffic, its cost, and the workloads that require its security class."""
    asked = {
        w["name"]: w["security"]
        for w in index.plan.document["spec"]["workloads"]
        if w.get("security", "public") != "public"
    }
    for row in index.document.get("lines", ()):
        size = sum(part["bytes"] for part in row["traffic"])
        if not size:
            continue
        most = max(row["traffic"], key=lambda part: part["bytes"])
        kind = say("point.copies", count=f"{row['units']}", layout=row["kind"]) if row["units"] else row["kind"]
        yield say(
            "line.carries",
            line=row["line"],
            kind=kind,
            use="" if row["use"] is None else say("line.use", share=f"{row['use']:.0%}"),
            traffic=named("traffic", most["traffic"]),
            workload=most["workload"],
            share=f"{most['bytes'] / size:.0%}",
            size=show(size, "byte"),
            cost=f"{sum(row['cost'].values()) / (size / TB):,.3g}",
            currency=index.currency,
            security=_security(row, asked),
        )


def _security(row: Line, asked: dict[str, str]) -> str:
    """Name the workloads on a line that ask for more than a public one."""
    sent: dict[str, list[str]] = defaultdict(list)
    for part in row["traffic"]:
        if part["workload"] in asked:
            sent[part["workload"]].append(named("traffic", part["traffic"]))
    parts = [
        say("line.asks", workload=name, security=named("security", asked[name]), traffic=enumerated(kinds))
        for name, kinds in sent.items()
    ]
    return say("line.security", parts=enumerated(parts)) if parts else ""


def _line(row: Line) -> dict[str, Any]:
    return {
        "line": row["line"],
        "kind": row["kind"],
        "units": "" if row["units"] is None else f"{row['units']}",
        "capacity": say("line.by_the_byte")
        if row["capacity_bytes_per_s"] is None
        else show(row["capacity_bytes_per_s"], "byte/s"),
        "busiest": show(row["peak_bytes_per_s"], "byte/s"),
        "use": "" if row["use"] is None else f"{row['use']:.1%}",
        "cost": whole(sum(row["cost"].values())),
        "carries": listed(
            say(
                "line.traffic",
                traffic=named("traffic", part["traffic"]),
                workload=part["workload"],
                size=show(part["bytes"], "byte"),
            )
            for part in row["traffic"]
        ),
    }


def _placement(plan: Plan, row: Stream) -> dict[str, Any]:
    return {
        "workload": row["workload"],
        "traffic": named("traffic", row["traffic"]),
        "from": row["from"],
        "to": row["to"],
        "line": row["kind"],
        "share": f"{row['share']:.0%}",
        "when": commas(span_words(plan, (window, window)) or say("span.throughout") for window in row["windows"]),
    }


def _zone(row: Spread) -> dict[str, Any]:
    return {
        "workload": row["workload"],
        "zone": row["zone"],
        "sites": commas(row["sites"]),
        "share_of_requests": between(f"{row['least_share']:.1%}", f"{row['largest_share']:.1%}"),
    }


def _failure(row: Failure) -> dict[str, Any]:
    sites: dict[tuple[str, str], float] = {}
    for route in row["routes"]:
        key = route["workload"], route["site"]
        sites[key] = sites.get(key, 0.0) + route["tokens_per_s"]
    served = listed(
        say("line.served", workload=name, site=site, rate=whole(rate)) for (name, site), rate in sites.items()
    )
    return {"zone_that_fails": row["zone"], "slot": row["slot"], "served_elsewhere": served}
