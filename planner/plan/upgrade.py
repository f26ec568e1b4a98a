"""Rewrite a plan of an earlier schema in the keys of today's; no figure changes.

Schema 2 renamed keys of specs (`planner.spec.old_keys`), rows of the fleet and the schedule name their window as `window` (`phase` before),
outcomes count `scenarios` (`worlds` before), and the section `confidence_gain` was called `surety`. Schema 3: what is held stands on a
`topology` of `network_size` (`fabric`, `fabric_size` before), traffic other than requests takes lines in `windows` (`phases` before), and
`confidence.upgrade` was called `surer`. Schema 4: codes of messages say what they mean (`renamed_codes.json`, before to today), and the limit
on systems that are held already stands at their `count`, which a spec has (`supply` and `supply_by_phase` before).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from planner.messages import Message
from planner.plan.rows.money import BY_THE_BOUND
from planner.spec.old_keys import RENAMINGS, with_new_keys

FIRST, LATEST = 1, 4
_TABLES = ("fleet", "schedule")
_NETWORK = {"fabric": "topology", "fabric_size": "network_size"}
_OUTCOMES = ("sampled", "fresh", "nominal")
_CODES = {"steps.surest_left_out": "steps.confidence_left_out"}
_HELD_ALREADY = re.compile(r"\b((?:owned|rented)\[\d+\])\.supply\b(?!_)")
_OWN_COUNT = re.compile(r"(owned|rented)\[\d+\]\.(?:supply|count)")
_OWNED_IN_PHASE = re.compile(r"owned\[\d+\]\.supply_by_phase\.")
_BY_THE_BOUND = "fleet free: as the bound has it, with sites, networks and points of jobs in fractions too"
_PATHS = tuple(
    (
        re.compile(rf"\b({re.escape(renaming.place)})\.{renaming.old}\b".replace(r"\.\*", r"\[\d+\]")),
        rf"\1.{renaming.new}",
    )
    for renaming in RENAMINGS
)


def upgraded(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan of any schema that this release reads as one of the latest; what has not the shape of a plan stays as it is."""
    found = dict(document)
    if found.get("schema_version") == FIRST:
        found = _of_second(found)
    if found.get("schema_version") == 2:
        found = _of_third(found)
    return _of_fourth(found) if found.get("schema_version") == 3 else found


@cache
def renamed_codes() -> dict[str, str]:
    """Read the codes of messages that plans of schema 3 store under another name: theirs to today's."""
    found: dict[str, str] = json.loads(Path(__file__).with_name("renamed_codes.json").read_text("utf-8"))
    return found


def _of_fourth(found: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a plan of schema 3 as one of schema 4."""
    if isinstance(limits := found.get("limits"), list):
        found = {**found, "limits": [_held_already(row) for row in limits if not _is_of_phase(row)]}
    return {
        **{key: value if key == "spec" else _with_codes(value) for key, value in found.items()},
        "schema_version": 4,
    }


def _held_already(row: Any) -> Any:
    """Name the supply of owned and rented systems by that, no longer by how such systems are bought or reserved."""
    path, message = (row.get(key) for key in ("path", "name_message")) if isinstance(row, Mapping) else (None, None)
    kind = _OWN_COUNT.fullmatch(path) if isinstance(path, str) else None
    if kind is None or not isinstance(message, Mapping) or message.get("code") != "limit.supply":
        return row
    how, system = Message.of(f"how.{kind[1]}"), message.get("arguments", {}).get("system")
    name = Message.of("limit.supply", system=system, how=how.text())
    return {**row, "name": name.text(), "name_message": name.coded()}


def _is_of_phase(row: Any) -> bool:
    """Tell whether a row limits the owned systems of a phase, for which a spec has no key."""
    return isinstance(row, Mapping) and _OWNED_IN_PHASE.match(str(row.get("path"))) is not None


def _with_codes(value: Any) -> Any:
    """Copy a value with the codes of today, and with the places where a spec states the systems that are held already."""
    if isinstance(value, Mapping):
        return {key: _with_codes(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_codes(entry) for entry in value]
    return _HELD_ALREADY.sub(r"\1.count", renamed_codes().get(value, value)) if isinstance(value, str) else value


def _of_third(found: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a plan of schema 2 as one of schema 3."""
    for table in ("fleet", "packing"):
        found = _in_rows(found, table, lambda row: _renamed(row, **_NETWORK))
    found = _in_rows(found, "workloads", lambda row: _in_rows(row, "points", _with_pools))
    found = _in_rows(found, "placements", lambda row: _renamed(row, phases="windows"))
    if "confidence" in found:
        found["confidence"] = _renamed(found["confidence"], surer="upgrade")
    if "robustness" in found:
        found["robustness"] = _in_rows(found["robustness"], "standing_by", _with_pools)
    return {**found, "schema_version": 3}


def _with_pools(row: Any) -> Any:
    """Copy a point with the names of schema 3 in its pools."""
    return _in_rows(row, "pools", lambda pool: _renamed(pool, **_NETWORK))


def _in_rows(block: Any, table: str, change: Callable[[Any], Any]) -> Any:
    """Copy a block with each row of a table changed; what has not this shape stays as it is."""
    rows = block.get(table) if isinstance(block, Mapping) else None
    return {**block, table: [change(row) for row in rows]} if isinstance(rows, list) else block


def _of_second(found: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a plan of schema 1 as one of schema 2."""
    spec = found.get("spec")
    found = {key: _at_new_paths(value) for key, value in found.items() if key != "spec"}
    if isinstance(spec, Mapping):
        spec, _ = with_new_keys(spec)
    for table in _TABLES:
        if isinstance(rows := found.get(table), list):
            found[table] = [_renamed(row, phase="window") for row in rows]
    if "confidence" in found:
        found["confidence"] = _renamed(found["confidence"], worlds="scenarios")
    if isinstance(promise := found.get("robustness"), Mapping):
        outcomes = {key: _renamed(promise[key], worlds="scenarios") for key in _OUTCOMES if key in promise}
        found["robustness"] = _renamed({**promise, **outcomes}, worlds_in_program="scenarios_in_program")
    return {**_renamed(found, surety="confidence_gain"), "spec": spec, "schema_version": 2}


def _renamed(block: Any, **names: str) -> Any:
    """Copy a block with other keys, in the order in which they stand."""
    return {names.get(key, key): value for key, value in block.items()} if isinstance(block, Mapping) else block


def _at_new_paths(value: Any) -> Any:
    """Copy a value with the paths and codes that its texts name as they are today."""
    if isinstance(value, Mapping):
        return {key: _at_new_paths(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_at_new_paths(entry) for entry in value]
    if not isinstance(value, str):
        return value
    for path, new in _PATHS if "." in value else ():
        value = path.sub(new, value)
    return _CODES.get(value, value).replace(_BY_THE_BOUND, BY_THE_BOUND)
