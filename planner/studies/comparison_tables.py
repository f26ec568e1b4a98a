"""Tables of the differences of two plans: of numbers, values and amounts, by key. Used by `planner.studies.compare`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from catalog.units import HOUR_S, show
from planner.messages import enumerated
from planner.plan import Plan, binds
from planner.plan.rows.points import Pool
from planner.report.words import cap_words, whole

Row = dict[str, Any]
Plans = tuple[Plan, Plan]
Keyed = dict[tuple[Hashable, ...], Any]
Read = Callable[[Plan], Mapping[Any, Any]]
"""What to compare of a plan, by key."""

RELATIVE_TOL = 1e-9  # relative differences below it are rounding
TOTALS = {"cost": "", "carbon_kg": "kg", "energy_j": "J", "tokens": "token", "chips": "chip", "peak_power_w": "W"}
"""Unit of each total; that of the cost is the currency."""


def _joined(plans: Plans, read: Read, names: tuple[str, ...]) -> Iterable[tuple[Row, Any, Any]]:
    """Yield (key as a row, value in the first, value in the second) of every key that either plan has."""
    first, second = (read(plan) for plan in plans)
    for key in dict.fromkeys((*first, *second)):
        yield dict(zip(names, key, strict=True)), first.get(key), second.get(key)


def number_rows(plans: Plans, read: Read, names: tuple[str, ...], unit: str) -> list[Row]:
    """List the numbers that differ, largest difference first; a number that a plan does not have is 0."""
    rows = [
        {**key, "first": a or 0, "second": b or 0, "difference": (b or 0) - (a or 0), "unit": unit}
        for key, a, b in _joined(plans, read, names)
        if abs((b or 0) - (a or 0)) > RELATIVE_TOL * max(abs(a or 0), abs(b or 0))
    ]
    return sorted(rows, key=lambda row: -abs(row["difference"]))


def value_rows(plans: Plans, read: Read, names: tuple[str, ...]) -> list[Row]:
    """List the values that differ, whatever their type."""
    return [{**key, "first": a, "second": b} for key, a, b in _joined(plans, read, names) if a != b]


def amount_rows(plans: Plans, key: str, names: tuple[str, ...], unit: str, total: float) -> list[Row]:
    """List the amounts that differ, added up by `names`, each with its share of the first plan's total."""

    def read(plan: Plan) -> Keyed:
        sums: Keyed = defaultdict(float)
        for line in plan.table(key):
            sums[tuple(line[name] for name in names)] += line["amount"]
        return sums

    return [
        {**row, "share": row["difference"] / total if total else None} for row in number_rows(plans, read, names, unit)
    ]


def total_rows(plans: Plans, currency: str) -> list[Row]:
    """List the totals that differ; a plan without an answer has none."""
    rows: list[Row] = []
    for name, unit in TOTALS.items():
        a, b = (plan.total(name) for plan in plans)
        if a is None or b is None:
            difference, differs = None, a != b
        else:
            difference, differs = b - a, abs(b - a) > RELATIVE_TOL * abs(a)
        if differs:
            rows.append({"total": name, "first": a, "second": b, "unit": unit or currency, "difference": difference})
    return rows


def years_of(plan: Plan) -> float:
    """Return the years of the horizon of a plan."""
    return float((plan.document["spec"].get("horizon") or {}).get("years", 1))


def per_year_rows(plans: Plans, currency: str) -> list[Row]:
    """List cost, carbon and tokens per year of the horizon, where the horizons of two plans with an answer differ."""
    years = [years_of(plan) for plan in plans]
    if years[0] == years[1] or not all(plan.has_answer for plan in plans):
        return []
    rows = []
    for name, unit in (("cost", currency), ("carbon_kg", "kg"), ("tokens", "token")):
        first, second = ((plan.total(name) or 0.0) / each for plan, each in zip(plans, years, strict=True))
        rows.append({"total": f"{name} per year", "first": first, "second": second, "unit": unit, "difference": second - first})  # fmt: skip
    return rows


# -- what is compared --------------------------------------------------------------------------------------------------


def systems_held(plan: Plan) -> Keyed:
    """Count the systems by site, system, way to obtain, fabric and phase."""
    counts: Keyed = defaultdict(int)
    for row in plan.document["fleet"]:
        counts[row["site"], row["system"], row["how"], row["topology"], row["window"]] += row["count"]
    return counts


