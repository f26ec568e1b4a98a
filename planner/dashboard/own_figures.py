"""Take figures of a user's own into a scenario, and write them out again as an overlay. No Streamlit here; overlays: docs/overlays.md.

A spec holds own figures in two places, and so does a scenario: records in its block `catalog`, and single figures of the catalog's records
in `overrides`. An overlay is spread over both. What a spec cannot hold, such as a new kind of offer, is a problem that names the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from catalog.errors import CatalogError, UnknownName
from catalog.lookup import shipped_catalog
from catalog.schemas import SCHEMAS
from planner.dashboard import sources
from planner.dashboard.file_names import file_name
from planner.dashboard.state.scenario import Scenario
from planner.errors import Issue, SpecError
from planner.messages import Message, Said, say
from planner.resolve.overrides import STATED_INSTEAD
from planner.spec.document import read_document
from planner.spec.model import PlanSpec
from planner.spec.quantities import shown

Edits = dict[str, Any]
CATALOG, OVERRIDES = "catalog", "overrides"
IDLE = "resolve.figure_unread"  # code of the problem of a figure that a spec does not read
BLOCKS: tuple[str, ...] = get_args(get_args(PlanSpec.model_fields[CATALOG].annotation)[0])
"""Kinds of records that the block `catalog` of a spec may hold."""
_ARCHITECTURES, _CONFIG = "architectures", ".config.json"


def overlay_edits(document: Mapping[str, Any], files: Sequence[tuple[str, bytes]]) -> Edits:
    """Return the edits of a spec that hold the figures of overlays. Raises SpecError with all that a spec cannot hold."""
    blocks = {kind: list(records) for kind, records in (document.get(CATALOG) or {}).items()}
    overrides = dict(document.get(OVERRIDES) or {})
    problems: list[Issue] = []
    for upload, content in files:
        name = file_name(upload)
        overlay = read_document(content)
        if upload.lower().endswith(_CONFIG):
            record = {"name": file_name(upload[: -len(_CONFIG)]), "config": overlay}
            overlay = {_ARCHITECTURES: [record]}
        sources = overlay.get("sources")
        titles = {
            key: str(entry.get("title", key))
            for key, entry in (sources.items() if isinstance(sources, dict) else ())
            if isinstance(entry, dict)
        }
        for kind, records in overlay.items():
            if kind == "sources":
                continue
            if kind not in SCHEMAS or not isinstance(records, list) or not all(_is_record(each) for each in records):
                problems.append(
                    Issue(
                        f"{name}: {kind}",
                        Message.of("dashboard.records_expected", kinds=", ".join(SCHEMAS)).text(),
                    )
                )
                continue
            for record in records:
                if kind in BLOCKS:
                    mine = {**record, "figures": _noted(record.get("figures") or {}, name, titles)}
                    blocks[kind] = [*(each for each in blocks.get(kind, []) if each["name"] != record["name"]), mine]
                else:
                    problems += _override(overrides, kind, record, name, titles)
    if problems:
        raise SpecError(problems)
    return {key: value for key, value in ((CATALOG, blocks), (OVERRIDES, overrides)) if value}


def taken(scenario: Scenario, edits: Edits) -> tuple[Scenario, list[str]]:
    """Return the scenario with edits, and the paths of overrides that its spec does not read, which are left out.

    Raises SpecError for figures that cannot be right.
    """
    changed = scenario.with_edits(edits)
    try:
        sources.resolved(changed.document())
    except SpecError as error:
        idle = [problem.path.removeprefix("overrides.") for problem in error.problems if _is_idle(problem)]
        if len(idle) < len(error.problems):
            raise
        kept = {path: entry for path, entry in edits[OVERRIDES].items() if path not in set(idle)}
        changed = scenario.with_edits({**edits, OVERRIDES: kept or None})
        sources.resolved(changed.document())
        return changed, idle
    return changed, []


def _is_idle(problem: Issue) -> bool:
    """Tell whether a problem is that of an override that no part of a spec reads."""
    told = problem.message
    return isinstance(told, Said) and (told.message.code == IDLE or told in STATED_INSTEAD.values())


def _is_record(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("figures", {}), dict)


def _noted(figures: Mapping[str, Any], file: str, titles: Mapping[str, str]) -> dict[str, Any]:
    """Give each figure a note with its origin, as a spec asks for; sources of an overlay become part of it."""
    found = {}
    for key, stated in figures.items():
        entry = dict(stated) if isinstance(stated, Mapping) else {"value": stated}
        found[key] = {
            **{part: value for part, value in entry.items() if part != "source"},
            "note": _note(entry, file, titles),
        }
    return found


def _note(entry: Mapping[str, Any], file: str, titles: Mapping[str, str]) -> str:
    stated = entry.get("source")
    ids = [stated] if isinstance(stated, str) else list(stated) if isinstance(stated, list) else []
    origins = [titles.get(str(each), str(each)) for each in ids]
    return "; ".join(dict.fromkeys(text for text in (str(entry.get("note", "")), *origins) if text)) or str(
        say("own.figure", file=file)
    )


def _override(
    overrides: dict[str, Any], kind: str, record: Mapping[str, Any], file: str, titles: Mapping[str, str]
) -> list[Issue]:
    """Write the figures of a record of the catalog as overrides; returns what cannot be."""
    name = record["name"]
    if wrong := list(_wrong_parts(f"{file}: {kind}/{name}", record)):
        return wrong
    try:
        known = shipped_catalog().get(kind, name).name
    except (UnknownName, CatalogError):
        remedy = (
            Message.of("dashboard.price_at_offer").text()
            if kind == "offers"
            else Message.of("dashboard.catalog_by_command_line").text()
        )
        return [Issue(f"{file}: {kind}/{name}", Message.of("dashboard.no_new_record", remedy=remedy).text())]
    problems = []
    for key, stated in (record.get("figures") or {}).items():
        entry = dict(stated) if isinstance(stated, Mapping) else {"value": stated}
        if "/" in key:
            problems.append(Issue(f"{file}: {kind}/{name}/{key}", Message.of("dashboard.slash_in_name").text()))
            continue
        unit = str(entry.get("unit") or "1")
        found = {
            part: _with_unit(entry[part], unit) for part in ("value", "low", "high") if entry.get(part) is not None
        }
        overrides[f"{kind}/{known}/{key}"] = {**found, "note": _note(entry, file, titles)}
    for key, text in (record.get("text") or {}).items():
        overrides[f"{kind}/{known}/{key}"] = {"value": text, "note": str(say("own.figure", file=file))}
    return problems


def _wrong_parts(place: str, record: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the parts of a record that an override cannot hold: texts that are no object, and bounds that are no number or text."""
    text = record.get("text")
    if text is not None and not isinstance(text, Mapping):
        yield Issue(f"{place}/text", Message.of("dashboard.texts_expected", given=shown(text)).text())
    for key, stated in (record.get("figures") or {}).items():
        entry = stated if isinstance(stated, Mapping) else {"value": stated}
        for part in ("value", "low", "high"):
            if isinstance(entry.get(part), list | dict):
                words = Message.of("dashboard.one_value_expected", given=shown(entry[part])).text()
                yield Issue(f"{place}/{key}/{part}", words)


