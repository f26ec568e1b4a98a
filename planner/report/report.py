"""Format a plan for people and for other programs: text for a terminal, JSON, CSV and Markdown.

Puts the tables and sentences of the other files in order; each of those reads the plan document alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from catalog.units import MWH_J, TONNE_KG, show
from planner.escape import markdown, terminal
from planner.plan import TABLES, Plan
from planner.plan.rows.framing import Assumption, Reach
from planner.report import (
    electricity,
    facility,
    grades,
    interruptions,
    lines,
    losses,
    marginal_values,
    notes,
    phases,
    quality,
    reinforcement,
    robust,
)
from planner.report.fleet import deployment_rows, fabric_row, fleet_row, owned_sections, point_rows, rented_sections
from planner.report.limits import limit_row, runner_up_row
from planner.report.load import classes, first_token, kv_tiers, packing, prefix_routing, sessions
from planner.report.why import explanations, looser
from planner.report.why.verdict import proof_clauses
from planner.report.words import amount, figure_words, status_words
from planner.report.workloads import cost_rows, route_rows, workload_row
from planner.tables import as_csv, as_markdown, as_text, known_format

Row = dict[str, Any]
REACH = "What these limits leave within reach"
TEXT_WIDTH = 118  # columns of running text in a terminal

LIMITS, RUNNER_UP, FABRICS = "Limits", "What comes next at each site", "The networks between our own systems"
NOTES = {
    **robust.NOTES,
    **interruptions.NOTES,
    **facility.NOTES,
    **reinforcement.NOTES,
    **first_token.NOTES,
    **sessions.NOTES,
    **classes.NOTES,
    **packing.NOTES,
    **kv_tiers.NOTES,
    **prefix_routing.NOTES,
    FABRICS: "Parts and price of each network for the systems on it. A system is charged its share of the cheapest network (per system) "
    "with as many tiers that supply and power allow; so the systems on a partly filled network are charged less than it costs.",
    LIMITS: "Worth: change of the objective if a limit grows by one unit. Fleet held: every integer is fixed. "
    "Fleet free: sites, networks and points of jobs are fixed, systems may be added in fractions; "
    "for a very large plan the worth is that of its bound, which takes all of these in fractions. "
    "Blank if the limit does not bind, and for latencies and deadlines, which select points: solve with another value.",
    RUNNER_UP: "Margins are from the program with systems in fractions, after adding one system of that kind.",
}


def render(plan: Plan, form: str) -> str:
    """Write a plan as "table", "json", "csv" (its fleet) or "md". Raises ValueError for another format."""
    if known_format(form) == "json":
        return plan.to_json()
    if form == "csv":
        return as_csv(plan.document["fleet"])
    return _text(plan) if form == "table" else _markdown(plan)


def csv_tables(plan: Plan) -> dict[str, str]:
    """Write every table of a plan as CSV, by its name."""
    tables = {name: as_csv(plan.table(name)) for name in TABLES}
    tables |= {
        name: as_csv(plan.table(name))
        for name in (
            *lines.TABLES,
            *electricity.TABLES,
            *interruptions.TABLES,
            *facility.TABLES,
            *quality.TABLES,
            phases.PHASES,
        )
        if name in plan.document
    }
    tables["costs"] = as_csv([{"component": name, "amount": amount} for name, amount in plan.document["costs"].items()])
    return tables


def headline(plan: Plan) -> str:
    """State status, value and gap in one sentence."""
    words = status_words(plan)
    if not plan.has_answer:
        return words
    objective = plan.objective
    value = f"{amount(plan.value)} {objective['unit']}"
    bound = "" if plan.document["bound"] is None else f" (bound {amount(plan.document['bound'])}, gap {plan.gap:.3%})"
    return f"{words}: {goal(plan)} {value}{bound}; {'; '.join(proof_clauses(plan))}"


def goal(plan: Plan) -> str:
    """Name what the plan makes least or most of."""
    asked = plan.document["spec"].get("objective") or {"minimise": "cost"}
    return {"cost": "least cost", "carbon": "least carbon"}.get(asked.get("minimise", ""), "most throughput")


def sections_of(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of all tables in their order."""
    currency = plan.document["spec"].get("currency", "USD")
    sections = [
        ("What to obtain", [fleet_row(plan, row) for row in plan.document["fleet"]]),
        *owned_sections(plan),
        *rented_sections(plan),
        (FABRICS, [fabric_row(row) for row in plan.document["fabrics"]]),
        ("How it runs", point_rows(plan)),
        ("What holds its weights", deployment_rows(plan)),
        *packing.sections(plan),
        *kv_tiers.sections(plan),
        *prefix_routing.sections(plan),
        ("What each workload gets", [workload_row(w, currency) for w in plan.document["workloads"]]),
        *losses.sections(plan),
        *reinforcement.sections(plan),
        *first_token.sections(plan),
        *sessions.sections(plan),
        *classes.sections(plan),
        *quality.sections(plan),
        *grades.sections(plan),
        (f"What it costs ({currency}, present value over the horizon)", cost_rows(plan)),
        ("Who is served from where", route_rows(plan)),
        *lines.sections(plan),
        *electricity.sections(plan),
        *robust.sections(plan),
        *phases.sections(plan),
        *interruptions.sections(plan),
        *facility.sections(plan),
        (LIMITS, [limit_row(row) for row in plan.document["limits"]]),
        (RUNNER_UP, [runner_up_row(row) for row in plan.document["runner_up"]]),
        (
            "Dropped on the way",
            [
                {"workload": w, "reason": reason, "count": n}
                for w, reasons in plan.document["dropped"].items()
                for reason, n in reasons.items()
            ],
        ),
        ("Assumptions", [_assumption_row(row) for row in plan.document["assumptions"]]),
    ]
    return [(heading, rows) for heading, rows in sections if rows]