def deployments(plan: Plan) -> Keyed:
    """Count the whole replicas by workload, site and systems of their pools."""
    counts: Keyed = defaultdict(int)
    for row in plan.deployments:
        systems = " + ".join(dict.fromkeys(pool["system"] for pool in row["pools"]))
        counts[row["workload"], row["site"], systems] += row["replicas"]
    return counts


def replicas(plan: Plan) -> Keyed:
    """Count the replicas at the peak by workload, site and layout."""
    replicas: Keyed = defaultdict(float)
    for workload in plan.document["workloads"]:
        for point in workload["points"]:
            runs = " + ".join(f"{pool['system']} {_layout(pool)}" for pool in point["pools"])
            cap = f" at {words}" if (words := cap_words(point.get("power_cap"))) else ""
            replicas[workload["name"], point["site"], runs + cap] += point["peak_replicas"]
    return replicas


def _layout(pool: Pool) -> str:
    sizes = " ".join(f"{name}{size}" for name, size in pool["layout"].items() if size != 1) or "1 chip"
    batch = f" batch {pool['batch']}" if pool["batch"] else ""
    return f"{pool['role']} {pool['workers']} x {sizes}{batch} {pool['precision']}"


def origin_shares(plan: Plan) -> Keyed:
    """Compute the share of each origin's output tokens over the horizon that each site serves."""
    seconds = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
    flows: dict[tuple[str, str, str], float] = defaultdict(float)
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for row in plan.document["routes"]:
        tokens = row["tokens_per_s"] * seconds[row["slot"]]
        flows[row["workload"], row["origin"], row["site"]] += tokens
        totals[row["workload"], row["origin"]] += tokens
    return {
        (workload, origin, site): tokens / total
        for (workload, origin, site), tokens in flows.items()
        if (total := totals[workload, origin])
    }


def answering(plan: Plan) -> Keyed:
    """List the architectures that answer each workload with a quality floor, and the quality reached."""
    facts: Keyed = {}
    for row in plan.document.get("quality", ()):
        facts[row["workload"], "architectures"] = ", ".join(
            f"{each['architecture']} {each['share']:.1%}" for each in row["architectures"] if each["name"] is not None
        )
        facts[row["workload"], "quality"] = f"{row['reached']:.6g} ({row['source']})"
    return facts


def jobs(plan: Plan) -> Keyed:
    """List where each job runs, how long at full width, and at which hours of the day."""
    facts: Keyed = {}
    for workload in plan.document["workloads"]:
        if workload["kind"] == "serving":
            continue
        points = {point["id"]: point for point in workload["points"]}
        slots = [row for row in plan.document["schedule"] if not points.keys().isdisjoint(row["active"])]
        facts[workload["name"], "site"] = (
            enumerated(dict.fromkeys(point["site"] for point in points.values())) if points else None
        )
        facts[workload["name"], "time at full width"] = "; ".join(
            show(point["time_s"]["run"], "s") for point in points.values()
        )
        facts[workload["name"], "hours at work"] = whole(sum(row["seconds"] for row in slots) / HOUR_S)
        facts[workload["name"], "hours of the day (UTC)"] = _spans(sorted({int(row["hour_utc"]) for row in slots}))
        facts[workload["name"], "phases"] = ", ".join(map(str, sorted({row["window"] for row in slots})))
    return facts


def _spans(hours: list[int]) -> str:
    """Write hours as ranges.

    >>> _spans([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    spans: list[list[int]] = []
    for hour in hours:
        if spans and hour == spans[-1][1] + 1:
            spans[-1][1] = hour
        else:
            spans.append([hour, hour])
    return ", ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in spans)


def binding_limits(plan: Plan) -> Keyed:
    """List the limits that bind, without latencies: their slack does not tell whether they bind, since they choose among points."""
    rows = (row for row in plan.document["limits"] if row["marginal_unit"])
    return {(row["path"], row["name"]): "binds" for row in rows if binds(row)}


def assumed_figures(plan: Plan) -> Keyed:
    """List the assumed figures by path."""
    return {
        (row["path"],): row["value"] if isinstance(row["value"], str) else f"{row['value']:.6g} {row['unit']}"
        for row in plan.document["assumptions"]
    }
