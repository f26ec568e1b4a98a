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
        plan.say(f"{path}.unit", "verify.other_unit", given=repr(row["unit"]), expected=repr(unit))
    held, free = row["marginal_value"], row.get("marginal_value_divisible")
    wanted = f"{plan.document['objective']['unit']}/{row['unit']}"
    if row["marginal_unit"] not in (None, wanted):
        plan.say(f"{path}.marginal_unit", "verify.other_unit", given=repr(row["marginal_unit"]), expected=repr(wanted))
    if row["marginal_unit"] is None and not (held is None and free is None):
        plan.say(f"{path}.marginal_unit", "verify.missing_beside_value")
    if held is not None and not binds(row):
        plan.say(f"{path}.marginal_value", "verify.null_unless_binding")
    minimises = plan.document["objective"]["sense"] == "min"
    for name, value in (("marginal_value", held), ("marginal_value_divisible", free)):
        if value is not None and (value > 0 if minimises else value < 0):
            plan.say(f"{path}.{name}", "verify.more_cannot_be_worse", given=repr(value))


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
        plan.say("runner_up", "verify.row_for_each_site", names=", ".join(wanted) or "none")
        return
    for i, row in enumerate(rows):
        path, site = f"runner_up[{i}]", plan.sites[row["site"]]
        unit = f"{plan.document['objective']['unit']}/system"
        if row["margin_unit"] != unit:
            plan.say(f"{path}.margin_unit", "verify.other_unit", given=repr(row["margin_unit"]), expected=repr(unit))
        if len({row["system"] is None, row["how"] is None, row["margin"] is None}) > 1:
            plan.say(path, "verify.system_how_and_margin")
        elif row["system"] is not None:
            offered = any(
                (offer.system, offer.how) == (row["system"], row["how"]) and site.region in offer.prices
                for offer in plan.problem.offers
            )
            barred = site.systems and row["system"] not in site.systems
            if not offered or barred or row["system"] in held[row["site"]]:
                plan.say(f"{path}.system", "verify.not_offered_or_in_use", system=row["system"], how=row["how"])
            if not row["margin"] >= 0:
                plan.say(f"{path}.margin", "verify.below_zero", given=repr(row["margin"]))


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
                plan.say(f"{path}.pool", "verify.only_of_serving_points")
