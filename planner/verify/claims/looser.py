"""Check what a plan says of latency limits that are worth loosening, as far as its own rows tell."""

from __future__ import annotations

from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.findings import RELATIVE_TOL

MOST = 1.25  # times a limit, the loosest that is named
TIMES = 2.0  # what a chip must do under the looser limit beside what it does now


def check_looser(plan: CheckedPlan) -> None:
    """Compare each row with the limit of the spec, the systems at work, and the cost of the workload."""
    for i, row in enumerate(plan.document.get("looser", ())):
        place = f"looser[{i}]"
        workload = next((each for each in plan.document["workloads"] if each["name"] == row["workload"]), None)
        if workload is None:
            plan.say(f"{place}.workload", "verify.unknown_workload", name=repr(row["workload"]))
            continue
        limits = {(each["metric"], each["percentile"]): each["limit_s"] for each in workload["slo"]}
        plan.equal(f"{place}.limit_s", row["limit_s"], limits.get((row["metric"], row["percentile"])))
        held = {pool["system"] for point in workload["points"] for pool in point["pools"]}
        if row["system"] not in held:
            plan.say(f"{place}.system", "verify.runs_elsewhere", workload=row["workload"], system=repr(row["system"]))
        _check_steps(plan, place, row)
        times = row["steps"][-1]["times"] if row["steps"] else 1.0
        plan.equal(f"{place}.worth", row["worth"], workload["cost"] * row["share"] * (1.0 - 1.0 / times))


def _check_steps(plan: CheckedPlan, place: str, row: Row) -> None:
    """Check that each step is looser than the one before, and worth it."""
    limit_s, times = row["limit_s"], TIMES * (1.0 - RELATIVE_TOL)
    for j, step in enumerate(row["steps"]):
        if not limit_s < step["limit_s"] <= MOST * row["limit_s"] * (1.0 + RELATIVE_TOL):
            plan.say(f"{place}.steps[{j}].limit_s", "verify.not_a_looser_limit", given=repr(step["limit_s"]))
        if step["times"] < times:
            plan.say(f"{place}.steps[{j}].times", "verify.loosened_too_little", given=repr(step["times"]))
        limit_s, times = step["limit_s"], step["times"]
