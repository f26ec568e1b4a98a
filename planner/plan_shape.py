"""The shape of a plan document: what every reader of a plan relies on. What the figures mean: docs/plan.md; whether they hold: `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import is_number
from planner.errors import Problem


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is no list or object: `words` say what is expected."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Rows:
    """A list of rows of one shape."""

    row: Any


@dataclass(frozen=True, slots=True)
class Each:
    """An object of any keys, whose values have one shape."""

    value: Any


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may be null and, if `absent`, may not be there at all."""

    shape: Any
    absent: bool = False


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or is_number(value)


TEXT = Leaf("a text", lambda value: isinstance(value, str))
NUMBER = Leaf("a finite number", is_number)
YEARS = Leaf("a number of years", lambda value: is_number(value) and value >= 1)
PLAIN = Leaf("a number, a text or null", _is_plain)
ANY = Leaf("anything", lambda value: True)
STATUS = Leaf("a status", lambda value: value in ("optimal", "within_gap", "limit", "infeasible", "unbounded"))
LINES = Rows({"component": TEXT, "site": Maybe(TEXT), "system": Maybe(TEXT), "how": Maybe(TEXT), "amount": NUMBER})
POOL = {
    "system": TEXT,
    "layout": Each(PLAIN),
    "batch": Maybe(NUMBER),
    "role": TEXT,
    "workers": NUMBER,
    "precision": TEXT,
}
POINT = {
    "id": TEXT, "site": TEXT, "peak_replicas": NUMBER, "pools": Rows(POOL), "mfu": Maybe(NUMBER, True), "power_cap": Maybe(NUMBER, True),
    "time_s": Maybe(Each(PLAIN), True),
}  # fmt: skip
TOTALS = dict.fromkeys(("cost", "carbon_kg", "energy_j", "tokens", "chips", "peak_power_w"), NUMBER)
QUALITY = {
    "workload": TEXT, "reached": NUMBER, "source": TEXT, "architectures": Rows({"architecture": TEXT, "share": NUMBER, "name": Maybe(TEXT)}),
}  # fmt: skip
SHAPE: dict[str, Any] = {
    "name": TEXT,
    "status": STATUS,
    "objective": {"value": Maybe(NUMBER), "unit": TEXT},
    "bound": Maybe(NUMBER),
    "bound_of": Maybe(TEXT, True),
    "gap": Maybe(NUMBER),
    "totals": Maybe(TOTALS),
    "fleet": Rows({"site": TEXT, "system": TEXT, "how": TEXT, "count": NUMBER, "fabric": Maybe(TEXT), "phase": PLAIN}),
    "fabrics": Rows({}),
    "workloads": Rows({"name": TEXT, "kind": TEXT, "cost": NUMBER, "points": Rows(POINT), "mfu": Maybe(NUMBER), "slo": Rows({})}),
    "routes": Rows({"workload": TEXT, "origin": TEXT, "site": TEXT, "slot": PLAIN, "tokens_per_s": NUMBER}),
    "schedule": Rows({"site": TEXT, "slot": PLAIN, "seconds": NUMBER, "hour_utc": NUMBER, "phase": NUMBER, "active": Each(NUMBER)}),
    "costs": Each(NUMBER),
    "cost_lines": LINES,
    "carbon_lines": LINES,
    "limits": Rows({"path": TEXT, "name": TEXT, "value": NUMBER, "limit": NUMBER, "slack": NUMBER, "marginal_unit": Maybe(TEXT)}),
    "runner_up": Rows({}),
    "dropped": Each(Each(PLAIN)),
    "assumptions": Rows({"path": TEXT, "value": PLAIN, "unit": Maybe(TEXT)}),
    "provenance": Rows({}),
    "versions": Each(PLAIN),
    "solver": Each(ANY),
    "catalog_digest": TEXT,
    "spec": {"currency": Maybe(TEXT, True), "horizon": Maybe({"years": Maybe(YEARS, True)}, True)},
    "quality": Maybe(Rows(QUALITY), True),
    "phases": Maybe(Rows({name: Maybe(NUMBER, True) for name in ("capital", "residual", "paid")}), True),
}  # fmt: skip


def shape_problems(document: Mapping[str, Any], where: str) -> list[Problem]:
    """List every place of a plan whose value is not of the kind that its readers rely on."""
    found = [Problem(path, message) for path, message in _problems(document, SHAPE, where)]
    if not found:
        found = [Problem(path, message) for path, message in _references(document, where)]
    return found


def _problems(value: Any, shape: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(shape, Maybe):
        if value is not None:
            yield from _problems(value, shape.shape, at)
    elif isinstance(shape, Leaf):
        if not _fits(shape, value):
            yield at, f"expected {shape.words}"
    elif isinstance(shape, Rows):
        if not isinstance(value, list):
            yield at, "expected a list of rows"
            return
        for i, row in enumerate(value):
            yield from _problems(row, shape.row, f"{at}[{i}]")
    elif not isinstance(value, Mapping):
        yield at, "expected an object"
    elif isinstance(shape, Each):
        for key, item in value.items():
            yield from _problems(item, shape.value, f"{at}.{key}")
    else:
        for key, inner in shape.items():
            if key in value or (isinstance(inner, Maybe) and inner.absent):
                yield from _problems(value.get(key), inner, f"{at}.{key}")
            else:
                yield f"{at}.{key}", "is missing"


def _fits(shape: Leaf, value: Any) -> bool:
    try:
        return shape.fits(value)
    except TypeError:  # a list or an object, where one of several texts is expected
        return False


def _references(document: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    """Check what one part of a plan needs of another."""
    slots = {row["slot"] for row in document["schedule"]}
    for i, row in enumerate(document["routes"]):
        if row["slot"] not in slots:
            yield f"{where}.routes[{i}].slot", "is no slot of the schedule"
    for i, workload in enumerate(document["workloads"]):
        for j, point in enumerate(workload["points"]):
            if workload["kind"] == "training" and not is_number((point.get("time_s") or {}).get("run")):
                yield f"{where}.workloads[{i}].points[{j}].time_s.run", "expected the time of the job"
    if document["objective"]["value"] is not None and document["totals"] is None:
        yield f"{where}.totals", "expected an object: the plan has an objective"
