"""Grades of tokens: cost, revenue and margin of each, added up from the workloads of a plan."""

from __future__ import annotations

from typing import Any

from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.workloads import Workload
from planner.report.heads import right
from planner.report.money import currency_of
from planner.report.paper import Block, further


def grade_rows(plan: Plan) -> list[dict[str, Any]]:
    """Build one row per grade, the ungraded last; amounts are present values. Empty where no workload has a grade or a price.

    `margin_share`: margin over revenue; None where a workload of the grade has no selling price.
    """
    asked = {workload["name"]: workload for workload in plan.document["spec"]["workloads"]}
    by_grade: dict[str, list[Workload]] = {}
    for row in plan.document["workloads"]:
        if row["kind"] == "serving":
            by_grade.setdefault(asked.get(row.get("of", row["name"]), {}).get("grade") or "", []).append(row)
    if set(by_grade) <= {""} and not any("revenue" in row for row in by_grade.get("", ())):
        return []
    return [
        _summed(grade, by_grade[grade]) for grade in ("consumer", "professional", "frontier", "") if grade in by_grade
    ]


def _summed(grade: str, rows: list[Workload]) -> dict[str, Any]:
    cost = sum(row["cost"] for row in rows)
    millions = sum(
        row["cost"] / row["cost_per_million_tokens"] for row in rows if row["cost_per_million_tokens"]
    )  # as present values
    revenue = sum(row["revenue"] for row in rows) if all("revenue" in row for row in rows) else None
    return {
        "grade": grade or None,
        "workloads": [row["name"] for row in rows],
        "tokens": sum(row["tokens"] for row in rows),
        "cost": cost,
        "cost_per_million_tokens": cost / millions if millions else None,
        "revenue": revenue,
        "price_per_million_tokens": revenue / millions if revenue is not None and millions else None,
        "margin_share": (revenue - cost) / revenue if revenue else None,
    }


def _is_sold(row: dict[str, Any]) -> bool:
    return row["margin_share"] is not None


def block(plan: Plan) -> Block:
    """List cost, price and margin of each grade on the page of a plan; nothing where its workloads say the same."""
    rows = grade_rows(plan)
    sold, several = (any(told(row) for row in rows) for told in (_is_sold, lambda row: len(row["workloads"]) > 1))
    rows = rows if (sold or several) and any(row["grade"] for row in rows) else []
    entries = [
        (
            row["grade"] or say("grades.none"),
            _number(row["cost_per_million_tokens"]),
            _number(row["price_per_million_tokens"]),
            "" if row["margin_share"] is None else f"{row['margin_share']:.1%}",
        )
        for row in rows
    ]
    currency = currency_of(plan)
    costs, sells = (right(key, currency=currency) for key in ("levelised_cost_per_million", "sells_at"))
    return Block(say("heading.by_grade"), (costs, sells, right("margin")), entries, further(len(entries)), least=4)


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows), formatted for people."""
    rows = [
        {
            "grade": row["grade"] or say("grades.none"),
            "workloads": commas(row["workloads"]),
            "tokens": f"{row['tokens'] / 1e12:,.3f}T",
            "levelised_cost_per_million": _number(row["cost_per_million_tokens"]),
            "sells_at": _number(row["price_per_million_tokens"]),
            "margin_of_revenue": "" if row["margin_share"] is None else f"{row['margin_share']:.1%}",
        }
        for row in grade_rows(plan)
    ]
    return [(say("heading.grades"), rows)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
