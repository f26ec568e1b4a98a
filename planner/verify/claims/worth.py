"""Check what a plan says of the worth of its limits, and of the systems that it does not use, as far as its own rows tell."""

from __future__ import annotations

from planner.plan import binds
from planner.plan.rows.money import Limit
from planner.verify.checked_plan import CheckedPlan

UNITS = (
    ("limits.carbon", "kg"), (".power", "W"), (".power_by_phase.", "W"), (".connection", "W"), (".rack_power", "W"), (".rack_positions", "rack"), ("simplicity.most_sites", "site"), ("simplicity.most_kinds", "kind"),
    (".storage_bandwidth", "byte/s"), (".topologies", "system"), (".deadline", "s"), (".slo.", "s"), (".largest_share", "1"), (".spread", "1"),
)  # fmt: skip
"""Unit of a limit by a part of its path; money where none is in it, but for supplies and lines."""


def check_worth(plan: CheckedPlan) -> None:
    """Check units, nulls and signs of marginal values, and the runner-up of each site."""
    for i, row in enumerate(plan.document["limits"]):
        _check_limit(plan, f"limits[{i}]", row)
    _check_runner_up(plan)


def _check_limit(plan: CheckedPlan, path: str, row: Limit) -> None:
    if (unit := _unit(plan, row["path"])) is not None and row["unit"] != unit:
        plan.say(f"{path}.unit", f"says {row['unit']!r}, expected {unit!r}")
    held, free = row["marginal_value"], row.get("marginal_value_divisible")
    wanted = f"{plan.document['objective']['unit']}/{row['unit']}"
    if row["marginal_unit"] not in (None, wanted):
        plan.say(f"{path}.marginal_unit", f"says {row['marginal_unit']!r}, expected {wanted!r}")
    if row["marginal_unit"] is None and not (held is None and free is None):
        plan.say(f"{path}.marginal_unit", "is missing beside a marginal value")
    if held is not None and not binds(row):
        plan.say(f"{path}.marginal_value", "must be null where the limit does not bind")
    minimises = plan.document["objective"]["sense"] == "min"
    for name, value in (("marginal_value", held), ("marginal_value_divisible", free)):
        if value is not None and (value > 0 if minimises else value < 0):
            plan.say(f"{path}.{name}", f"more of a limit cannot make the plan worse: {value!r}")


def _unit(plan: CheckedPlan, path: str) -> str | None:
    """Return the unit of a limit; None where its path does not tell."""
    if path.startswith("limits.") and path != "limits.carbon":
        return plan.problem.spec.currency
    if path.startswith("phases["):
        return plan.problem.spec.currency
    if path.startswith("offers["):
        return "system"
    if path.startswith("apis["):
        return "token/s"
    if path.startswith("lines["):
        return "line"
    return next((unit for part, unit in UNITS if part in path), None)


def _check_runner_up(plan: CheckedPlan) -> None:
    """Check that there is one row for each site with systems, of a system that is offered there and not in use."""
    rows, held = plan.document["runner_up"], {row["site"]: set[str]() for row in plan.document["fleet"]}
    for row in plan.document["fleet"]:
        held[row["site"]].add(row["system"])
    wanted = [site.region for site in plan.problem.sites if site.region in held and site.api is None]
    if not rows:  # plans of studies state none
        return
    if [row["site"] for row in rows] != wanted:
        plan.say("runner_up", f"must have one row for each site with systems: {', '.join(wanted) or 'none'}")
        return
    for i, row in enumerate(rows):
        path, site = f"runner_up[{i}]", plan.sites[row["site"]]
        unit = f"{plan.document['objective']['unit']}/system"
        if row["margin_unit"] != unit:
            plan.say(f"{path}.margin_unit", f"says {row['margin_unit']!r}, expected {unit!r}")
        if len({row["system"] is None, row["how"] is None, row["margin"] is None}) > 1:
            plan.say(path, "states system, how and margin, or none of them")
        elif row["system"] is not None:
            offered = any(
                (offer.system, offer.how) == (row["system"], row["how"]) and site.region in offer.prices
                for offer in plan.problem.offers
            )
            barred = site.systems and row["system"] not in site.systems
            if not offered or barred or row["system"] in held[row["site"]]:
                plan.say(f"{path}.system", f"{row['system']} ({row['how']}) is not offered there, or is in use")
            if not row["margin"] >= 0:
                plan.say(f"{path}.margin", f"is below 0: {row['margin']!r}")


def check_labels(plan: CheckedPlan) -> None:
    """Check the kind of each workload, and unit and pool of its points, against the spec."""
    for w, row in enumerate(plan.document["workloads"]):
        trains = row["name"] in plan.training
        facts = plan.serving.get(row["name"]) or plan.training[row["name"]]
        plan.equal(f"workloads[{w}].kind", row["kind"], facts.spec.kind)
        for i, point in enumerate(row["points"]):
            path = f"workloads[{w}].points[{i}]"
            plan.equal(f"{path}.capacity_unit", point["capacity_unit"], "token/s" if trains else "request/s")
            if (point["pool"] is None) is not trains:
                plan.say(f"{path}.pool", "belongs to points that serve, and to no others")
