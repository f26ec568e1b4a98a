"""Figures: a number with its unit, source, date, confidence and kind. Reading one from JSON lives here;
which figures a record may have is in schemas.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog import units
from catalog.errors import Wrong, close_names, did_you_mean

KINDS = ("datasheet", "measured", "published-price", "calibrated", "derived", "claimed", "assumed", "override")
CONFIDENCES = ("A", "B", "C")
_KEYS = ("value", "unit", "low", "high", "source", "date", "confidence", "kind", "note")

Report = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a figure: a document, its date where known, and how far to trust it (A primary, B secondary, C unverified)."""

    id: str
    title: str
    date: str | None
    confidence: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in SI with everything needed to cite it. `value` is a tuple for a series over the day."""

    value: float | tuple[float, ...]
    unit: str
    source: tuple[str, ...]
    date: str | None
    confidence: str
    kind: str
    note: str = ""
    low: float | None = None
    high: float | None = None
    printed: str = ""

    @property
    def number(self) -> float:
        """The value of a figure that is one number."""
        if isinstance(self.value, tuple):
            raise TypeError("this figure is a series, not one number")
        return self.value


@dataclass(frozen=True, slots=True)
class Origin:
    """Defaults of a figure where its entry does not state them: shipped data state all, a user's overlay need not."""

    source: tuple[str, ...] = ()
    confidence: str = ""
    kind: str = ""
    note_required: bool = False


def read_figure(entry: object, allowed: tuple[str, ...], origin: Origin, report: Report) -> Figure | None:
    """Read the figure that a JSON entry states, in one of the `allowed` SI units (any unit where that is empty).

    Problems go to `report(key, message)`, all of them; the result is then None.
    """
    if not isinstance(entry, Mapping):
        report("", Wrong("catalog.expected_value_and_note", given=type(entry).__name__))
        return None
    fine = True
    for key in entry:
        if key not in _KEYS:
            report(str(key), Wrong("catalog.unknown_key", close=did_you_mean(close_names(str(key), _KEYS))))
            fine = False
    numbers: dict[str, Any] = {}
    unit = allowed[0] if allowed else ""
    for key in ("value", "low", "high"):
        if entry.get(key) is None and key != "value":
            continue
        try:
            numbers[key], unit = _number(entry.get(key), entry.get("unit"), allowed)
        except units.UnitError as error:
            report(key, _fault_of(error))
            fine = False
    text = {key: entry.get(key) or "" for key in ("note", "date", "confidence", "kind")}
    for key, value in text.items():
        if not isinstance(value, str):
            report(key, Wrong("catalog.expected_text", given=repr(value)))
            fine = False
    kind, confidence = text["kind"] or origin.kind, text["confidence"] or origin.confidence
    if kind not in KINDS:
        report("kind", Wrong("catalog.expected_one_of", names=", ".join(KINDS), given=kind))
        fine = False
    if confidence not in CONFIDENCES:
        report("confidence", Wrong("catalog.expected_one_of", names=", ".join(CONFIDENCES), given=confidence))
        fine = False
    source = entry.get("source", origin.source)
    if not isinstance(source, (list, tuple)) or not all(isinstance(s, str) for s in source) or not source:
        report("source", Wrong("catalog.expected_sources", given=repr(source)))
        fine = False
    if origin.note_required and not text["note"]:
        report("note", Wrong("catalog.expected_reason"))
        fine = False
    low, high = numbers.get("low"), numbers.get("high")
    for key, number in (("low", low), ("high", high)):
        if isinstance(number, tuple):
            report(key, Wrong("catalog.expected_one_value"))
            fine = False
    if (
        fine
        and not isinstance(numbers["value"], tuple)
        and ((low is not None and low > numbers["value"]) or (high is not None and high < numbers["value"]))
    ):
        report("low", Wrong("catalog.expected_in_order"))
        fine = False
    if not fine:
        return None
    return Figure(
        numbers["value"],
        unit,
        tuple(source),
        text["date"] or None,
        confidence,
        kind,
        text["note"],
        low,
        high,
        _printed(entry),
    )


def _fault_of(error: units.UnitError) -> str:
    """State the fault of a quantity, as a sentence that keeps its code."""
    if error.unit is None:
        text: str = error.args[0]
        return text
    what = Wrong(f"quantity.{error.unit or 'money'}")
    return Wrong("catalog.expected_quantity", what=what, example=error.example, given=error.given)


def _printed(entry: Mapping[str, Any]) -> str:
    value, unit = entry["value"], entry.get("unit") or ""
    if isinstance(value, list):
        return f"{len(value)} values in {unit}".strip()
    return value if isinstance(value, str) else f"{value:.12g} {unit}".strip()


def _number(value: object, unit: object, allowed: tuple[str, ...]) -> tuple[float | tuple[float, ...], str]:
    if unit is None:
        return _from_text(value, allowed)
    if not isinstance(unit, str):
        raise units.UnitError(Wrong("catalog.unit_not_text", given=repr(unit)))
    si, factor = units.si_unit(unit)
    if allowed and not any(_same_quantity(si, other) for other in allowed):
        raise units.UnitError(Wrong("catalog.unit_of_another_quantity", example=units.example(allowed[0]), given=unit))
    values = value if isinstance(value, list) else [value]
    if not values or not all(map(units.is_number, values)):
        raise units.UnitError(Wrong("catalog.unit_without_number", given=repr(value)))
    if isinstance(value, list):
        return tuple(v * factor for v in value), si
    return value * factor, si  # type: ignore[operator]


def _from_text(value: object, allowed: tuple[str, ...]) -> tuple[float | tuple[float, ...], str]:
    if not allowed:
        if units.is_number(value):
            return float(value), "1"  # type: ignore[arg-type]
        raise units.UnitError(Wrong("catalog.number_without_unit", given=repr(value)))
    if isinstance(value, list):
        pairs = [_from_text(v, allowed) for v in value]
        if not pairs or len({u for _, u in pairs}) > 1:
            raise units.UnitError(Wrong("catalog.expected_quantities"))
        return tuple(v for v, _ in pairs), pairs[0][1]  # type: ignore[misc]
    first: units.UnitError | None = None
    for unit in allowed:
        try:
            return units.parse_any(value, unit)  # type: ignore[arg-type]
        except units.UnitError as error:
            first = first or error
    assert first is not None
    raise first


def _same_quantity(found: str, wanted: str) -> bool:
    """Tell whether two units are of one quantity; any currency stands for any other."""
    if units.is_money(found) and units.is_money(wanted):
        return found.partition("/")[2] == wanted.partition("/")[2]
    return found == wanted
