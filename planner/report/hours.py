"""The hours of a schedule as one day: rows of several days averaged by hour, each by the time that it stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

MEANS = ("price_per_j", "carbon_kg_per_j", "power_w", "own_power_w", "grid_w")


def by_hour(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one site and phase, one for each hour of the day; those of a typical day as they are."""
    rows = [dict(row) for row in rows]
    if not any("day" in row for row in rows):
        return rows
    hours: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        hours[row["hour_utc"]].append(row)
    return [_mean(hour, group) for hour, group in sorted(hours.items())]


def _mean(hour: int, group: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = sum(row["seconds"] for row in group)
    means = {key: sum(row[key] * row["seconds"] for row in group) / seconds for key in MEANS if key in group[0]}
    return {
        **group[0],
        **means,
        "hour_utc": hour,
        "seconds": seconds,
        "energy_j": sum(row["energy_j"] for row in group),
    }
