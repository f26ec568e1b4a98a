"""Write the hour-by-hour plan as cron triggers of KEDA, which scale the LeaderWorkerSets of a deployment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta

from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.time import Slot
from planner.spec.model import Horizon
from planner.ways_out.deployed import Deployed, Served
from planner.ways_out.files import File
from planner.ways_out.heads import commented, served_lines
from planner.ways_out.kubernetes import LWS, set_name
from planner.ways_out.manifests import Document, can_be_asked_for, metadata
from planner.ways_out.yaml_text import documents

KEDA, TITLE = "keda.sh/v1alpha1", "KEDA 2, ScaledObject v1alpha1 with the cron scaler"
HOURS = 24


def keda_files(deployed: Deployed) -> Iterable[File]:
    """Write a file for each deployment and span of the calendar, with one ScaledObject for each pool."""
    spans = windows(deployed.plan)
    for served in deployed.served:
        if not can_be_asked_for(served):
            continue
        for window, dates in spans.items():
            counts = workers_by_hour(deployed.plan, served, window)
            objects = [
                scaled_object(deployed, served, place, hours) for place, hours in enumerate(counts) if max(hours) > 0
            ]
            if not objects:
                continue
            lines = [*served_lines(deployed, served, TITLE), Message.of("ways_out.in_force", dates=dates).text()]
            name = served.name if len(spans) == 1 else f"{served.name}.window-{window}"
            yield File(f"{name}.yaml", commented(lines) + documents(*objects))


def scaled_object(deployed: Deployed, served: Served, place: int, hours: Sequence[int]) -> Document:
    """Build the ScaledObject of a pool: at least the workers of the quietest hour, and triggers for the hours with more."""
    pool = served.pools[place]
    name = set_name(served, pool)
    return {
        "apiVersion": KEDA,
        "kind": "ScaledObject",
        "metadata": metadata(deployed, name),
        "spec": {
            "scaleTargetRef": {"apiVersion": LWS, "kind": "LeaderWorkerSet", "name": name},
            "minReplicaCount": min(hours),
            "maxReplicaCount": max(hours),
            "triggers": [
                {
                    "type": "cron",
                    "metadata": {"timezone": "Etc/UTC", "start": start, "end": end, "desiredReplicas": str(count)},
                }
                for start, end, count in triggers(hours)
            ],
        },
    }


def triggers(hours: Sequence[int]) -> list[tuple[str, str, int]]:
    """List (start, end, workers) of each run of hours with more workers than the quietest has; the whole day where all hours are alike.

    >>> triggers([2] * 7 + [5] * 12 + [2] * 5)
    [('0 7 * * *', '0 19 * * *', 5)]
    """
    least = min(hours)
    changes = [hour for hour in range(len(hours)) if hours[hour] != hours[hour - 1]]
    if not changes:
        return [("0 0 * * *", "59 23 * * *", least)]
    return [
        (f"0 {start} * * *", f"0 {end} * * *", hours[start])
        for start, end in zip(changes, [*changes[1:], changes[0]])
        if hours[start] > least
    ]


def workers_by_hour(plan: Plan, served: Served, window: int) -> list[list[int]]:
    """Count the workers of each pool that hold their weights in each hour (UTC) of a span, the most of its days."""
    found = [[0] * HOURS for _ in served.pools]
    for slot in _slots(plan, served, window):
        for hours, count in zip(found, _workers(served, slot)):
            hours[slot["hour_utc"]] = max(hours[slot["hour_utc"]], count)
    return found


def rates_by_hour(plan: Plan, served: Served, window: int) -> list[float]:
    """Compute the requests per second of a deployment in each hour (UTC) of a span, the most of its days."""
    found = [0.0] * HOURS
    for slot in _slots(plan, served, window):
        rate = slot["active"].get(served.point["id"], 0.0) * served.point["capacity"]
        found[slot["hour_utc"]] = max(found[slot["hour_utc"]], rate)
    return found


def windows(plan: Plan) -> dict[int, str]:
    """Return the spans of the calendar, each with its first day and the day after its last."""
    start = Horizon.model_validate(plan["spec"].get("horizon") or {}).start
    site = plan.schedule[0]["site"]
    found: dict[int, str] = {}
    seconds = 0.0
    for window in sorted({slot["window"] for slot in plan.schedule}):
        first = start + timedelta(seconds=seconds)
        seconds += sum(slot["seconds"] for slot in plan.schedule if slot["window"] == window and slot["site"] == site)
        last = start + timedelta(seconds=seconds)
        found[window] = Message.of("ways_out.dates", first=f"{first}", last=f"{last}").text()
    return found


def _slots(plan: Plan, served: Served, window: int) -> list[Slot]:
    return [slot for slot in plan.schedule if slot["site"] == served.row["site"] and slot["window"] == window]


def _workers(served: Served, slot: Slot) -> list[int]:
    """Read the workers of each pool in a slot; of divisible replicas those at work, rounded up."""
    point = served.point["id"]
    if "resident" in slot:
        return slot["resident"].get(point, [0] * len(served.pools))
    active = math.ceil(slot["active"].get(point, 0.0) - 1e-9)
    return [active * pool.per_replica for pool in served.pools]
