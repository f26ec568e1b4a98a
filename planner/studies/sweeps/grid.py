"""Solve a spec at every combination of values at some of its paths, into one long table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.spec.document import edited, read_spec
from planner.studies.batch_lines import INVALID_LINE
from planner.studies.batches.groups import in_turn

TOTALS = ("cost", "carbon_kg", "energy_j", "tokens", "chips", "peak_power_w")
FIGURES = ("status", "value", "unit", "gap", *TOTALS, "error")  # columns of a row beside its values


def sweep(
    source: str | Path | Mapping[str, Any], values: Mapping[str, Sequence[Any]], *, overlays: Sequence[Path] = (), hourly: Sequence[Path] = (),
    progress: Progress | None = None, threads: int = THREADS,
) -> list[dict[str, Any]]:  # fmt: skip
    """Solve the spec at each combination of the `values` by path, the last path fastest: a row for each.

    A row has the value of each path, `status`, `value` and `unit` of the objective, `gap`, the totals of the plan (None without an
    answer) and `error`: the problems of a combination whose spec is invalid, None elsewhere. Raises SpecError where all are invalid, where
    a path leads nowhere, and for a path without a list of values; OSError for an unreadable file.
    """
    document = read_spec(source, hourly, overlays)
    _check(document, values)
    points = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    documents = [edited(document, tuple(point.items())) for point in points]
    found: dict[int, dict[str, Any]] = {}
    first: dict[int, SpecError] = {}
    for number, kept in in_turn(documents):
        try:
            plan = solve_document(documents[number], overlays=overlays, threads=threads, kept=kept)
            found[number] = figures_of(plan)
        except SpecError as error:
            first[number] = error
            found[number] = without_figures(INVALID_LINE, str(error))
        if progress:
            status = found[number]["status"]
            progress(Message.of("library.swept", number=len(found), count=len(points), status=status).text())
    if len(first) == len(points):
        raise first[0]
    return [{**point, **found[number]} for number, point in enumerate(points)]


def _check(document: Mapping[str, Any], values: Mapping[str, Sequence[Any]]) -> None:
    """Raise SpecError with every path that leads nowhere or has no list of values."""
    problems = []
    for path, each in values.items():
        if isinstance(each, str | Mapping) or not isinstance(each, Sequence) or not each:
            problems.append(Issue(path, Message.of("library.no_values", given=str(each)).text()))
            continue
        try:
            edited(document, ((path, each[0]),))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def figures_of(plan: Plan) -> dict[str, Any]:
    """Return status, objective, gap and totals of a plan, and no error."""
    objective = plan.objective
    head = {"status": plan.status, "value": objective["value"], "unit": objective["unit"], "gap": plan.gap}
    return {**head, **{name: plan.total(name) for name in TOTALS}, "error": None}


def without_figures(status: str, error: str) -> dict[str, Any]:
    """Return the same columns for a spec without a plan."""
    return {**dict.fromkeys(FIGURES), "status": status, "error": error}
