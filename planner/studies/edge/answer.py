"""Answer a question about the edge: where each task runs, what holds there, and what any other tier would cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from catalog.units import YEAR_S
from planner.errors import SpecError
from planner.estimate.codesign.prices import converted, energy_price, held_per_s
from planner.resolve.ledger import Ledger
from planner.spec.base import problems_of
from planner.spec.quantities import is_purchase, offer_price
from planner.spec.stack.edge import DEVICE, EdgeSpec
from planner.studies.edge.options import Option, Options, find_options
from planner.studies.edge.program import Assignment, DeviceLimits, EdgeData, TierLimits, solve_edge


@dataclass(frozen=True, slots=True)
class EdgeAnswer:
    """The document of an answer; `document["status"]` is "infeasible" where no assignment exists."""

    document: dict[str, Any]


def edge(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> EdgeAnswer:
    """Place every task on a tier. Raises SpecError with all problems at once."""
    try:
        spec = EdgeSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems_of(error, EdgeSpec)) from None
    options = find_options(spec, document, overlays)
    ledger = Ledger(options.catalog)
    data = edge_data(options, ledger)
    best = solve_edge(data)
    assumptions = {**options.assumptions, **ledger.assumptions}
    return EdgeAnswer({
        "kind": "edge",
        "name": spec.name,
        "status": "infeasible" if best is None else "optimal",
        "currency": spec.currency,
        "cost_per_year": None if best is None else best.cost,
        "tasks": [_task(options, data, best, t) for t in range(len(spec.tasks))],
        "fleets": [] if best is None else [_fleet(options, data, best, f) for f in range(len(spec.fleets))],
        "tiers": [] if best is None else [_tier(options, data, best, k) for k in range(len(spec.tiers))],
        "assumptions": [
            {"path": a.path, "value": a.value, "unit": a.unit, "reason": a.reason}
            for a in sorted(assumptions.values(), key=lambda a: a.path)
        ],
        "catalog_digest": options.catalog.digest,
    })  # fmt: skip


def edge_data(options: Options, ledger: Ledger) -> EdgeData:
    """Put the options into arrays, and price them per year."""
    spec = options.spec
    shape = (len(spec.tasks), len(spec.tiers) + 1)
    table = [[options.of(t, k) for k in range(shape[1])] for t in range(shape[0])]
    price, pue = energy_price(spec.electricity, spec.pue, ledger, "edge")
    per_j = converted(price, spec.currency, ledger, "electricity")
    fleets = {fleet.name: f for f, fleet in enumerate(spec.fleets)}
    rate = np.array([task.requests_per_s for task in spec.tasks])
    busy = rate * np.array([row[0].busy_s for row in table])
    power = busy * np.array([row[0].power_w for row in table])
    cost = np.zeros(shape)
    for t, task in enumerate(spec.tasks):
        fleet = spec.fleets[fleets[task.fleet]]
        cost[t, 0] = power[t] * fleet.count * fleet.duty * per_j * YEAR_S
        for k, tier in enumerate(spec.tiers):
            option = table[t][k + 1]
            data_price = (
                0.0
                if tier.data_price is None
                else converted(tier.data_price, spec.currency, ledger, f"tiers[{k}].data_price")
            )
            cost[t, k + 1] = (
                option.systems * option.power_w * pue * per_j + option.data_bytes_per_s * data_price
            ) * YEAR_S
    clash = np.zeros((shape[0], shape[0]), dtype=bool)
    for i, first in enumerate(spec.tasks):
        for j, second in enumerate(spec.tasks):
            together = i != j and first.fleet == second.fleet
            clash[i, j] = together and table[i][0].latency_s + table[j][0].longest_s > first.deadline
    return EdgeData(
        able=np.array([[not option.why_not for option in row] for row in table]),
        cost=cost,
        busy=busy,
        memory_bytes=np.array([max(row[0].memory_bytes - row[0].runtime_bytes, 0.0) for row in table]),
        power_w=power,
        uplink=np.array([[option.uplink_bytes_per_s for option in row] for row in table]),
        systems=np.array([[option.systems for option in row] for row in table]),
        clash=clash,
        devices=tuple(_device_limits(options, table, f) for f in range(len(spec.fleets))),
        tiers=tuple(_tier_limits(options, ledger, per_j * pue, k) for k in range(len(spec.tiers))),
        fixed=sum(_device_cost(options, ledger, per_j, f) for f in range(len(spec.fleets))),
    )


def _device_limits(options: Options, table: Sequence[Sequence[Option]], f: int) -> DeviceLimits:
    fleet, system = options.spec.fleets[f], options.devices[f]
    mine = tuple(t for t, task in enumerate(options.spec.tasks) if task.fleet == fleet.name)
    rooms = [table[t][0].usable_bytes - table[t][0].runtime_bytes for t in mine if not table[t][0].why_not]
    limit = fleet.power_limit_w()
    return DeviceLimits(
        tasks=mine,
        busy=options.spec.utilisation,
        memory_bytes=min(rooms, default=math.inf),
        power_w=math.inf if limit is None else limit - system.idle_w,
        uplink_bytes_per_s=fleet.uplink or math.inf,
    )


def _tier_limits(options: Options, ledger: Ledger, per_j: float, k: int) -> TierLimits:
    tier, system = options.spec.tiers[k], options.systems[k]
    bought = is_purchase(tier.price)
    path = f"tiers[{k}].price"
    ledger.assume(path, tier.price, "", "stated in the spec")
    price = offer_price(tier.price, bought, system.chips)
    held = held_per_s(converted(price, options.spec.currency, ledger, path), bought, ledger)
    by_power = math.inf if tier.power is None else math.floor(tier.power / system.power_w)
    return TierLimits(tier.places, (held + system.idle_w * per_j) * YEAR_S, min(tier.most or math.inf, by_power))


def _device_cost(options: Options, ledger: Ledger, per_j: float, f: int) -> float:
    """Cost per year of the devices of a fleet, whatever runs on them: their price where it is stated, and idle power at work."""
    fleet, system = options.spec.fleets[f], options.devices[f]
    held = 0.0
    if fleet.price is not None:
        price = converted(fleet.price, options.spec.currency, ledger, f"fleets[{f}].price")
        held = held_per_s(price, True, ledger)
    return fleet.count * (held + system.idle_w * fleet.duty * per_j) * YEAR_S


# -- document ----------------------------------------------------------------------------------------------------------


def _task(options: Options, data: EdgeData, best: Assignment | None, t: int) -> dict[str, Any]:
    """Document the decision on a task: the chosen tier, and why not another."""
    spec = options.spec
    task, names = spec.tasks[t], [DEVICE, *(tier.name for tier in spec.tiers)]
    chosen = None if best is None else best.tier[t]
    rows = []
    for k, name in enumerate(names):
        option = options.of(t, k)
        row: dict[str, Any] = {"tier": name, "why_not": option.why_not, "latency_s": None, "more_per_year": None}
        if not option.why_not:
            row |= {"latency_s": option.latency_s, "precision": option.precision, "systems": option.systems}
            other = best if k == chosen else solve_edge(data, {t: k})
            if other is None:
                row["why_not"] = "no assignment of the other tasks leaves room for it"
            elif best is not None:
                row["more_per_year"] = other.cost - best.cost
        rows.append(row)
    found = None if chosen is None else options.of(t, chosen)
    return {
        "name": task.name,
        "fleet": task.fleet,
        "tier": None if chosen is None else names[chosen],
        "deadline_s": task.deadline,
        "latency_s": None if found is None else found.latency_s,
        "slack_s": None if found is None else task.deadline - found.latency_s,
        "precision": None if found is None else found.precision,
        "tiers": rows,
    }


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
        "uplink_bytes_per_s": float(sum(data.uplink[t, best.tier[t]] for t in limits.tasks)),
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
    found = [("Where the tasks run", tasks), ("Why", why)]
    if answer["fleets"]:
        found.append(("One device of each fleet", [_shown_fleet(row) for row in answer["fleets"]]))
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
