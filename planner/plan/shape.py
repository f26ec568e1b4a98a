"""Check that a document has the shape of a plan: its typed rows (`planner.plan.rows`), and rows that can be read together.

Not here: whether the values are right (`planner.verify`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import Issue, path_text
from planner.messages import Message
from planner.plan.rows.document import PlanDocument

STATUSES = ("optimal", "within_gap", "limit", "infeasible", "unbounded")
MAX_PROBLEMS = 50  # problems listed of a malformed plan
MISSING = object()
EXPECTED = {  # by the start of pydantic's type of an error
    "missing": "",
    "int": Message.of("plan.whole_number").text(),
    "float": Message.of("plan.number").text(),
    "finite": Message.of("plan.number").text(),
    "less": Message.of("plan.number").text(),
    "greater": Message.of("plan.number").text(),
    "string": Message.of("plan.text").text(),
    "bool": Message.of("plan.true_or_false").text(),
    "list": Message.of("plan.list").text(),
    "dict": Message.of("plan.object").text(),
    "typed": Message.of("plan.object").text(),
    "union": Message.of("plan.object").text(),
}


@functools.cache
def plan_adapter() -> TypeAdapter[PlanDocument]:
    """Build the validator of plan documents, once."""
    return TypeAdapter(PlanDocument)


def shape_problems(document: Any) -> list[Issue]:
    """List the places of a plan document whose shape is not that of a plan, `MAX_PROBLEMS` at most."""
    try:
        plan_adapter().validate_python(document)
    except ValidationError as error:
        return _as_problems(error.errors(include_url=False, include_context=False), document)[:MAX_PROBLEMS]
    found = list(_contradictions(document))
    if not found and document["objective"]["value"] is not None and document["totals"] is None:
        found.append(Issue("totals", Message.of("plan.object_expected").text()))
    return found[:MAX_PROBLEMS]


def unknown_keys(document: Mapping[str, Any]) -> list[str]:
    """List the places that no release before this one wrote, such as "fleet[].colour"; "[]" stands for any position."""
    return sorted(set(_left_out(document, plan_adapter().validate_python(document), "")))


def _contradictions(document: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the places at which rows of the right shape cannot be read together, whatever the plan is of."""
    if document["status"] not in STATUSES:
        yield Issue(
            "status",
            Message.of("plan.choice_expected", names=", ".join(STATUSES), given=_shown(document["status"])).text(),
        )
    known = {row["slot"] for row in document["schedule"]}
    for i, row in enumerate(document["routes"]):
        if row["slot"] not in known:
            yield Issue(f"routes[{i}].slot", Message.of("plan.no_such_slot", slot=row["slot"]).text())
    for i, workload in enumerate(document["workloads"]):
        for j, point in enumerate(workload["points"]):
            if workload["kind"] != "serving" and "run" not in point["time_s"]:
                yield Issue(f"workloads[{i}].points[{j}].time_s.run", Message.of("plan.number_is_missing").text())
    if not isinstance(document["spec"].get("currency", ""), str):
        yield Issue(
            "spec.currency", Message.of("plan.text_expected", given=_shown(document["spec"]["currency"])).text()
        )
    horizon = document["spec"].get("horizon", {})
    if not isinstance(horizon, Mapping):
        yield Issue("spec.horizon", Message.of("spec.expected_object_got", given=_shown(horizon)).text())
    elif not _is_number(years := horizon.get("years", 1)) or years < 1:
        yield Issue(
            "spec.horizon.years",
            Message.of("plan.number_expected", least="1", given=_shown(horizon["years"])).text(),
        )


def _as_problems(errors: Sequence[ErrorDetails], document: Any) -> list[Issue]:
    """Translate errors of validation; errors of one place, of a value that may have several types, become one problem."""
    expected: dict[str, tuple[dict[str, None], Any]] = {}
    for error in errors:
        parts, value = _place(error["loc"], document, error["type"] == "missing")
        words = EXPECTED.get(error["type"].partition("_")[0], error["msg"])
        expected.setdefault(path_text(parts), ({}, value))[0][words] = None
    return [
        Issue(
            path,
            Message.of("plan.expected_got", what=_one_of(words), given=_shown(value)).text()
            if any(words)
            else Message.of("spec.missing").text(),
        )
        for path, (words, value) in expected.items()
    ]


def _one_of(words: Iterable[str]) -> str:
    """Join kinds of values as a choice."""
    return functools.reduce(lambda first, second: Message.of("list.or", first=first, second=second).text(), words)


def _place(location: Sequence[str | int], document: Any, missing: bool) -> tuple[list[str | int], Any]:
    """Return the keys and positions of an error that exist in the document, without the names of types, and the value there."""
    parts: list[str | int] = []
    value = document
    for i, part in enumerate(location):
        inner = _item(value, part)
        if inner is not MISSING:
            value = inner
        elif not (missing and i == len(location) - 1):
            continue
        parts.append(part)
    return parts, value


def _item(value: Any, part: str | int) -> Any:
    """Return the item of an object or a list, `MISSING` where there is none."""
    if isinstance(value, Mapping):
        return value.get(part, MISSING)
    return value[part] if isinstance(value, list) and isinstance(part, int) else MISSING


def _left_out(given: Any, known: Any, path: str) -> Iterator[str]:
    """Yield the places of `given` whose keys `known`, the document as its types read it, does not have."""
    if isinstance(given, list) and isinstance(known, list):
        for one, other in zip(given, known, strict=True):
            yield from _left_out(one, other, f"{path}[]")
    elif isinstance(given, dict) and isinstance(known, dict):
        for key, inner in given.items():
            if key not in known:
                yield f"{path}.{key}".lstrip(".")
            elif isinstance(inner, (dict, list)):
                yield from _left_out(inner, known[key], f"{path}.{key}".lstrip("."))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Quote a value in a few characters."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else None
    if text is None:
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a number of over 30 digits"
    return text if len(text) <= 60 else f"{text[:60]}..."
