"""Building the records of one kind: the shipped data, with what overlays and overrides change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from catalog.errors import Wrong, close_names, did_you_mean, name_key
from catalog.figures import Origin
from catalog.files import Problems, read_data
from catalog.reader import Place, read_record
from catalog.records import Record
from catalog.schemas import SCHEMAS

Records = tuple[dict[str, Record], dict[str, str]]  # records by name, and name by the key of each name or alias


def build_records(
    kind: str,
    blocks: Sequence[tuple[Place, Mapping[str, Any]]],
    overrides: Mapping[str, Mapping[str, Any]],
    problems: Problems,
) -> Records:
    """Build all records of a kind from the shipped data, then the blocks in their order, then the overrides."""
    shipped, index, wrong = _shipped(kind)
    records, index = dict(shipped), dict(index)
    problems += wrong
    for place, content in blocks:
        _add(kind, place, content, records, index, problems)
    _apply_overrides(kind, overrides, records, index, problems)
    return records, index


@cache
def _shipped(kind: str) -> tuple[dict[str, Record], dict[str, str], Problems]:
    """Build the records of the shipped data, once per process: the start of every catalog, which nobody may change."""
    records: dict[str, Record] = {}
    index: dict[str, str] = {}
    problems: Problems = []
    _add(kind, Place(f"{kind}.json: ", Origin()), read_data(kind), records, index, problems)
    return records, index, problems


def _add(
    kind: str, place: Place, content: object, records: dict[str, Record], index: dict[str, str], problems: Problems
) -> None:
    """Add the records of a kind that a file or a block states; one of a user (its place has an origin) edits the record of its name."""
    if not isinstance(content, Mapping) or not isinstance(content.get(kind, []), list):
        return
    first: dict[str, int] = {}
    for i, entry in enumerate(content.get(kind, [])):
        at = place if place.whole else Place(f"{place.path}{kind}[{i}]", place.origin)
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if isinstance(name, str) and first.setdefault(name_key(name), i) != i:
            problems.append(
                (at.path, Wrong("catalog.stated_twice", name=name, first=f"{kind}[{first[name_key(name)]}]"))
            )
        edits = place.origin.kind and isinstance(name, str)
        base = records.get(index.get(name_key(name), "")) if edits else None
        record = read_record(kind, entry, at, base, lambda p, m: problems.append((p, m)))
        if record is not None:
            records[record.name] = record
            for label in (record.name, *record.aliases):
                index.setdefault(name_key(label), record.name)


def _apply_overrides(
    kind: str,
    overrides: Mapping[str, Mapping[str, Any]],
    records: dict[str, Record],
    index: dict[str, str],
    problems: Problems,
) -> None:
    """Replace single figures and texts: "kind/name/figure" -> what the user states."""
    for path, entry in overrides.items():
        if not path.startswith(kind + "/") or path.count("/") < 2:
            continue
        name, _, figure = path[len(kind) + 1 :].rpartition("/")
        where = f"overrides.{path}"
        found = index.get(name_key(name))
        if found is None:
            labels = [label for r in records.values() for label in (r.name, *r.aliases)]
            problems.append(
                (
                    where,
                    Wrong("catalog.unknown_name", kind=kind, name=name, close=did_you_mean(close_names(name, labels))),
                )
            )
            continue
        record = records[found]
        edit: dict[str, Any] = {"name": record.name, "figures": {figure: entry}}
        if figure in SCHEMAS[kind].text:
            edit = {"name": record.name, "text": {figure: entry.get("value") if isinstance(entry, Mapping) else entry}}
        place = Place(where, Origin(("override",), "C", "override", note_required=True), bare=True)
        changed = read_record(kind, edit, place, record, lambda p, m: problems.append((p, m)))
        if changed is not None:
            records[found] = changed
