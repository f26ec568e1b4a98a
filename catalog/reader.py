"""Reading one JSON entry into a record, checked against the schema of its kind, all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.contents import malformed_contents
from catalog.errors import CatalogError, Wrong, close_names, did_you_mean
from catalog.figures import Figure, Origin, read_figure
from catalog.huggingface import from_config
from catalog.plausibility import range_around, range_of
from catalog.records import Record
from catalog.schema import FigureSpec, Schema
from catalog.schemas import SCHEMAS
from catalog.tariffs import malformed_texts

Report = Callable[[str, str], None]
_KEYS = ("name", "aliases", "text", "figures", "claimed", "announced_only", "note", "config")
_CLAIMED = Origin(kind="claimed", confidence="C")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands, for messages, and what its figures get by default. A `bare` place is one
    figure of an override: messages name the place alone. A `whole` place is a file that is one entry."""

    path: str
    origin: Origin
    bare: bool = False
    whole: bool = False

    def at(self, *keys: str) -> str:
        """Write the path of something inside the entry."""
        if self.bare:
            keys = keys[2:]
        inside = ".".join(k for k in keys if k)
        if self.whole:
            return self.path + inside if inside else self.path.rstrip(": ")
        return f"{self.path}.{inside}" if inside else self.path


def read_record(kind: str, entry: object, place: Place, base: Record | None, report: Report) -> Record | None:
    """Read the record of an entry; with a `base`, that record with the entry's figures and texts in place of its own."""
    schema = SCHEMAS[kind]
    if not isinstance(entry, Mapping):
        report(place.path, Wrong("catalog.expected_object", given=type(entry).__name__))
        return None
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        report(place.at("name"), Wrong("catalog.expected_name"))
        return None
    for key in entry:
        if key == "config" and kind != "architectures":
            report(place.at(key), Wrong("catalog.config_of_architectures"))
        elif key not in _KEYS:
            report(place.at(str(key)), Wrong("catalog.unknown_key", close=did_you_mean(close_names(str(key), _KEYS))))
    known, aliases_before = (base.name, base.aliases) if base else (name.strip(), ())
    if kind == "architectures" and "config" in entry:
        entry, base = (
            _from_config(entry, name, place, report),
            None,
        )  # a config is the whole shape: nothing of another stays
    text = dict(base.text if base else {})
    text.update(_texts(schema, _mapping(entry, "text", place, report), place, report))
    if isinstance(entry.get("note"), str):
        text["note"] = entry["note"]
    figures = dict(base.figures if base else {})
    figures.update(_figures(schema, "figures", place.origin, entry, place, report, figures))
    claimed = dict(base.claimed if base else {})
    claimed.update(_figures(schema, "claimed", _CLAIMED, entry, place, report))
    aliases = entry.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(a, str) for a in aliases):
        report(place.at("aliases"), Wrong("catalog.expected_names"))
        aliases = []
    hub = str(text.get("hf_id") or "")  # people write the publisher before the name, or not
    aliases = [*aliases, *((hub, hub.rpartition("/")[2]) if hub else ())]
    announced_only = bool(entry.get("announced_only", base.announced_only if base else False))
    record = Record(
        kind, known, tuple(dict.fromkeys((*aliases_before, *aliases))), text, figures, claimed, announced_only
    )
    if base is None and not announced_only:
        _check_required(schema, record, place, report)
    if place.origin.kind:  # what a user states; our own data have tests
        for key, message in (*malformed_texts(record), *malformed_contents(record)):
            report(place.at("text", key), message)
    return record


def _from_config(entry: Mapping[str, Any], name: str, place: Place, report: Report) -> Mapping[str, Any]:
    """Read the Hugging Face config of an entry into figures and texts; leave it out where it cannot be read."""
    try:
        return from_config(entry["config"], name, entry)
    except CatalogError as error:
        for key, message in error.problems:
            report(place.at(key.removeprefix("config").strip(".") if place.whole else key), message)
        return {key: value for key, value in entry.items() if key != "config"}