def _with_unit(value: Any, unit: str) -> Any:
    """Write a number with its unit as one text, the unit as texts have it; anything else stays, to be refused with the spec."""
    if unit == "1" or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:.12g} {unit.replace('byte', 'B')}"


def own_overlay(document: Mapping[str, Any]) -> dict[str, Any]:
    """Write the own figures of a spec as one overlay, which `--catalog` reads."""
    found: dict[str, dict[str, dict[str, Any]]] = {
        kind: {record["name"]: {**record, "figures": dict(record.get("figures") or {})} for record in records}
        for kind, records in (document.get(CATALOG) or {}).items()
    }
    for path, entry in (document.get(OVERRIDES) or {}).items():
        kind, _, rest = path.partition("/")
        name, _, key = rest.rpartition("/")
        record = found.setdefault(kind, {}).setdefault(name, {"name": name, "figures": {}})
        if kind in SCHEMAS and key in SCHEMAS[kind].text:
            record.setdefault("text", {})[key] = entry["value"]
        else:
            record["figures"][key] = dict(entry)
    return {kind: list(records.values()) for kind, records in found.items()}


def own_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the own figures of a spec: path, value, note."""
    rows = [
        {
            "path": f"{kind}/{record['name']}/{key}",
            "value": _value(entry),
            "note": _note(entry, "spec", {}) if isinstance(entry, Mapping) else "",
        }
        for kind, records in (document.get(CATALOG) or {}).items()
        for record in records
        for key, entry in (record.get("figures") or {}).items()
    ]
    rows += [
        {"path": f"{kind}/{record['name']}", "value": "config.json", "note": ""}
        for kind, records in (document.get(CATALOG) or {}).items()
        for record in records
        if "config" in record
    ]
    return rows + [
        {"path": path, "value": _value(entry), "note": entry.get("note", "")}
        for path, entry in (document.get(OVERRIDES) or {}).items()
    ]


def _value(entry: Any) -> str:
    value = entry.get("value") if isinstance(entry, Mapping) else entry
    unit = str(entry.get("unit") or "") if isinstance(entry, Mapping) else ""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{text} {unit}".strip() if unit and unit != "1" else text
