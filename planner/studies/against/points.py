"""Hold throughput and latencies of a plan's operating points against the rows of a CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.lookup import Catalog
from planner.errors import Issue, SpecError
from planner.messages import Message, listed
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.spec.document import Edits
from planner.studies.against.assumption import THROUGHPUT, TPOT, TTFT, Assumption
from planner.studies.against.figures_file import Figures, mean_of

ANCHOR = "constants/{record}/"
"""Beginning of the path of a factor on predictions; its key goes on with engine, chip, kind of weights and metric."""
SERVING = "serving_anchor"
ANY_ENGINE = "vllm"
"""Engine under whose name a factor stands where the spec names none: it holds for whatever engine runs then."""


def of_points(
    plan: Plan, problem: ResolvedSpec, catalog: Catalog, rows: Sequence[Figures], workload: str
) -> list[Assumption]:
    """Hold the throughput at full load and the latencies of a workload against rows. Raises SpecError for a latency that the plan does not predict."""
    found = list(_throughput(plan, problem, catalog, rows, workload))
    metrics = dict.fromkeys(name for row in rows for name in row.numbers if name.partition(".")[0] in (TTFT, TPOT))
    problems = []
    for metric in metrics:
        stated = [row for row in rows if metric in row.numbers]
        points = _points(plan, workload, stated[0])
        planned = _mean(points, metric)
        if planned is None:
            known = listed(sorted({name for point in points for name in point["latency_s"]})) or "-"
            words = Message.of("actual.latency_unknown", metric=metric, workload=workload, known=known)
            problems.append(Issue(metric, words.text()))
            continue
        low, high = _interval(points, metric)
        actual = mean_of(stated, metric) or planned
        kind, of = metric.partition(".")[0], f"{workload}, {metric.partition('.')[2] or 'mean'}"
        found.append(
            Assumption(kind, of, planned, actual, "s", low, high, restated=_factor(problem, catalog, workload, points, kind, actual / planned))
        )  # fmt: skip
    if problems:
        raise SpecError(problems)
    return found


def _throughput(
    plan: Plan, problem: ResolvedSpec, catalog: Catalog, rows: Sequence[Figures], workload: str
) -> Iterator[Assumption]:
    """Hold output tokens per second and system at full load, of each kind of system that rows name."""
    stated = [row for row in rows if "throughput" in row.numbers]
    output = float(next(each for each in problem.demands() if each.asked == workload).spec.lengths.output)
    for system in dict.fromkeys(row.text("system") for row in stated):
        here = [row for row in stated if row.text("system") == system]
        points = _points(plan, workload, here[0])
        systems = sum(point["peak_replicas"] * _systems(point) for point in points)
        if not systems:
            continue
        planned = output * sum(point["peak_replicas"] * point["capacity"] for point in points) / systems
        actual = sum(row.numbers["throughput"] for row in here) / sum(row.numbers["systems"] for row in here)
        low, high = (None if side is None else planned * side for side in _relative(points))
        yield Assumption(
            THROUGHPUT, f"{workload}, {system}" if system else workload, planned, actual, "token/s", low, high,
            restated=_factor(problem, catalog, workload, points, THROUGHPUT, actual / planned),
        )  # fmt: skip


def _points(plan: Plan, workload: str, row: Figures) -> list[Point]:
    """List the points at which a plan serves a workload, at the site and on the system that a row names."""
    site, system = row.text("site"), row.text("system")
    return [
        point
        for each in plan.workloads
        if each.get("of", each["name"]) == workload
        for point in each["points"]
        if point["peak_replicas"] > 0.0 and site in ("", point["site"]) and all(system in ("", pool["system"]) for pool in point["pools"])
    ]  # fmt: skip


def _systems(point: Point) -> float:
    return sum(pool["systems_per_replica"] for pool in point["pools"])


def _mean(points: Sequence[Point], metric: str) -> float | None:
    """Return the mean over replicas of a latency at the site [s]; None where a point does not state it."""
    values = []
    for point in points:
        first = point.get("first_token_s", {})
        value = point["latency_s"].get(metric)
        if value is None and metric.partition(".")[0] == TTFT:
            value = first.get(metric.partition(".")[2] or "mean")
        if value is None:
            return None
        values.append((value, point["peak_replicas"]))
    total = sum(weight for _, weight in values)
    return sum(value * weight for value, weight in values) / total if total else None


def _interval(points: Sequence[Point], metric: str) -> tuple[float | None, float | None]:
    """Return the widest 80 % interval of a latency over the points; None where one of them states none."""
    found = [(point["interval_80"] or {}).get(metric) for point in points]
    lows, highs = ([None if each is None else each[side] for each in found] for side in (0, 1))
    return (
        None if any(low is None for low in lows) else min(low for low in lows if low is not None),
        None if any(high is None for high in highs) else max(high for high in highs if high is not None),
    )


def _relative(points: Sequence[Point]) -> tuple[float | None, float | None]:
    """Return the widest 80 % interval of the capacity over the points, as factors on it."""
    lows, highs = [], []
    for point in points:
        low, high = (point["interval_80"] or {}).get("capacity") or [None, None]
        lows.append(None if low is None else low / point["capacity"])
        highs.append(None if high is None else high / point["capacity"])
    return (
        None if None in lows else min(low for low in lows if low is not None),
        None if None in highs else max(high for high in highs if high is not None),
    )


def keys_of(problem: ResolvedSpec, workload: str, points: Sequence[Point], metric: str) -> list[str]:
    """List the environments (engine, chip, kind of weights, metric) by which factors on the predictions of points are known."""
    facts: dict[str, ServingFacts] = {each.name: each for each in problem.serving if each.asked == workload}
    one = next(iter(facts.values()))
    keys = []
    for point in points:
        for pool in point["pools"]:
            system = problem.systems.get(pool["system"])
            if system is not None:
                chip, kind = one.measured_as(system.chip, pool["precision"])
                keys.append("|".join((one.engine.base or ANY_ENGINE, chip, kind, metric)))
    return list(dict.fromkeys(keys))


def factor_edits(
    document: Mapping[str, Any], catalog: Catalog, keys: Sequence[str], factor: float, record: str = SERVING
) -> Edits:
    """Multiply the factors on predictions of some environments: as the catalog has them, or the spec's own `overrides`."""
    known = catalog.get("constants", record).figures
    overrides = dict(document.get("overrides") or {})
    for key in keys:
        path = f"{ANCHOR.format(record=record)}{key}"
        before = overrides[path]["value"] if path in overrides else known[key].number if key in known else 1.0
        overrides[path] = {"value": float(f"{float(before) * factor:.9g}"), "note": Message.of("actual.note").text()}
    return (("overrides", overrides),)


def _factor(
    problem: ResolvedSpec, catalog: Catalog, workload: str, points: Sequence[Point], metric: str, factor: float
) -> Any:
    keys = keys_of(problem, workload, points, metric)
    return lambda document: factor_edits(document, catalog, keys, factor)
