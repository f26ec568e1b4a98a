"""Where the page's questions come from: the examples, and the stored plan of the main one. No Streamlit here."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from planner.plan import Plan, load_plan
from planner.problem.facts import Problem
from planner.resolve.resolver import resolve_document
from planner.spec.document import changed

DATA = Path(__file__).parent / "data"
MAIN = "mixed_fleet"
_CHECKOUT = Path(__file__).resolve().parents[2]


def examples() -> dict[str, Path]:
    """Spec files by name, the main example first; a checkout adds those of its folder `examples`."""
    found = {MAIN: DATA / f"{MAIN}.json"}
    if (_CHECKOUT / "pyproject.toml").is_file():  # beside an installed package, `examples` could be anybody's
        for path in sorted((_CHECKOUT / "examples").glob("*.json")):
            found.setdefault(path.stem, path)
    return found


def resolved(document: dict[str, Any]) -> Problem:
    """What a spec asks, with the catalog's figures. Raises SpecError with every problem at once."""
    return resolve_document(document, ())


def repaired(document: dict[str, Any], repair: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The spec with each value of a plan's repair in its place."""
    return changed(copy.deepcopy(document), [f"{row['path']}={json.dumps(row['to'])}" for row in repair], {})


def stored_plan() -> Plan:
    """The plan of the main example that ships with the package; tests verify it and solve its spec afresh."""
    return load_plan(DATA / f"{MAIN}_plan.json")


def canonical(document: dict[str, Any]) -> str:
    """One text for one spec, whatever the order of its keys."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)
