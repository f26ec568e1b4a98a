"""Explain training jobs: where and when each runs, at what price of electricity, and how often it is pre-empted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from catalog.units import DAY_S, HOUR_S, show
from planner.messages import Message, enumerated, named, say, stopped
from planner.messages import listed as semicolons
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.plan.rows.quality import IfFirst
from planner.plan.rows.robust import LateJob
from planner.plan.rows.time import Slot
from planner.plan.rows.workloads import Workload
from planner.report.fleet import layout_words
from planner.report.hours import busy_hours
from planner.report.plan_index import PlanIndex, mean_of
from planner.report.words import whole, with_unit

NAMED_SHARE = 0.005  # share of a job's time: less lost to pre-emption is left out
LITTLE_SLACK = 0.005  # share of the steps: less slack is none
NAMED_DAY = 0.1  # share of a job's work: typical days with less are left out


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain when each job runs."""
    return map(stopped, clauses(index))


def clauses(index: PlanIndex) -> Iterator[str]:
    """Say when each job runs, and how often it makes room; without full stops."""
    for workload in index.plan.document["workloads"]:
        if workload["kind"] == "serving":
            continue
        for point in workload["points"]:
            yield from _when(index, workload["name"], point)
        for row in index.document.get("preemptions", ()):
            if row["workload"] == workload["name"] and row["lost_share"] >= NAMED_SHARE:
                lost = {"hours": f"{row['lost_s'] / HOUR_S:,.1f}", "share": f"{row['lost_share']:.1%}"}
                yield say("job.makes_room", name=row["workload"], times=f"{row['resumptions']:,.0f}", **lost)


def runs(plan: Plan) -> Iterator[str]:
    """Say what a lead reads of each job: how it runs, what it loses, how much slack it has, and what more slack costs."""
    found = plan.document.get("confidence")
    late = {row["workload"]: row for row in found.get("late_jobs", ())} if found else {}
    for workload in plan.document["workloads"]:
        for point in workload["points"] if workload["kind"] == "training" else ():
            yield _run(workload, point)
        if workload["name"] in late:
            yield _late(plan, late[workload["name"]])


def _run(workload: Workload, point: Point) -> str:
    [pool] = point["pools"]
    spares = pool.get("spares", 0)
    parts = [
        Message.of(
            "run.how", job=workload["name"], layout=layout_words(pool, batch=False), count=pool["systems_per_replica"], system=pool["system"],
            spares=Message.of("run.spares", count=spares).text() if spares else "", step=show(point["time_s"]["step"], "s"), mfu=f"{point['mfu']:.1%}", goodput=f"{point['goodput']:.1%}",
        )
    ]  # fmt: skip
    if found := point.get("checkpoints"):
        parts.append(Message.of("run.checkpoints", interval=show(found["interval_s"], "s")))
    days = f"{point['time_s']['run'] / DAY_S:,.1f}"
    slack = workload.get("slack_s")
    parts.append(
        Message.of("run.days", days=days)
        if slack is None
        else Message.of("run.days_and_slack", days=days, slack=f"{slack / DAY_S:,.1f}")
    )
    return stopped(semicolons(part.text() for part in parts))


def _late(plan: Plan, row: LateJob) -> str:
    """Say why a deadline is kept in few scenarios, and how many further systems would keep it in more."""
    job, kept, slower = row["workload"], f"{row['kept']:.0%}", f"{row['slower']:.1%}"
    slack = f"{row['slack']:.1%}"
    why = (
        Message.of("run.no_slack", job=job, kept=kept, slower=slower)
        if row["slack"] < LITTLE_SLACK
        else Message.of("run.some_slack", job=job, kept=kept, slower=slower, slack=slack)
    )
    more = Message.of("run.more_systems", count=row["count"], system=row["system"], site=row["site"])
    if row["cost"] is not None:
        cost = with_unit(row["cost"], plan.document["spec"].get("currency", "USD"))
        more = Message.of(
            "run.more_systems_cost", count=row["count"], system=row["system"], site=row["site"], cost=cost
        )
    return stopped(semicolons([why.text(), more.text()]))


def waiting(plan: Plan) -> Iterator[str]:
    """Say which jobs are done after their deadlines, or not at all, for which others they wait, and what it would change if they went first."""
    unit = plan.objective["unit"]
    for row in plan.document.get("postponed", ()):
        name, late = row["workload"], row["deadline_s"]
        why = ""
        if row["waits_for"]:
            why = say("waiting.for_others", jobs=enumerated(row["waits_for"]))
        elif row["waits_for"] is not None:
            why = say("waiting.no_room")
        told = {"job": name, "priority": f"{row['priority']}", "why": why}
        if late is None:
            yield say("waiting.left_out", **told)
        else:
            days = f"{(late - row['asked_s']) / DAY_S:,.1f}"
            yield say("waiting.late", days=days, day=f"{late / DAY_S:,.1f}", **told)
        if row["waits_for"] and row["first"] is not None:
            yield _if_first(name, row["first"], unit)


def _if_first(name: str, first: IfFirst, unit: str) -> str:
    """Say what waits, and by how much the plan would cost more, if the job went before all others."""
    told = [
        say("waiting.other_left_out", job=other)
        if done is None
        else say("waiting.other_late", job=other, day=f"{done / DAY_S:,.1f}")
        for other, done in first["postponed"].items()
    ]
    if (change := first["difference"]) is not None:
        change_of = "carbon" if unit == "kg" else "cost"
        if abs(change) < 0.5:
            told.append(say(f"waiting.{change_of}.same"))
        else:
            more = "more" if change > 0 else "less"
            told.append(say(f"waiting.{change_of}.{more}", amount=whole(abs(change)), unit=unit))
    return say("waiting.if_first", job=name, then=enumerated(told) if told else say("waiting.all_on_time"))


def _when(index: PlanIndex, name: str, point: Point) -> Iterator[str]:
    every = index.schedule[point["site"]]
    worked = [(row, row["active"].get(point["id"], 0.0) * row["seconds"]) for row in every]
    share = sum(work for _, work in worked) / sum(row["seconds"] for row in every)
    if share <= 0:
        return
    pool, days, price = point["pools"][0], "", ""
    if "day" in every[0]:
        days = say("job.days", days=enumerated(_main_days(worked)))
    paid = mean_of((work, row["price_per_j"]) for row, work in worked)
    usual = mean_of((row["seconds"], row["price_per_j"]) for row in every)
    if pool["how"] == "buy" and paid is not None and usual is not None:  # a rent includes electricity
        price = say("job.price", paid=index.per_mwh(paid), usual=index.per_mwh(usual))
    told = {"name": name, "site": point["site"], "how": named("had", pool["how"]), "system": pool["system"]}
    hours = busy_hours(_by_hour(worked))
    yield say("job.runs", share=f"{share:.0%}", hours=hours, days=days, price=price, **told)


def _by_hour(worked: Sequence[tuple[Slot, float]]) -> list[tuple[int, float]]:
    """Add up the work by hour of the day (UTC)."""
    hours: dict[int, float] = defaultdict(float)
    for row, work in worked:
        hours[row["hour_utc"]] += work
    return sorted(hours.items())


def _main_days(worked: Sequence[tuple[Slot, float]]) -> list[str]:
    """List the typical days with at least a tenth of the work."""
    days: dict[str, float] = defaultdict(float)
    for row, work in worked:
        days[row["day"]] += work
    return [day for day, work in days.items() if work >= NAMED_DAY * sum(days.values())]
