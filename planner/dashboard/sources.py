"""Where the page's questions come from: the examples, and the stored plan of the main one. No Streamlit here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.document import read_document
from planner.plan import Plan, load_plan
from planner.problem import Problem
from planner.resolve import resolve_document

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


def read_question(text: bytes) -> tuple[dict[str, Any], Problem]:
    """A spec as written and as resolved. Raises SpecError with every problem at once."""
    document = read_document(text)
    return document, resolve_document(document, ())


def stored_plan() -> Plan:
    """The plan of the main example that ships with the package; tests verify it and solve its spec afresh."""
    return load_plan(DATA / f"{MAIN}_plan.json")


def canonical(document: dict[str, Any]) -> str:
    """One text for one spec, whatever the order of its keys."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)
