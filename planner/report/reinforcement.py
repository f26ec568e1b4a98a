"""Format the tables of reinforcement learning: the iteration of each job, and its best splits. Their contents: `planner.evaluate.reinforcement`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.units import show
from planner.plan import Plan
from planner.plan.rows.points import Iteration, Point, Split
from planner.plan.rows.workloads import Workload

Row = dict[str, Any]
HEADINGS = ("How reinforcement learning iterates", "Best splits of the same price")
NOTES = {
    HEADINGS[
        0
    ]: "Parts that run at the same time add up to more than the iteration. Idle: share of the iteration, by pool."
}


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of both tables; without rows where the plan has no such job."""
    currency = plan.document["spec"].get("currency", "USD")
    points = [(w, point) for w in plan.document["workloads"] for point in w["points"] if point.get("iteration")]
    iterations = [_iteration(workload, point, currency) for workload, point in points]
    splits = [_split(workload, split) for workload, point in points for split in point["iteration"]["splits"]]
    return list(zip(HEADINGS, (iterations, splits), strict=True))


def _iteration(workload: Workload, point: Point, currency: str) -> Row:
    row, each = point["iteration"], workload["cost_per_iteration"]
    low, high = (show(bound, "s") for bound in (point["interval_80"] or {})["iteration"] if bound is not None)
    parts = ", ".join(f"{name} {show(seconds, 's')}" for name, seconds in row["parts_s"].items() if seconds)
    return {
        "workload": workload["name"],
        "way": row["way"],
        "iteration": f"{show(row['iteration_s'], 's')} ({low} to {high})",
        "per hour": f"{row['iterations_per_hour']:,.4g}",
        "iterations": f"{workload['iterations']:,.0f}",
        f"{currency} each": "" if each is None else f"{each:,.2f}",
        "binds": row["binds"],
        "idle": idle_words(row["idle"]),
        "environments": _environments(row, currency),
        "parts": parts,
    }


def _environments(row: Iteration, currency: str) -> str:
    """Say how many environment slots there are, on how many cores, how busy and at what price; empty where none are stated."""
    found = row.get("environments")
    if found is None:
        return ""
    load = f", {row['rollout']['environment_load']:.0%} busy in the rollout" if row["rollout"] else ""
    price = f", {found['price_per_h']:,.4g} {currency}/h" if "price_per_h" in found else ""
    return f"{found['slots']:,} slots on {found['cores']:,.4g} cores{load}{price}"


def _split(workload: Workload, split: Split) -> Row:
    return {
        "workload": workload["name"],
        "way": split["way"],
        "rollout : update": f"{split['rollout_systems']} : {split['update_systems']}",
        "iteration": show(split["iteration_s"], "s"),
        "trained tokens/s": f"{split['tokens_per_s']:,.0f}",
        "binds": split["binds"],
        "idle": idle_words(split["idle"]),
    }


def idle_words(idle: Mapping[str, float]) -> str:
    """Write the idle share of each pool."""
    return ", ".join(f"{pool} {share:.0%}" for pool, share in sorted(idle.items()))
