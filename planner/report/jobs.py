"""Explain training jobs: where and when each runs, at what price of electricity, and how often it is pre-empted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from catalog.units import DAY_S, HOUR_S, show
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.plan.rows.quality import IfFirst
from planner.plan.rows.robust import LateJob
from planner.plan.rows.time import Slot
from planner.plan.rows.workloads import Workload
from planner.report.fleet import layout_words
from planner.report.hours import busy_hours
from planner.report.locale import Words
from planner.report.plan_index import PlanIndex, mean_of
from planner.report.words import amount, how_words, joined, listed

NAMED_SHARE = 0.005  # share of a job's time: less lost to pre-emption is left out
LITTLE_SLACK = 0.005  # share of the steps: less slack is none
NAMED_DAY = 0.1  # share of a job's work: typical days with less are left out


def sentences(index: PlanIndex, t: Words | None = None) -> Iterator[str]:
    """Explain when each job runs."""
    t = t or Words()
    for workload in index.plan.document["workloads"]:
        if workload["kind"] == "serving":
            continue
        for point in workload["points"]:
            yield from _when(index, workload["name"], point, t)
        for row in index.document.get("preemptions", ()):
            if row["workload"] == workload["name"] and row["lost_share"] >= NAMED_SHARE:
                lost = {"hours": f"{row['lost_s'] / HOUR_S:,.1f}", "share": f"{row['lost_share']:.1%}"}
                yield t("job.makes_room", name=row["workload"], times=f"{row['resumptions']:,.0f}", **lost)


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
    return "; ".join(part.text() for part in parts) + "."


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
        cost = f"{amount(row['cost'])} {plan.document['spec'].get('currency', 'USD')}"
        more = Message.of(
            "run.more_systems_cost", count=row["count"], system=row["system"], site=row["site"], cost=cost
        )
    return f"{why.text()}; {more.text()}."


def waiting(plan: Plan) -> Iterator[str]:
    """Say which jobs are done after their deadlines, or not at all, for which others they wait, and what it would change if they went first."""
    unit = plan.objective["unit"]
    for row in plan.document.get("postponed", ()):
        name, late = row["workload"], row["deadline_s"]
        done = (
            "is left out"
            if late is None
            else f"is done {_days(late - row['asked_s'])} late, on day {late / DAY_S:,.1f}"
        )
        why = ""
        if row["waits_for"]:
            why = f": it waits for {listed(row['waits_for'])}"
        elif row["waits_for"] is not None:
            why = ": the limits leave no room for it by its deadline, whatever other job goes first"
        yield f"{name} (priority {row['priority']}) {done}{why}."
        if row["waits_for"] and row["first"] is not None:
            yield _if_first(name, row["first"], unit)


def _if_first(name: str, first: IfFirst, unit: str) -> str:
    """Say what waits, and by how much the plan would cost more, if the job went before all others."""
    late = [
        f"{other} would be left out" if done is None else f"{other} would be done on day {done / DAY_S:,.1f}"
        for other, done in first["postponed"].items()
    ]
    change, words = first["difference"], ""
    if change is not None:
        verb = "emit" if unit == "kg" else "cost"
        more = f"{abs(change):,.0f} {unit} {'more' if change > 0 else 'less'}" if abs(change) >= 0.5 else "the same"
        words = f"the plan would {verb} {more}"
    return f"If {name} went first, {listed([*late, *([words] if words else [])]) or 'all would be on time'}."


def _days(seconds: float) -> str:
    return f"{seconds / DAY_S:,.1f} days"


def _when(index: PlanIndex, name: str, point: Point, t: Words) -> Iterator[str]:
    every = index.schedule[point["site"]]
    worked = [(row, row["active"].get(point["id"], 0.0) * row["seconds"]) for row in every]
    share = sum(work for _, work in worked) / sum(row["seconds"] for row in every)
    if share <= 0:
        return
    pool = point["pools"][0]
    how = t.get(f"job.on.{pool['how']}", how_words(pool["how"]))
    words = t("job.runs", name=name, site=point["site"], how=how, system=pool["system"], share=f"{share:.0%}")
    words += t("job.mostly", hours=busy_hours(_by_hour(worked)))
    if "day" in every[0]:
        words += t("job.days", days=joined(_main_days(worked), t))
    paid = mean_of((work, row["price_per_j"]) for row, work in worked)
    usual = mean_of((row["seconds"], row["price_per_j"]) for row in every)
    if pool["how"] == "buy" and paid is not None and usual is not None:  # a rent includes electricity
        words += t("job.price", paid=index.per_mwh(paid), usual=index.per_mwh(usual))
    yield words + t("list.stop")


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