def _text(plan: Plan) -> str:
    """Write the plan for a terminal."""
    said = (plan.document["name"], headline(plan), totals_line(plan), robust.sure_words(plan), robust.words(plan))
    parts = [terminal(text) for text in said]
    for heading, sentences in chapters_of(plan):
        filled = [_filled(line, "  - ", "    ") for line in sentences]
        parts.append(f"{heading}\n{''.join(filled)}")
    for heading, rows in sections_of(plan):
        remark = _filled(NOTES[heading], "  ", "  ") if heading in NOTES else ""
        parts.append(f"{heading}\n{as_text(rows, indent='  ')}{remark}")
    return _joined([*parts, _filled(ending(plan), "", "") if ending(plan) else "", closing(plan)])


def _filled(text: str, first: str, further: str) -> str:
    """Wrap a text, with indents of its first and of its further lines."""
    wrapped = textwrap.fill(
        terminal(text), TEXT_WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False
    )
    return f"{wrapped}\n"


def _joined(parts: list[str]) -> str:
    """Join the parts that are not empty, with a blank line between."""
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def chapters_of(plan: Plan) -> list[tuple[str, list[str]]]:
    """List the chapters of sentences: diagnosis, notes on the spec, marginal values of limits, explanations."""
    understood = [(notes.HEADING, listed)] if (listed := list(notes.sentences(plan))) else []
    loose = [(looser.HEADING, told)] if (told := looser.sentences(plan)) else []
    worth = [*marginal_values.chapters(plan), *loose]
    return [*diagnosis_chapters(plan), *understood, *worth, *explanations.chapters(plan)]


def _markdown(plan: Plan) -> str:
    """Write the plan as Markdown."""
    parts = [
        f"# {markdown(plan.document['name'])}",
        "\n".join(map(markdown, plan.document["spec"].get("note", "").splitlines())),
        f"**{markdown(headline(plan))}**",
        totals_line(plan),
        markdown(robust.sure_words(plan)),
        markdown(robust.words(plan)),
    ]
    for heading, sentences in chapters_of(plan):
        parts.append(f"## {heading}\n\n" + "".join(f"- {markdown(line)}\n" for line in sentences))
    for heading, rows in sections_of(plan):
        note = f"\n{NOTES[heading]}\n" if heading in NOTES else ""
        parts.append(f"## {heading}\n\n{as_markdown(rows)}{note}")
    return _joined([*parts, ending(plan), closing(plan)])


