"""Format a plan for people and for other programs: text for a terminal, JSON, CSV and Markdown.

Puts sentences in order, and the tables that `planner.report.outputs.sections` registers.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass

from catalog.units import MWH_J, TONNE_KG, show
from planner.escape import markdown, terminal
from planner.messages import DEFAULT, commas, listed, say, stopped, translated
from planner.plan import Plan
from planner.report import (
    electricity,
    robust,
)
from planner.report.outputs import adapt
from planner.report.outputs.chapters import chapters_of
from planner.report.outputs.sections import sections_of
from planner.report.why import coverage
from planner.report.why.verdict import proof_clauses
from planner.report.words import amount, status_words, whole, with_unit
from planner.tables import as_csv, as_markdown, as_text, known_format

TEXT_WIDTH = 118  # columns of running text in a terminal


def render(plan: Plan, form: str, language: str = DEFAULT) -> str:
    """Write a plan as "table", "json", "csv" (its fleet) or "md"; tables and Markdown in a language. Raises ValueError for another format."""
    if known_format(form) == "json":
        return plan.to_json()
    if form == "csv":
        return as_csv(plan.document["fleet"])
    return _text(plan, language) if form == "table" else _markdown(plan, language)


def headline(plan: Plan) -> str:
    """State status, value and gap in one sentence."""
    words = status_words(plan)
    if not plan.has_answer:
        return words
    value, bound = with_unit(plan.value, plan.objective["unit"]), ""
    if plan.document["bound"] is not None:
        bound = say("headline.bound", bound=amount(plan.document["bound"]), gap=f"{plan.gap:.3%}")
    proof = listed(proof_clauses(plan))
    return say(f"headline.{_goal(plan)}", status=words, value=value, bound=bound, proof=proof)


def _goal(plan: Plan) -> str:
    """Name what the plan makes least or most of."""
    asked = (plan.document["spec"].get("objective") or {"minimise": "cost"}).get("minimise", "")
    return asked if asked in ("cost", "carbon") else "throughput"


def _text(plan: Plan, language: str) -> str:
    """Write the plan for a terminal."""
    parts = [terminal(text) for text in opening(plan, language).texts]
    for heading, sentences in chapters_of(plan, language):
        filled = [_filled(line, "  - ", "    ") for line in sentences]
        parts.append(f"{heading}\n{''.join(filled)}")
    for table in sections_of(plan, language):
        remark = _filled(table.remark, "  ", "  ") if table.remark else ""
        parts.append(f"{table.heading}\n{as_text(table.rows, indent='  ')}{remark}")
    return _joined(
        [*parts, *(_filled(text, "", "") for text in [ending(plan, language)] if text), closing(plan, language)]
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """What every output of a plan begins with, in a language; some texts may be empty."""

    name: str
    verdict: str
    totals: str
    odds: str
    """How sure the plan is: the share of sampled scenarios in which it keeps all promises."""
    promise: str
    """What a robust plan promises, or what an adaptive one signs now."""
    coverage: str
    """Which points the bound covers, and which candidates it does not cover."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts in the order in which they are read: how sure the plan is stands before its amounts."""
        return self.name, self.verdict, self.coverage, self.odds, self.promise, self.totals


def opening(plan: Plan, language: str = DEFAULT) -> Opening:
    """Write name, headline, totals, and how sure the plan is."""
    texts = (
        plan.document["name"],
        headline(plan),
        totals_line(plan),
        robust.sure_words(plan),
        robust.words(plan) or (stopped(listed(now)) if (now := adapt.clauses(plan)) else ""),
        coverage.words(plan),
    )
    return Opening(*(translated(text, language) for text in texts))


def _filled(text: str, first: str, further: str) -> str:
    """Wrap a text, with indents of its first and of its further lines."""
    wrapped = textwrap.fill(
        terminal(text), TEXT_WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False
    )
    return f"{wrapped}\n"


def _joined(parts: list[str]) -> str:
    """Join the parts that are not empty, with a blank line between."""
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _markdown(plan: Plan, language: str) -> str:
    """Write the plan as Markdown."""
    opened = opening(plan, language)
    parts = [
        f"# {markdown(opened.name)}",
        "\n".join(map(markdown, plan.document["spec"].get("note", "").splitlines())),
        f"**{markdown(opened.verdict)}**",
        markdown(opened.odds),
        markdown(opened.promise),
        markdown(opened.coverage),
        opened.totals,
    ]
    for heading, sentences in chapters_of(plan, language):
        parts.append(f"## {heading}\n\n" + "".join(f"- {markdown(line)}\n" for line in sentences))
    for table in sections_of(plan, language):
        remark = f"\n{table.remark}\n" if table.remark else ""
        parts.append(f"## {table.heading}\n\n{as_markdown(table.rows)}{remark}")
    return _joined([*parts, ending(plan, language), closing(plan, language)])


def totals_line(plan: Plan) -> str:
    """Write chips, power, cost, carbon, energy and tokens in one line."""
    totals = plan.document["totals"]
    if totals is None:
        return ""
    return say(
        "headline.totals",
        chips=f"{totals['chips']:,}",
        power=show(totals["peak_power_w"], "W"),
        cost=amount(totals["cost"]),
        currency=plan.document["spec"].get("currency", "USD"),
        carbon=whole(totals["carbon_kg"] / TONNE_KG),
        energy=whole(totals["energy_j"] / MWH_J),
        tokens=f"{totals['tokens'] / 1e12:,.2f}T",
        dispatch=f"\n{words}" if (words := electricity.dispatch_words(plan)) else "",
    )


def ending(plan: Plan, language: str = DEFAULT) -> str:
    """Say that a plan which time or memory ended may differ from run to run; empty for any other."""
    by = plan.document["solver"].get("ended_by")
    return translated(say(f"ending.{by}"), language) if by in ("memory", "time") else ""


def closing(plan: Plan, language: str = DEFAULT) -> str:
    """Count the catalog figures by kind."""
    rows = plan.document["provenance"]
    if not rows:
        return ""
    kinds = Counter(row["kind"] for row in rows).most_common()
    words = commas(say("closing.kind", count=count, kind=kind) for kind, count in kinds)
    return translated(say("closing.figures", count=f"{len(rows)}", kinds=words), language)
