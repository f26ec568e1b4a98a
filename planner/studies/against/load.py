"""Hold the rate and the lengths of a plan's requests against a trace, or against the rows of a CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.plan import Plan
from planner.spec.document import Edits, at
from planner.spec.model import parse_spec
from planner.spec.robust import Robust
from planner.spec.workloads import Serving
from planner.studies.against.assumption import INPUT, OUTPUT, RATE, Assumption
from planner.studies.against.figures_file import Figures, mean_of
from planner.studies.base.varied import times, work_path
from planner.ways_in.traces import Trace

OF_ANSWERS = "demand.output_tokens"
"""The amount of work that grows with the answers; the others count requests."""


def serving_workloads(plan: Plan) -> dict[str, tuple[int, Serving]]:
    """Return the serving workloads of a plan's spec by name, each with its position."""
    spec = parse_spec(plan.document["spec"])
    return {each.name: (i, each) for i, each in enumerate(spec.workloads) if isinstance(each, Serving)}


def planned_rate(plan: Plan, workload: str, output: float) -> float:
    """Compute the mean rate that a plan serves of a workload in the first window in which it serves any [request/s]; 0 where it serves none."""
    parts = {row["name"] for row in plan.workloads if row.get("of", row["name"]) == workload}
    slots = {row["slot"]: (row["window"], row["seconds"]) for row in plan.schedule}
    tokens: dict[int, float] = {}
    for route in plan.routes:
        if route["workload"] in parts:
            window, seconds = slots[route["slot"]]
            tokens[window] = tokens.get(window, 0.0) + route["tokens_per_s"] * seconds
    first = min((window for window, amount in tokens.items() if amount > 0.0), default=None)
    if first is None:
        return 0.0
    return tokens[first] / output / sum(seconds for window, seconds in slots.values() if window == first)


def of_trace(plan: Plan, workload: str, trace: Trace) -> list[Assumption]:
    """Hold rate and lengths of a workload against a trace."""
    return list(_held(plan, workload, trace.rate, trace.input.mean, trace.output.mean))


def of_rows(plan: Plan, rows: Sequence[Figures], workload: str) -> list[Assumption]:
    """Hold rate and lengths of a workload against rows: means, of the lengths weighted by the rate where a row states it."""

    def rate(row: Figures) -> float:
        return row.numbers.get("requests_per_s", 1.0)

    lengths = (mean_of(rows, name, rate) for name in ("input_tokens", "output_tokens"))
    return list(_held(plan, workload, mean_of(rows, "requests_per_s"), *lengths))


def _held(
    plan: Plan, workload: str, rate: float | None, prompt: float | None, answer: float | None
) -> Iterator[Assumption]:
    place, spec = serving_workloads(plan)[workload]
    planned = planned_rate(plan, workload, float(spec.lengths.output))
    wide = (parse_spec(plan.document["spec"]).robust or Robust()).demand
    if rate is not None and planned > 0.0:
        yield Assumption(
            RATE, workload, planned, rate, "request/s", planned * (1.0 - wide), planned * (1.0 + wide),
            restated=_rate(place, rate / planned),
        )  # fmt: skip
    for kind, key, actual in ((INPUT, "input", prompt), (OUTPUT, "output", answer)):
        if actual is not None:
            stated = float(getattr(spec.lengths, key))
            yield Assumption(kind, workload, stated, actual, "token", restated=_length(place, key, actual, stated))


def _rate(place: int, factor: float) -> Any:
    """Multiply the amount of work that the spec states."""

    def restated(document: Mapping[str, Any]) -> Edits:
        path = work_path(document, place)
        return ((path, times(document, path, factor)),)

    return restated


def _length(place: int, key: str, actual: float, stated: float) -> Any:
    """State another mean length, in whole tokens, at the same rate of requests: tokens of answers grow with their length."""

    def restated(document: Mapping[str, Any]) -> Edits:
        here = f"workloads[{place}]"
        whole = max(1, round(actual))
        edits: Edits = ((f"{here}.lengths.{key}", whole),)
        path = f"{here}.{OF_ANSWERS}"
        if key == "output" and at(document, path) is not None:
            edits = (*edits, (path, times(document, path, whole / stated)))
        return edits

    return restated
