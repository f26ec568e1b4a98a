"""Register the tables of a plan once: the terminal, Markdown, HTML, CSV, the workbook and the dashboard all read this list.

A section is one feature of a plan. `tables` writes it in words; `stored` names the tables of the plan document that hold the same as
numbers, which CSV and the workbook take instead. Not here: running text (`planner.report.report`) and the page of 58 lines
(`planner.report.page`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from planner.messages import DEFAULT, Said, in_full, of_row, said, say
from planner.plan import TABLES, Plan
from planner.plan.rows.framing import Assumption, Provenance
from planner.report import (
    electricity,
    facility,
    grades,
    interruptions,
    lines,
    phases,
    quality,
    reinforcement,
    robust,
)
from planner.report.fleet import deployment_rows, fabric_row, fleet_row, owned_sections, point_rows, rented_sections
from planner.report.heads import Row, Section, section
from planner.report.limits import limit_row, runner_up_row
from planner.report.load import classes, first_token, kv_tiers, length_pools, packing, prefix_routing, sessions
from planner.report.outputs import adapt
from planner.report.outputs.parts import DECISION, EVIDENCE, OPERATIONS, PHYSICS, REASONS
from planner.report.why import losses, ratios
from planner.report.words import figure_words
from planner.report.workloads import cost_rows, route_rows, workload_row
from planner.tables import as_csv

Tables = list[tuple[str, list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class PlanSection:
    """One feature of a plan, as every output shows it."""

    key: str
    """The feature's word, which names its file of CSV and its sheet where the plan stores no table of it."""
    part: str
    """The part of a plan to which the section belongs, one of `planner.report.outputs.parts.PARTS`."""
    tables: Callable[[Plan], Tables]
    """Writes (heading, rows in words); a table without rows is left out."""
    stored: tuple[str, ...] = ()
    """Tables of the plan document with the same content as numbers."""


def _one(code: str, rows: Callable[[Plan], list[Row]]) -> Callable[[Plan], Tables]:
    """Make the writer of one table under the heading of a code."""
    return lambda plan: [(say(code), rows(plan))]


def _fleet(plan: Plan) -> Tables:
    return [(adapt.fleet_heading(plan, "heading.fleet"), [fleet_row(plan, row) for row in plan.document["fleet"]])]


def _networks(plan: Plan) -> list[Row]:
    return [fabric_row(row) for row in plan.document["fabrics"]]


def _workloads(plan: Plan) -> list[Row]:
    return [workload_row(row) for row in plan.document["workloads"]]


def _costs(plan: Plan) -> Tables:
    return [(say("heading.costs", currency=_currency(plan)), cost_rows(plan))]


def _limits(plan: Plan) -> list[Row]:
    return [limit_row(row) for row in plan.document["limits"]]


def _runner_up(plan: Plan) -> list[Row]:
    return [runner_up_row(row) for row in plan.document["runner_up"]]


def _dropped(plan: Plan) -> list[Row]:
    """Count how often candidates of each workload were dropped for each reason."""
    codes = plan.document.get("dropped_message", {})
    found: list[Row] = []
    for workload, reasons in plan.document["dropped"].items():
        for reason, count in reasons.items():
            message = of_row(codes.get(reason) or {})
            found.append({"workload": workload, "reason": message.text() if message else reason, "count": count})
    return found


def _assumptions(plan: Plan) -> list[Row]:
    return [_assumption(row) for row in plan.document["assumptions"]]


def _assumption(row: Assumption) -> Row:
    return {
        "figure": row["path"],
        "value": figure_words(row["value"], row["unit"]),
        "share_of_objective": "" if row["share"] is None else f"{row['share']:.1%}",
        "why": said(row, "reason"),
    }


def _sources(plan: Plan) -> list[Row]:
    """Count the catalog figures of each source, the most used one first, with their kinds, dates and confidences."""
    by_source: dict[str, list[Provenance]] = defaultdict(list)
    for row in plan.document["provenance"]:
        for source in row["source"]:
            by_source[source].append(row)
    ranked = sorted(by_source.items(), key=lambda item: -len(item[1]))
    return [
        {
            "source": source,
            "figures": len(rows),
            "kind": ", ".join(sorted({row["kind"] for row in rows})),
            "confidence": ", ".join(sorted({row["confidence"] for row in rows})),
            "dates": ", ".join(sorted({row["date"] for row in rows if row["date"]})),
        }
        for source, rows in ranked
    ]


