"""Compare two plans from their documents alone: every difference, the largest part of the objective first, and in words.

Not here: the differences of the two specs (`planner.spec.changes`), several plans side by side (`planner.studies.side_by_side`), and
whether either plan holds (`planner.verify.plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import show
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.money.components import component_words
from planner.plan import Plan
from planner.report.words import amount, share_words
from planner.spec.changes import spec_changes
from planner.studies.comparison_tables import (
    Row,
    amount_rows,
    answering,
    assumed_figures,
    binding_limits,
    deployments,
    jobs,
    number_rows,
    origin_shares,
    per_year_rows,
    replicas,
    systems_held,
    total_rows,
    value_rows,
)
from planner.studies.comparison_words import quoted, words_of

MAX_PRINTED = 20  # rows of a table that people read; JSON and CSV have them all
TABLES = {
    "totals": "Totals",
    "parts": "Parts of the objective",
    "systems": "By system and way to obtain it",
    "sites": "By site",
    "lines": "By part, site and system, the largest first",
    "fleet": "Fleet",
    "deployments": "Deployments: whole replicas",
    "points": "How it runs",
    "routes": "Who is served from where",
    "quality": "Which architecture answers",
    "jobs": "Jobs",
    "limits": "Limits that bind in one only",
    "spec": "The specs",
    "figures": "Assumed figures",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences of two plans.

    `document`: `first`, `second` (name, status, objective, bound, catalog_digest; `kept`: share of scenarios that keep all promises), `difference`, `words`, and a list for each of TABLES.
    Rows hold `first`, `second` and `difference` (second less first); `share`: of the objective of the first.
    """

    document: Mapping[str, Any]

    @property
    def words(self) -> list[str]:
        """Summarise the differences in sentences."""
        words: list[str] = self.document["words"]
        return words

    @property
    def same(self) -> bool:
        """Tell whether the plans are the same."""
        return not any(self.document[table] for table in TABLES)

    @property
    def rows(self) -> list[Row]:
        """Return all differences as one table: kind, item and amount."""
        shown = ("first", "second", "difference", "share", "unit")
        return [
            {
                "table": table,
                "what": ", ".join(
                    str(value) for key, value in row.items() if key not in shown and value not in (None, "")
                ),
                "first": row["first"],
                "second": row["second"],
                "difference": row.get("difference"),
                "unit": row.get("unit", ""),
                "share": row.get("share"),
            }
            for table in TABLES
            for row in self.document[table]
        ]

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return (heading, first rows) of each table, formatted for people."""
        return [(TABLES[table], rows) for table, rows in self.printed(TABLES)]

    def printed(self, tables: Iterable[str]) -> list[tuple[str, list[Row]]]:
        """Return (table, first rows) of some tables, formatted for people."""
        return [(table, [_printed(row) for row in self.document[table][:MAX_PRINTED]]) for table in tables]


def compare(first: Plan, second: Plan) -> Comparison:
    """List all differences between two plans. Raises SpecError if their amounts are in different currencies."""
    currencies = [plan.document["spec"].get("currency", "USD") for plan in (first, second)]
    if currencies[0] != currencies[1]:
        words = Message.of("studies.two_currencies", first=currencies[0], second=currencies[1]).text()
        raise SpecError([Issue("currency", words)])
    plans = (first, second)
    comparable = first.has_answer and second.has_answer and first.objective["unit"] == second.objective["unit"]
    key = "carbon_lines" if first.objective["unit"] == second.objective["unit"] == "kg" else "cost_lines"
    unit = "kg" if key == "carbon_lines" else currencies[0]
    total = sum(line["amount"] for line in first.table(key))
    found: dict[str, Any] = {
        "first": _head(first),
        "second": _head(second),
        "difference": second.value - first.value if comparable else None,
        "totals": total_rows(plans, currencies[0]),
        "parts": amount_rows(plans, key, ("component",), unit, total),
        "systems": amount_rows(plans, key, ("system", "how"), unit, total),
        "sites": amount_rows(plans, key, ("site",), unit, total),
        "lines": amount_rows(plans, key, ("component", "site", "system", "how"), unit, total),
        "fleet": [
            row if row["how"] != "api" else {**row, "unit": "token/s"}
            for row in number_rows(plans, systems_held, ("site", "system", "how", "topology", "window"), "system")
        ],
        "deployments": number_rows(plans, deployments, ("workload", "site", "system"), "replica"),
        "points": number_rows(plans, replicas, ("workload", "site", "runs"), "replica at the peak"),
        "routes": number_rows(plans, origin_shares, ("workload", "origin", "site"), "share of the origin's tokens"),
        "quality": value_rows(plans, answering, ("workload", "fact")),
        "jobs": value_rows(plans, jobs, ("job", "fact")),
        "limits": value_rows(plans, binding_limits, ("path", "name")),
        "spec": spec_changes(first.document["spec"], second.document["spec"]),
        "figures": value_rows(plans, assumed_figures, ("path",)),
    }
    found["totals"] = [*per_year_rows(plans, currencies[0]), *found["totals"]]
    return Comparison({**found, "words": words_of(first, second, found)})


def _head(plan: Plan) -> Row:
    document, confidence = plan.document, plan.document.get("confidence")
    return {
        "name": document["name"], "status": document["status"], "objective": document["objective"],
        "bound": document["bound"], "gap": document["gap"], "catalog_digest": document["catalog_digest"],
        "kept": confidence["kept"] if confidence else None,
    }  # fmt: skip


def _printed(row: Row) -> Row:
    """Format a row for people."""
    unit = row.get("unit", "")
    shown = {
        key: component_words(value) if key == "component" else "" if value is None else value
        for key, value in row.items()
        if key not in ("share", "unit")
    }
    shown |= {key: _text(row[key], unit) for key in ("first", "second", "difference") if key in row}
    if unit and not unit.startswith("share"):
        shown["unit"] = unit
    return shown | ({"of objective": share_words(row["share"], "+.2%")} if row.get("share") is not None else {})


def _text(value: Any, unit: str) -> str:
    """Format a value in its unit."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return quoted(value)
    if unit.startswith("share"):
        return f"{value:.1%}"
    if unit in ("W", "J"):
        return show(value, unit)
    if isinstance(value, int):
        return f"{value:,}"
    return amount(value)