def _mapping(entry: Mapping[str, Any], key: str, place: Place, report: Report) -> Mapping[str, Any]:
    value = entry.get(key, {})
    if isinstance(value, Mapping):
        return value
    report(place.at(key), Wrong("catalog.expected_object", given=type(value).__name__))
    return {}


def _texts(schema: Schema, texts: Mapping[str, Any], place: Place, report: Report) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in texts.items():
        spec = schema.text.get(key)
        if spec is None:
            hint = did_you_mean(close_names(key, schema.text))
            report(place.at("text", key), Wrong("catalog.no_such_text", kind=schema.kind, close=hint))
        elif isinstance(value, list) and spec.rows:
            out[key] = _frozen(value)
        elif not isinstance(value, str):
            report(place.at("text", key), Wrong("catalog.expected_text", given=repr(value)))
        elif spec.choices and value not in spec.choices:
            report(place.at("text", key), Wrong("catalog.expected_one_of", names=", ".join(spec.choices), given=value))
        else:
            out[key] = value
    return out


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _figures(
    schema: Schema,
    key: str,
    origin: Origin,
    entry: Mapping[str, Any],
    place: Place,
    report: Report,
    before: Mapping[str, Figure] = {},
) -> dict[str, Figure]:
    """Read the figures of an entry; a user's must lie in the range of their kind, or around the one they replace."""
    out: dict[str, Figure] = {}
    for name, figure in _mapping(entry, key, place, report).items():
        spec = schema.figure(name)
        if spec is None:
            known = (*schema.figures, *schema.text)
            report(
                place.at(key, name),
                Wrong("catalog.no_such_figure", kind=schema.kind, close=did_you_mean(close_names(name, known))),
            )
            continue
        if isinstance(figure, (str, int, float)) and not origin.note_required:
            figure = {"value": figure}
        units = spec.units or ((before[name].unit,) if name in before else ())  # a default or constant keeps its unit
        read = read_figure(figure, units, origin, _report_at(report, place, key, name))
        if read is None:
            continue
        if message := _unfit(schema, name, spec, read, before.get(name)) if origin.kind and key == "figures" else "":
            report(place.at(key, name, "value"), message)
        else:
            out[name] = read
    return out


def _report_at(report: Report, place: Place, *keys: str) -> Report:
    """Report problems of a part of an entry at its path."""
    return lambda key, message: report(place.at(*keys, key), message)


def _unfit(schema: Schema, name: str, spec: FigureSpec, figure: Figure, before: Figure | None) -> str:
    """Describe why a figure cannot be of this name; empty where it can."""
    given = len(figure.value) if isinstance(figure.value, tuple) else 1
    single = isinstance(before.value, float | int) if schema.open and before is not None else spec.values == 1
    if single and isinstance(figure.value, tuple):
        return Wrong("catalog.expected_one_value_not", count=str(given))
    if spec.values and given != spec.values and not schema.open:
        code = "catalog.expected_several_values" if spec.values > 1 else "catalog.expected_single_value"
        return Wrong(code, count=str(spec.values), given=str(given))
    if schema.open and before is not None and isinstance(before.value, tuple):
        if given != len(before.value) or not isinstance(figure.value, tuple):
            return Wrong("catalog.expected_values", count=str(len(before.value)), given=str(given))
        allowed = None
    elif schema.open:
        allowed = range_around(schema.kind, before.number, before.unit) if before is not None else None
    else:
        allowed = range_of(name, figure.unit)
    values = figure.value if isinstance(figure.value, tuple) else (figure.value,)
    return next((message for value in values if allowed and (message := allowed.problem(value, figure.unit))), "")


def _check_required(schema: Schema, record: Record, place: Place, report: Report) -> None:
    for name, spec in schema.figures.items():
        if spec.required and name not in record.figures:
            report(place.at("figures", name), Wrong("catalog.expected", what=spec.words))
    for key, text in schema.text.items():
        if text.required and not record.text.get(key):
            report(place.at("text", key), Wrong("catalog.expected", what=text.words))
