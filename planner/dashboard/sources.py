"""Find the specs that the page offers: the examples, and the stored plan of the main one. No Streamlit here."""

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
    """List spec files by name, the main example first; a checkout adds its folder `examples`."""
    found = {MAIN: DATA / f"{MAIN}.json"}
    if (_CHECKOUT / "pyproject.toml").is_file():  # beside an installed package, `examples` could be anybody's
        for path in sorted((_CHECKOUT / "examples").glob("*.json")):
            found.setdefault(path.stem, path)
    return found


def resolved(document: dict[str, Any]) -> Problem:
    """Resolve a spec with the catalog. Raises SpecError with all problems at once."""
    return resolve_document(document, ())


def repaired(document: dict[str, Any], repair: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Apply a plan's repair to a spec."""
    return changed(copy.deepcopy(document), [f"{row['path']}={json.dumps(row['to'])}" for row in repair], {})


def stored_plan() -> Plan:
    """Load the plan of the main example that ships with the package; tests verify it and solve its spec again."""
    return load_plan(DATA / f"{MAIN}_plan.json")


def canonical(document: dict[str, Any]) -> str:
    """Write a spec as text that does not depend on the order of its keys."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)
