"""Show a plan in a notebook: one line, a headline with the fleet, and its tables as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.units import KILO
from planner.messages import Message, shortened
from planner.tables import as_html

Document = Mapping[str, Any]

FLEET = ("site", "system", "how", "count", "unit", "topology", "window", "tenant")
MOST_ROWS = 12
MOST_CHARACTERS = 80  # shown of a text


def short(document: Document) -> str:
    """Write a plan as one line: name, status, value of the objective and gap."""
    return f"<Plan {_headline(document)}>"


def html(document: Document) -> str:
    """Write a plan for a notebook: the headline, and the first rows of its fleet."""
    rows = [{key: _cut(row[key]) for key in FLEET if row.get(key) is not None} for row in document["fleet"]]
    return as_html(_headline(document), rows[:MOST_ROWS], len(rows) - MOST_ROWS)


def _headline(document: Document) -> str:
    objective, gap = document["objective"], document["gap"]
    value = "" if objective["value"] is None else f", {_shown(objective['value'])} {objective['unit']}"
    return f"{_cut(document['name'])}: {document['status']}{value}{'' if gap is None else f', gap {gap:.2g}'}"


def _shown(value: float) -> str:
    """Write the value of an objective as the page of a plan does."""
    return f"{value:,.6g}" if abs(value) < KILO else shortened(value)


def rows_of(document: Document, name: str) -> Sequence[Document]:
    """Return the rows of a table; of costs by component, a row each. Raises ValueError for a name that is no table of the plan."""
    if name == "costs":
        return [{"component": component, "amount": amount} for component, amount in document["costs"].items()]
    tables = [key for key, value in document.items() if isinstance(value, list)]
    if name not in tables:
        raise ValueError(Message.of("library.no_table", given=name, names=", ".join(sorted([*tables, "costs"]))).text())
    rows: Sequence[Document] = document[name]
    return rows


def _cut(value: Any) -> Any:
    """Cut a long text, so that a cell stays short."""
    return f"{value[: MOST_CHARACTERS - 1]}…" if isinstance(value, str) and len(value) > MOST_CHARACTERS else value