def diagnosis_chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """Explain why there is no plan, with the figures that workloads miss alone or the limit that was reached, and the smallest repair."""
    found = plan.document["diagnosis"]
    told = list(notes.sentences(plan, section=notes.REASONS))
    reasons = [(notes.WHY, told)] if told else []
    if found is None or (told and not found["conflict"]):
        return reasons
    conflict = [f"{row['words']} ({row['path']})" for row in found["conflict"]] or [
        "the time or the memory (solver.time_limit, solver.memory) was not enough to find which limits those are"
    ]
    if found.get("conflict_of") == "amounts":
        conflict.append(
            "everything else was kept as stated; the time was not enough to find what of it the conflict needs"
        )
    alone = len(conflict) == 1 and bool(found["conflict"])
    parts = [*reasons, ("This limit cannot be met" if alone else "These limits cannot all be met", conflict)]
    if found.get("reach"):
        parts.append((REACH, list(_reach_words(found["reach"]))))
    if found["repair"]:
        checked = (
            "with this change there is a plan"
            if found["repair_checked"]
            else "the time was not enough to check whether this suffices"
        )
        words = [*(row["words"] for row in found["repair"]), checked]
        if found.get("conflict_of") == "amounts":
            words.append(
                "other networks were not tried, and the time may have ended the search: a smaller change may exist"
            )
        parts.append(("The smallest change", words))
    elif found["conflict"]:
        parts.append(("The smallest change", ["no sufficient change was found"]))
    return parts


def _reach_words(rows: Sequence[Reach]) -> Iterator[str]:
    """Say how much of the demand of all workloads, or of one beside all of the others', any plan serves.

    >>> list(_reach_words([{"workload": None, "at_most": 0.25}, {"workload": "chat", "at_most": 0.125}]))
    ['at most 25.0% of all demand', 'or all of the other demand and at most 12.5% of chat']
    """
    for row in rows:
        of_one = f"or all of the other demand and at most {row['at_most']:.1%} of {row['workload']}"
        yield f"at most {row['at_most']:.1%} of all demand" if row["workload"] is None else of_one


def totals_line(plan: Plan) -> str:
    """Write chips, power, cost, carbon, energy and tokens in one line."""
    totals = plan.document["totals"]
    if totals is None:
        return ""
    currency = plan.document["spec"].get("currency", "USD")
    return (
        f"{totals['chips']:,} chips, {show(totals['peak_power_w'], 'W')} at the peak, {amount(totals['cost'])} {currency}, "
        f"{totals['carbon_kg'] / TONNE_KG:,.0f} t CO2, {totals['energy_j'] / MWH_J:,.0f} MWh, {totals['tokens'] / 1e12:,.2f}T tokens"
    ) + electricity.dispatch_words(plan)


def ending(plan: Plan) -> str:
    """Say that a plan which time or memory ended may differ from run to run; empty for any other."""
    by = plan.document["solver"].get("ended_by")
    if by == "memory":
        return (
            "The search ended with the memory that it may take (solver.memory), so that another run or machine may end with another plan; "
            "more memory lets it go on."
        )
    if by != "time":
        return ""
    return (
        "The time limit, or a step's share of it, ended the search, so that another run or machine may end with another plan; "
        "a gap, or a node limit (solver.node_limit), ends it with the same one each time."
    )


def closing(plan: Plan) -> str:
    """Count the catalog figures by kind."""
    kinds: dict[str, int] = {}
    for row in plan.document["provenance"]:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    if not kinds:
        return ""
    counted = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1]))
    return f"{len(plan.document['provenance'])} catalog figures used ({counted}); each with its source under `provenance` in --format json."


def _assumption_row(row: Assumption) -> Row:
    return {
        "figure": row["path"],
        "value": figure_words(row["value"], row["unit"]),
        "share of objective": "" if row["share"] is None else f"{row['share']:.1%}",
        "why": row["reason"],
    }
