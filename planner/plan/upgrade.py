"""Rewrite a plan of an earlier schema in the keys of today's; no figure changes.

Schema 2 renamed keys of specs (`planner.spec.old_keys`), rows of the fleet and the schedule name their window as `window` (`phase` before),
outcomes count `scenarios` (`worlds` before), and the section `confidence_gain` was called `surety`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.plan.rows.money import BY_THE_BOUND
from planner.spec.old_keys import RENAMINGS, with_new_keys

FIRST, LATEST = 1, 2
_TABLES = ("fleet", "schedule")
_OUTCOMES = ("sampled", "fresh", "nominal")
_CODES = {"steps.surest_left_out": "steps.confidence_left_out"}
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
    if found.get("schema_version") != FIRST:
        return found
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
    return {**_renamed(found, surety="confidence_gain"), "spec": spec, "schema_version": LATEST}


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
