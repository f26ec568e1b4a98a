"""Check how many systems of a fleet row run in each slot, where they are paid for by the hour, and count their starts."""

from __future__ import annotations

import math

from planner.problem.phases import counted_by_hour
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.holdings import Holding
from planner.verify.fleet.options import HeldKey, key_of


def running_in(plan: CheckedPlan, path: str, row: Row, holding: Holding) -> list[float]:
    """Return the systems of a row that are paid for in each slot: all while they are held, or those that it says run, which a plan of an
    earlier release does not say."""
    windows = [int(w) for w in plan.problem.calendar.window]
    stated = row.get("running")
    if stated is None:
        return [float(row["count"]) if w in holding.windows else 0.0 for w in windows]
    mine = [t for t, w in enumerate(windows) if w in holding.windows]
    found = [0.0] * len(windows)
    if not counted_by_hour(plan.problem, plan.options_by_row[-1].offer):
        plan.say(f"{path}.running", "verify.paid_by_hour")
    if len(stated) != len(mine):
        plan.say(f"{path}.running", "verify.count_for_each_slot", count=len(mine), given=len(stated))
        return found
    for t, running in zip(mine, stated, strict=True):
        if type(running) is not int or not 0 <= running <= row["count"]:
            plan.say(f"{path}.running", "verify.running_in_slot", slot=str(t), most=row["count"], given=repr(running))
        found[t] = float(running)
    _check_count(plan, path, row, max(map(int, found), default=0))
    return found


def _check_count(plan: CheckedPlan, path: str, row: Row, most: int) -> None:
    """Check that a row holds as many systems as run at a time, and more only as least numbers of systems ask, or the widest job takes."""
    offer, asked = plan.options_by_row[-1].offer, plan.problem.spec.simplicity
    least = max(offer.least, asked.least_systems or 1, _widest_job(plan, row))
    if type(row["count"]) is int and most < row["count"] > least:
        plan.say(f"{path}.count", "verify.more_than_run", count=row["count"], most=most)


def _widest_job(plan: CheckedPlan, row: Row) -> int:
    """Return the systems of a row that the widest job takes at full width; 0 without a job there."""
    pools = [
        pool
        for workload in plan.document["workloads"]
        if workload["name"] in plan.training
        for point in workload["points"]
        for pool in point["pools"]
        if (point["site"], pool["system"], pool["how"]) == (row["site"], row["system"], row["how"])
    ]
    return max((math.ceil(float(pool["systems_per_replica"]) - 1e-6) for pool in pools), default=0)


def check_starts(plan: CheckedPlan) -> None:
    """Count the starts of systems that are paid for by the hour, and test that none stops before its least run: the oldest stops first."""
    calendar = plan.problem.calendar
    before = {int(after): t for t, after in enumerate(calendar.next)}
    for i, row in enumerate(plan.document["fleet"]):
        key = key_of(row)
        if "running" not in row or key in plan.starts:
            continue
        runs = plan.running[key]
        plan.starts[key] = [max(runs[t] - runs[before[t]], 0.0) for t in range(calendar.slots)]
        least_s = plan.fleet_options[key].offer.least_run_s
        for first in range(calendar.slots) if least_s > min(float(s) for s in calendar.step_s) else ():
            if runs[first] > runs[before[first]] and _stops_early(plan, key, first, least_s):
                plan.say(f"fleet[{i}].running", "verify.stops_early", slot=str(first), time=f"{least_s:g}")


def _stops_early(plan: CheckedPlan, key: HeldKey, first: int, least_s: float) -> bool:
    """Tell whether more systems have started since a start than run at some time within the least run after it."""
    calendar, runs, starts = plan.problem.calendar, plan.running[key], plan.starts[key]
    t, passed_s, started = first, 0.0, 0.0
    while passed_s < least_s * (1 - 1e-9):
        started += starts[t]
        if started > runs[t]:
            return True
        passed_s += float(calendar.step_s[t])
        t = int(calendar.next[t])
    return False


def paid_in(plan: CheckedPlan, row: Row, t: int) -> tuple[float, float]:
    """Return (systems of a row that are paid for in a slot within its windows, shares of the slot paid for by those that start in it)."""
    if "running" not in row:
        return float(row["count"]), 0.0
    key, calendar = key_of(row), plan.problem.calendar
    return plan.running[key][t], plan.starts[key][t] * plan.fleet_options[key].offer.start_s / float(calendar.step_s[t])
