"""Answer a question about the edge: where each task runs, what holds there, and what any other tier would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.arrays import sum_of
from planner.design.edge.options import Evaluation, Options, catalog_of, find_options
from planner.design.edge.program import Assignment, EdgeData, solve_edge, solve_most
from planner.design.edge.reasons import beside
from planner.design.edge.repairs import Repairs
from planner.design.edge.table import edge_data, reasons
from planner.errors import LimitReached, SpecError
from planner.estimate.limits import SearchLimits
from planner.messages import Message
from planner.problem.provenance import assumption_rows
from planner.report.words import whole
from planner.resolve.ledger import Ledger
from planner.spec.base import problems_of
from planner.spec.stack.edge import DEVICE, EdgeSpec
from planner.ways_in.kinds import EDGE, wrong_kind


@dataclass(frozen=True, slots=True)
class EdgeAnswer:
    """The document of an answer; `document["status"]` is "infeasible" where a task has no place."""

    document: dict[str, Any]


def edge(document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None) -> EdgeAnswer:
    """Place every task on a tier, or as many as have a place. Raises SpecError with all problems at once, or LimitReached."""
    limits = limits or SearchLimits()
    try:
        spec = EdgeSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(wrong_kind(document, EDGE) or problems_of(error, EdgeSpec)) from None
    evaluation = Evaluation(catalog_of(spec, overlays), limits)
    options = find_options(spec, document, overlays, evaluation)
    ledger = Ledger(options.catalog)
    data = edge_data(options, ledger)
    best = solve_most(data, limits)
    answer = _Answer(options, data, best, reasons(options, data), limits)
    tasks = [answer.task(t) for t in range(len(spec.tasks))]
    planned = len(best.out) < len(spec.tasks)
    searched = [t for t in best.out if all(option.evaluated for option in options.table[t])]
    changes = Repairs(spec, document, best.out, evaluation)
    without = sum_of(not _with_repairs(tasks[t], t, changes) for t in searched)
    return EdgeAnswer({
        "kind": "edge",
        "name": spec.name,
        "status": "infeasible" if searched else "limit" if best.out or options.left or not best.proven else "optimal",
        "currency": spec.currency,
        "cost_per_year": best.cost if planned else None,
        "words": _words(spec, best),
        **_left_out(options, answer, (without, len(searched))),
        "left_out": [spec.tasks[t].name for t in best.out],
        "tasks": tasks,
        "fleets": [_fleet(options, data, best, f) for f in range(len(spec.fleets))] if planned else [],
        "tiers": [_tier(options, data, best, k) for k in range(len(spec.tiers))] if planned else [],
        "assumptions": assumption_rows([*options.assumptions.values(), *ledger.assumptions.values()]),
        "catalog_digest": options.catalog.digest,
    })  # fmt: skip


def _words(spec: EdgeSpec, best: Assignment) -> str:
    """State the cost, and how many tasks have no place."""
    count, cost = len(best.out), whole(best.cost)
    if count == len(spec.tasks):
        return Message.of("edge.all_left_out", all=count).text()
    if count:
        return Message.of(
            "edge.some_left_out", count=count, all=len(spec.tasks), cost=cost, currency=spec.currency
        ).text()
    return Message.of("edge.cost", cost=cost, currency=spec.currency).text()


def _with_repairs(row: dict[str, Any], t: int, changes: Repairs) -> bool:
    """Add to the row of a task the changes that give it a place; tells whether they were looked for to the end."""
    try:
        row["repairs"] = [repair.row() for repair in changes.of(t)]
    except LimitReached:
        return False
    return True


def _left_out(options: Options, answer: _Answer, repairs: tuple[int, int]) -> dict[str, Any]:
    """Document what the limits left out: options, else comparisons, else repairs."""
    tasks, tiers = len(options.table), len(options.table[0])
    if options.left:
        return answer.limits.left_out("placements", options.left, tasks * tiers)
    if answer.left:
        return answer.limits.left_out("comparisons", answer.left, tasks * tiers)
    return answer.limits.left_out("repairs", *repairs)


# -- document ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Answer:
    """What the rows of the tasks are written from, and how many comparisons with other tiers the limits have left out."""

    options: Options
    data: EdgeData
    best: Assignment
    why: list[list[str]]  # [task][tier]: why a task cannot run on a tier, though no other does
    limits: SearchLimits
    left: int = 0

    def task(self, t: int) -> dict[str, Any]:
        """Document the decision on a task: the chosen tier, and why not another."""
        spec = self.options.spec
        task, names = spec.tasks[t], [DEVICE, *(tier.name for tier in spec.tiers)]
        chosen = self.best.tier[t]
        found = None if chosen < 0 else self.options.of(t, chosen)
        return {
            "name": task.name,
            "fleet": task.fleet,
            "tier": None if chosen < 0 else names[chosen],
            "deadline_s": task.deadline,
            "latency_s": None if found is None else found.latency_s,
            "slack_s": None if found is None else task.deadline - found.latency_s,
            "precision": None if found is None else found.precision,
            "tiers": [self._row(t, k, name) for k, name in enumerate(names)],
            "repairs": [],
        }

    def _row(self, t: int, k: int, name: str) -> dict[str, Any]:
        """Document a task on a tier: what it takes there, and what the cheapest assignment with it costs more, or why there is none."""
        option = self.options.of(t, k)
        row: dict[str, Any] = {"tier": name, "why_not": self.why[t][k], "latency_s": None, "more_per_year": None}
        if not option.why_not:
            row |= {"latency_s": option.latency_s, "precision": option.precision, "systems": option.systems}
        if self.why[t][k]:
            return row
        try:
            out = [u for u in self.best.out if u != t]
            other = self.best if k == self.best.tier[t] else solve_edge(self.data, {t: k}, out, limits=self.limits)
            if other is not None:
                return row | {"more_per_year": other.cost - self.best.cost}
            running = [u for u, tier in enumerate(self.best.tier) if tier >= 0]
            tasks = [task.name for task in self.options.spec.tasks]
            return row | {"why_not": beside(self.data, t, k, running, tasks, self.limits)}
        except LimitReached:
            self.left += 1
            return row | {"why_not": Message.of("edge.not_compared").text()}


def _fleet(options: Options, data: EdgeData, best: Assignment, f: int) -> dict[str, Any]:
    """Document what one device of a fleet does."""
    fleet, system, limits = options.spec.fleets[f], options.devices[f], data.devices[f]
    here = [t for t in limits.tasks if best.tier[t] == 0]
    draw = system.idle_w + float(data.power_w[here].sum())
    battery = fleet.battery
    return {
        "fleet": fleet.name,
        "system": system.name,
        "count": fleet.count,
        "on_device": [options.spec.tasks[t].name for t in here],
        "busy": float(data.busy[here].sum()),
        "memory_bytes": float(data.memory_bytes[here].sum()),
        "room_bytes": limits.memory_bytes if math.isfinite(limits.memory_bytes) else None,
        "power_w": draw,
        "power_limit_w": fleet.power_limit_w(),
        "battery_s": None if battery is None else battery / draw,
        "uplink_bytes_per_s": float(sum_of(data.uplink[t, best.tier[t]] for t in limits.tasks)),
    }


def _tier(options: Options, data: EdgeData, best: Assignment, k: int) -> dict[str, Any]:
    """Document the systems of a tier."""
    tier, limits, n = options.spec.tiers[k], data.tiers[k], best.systems[k]
    here = [t for t, place in enumerate(best.tier) if place == k + 1]
    wanted = float(data.systems[here, k + 1].sum())
    return {
        "tier": tier.name,
        "system": options.systems[k].name,
        "places": tier.places,
        "systems_of_a_place": n,
        "systems": n * tier.places,
        "tasks": [options.spec.tasks[t].name for t in here],
        "utilisation": wanted / (n * tier.places) if n else 0.0,
        "cost_per_year": n * tier.places * limits.cost,
    }


# -- for people --------------------------------------------------------------------------------------------------------


def sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows)."""
    money = answer["currency"]
    tasks = [
        {
            "task": task["name"], "fleet": task["fleet"], "runs on": task["tier"] or "nothing",
            "95 % within (ms)": _ms(task["latency_s"]), "deadline (ms)": _ms(task["deadline_s"]), "precision": task["precision"],
        }
        for task in answer["tasks"]
    ]  # fmt: skip
    why = [
        {
            "task": task["name"], "tier": row["tier"],
            "decision": "chosen" if row["tier"] == task["tier"] else row["why_not"] or "costs more",
            f"more ({money}/year)": row["more_per_year"], "95 % within (ms)": _ms(row["latency_s"]),
        }
        for task in answer["tasks"] for row in task["tiers"]
    ]  # fmt: skip
    found = [(Message.of("edge.head_tasks").text(), tasks), ("Why", why)]
    repairs = [
        {"task": task["name"], "change": repair["words"], f"all with it ({money}/year)": repair["cost_per_year"]}
        for task in answer["tasks"] for repair in task["repairs"]
    ]  # fmt: skip
    if repairs:
        found.append((Message.of("edge.head_changes").text(), repairs))
    if answer["fleets"]:
        found.append((Message.of("edge.head_devices").text(), [_shown_fleet(row) for row in answer["fleets"]]))
        tiers = [{**row, "tasks": ", ".join(row["tasks"]) or "none"} for row in answer["tiers"]]
        found += [("Tiers", tiers)] if tiers else []
    return found


def _shown_fleet(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "fleet": row["fleet"],
        "system": row["system"],
        "count": row["count"],
        "on the device": ", ".join(row["on_device"]) or "nothing",
        "busy": f"{row['busy']:.1%}",
        "memory (GB)": row["memory_bytes"] / 1e9,
        "power (W)": row["power_w"],
        "limit (W)": row["power_limit_w"],
        "battery (h)": None if row["battery_s"] is None else row["battery_s"] / 3600.0,
        "uplink (MB/s)": row["uplink_bytes_per_s"] / 1e6,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000.0
