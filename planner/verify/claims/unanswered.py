"""Check a plan without an answer: that it claims none, that its diagnosis quotes the spec, and whether there can be no plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.spec.document import at
from planner.verify.checked_plan import CheckedPlan

WITHOUT_ANSWER = ("infeasible", "unbounded", "limit")
EMPTY = (
    "fleet", "fabrics", "workloads", "routes", "schedule", "costs", "cost_lines", "carbon_lines", "limits", "runner_up", "assumptions", "provenance",
    "bound", "gap", "totals",
)  # fmt: skip


def check_without_answer(plan: CheckedPlan) -> None:
    """Check that a plan without an answer claims none, and that its diagnosis quotes the spec."""
    document = plan.document
    if document["status"] not in WITHOUT_ANSWER:
        plan.say("status", f"{document['status']!r}, but there is no plan")
    if document["status"] == "unbounded" and plan.problem.spec.objective.maximise is None:
        plan.say("status", "only throughput can be unbounded, and the spec minimises")
    for key in EMPTY:
        if document[key] or (key in ("bound", "gap", "totals") and document[key] is not None):
            plan.say(key, "must be empty where there is no plan")
    if document["bound_of"] != plan.problem.bound_of:
        plan.say("bound_of", f"says {document['bound_of']!r}, the program is the {plan.problem.bound_of} one")
    found = document["diagnosis"]
    if (document["status"] == "infeasible") != isinstance(found, Mapping):
        plan.say("diagnosis", "belongs to an infeasible plan, and to no other")
    if isinstance(found, Mapping):
        _check_diagnosis(plan, found)


def _check_diagnosis(plan: CheckedPlan, found: Mapping[str, Any]) -> None:
    """Check that conflict and repair speak of places in the spec, and quote them."""
    document = plan.document
    if found.get("conflict_of") not in ("limits", "amounts"):
        plan.say("diagnosis.conflict_of", f'must be "limits" or "amounts", is {found.get("conflict_of")!r}')
    defaults = plan.problem.spec.model_dump()
    for part in ("conflict", "repair"):
        for i, row in enumerate(found[part]):
            block = row["path"].split("[")[0].split(".")[0]
            if not row["path"] or block not in defaults:
                plan.say(f"diagnosis.{part}[{i}].path", f"{row['path']!r} is no place in a spec")
    for i, row in enumerate(found["repair"]):
        stated = at(document["spec"], row["path"])
        if stated is not None and stated != row["from"]:
            plan.say(f"diagnosis.repair[{i}].from", f"says {row['from']!r}, the spec says {stated!r}")
        if row["to"] == row["from"]:
            plan.say(f"diagnosis.repair[{i}].to", "changes nothing")
    served = {workload.name for workload in plan.problem.spec.workloads if workload.kind == "serving"}
    for i, row in enumerate(found.get("reach", ())):
        if row["workload"] is not None and row["workload"] not in served:
            plan.say(f"diagnosis.reach[{i}].workload", f"{row['workload']!r} is no serving workload of the spec")
        if not 0.0 <= row["at_most"] < 1.0:
            plan.say(f"diagnosis.reach[{i}].at_most", "must be a share of the demand below 1")
    if found["repair_checked"] and not found["repair"]:
        plan.say("diagnosis.repair_checked", "there is no repair")
