"""Show a plan at one of its sites: the rows of that site alone. No Streamlit here."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from planner.dashboard.figures import amount
from planner.dashboard.headline import currency
from planner.escape import page
from planner.plan import Plan
from planner.report.charts.fleet import fleet_rows
from planner.report.locale import Words

ROWS = ("fleet", "fabrics", "routes", "schedule", "cost_lines", "carbon_lines", "runner_up", "deployments", "packing")


def sites_of(plan: Plan) -> list[str]:
    """List the sites that a plan uses."""
    rows = [*plan.document["fleet"], *plan.document["schedule"]]
    return list(dict.fromkeys(str(row["site"]) for row in rows if row["site"]))


def at_site(plan: Plan, site: str) -> Plan:
    """Keep of a plan what it holds, runs, serves and pays at a site; figures of the whole plan stay as they are."""
    document: dict[str, Any] = dict(plan.document)
    for name in ROWS:
        if isinstance(document.get(name), list):
            document[name] = [row for row in document[name] if row["site"] == site]
    costs: dict[str, float] = defaultdict(float)
    for row in plan.document["cost_lines"]:
        if row["site"] != site:
            continue
        costs[row["component"]] += row["amount"]
    points = (
        {**workload, "points": [point for point in workload["points"] if point["site"] == site]}
        for workload in plan.document["workloads"]
    )
    places = [f"sites[{i}]" for i, each in enumerate(plan.document["spec"]["sites"]) if each["region"] == site]
    return Plan.of(
        {
            **document,
            "costs": {name: costs[name] for name in plan.document["costs"] if name in costs},
            "workloads": [workload for workload in points if workload["points"]],
            "limits": [
                row for row in plan.document["limits"] if row["path"].startswith(tuple(f"{place}." for place in places))
            ],
        }
    )


def site_words(plan: Plan, site: str, t: Words) -> str:
    """Say what a site holds, draws and costs, and its share of the whole cost."""
    here = at_site(plan, site)
    cost, total = sum(here.document["costs"].values()), sum(plan.document["costs"].values())
    values: dict[str, Any] = {
        "chips": f"{sum(row['chips'] for row in fleet_rows(here)):,.0f}",
        "power": amount(max((row["power_w"] for row in here.document["schedule"]), default=0.0), "W", t),
        "cost": amount(cost, currency(plan), t),
        "share": f"{cost / total:.1%}" if total else "–",
    }
    return t("site.words", site=page(site), **values)
