"""Check which jobs wait, and build the problem in which they do.

Checks that rows quote the spec, that only jobs with a priority wait, and that each is done by its later deadline, which the
check of jobs computes. That no job could wait for less is a statement about other programs, which are not solved again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.units import HOUR_S, YEAR_S
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.resolve.resolver import resolve
from planner.spec.document import Edits, edited
from planner.spec.model import PlanSpec, parse_spec
from planner.spec.requirements.priority import put_off
from planner.verify.claims.earlier import made_by_another
from planner.verify.findings import Report
from planner.verify.load.closed_loop import rated

TABLE = "postponed"
Recorded = Mapping[str, Mapping[str, Any]]


def resolved(document: Mapping[str, Any], overlays: Sequence[Path], recorded: Recorded) -> ResolvedSpec:
    """Resolve the spec of a plan, with the rates of closed loops and the later deadlines that it states, without the jobs that it leaves out.

    Rows that quote the spec wrongly change nothing here; `check_postponed` names them. Raises SpecError.
    """
    unpriced = made_by_another(document) and "preemptions" not in document
    asked = _with_free_pauses(rated(document)) if unpriced else rated(document)
    asked = asked if _counts_loads(document) else _with_free_loads(asked)
    spec = parse_spec(asked)
    problem = resolve(spec, overlays, recorded)
    late = {row["workload"]: row for row in document.get(TABLE, ()) if not _wrong(spec, row)}
    if not late:
        return problem
    edits: Edits = ()
    for job in problem.training:
        if job.name in late and (done_s := late[job.name]["deadline_s"]) is not None:
            edits += put_off(job.path, job.spec, done_s)
    problem = resolve(parse_spec(edited(asked, edits)), overlays, recorded) if edits else problem
    kept = (job for job in problem.training if job.name not in late or late[job.name]["deadline_s"] is not None)
    return replace(problem, training=tuple(kept))


def _with_free_pauses(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Write into a spec that pauses cost nothing: plans of other releases without rows of pauses, such as plans of 0.2, count only what jobs state."""
    jobs = [
        {**workload, "preemption": workload.get("preemption")} if workload.get("kind") != "serving" else workload
        for workload in asked["workloads"]
    ]
    return {**asked, "workloads": jobs}


def _counts_loads(document: Mapping[str, Any]) -> bool:
    """Tell whether the release that made a plan counted loads of weights: this one, and any that states what they cost."""
    return not made_by_another(document) or any(
        "relay_cost" in pool for row in document.get("deployments", ()) for pool in row["pools"]
    )


def _with_free_loads(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Write into a spec that loads only take their time, where it states nothing else: plans of other releases without the cost of loads, such as those of 0.2, count none."""
    return {**asked, "operation": {"relay_cost": None, "relays_per_day": None, **(asked.get("operation") or {})}}


def check_postponed(report: Report, document: Mapping[str, Any]) -> None:
    """Compare the rows with the spec: jobs, priorities, deadlines, their order, and that what they wait for goes before them."""
    if TABLE not in document:
        return
    rows = document[TABLE]
    if not rows or document["objective"]["value"] is None:
        report.say(TABLE, "verify.only_if_a_job_waits")
    spec = parse_spec(document["spec"])
    classes = {workload.name: (_priority(workload), i) for i, workload in enumerate(spec.workloads)}
    left_out = {row["workload"] for row in rows if row["deadline_s"] is None}
    order = [classes.get(row["workload"], (0, 0)) for row in rows]
    if order != sorted(set(order)):
        report.say(TABLE, "verify.jobs_by_priority")
    for i, row in enumerate(rows):
        if message := _wrong(spec, row):
            report.tell(f"{TABLE}[{i}]", message)
            continue
        for name in row["waits_for"] or ():
            ahead = name in classes and spec.workloads[classes[name][1]].kind != "serving"
            if not ahead or name in left_out or classes[name] >= classes[row["workload"]]:
                report.say(f"{TABLE}[{i}].waits_for", "verify.no_job_before", name=name, workload=row["workload"])
        for name in (row["first"] or {"postponed": ()})["postponed"]:
            if not classes.get(name, (0, 0))[0]:
                report.say(f"{TABLE}[{i}].first", "verify.no_job_that_waits", name=name)


def _priority(workload: Any) -> int:
    """Return the priority of a job, 0 where it never waits."""
    return getattr(workload, "priority", None) or 0


def _wrong(spec: PlanSpec, row: Mapping[str, Any]) -> str:
    """Say what of a row is not as the spec has it; empty if nothing is."""
    place = next((i for i, workload in enumerate(spec.workloads) if workload.name == row["workload"]), None)
    if place is None or not _priority(spec.workloads[place]):
        return Message.of("verify.no_job_with_priority", workload=row["workload"]).text()
    job: Any = spec.workloads[place]
    end_s = spec.horizon.years * YEAR_S
    asked_s = job.deadline if "deadline" in job.model_fields_set else end_s
    stated = (row["path"], row["priority"], row["asked_s"])
    if stated != (f"workloads[{place}]", job.priority, asked_s):
        return Message.of("verify.job_row", given=str(stated), workload=row["workload"]).text()
    done_s = row["deadline_s"]
    if done_s is not None and not (asked_s < done_s <= end_s and done_s % HOUR_S == 0):
        return Message.of("verify.deadline_whole_hour", asked=f"{asked_s:g}", given=f"{done_s:g}").text()
    return ""
