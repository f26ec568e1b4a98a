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
        plan.say("status", "verify.status_without_plan", status=repr(document["status"]))
    if document["status"] == "unbounded" and plan.problem.spec.objective.maximise is None:
        plan.say("status", "verify.only_throughput_is_unbounded")
    for key in EMPTY:
        if document[key] or (key in ("bound", "gap", "totals") and document[key] is not None):
            plan.say(key, "verify.empty_without_plan")
    if document["bound_of"] != plan.problem.bound_of:
        plan.say(
            "bound_of", "verify.bound_of_another_program", given=repr(document["bound_of"]), found=plan.problem.bound_of
        )
    found = document["diagnosis"]
    if (document["status"] == "infeasible") != isinstance(found, Mapping):
        plan.say("diagnosis", "verify.only_if_infeasible")
    if isinstance(found, Mapping):
        _check_diagnosis(plan, found)


def _check_diagnosis(plan: CheckedPlan, found: Mapping[str, Any]) -> None:
    """Check that conflict and repair speak of places in the spec, and quote them."""
    document = plan.document
    if found.get("conflict_of") not in ("limits", "amounts"):
        plan.say("diagnosis.conflict_of", "verify.conflict_of", given=repr(found.get("conflict_of")))
    defaults = plan.problem.spec.model_dump()
    for part in ("conflict", "repair"):
        for i, row in enumerate(found[part]):
            block = row["path"].split("[")[0].split(".")[0]
            if not row["path"] or block not in defaults:
                plan.say(f"diagnosis.{part}[{i}].path", "verify.no_place_in_spec", path=repr(row["path"]))
    for i, row in enumerate(found["repair"]):
        stated = at(document["spec"], row["path"])
        if stated is not None and stated != row["from"]:
            plan.say(f"diagnosis.repair[{i}].from", "verify.repair_from", given=repr(row["from"]), found=repr(stated))
        if row["to"] == row["from"]:
            plan.say(f"diagnosis.repair[{i}].to", "verify.changes_nothing")
    served = {workload.name for workload in plan.problem.spec.workloads if workload.kind == "serving"}
    for i, row in enumerate(found.get("reach", ())):
        if row["workload"] is not None and row["workload"] not in served:
            plan.say(f"diagnosis.reach[{i}].workload", "verify.unknown_serving_workload", name=repr(row["workload"]))
        if not 0.0 <= row["at_most"] < 1.0:
            plan.say(f"diagnosis.reach[{i}].at_most", "verify.share_of_demand")
    if found["repair_checked"] and not found["repair"]:
        plan.say("diagnosis.repair_checked", "verify.no_repair")