SECTIONS = (
    PlanSection("fleet", DECISION, _fleet, ("fleet",)),
    PlanSection("owned", OPERATIONS, owned_sections, ("owned",)),
    PlanSection("rented", OPERATIONS, rented_sections, ("rented",)),
    PlanSection("networks", OPERATIONS, _one("heading.networks", _networks), ("fabrics",)),
    PlanSection("points", OPERATIONS, _one("heading.points", point_rows)),
    PlanSection("deployments", OPERATIONS, _one("heading.deployments", deployment_rows), ("deployments",)),
    PlanSection("packing", OPERATIONS, packing.sections, ("packing",)),
    PlanSection("kv_tiers", OPERATIONS, kv_tiers.sections, ("kv_tiers",)),
    PlanSection("prefix_routing", OPERATIONS, prefix_routing.sections),
    PlanSection("workloads", OPERATIONS, _one("heading.workloads", _workloads), ("workloads",)),
    PlanSection("losses", PHYSICS, losses.sections),
    PlanSection("reinforcement", OPERATIONS, reinforcement.sections),
    PlanSection("first_token", OPERATIONS, first_token.sections),
    PlanSection("length_pools", OPERATIONS, length_pools.sections),
    PlanSection("sessions", OPERATIONS, sessions.sections, ("closed_loops",)),
    PlanSection("classes", OPERATIONS, classes.sections),
    PlanSection("quality", OPERATIONS, quality.sections, quality.TABLES),
    PlanSection("grades", OPERATIONS, grades.sections),
    PlanSection("costs", DECISION, _costs, ("cost_lines", "carbon_lines")),
    PlanSection("routes", OPERATIONS, _one("heading.routes", route_rows), ("routes",)),
    PlanSection("lines", OPERATIONS, lines.sections, lines.TABLES),
    PlanSection("electricity", OPERATIONS, electricity.sections, ("schedule", *electricity.TABLES, "price_contents")),
    PlanSection("robust", REASONS, robust.sections),
    PlanSection("adapt", REASONS, adapt.sections),
    PlanSection("phases", OPERATIONS, phases.sections, (phases.PHASES, "postponed")),
    PlanSection("interruptions", OPERATIONS, interruptions.sections, interruptions.TABLES),
    PlanSection("facility", OPERATIONS, facility.sections, facility.TABLES),
    PlanSection("ratios", EVIDENCE, ratios.sections),
    PlanSection("limits", REASONS, _one("heading.limits", _limits), ("limits", "looser")),
    PlanSection("runner_up", REASONS, _one("heading.runner_up", _runner_up), ("runner_up",)),
    PlanSection("dropped", REASONS, _one("heading.dropped", _dropped)),
    PlanSection("assumptions", EVIDENCE, _one("heading.assumptions", _assumptions), ("assumptions",)),
    PlanSection("sources", EVIDENCE, _one("heading.sources", _sources), ("provenance",)),
)


def sections_of(plan: Plan, language: str = DEFAULT) -> list[Section]:
    """List all tables in their order, in a language."""
    return [each for registered in SECTIONS for each in tables_of(registered, plan, language)]


def tables_of(registered: PlanSection, plan: Plan, language: str = DEFAULT) -> Iterator[Section]:
    """Yield the tables of one section that have rows, in a language."""
    for heading, rows in registered.tables(plan):
        if rows:
            yield section(heading, rows, language, _currency(plan))


def csv_tables(plan: Plan) -> dict[str, str]:
    """Write every table of a plan as CSV, by its name: stored tables as they are, all others in words."""
    found: dict[str, str] = {}
    for registered in SECTIONS:
        for name in registered.stored:
            if name in TABLES or plan.table(name):
                found[name] = as_csv(plan.table(name))
        if not registered.stored:
            worded = [(heading, rows) for heading, rows in registered.tables(plan) if rows]
            for heading, rows in worded:
                name = registered.key if len(worded) == 1 else _word(heading)
                found[name] = as_csv(section(heading, _in_full(rows), DEFAULT, _currency(plan)).rows)
    found["costs"] = as_csv([{"component": name, "amount": amount} for name, amount in plan.document["costs"].items()])
    return found


def _in_full(rows: list[Row]) -> list[Row]:
    """Write the amounts in rows to the unit."""
    return [{key: in_full(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def _word(heading: str) -> str:
    """Name one of several tables of a section by the code of its heading."""
    return heading.message.code.rpartition(".")[2] if isinstance(heading, Said) else heading


def _currency(plan: Plan) -> str:
    return str(plan.document["spec"].get("currency", "USD"))
