"""Format the tables of reinforcement learning: the iteration of each job, and its best splits. Their contents: `planner.evaluate.reinforcement`."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.units import show
from planner.messages import commas, named, say
from planner.plan import Plan
from planner.plan.rows.points import Iteration, Point, Split
from planner.plan.rows.workloads import Workload
from planner.report.heads import Row
from planner.report.words import between, whole


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of both tables; without rows where the plan has no such job."""
    currency = plan.document["spec"].get("currency", "USD")
    points = [(w, point) for w in plan.document["workloads"] for point in w["points"] if point.get("iteration")]
    iterations = [_iteration(workload, point, currency) for workload, point in points]
    splits = [_split(workload, split) for workload, point in points for split in point["iteration"]["splits"]]
    return [(say("heading.iterations"), iterations), (say("heading.splits"), splits)]


def _iteration(workload: Workload, point: Point, currency: str) -> Row:
    row, each = point["iteration"], workload["cost_per_iteration"]
    low, high = (show(bound, "s") for bound in (point["interval_80"] or {})["iteration"] if bound is not None)
    parts = commas(
        say("fleet.start_part", part=named("iteration_part", name), time=show(seconds, "s"))
        for name, seconds in row["parts_s"].items()
        if seconds
    )
    interval = between(low, high)
    return {
        "workload": workload["name"],
        "way": named("way_of_iteration", row["way"]),
        "iteration": say("amount.with_parts", amount=show(row["iteration_s"], "s"), parts=interval),
        "per_hour": f"{row['iterations_per_hour']:,.4g}",
        "iterations": f"{workload['iterations']:,.0f}",
        "cost_each": "" if each is None else f"{each:,.2f}",
        "binds": named("iteration_part", row["binds"]),
        "idle": idle_words(row["idle"]),
        "environments": _environments(row, currency),
        "parts": parts,
    }


def _environments(row: Iteration, currency: str) -> str:
    """Say how many environment slots there are, on how many cores, how busy and at what price; empty where none are stated."""
    found = row.get("environments")
    if found is None:
        return ""
    parts = [say("environments.slots", slots=found["slots"], cores=f"{found['cores']:,.4g}")]
    if row["rollout"]:
        parts.append(say("environments.busy", share=f"{row['rollout']['environment_load']:.0%}"))
    if "price_per_h" in found:
        parts.append(say("environments.price", price=f"{found['price_per_h']:,.4g}", currency=currency))
    return commas(parts)


def _split(workload: Workload, split: Split) -> Row:
    return {
        "workload": workload["name"],
        "way": named("way_of_iteration", split["way"]),
        "rollout_update": f"{split['rollout_systems']} : {split['update_systems']}",
        "iteration": show(split["iteration_s"], "s"),
        "trained_tokens_s": whole(split["tokens_per_s"]),
        "binds": named("iteration_part", split["binds"]),
        "idle": idle_words(split["idle"]),
    }


def idle_words(idle: Mapping[str, float]) -> str:
    """Write the idle share of each pool."""
    return commas(
        say("part.share", part=named("role", pool), share=f"{share:.0%}") for pool, share in sorted(idle.items())
    )
