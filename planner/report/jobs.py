"""Explain training jobs: where and when each runs, at what price of electricity, and how often it is pre-empted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from catalog.units import HOUR_S
from planner.report.hours import busy_hours
from planner.report.plan_index import PlanIndex, Row, mean_of
from planner.report.words import how_words, listed

NAMED_SHARE = 0.005  # of a job's time: less lost to pre-emption is left out
NAMED_DAY = 0.1  # of a job's work: typical days with less are left out


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain when each job runs."""
    for workload in index.plan["workloads"]:
        if workload["kind"] == "serving":
            continue
        for point in workload["points"]:
            yield from _when(index, workload["name"], point)
        for row in index.document.get("preemptions", ()):
            if row["workload"] == workload["name"] and row["lost_share"] >= NAMED_SHARE:
                lost = f"{row['lost_s'] / HOUR_S:,.1f} hours, {row['lost_share']:.1%} of its time"
                yield f"{row['workload']} makes room {row['resumptions']:,.0f} times, which costs it {lost}."


def _when(index: PlanIndex, name: str, point: Row) -> Iterator[str]:
    every = index.schedule[point["site"]]
    worked = [{**row, "work": row["active"].get(point["id"], 0.0) * row["seconds"]} for row in every]
    share = sum(row["work"] for row in worked) / sum(row["seconds"] for row in every)
    if share <= 0:
        return
    pool = point["pools"][0]
    words = f"{name} runs in {point['site']} on {how_words(pool['how'])} {pool['system']} for {share:.0%} of the time"
    words += f", mostly at {busy_hours(_by_hour(worked), 'work')} UTC"
    if "day" in worked[0]:
        words += f" on the days of {listed(_main_days(worked))}"
    paid, usual = mean_of(worked, "work", "price_per_j"), mean_of(every, "seconds", "price_per_j")
    if pool["how"] == "buy" and paid is not None and usual is not None:  # a rent includes electricity
        words += f", at a mean price of {index.per_mwh(paid)} (all hours: {index.per_mwh(usual)})"
    yield f"{words}."


def _by_hour(rows: Sequence[Row]) -> list[Row]:
    """Add up the work by hour of the day (UTC)."""
    hours: dict[int, float] = defaultdict(float)
    for row in rows:
        hours[row["hour_utc"]] += row["work"]
    return [{"hour_utc": hour, "work": work} for hour, work in sorted(hours.items())]


def _main_days(rows: Sequence[Row]) -> list[str]:
    """List the typical days with at least a tenth of the work."""
    days: dict[str, float] = defaultdict(float)
    for row in rows:
        days[row["day"]] += row["work"]
    return [day for day, work in days.items() if work >= NAMED_DAY * sum(days.values())]
