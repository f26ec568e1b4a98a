"""Summarise the hours of a schedule as one day: means by hour, the busiest hours, and the saving by the timing of the load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from planner.messages import say, stopped
from planner.plan.rows.time import Slot
from planner.report.plan_index import PlanIndex, mean_of
from planner.report.words import MOST_SHARE

BUSY_SHARE = 0.5  # share of the largest value: hours with at least so much are busy
NAMED_SAVING = 0.005  # share of the price at an even load: less is left out


def by_hour(rows: Iterable[Slot]) -> list[Slot]:
    """Average rows of one site and phase by hour of the day, weighted by time; rows of a single typical day stay as they are."""
    copies = [row.copy() for row in rows]
    if not any("day" in row for row in copies):
        return copies
    hours: dict[int, list[Slot]] = defaultdict(list)
    for row in copies:
        hours[row["hour_utc"]].append(row)
    return [_mean(hour, group) for hour, group in sorted(hours.items())]


def _mean(hour: int, group: list[Slot]) -> Slot:
    seconds = sum(row["seconds"] for row in group)

    def mean(read: Callable[[Slot], float]) -> float:
        return sum(read(row) * row["seconds"] for row in group) / seconds

    found: Slot = {
        **group[0],
        "price_per_j": mean(lambda row: row["price_per_j"]),
        "carbon_kg_per_j": mean(lambda row: row["carbon_kg_per_j"]),
        "power_w": mean(lambda row: row["power_w"]),
        "own_power_w": mean(lambda row: row["own_power_w"]),
        "hour_utc": hour,
        "seconds": seconds,
        "energy_j": sum(row["energy_j"] for row in group),
    }
    if "grid_w" in found:
        found["grid_w"] = mean(lambda row: row["grid_w"])
    return found


def busy_hours(hours: Sequence[tuple[int, float]]) -> str:
    """Write the hours of the day with at least half of the largest value; `hours`: (hour UTC, value).

    >>> busy_hours([(1, 5.0), (2, 9.0), (3, 1.0)])
    '01-03'
    """
    most = max(value for _, value in hours)
    spans: list[list[int]] = []
    for hour in (hour for hour, value in hours if value >= BUSY_SHARE * most > 0):
        if spans and spans[-1][1] == hour:
            spans[-1][1] = hour + 1
        else:
            spans.append([hour, hour + 1])
    return ", ".join(f"{a:02d}-{b:02d}" for a, b in spans) or say("hours.never")


def sentences(index: PlanIndex) -> Iterator[str]:
    """Compare the mean price that each site pays for electricity with that of a constant load."""
    return map(stopped, clauses(index))


def clauses(index: PlanIndex) -> Iterator[str]:
    """Say how far the mean price that each site pays for electricity is from that of a constant load; without full stops."""
    for site in index.sites:
        rows = index.schedule[site]
        even = mean_of((row["seconds"], row["price_per_j"]) for row in rows)
        if site not in index.paid or not even or even <= 0 or not any(row["own_power_w"] for row in rows):
            continue
        saved = 1 - index.paid[site] / even
        if abs(saved) >= NAMED_SAVING:
            yield _pays(site, saved)


def _pays(site: str, saved: float) -> str:
    """Say what a site saves against a constant load, as a share of what that pays; what it pays more above 200 % by the factor.

    >>> str(_pays("A", -0.2)).partition(":")[0], str(_pays("A", -2.5)).partition(":")[0]
    ('A pays 20.0% more than an even load would', 'A pays 3.5 times what an even load would')
    """
    if saved > 0:
        return say("hours.pays_less", site=site, share=f"{saved:.1%}")
    if -saved <= MOST_SHARE:
        return say("hours.pays_more", site=site, share=f"{-saved:.1%}")
    return say("hours.pays_times", site=site, factor=f"{1 - saved:.3g}")
