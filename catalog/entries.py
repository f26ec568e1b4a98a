"""Reading one JSON entry into a record, checked against the schema of its kind, all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.errors import close_names, did_you_mean
from catalog.figures import Figure, Origin, read_figure
from catalog.records import Record
from catalog.schemas import SCHEMAS, Schema

Report = Callable[[str, str], None]
_KEYS = ("name", "aliases", "text", "figures", "claimed", "brief_only", "note")
_CLAIMED = Origin(kind="claimed", confidence="C")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands, for messages, and what its figures get by default. A `bare` place is one
    figure of an override: messages name the place alone."""

    path: str
    origin: Origin
    bare: bool = False

    def at(self, *keys: str) -> str:
        """Path of something inside the entry."""
        if self.bare:
            keys = keys[2:]
        return ".".join((self.path, *(k for k in keys if k)))


def read_record(kind: str, entry: object, place: Place, base: Record | None, report: Report) -> Record | None:
    """The record of an entry; with a `base`, that record with the entry's figures and texts in place of its own."""
    schema = SCHEMAS[kind]
    if not isinstance(entry, Mapping):
        report(place.path, f"expected an object, got {type(entry).__name__}")
        return None
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        report(place.at("name"), "expected the name of the record")
        return None
    for key in entry:
        if key not in _KEYS:
            report(place.at(str(key)), f"unknown key{did_you_mean(close_names(str(key), _KEYS))}")
    text = dict(base.text if base else {})
    text.update(_texts(schema, _mapping(entry, "text", place, report), place, report))
    if isinstance(entry.get("note"), str):
        text["note"] = entry["note"]
    figures = dict(base.figures if base else {})
    figures.update(_figures(schema, "figures", place.origin, entry, place, report))
    claimed = dict(base.claimed if base else {})
    claimed.update(_figures(schema, "claimed", _CLAIMED, entry, place, report))
    aliases = entry.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(a, str) for a in aliases):
        report(place.at("aliases"), "expected a list of names")
        aliases = []
    brief_only = bool(entry.get("brief_only", base.brief_only if base else False))
    record = Record(kind, base.name if base else name.strip(),
                    tuple(dict.fromkeys((*(base.aliases if base else ()), *aliases))),
                    text, figures, claimed, brief_only)
    if base is None and not brief_only:
        _check_required(schema, record, place, report)
    return record


def _mapping(entry: Mapping[str, Any], key: str, place: Place, report: Report) -> Mapping[str, Any]:
    value = entry.get(key, {})
    if isinstance(value, Mapping):
        return value
    report(place.at(key), f"expected an object, got {type(value).__name__}")
    return {}


def _texts(schema: Schema, texts: Mapping[str, Any], place: Place, report: Report) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in texts.items():
        spec = schema.text.get(key)
        if spec is None:
            hint = did_you_mean(close_names(key, schema.text))
            report(place.at("text", key), f"{schema.kind} have no such text{hint}")
        elif isinstance(value, list):
            out[key] = _frozen(value)
        elif not isinstance(value, (str, bool)):
            report(place.at("text", key), f"expected text, got {value!r}")
        elif spec.choices and value not in spec.choices:
            report(place.at("text", key), f'expected one of {", ".join(spec.choices)}, got "{value}"')
        else:
            out[key] = value
    return out


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _figures(schema: Schema, key: str, origin: Origin, entry: Mapping[str, Any], place: Place,
             report: Report) -> dict[str, Figure]:
    out: dict[str, Figure] = {}
    for name, figure in _mapping(entry, key, place, report).items():
        spec = schema.figure(name)
        if spec is None:
            known = (*schema.figures, *schema.text)
            report(place.at(key, name), f"{schema.kind} have no such figure{did_you_mean(close_names(name, known))}")
            continue
        if isinstance(figure, (str, int, float)) and not origin.note_required:
            figure = {"value": figure}
        read = read_figure(figure, spec.units, origin, lambda k, m, n=name: report(place.at(key, n, k), m))
        if read is not None:
            out[name] = read
    return out


def _check_required(schema: Schema, record: Record, place: Place, report: Report) -> None:
    for name, spec in schema.figures.items():
        if spec.required and name not in record.figures:
            report(place.at("figures", name), f"expected {spec.words}")
    for key, text in schema.text.items():
        if text.required and key not in record.text:
            report(place.at("text", key), f"expected {text.words}")
