"""Write the difference of two plans as a page of Markdown for a pull request, and hold the second against a budget.

Not here: all differences with every row (`planner.studies.compare`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.units import UnitError, parse_money
from planner.errors import Issue, SpecError
from planner.escape import markdown
from planner.messages import Message, say
from planner.plan import Plan
from planner.report.words import amount, share_words, signed
from planner.studies.compare import Comparison
from planner.studies.comparison_words import MAX_TEXT
from planner.tables import as_markdown

MOST_ROWS = 12
"""Rows of a table on the page; the others are counted."""
TABLES = ("fleet", "deployments", "limits", "spec", "figures")
"""Tables of a comparison that the page shows, in its order."""


def over_budget(plan: Plan, budget: str | float | None) -> bool:
    """Tell whether a plan costs more than a budget, as an amount of its currency or as text with one; False without a cost or a budget.

    Raises SpecError for another currency, and for anything that is no amount from 0 on.
    """
    cost = plan.total("cost")
    return budget is not None and amount_in(plan, budget) < (0.0 if cost is None else cost)


def amount_in(plan: Plan, budget: str | float) -> float:
    """Read a budget in the currency of a plan. Raises SpecError as `over_budget` does."""
    currency = str(plan.document["spec"].get("currency", "USD"))
    try:
        amount, stated = float(budget), currency
    except ValueError:
        try:
            amount, stated = parse_money(str(budget))
        except (UnitError, KeyError):
            amount, stated = -1.0, currency
    if not 0.0 <= amount < float("inf"):
        words = Message.of("against.budget_expected", currency=currency, given=str(budget))
    elif stated != currency:
        words = Message.of("studies.amount_of_another_currency", currency=currency, given=str(budget))
    else:
        return amount
    raise SpecError([Issue("--budget", words.text())])


def pull_request(first: Plan, second: Plan, found: Comparison, budget: str | float | None = None) -> str:
    """Write a page of Markdown: what the second plan costs more, the totals of both, and the rows of each table of TABLES that differ."""
    told = [*found.words[:2], *_budget_words(second, budget)]
    parts = ["".join(f"- {markdown(line)}\n" for line in told), as_markdown(_headline(first, second, found))]
    for table in TABLES:
        rows = found.document[table]
        if rows:
            further = len(rows) - MOST_ROWS
            more = f"\n{markdown(say('list.more', count=further))}\n" if further > 0 else ""
            shown = as_markdown([_row(row) for row in rows[:MOST_ROWS]])
            parts.append(f"## {say(f'against.{table}')}\n\n{shown}{more}")
    return "\n".join(parts)


def _budget_words(plan: Plan, budget: str | float | None) -> list[str]:
    """Say whether the plan keeps the budget."""
    cost, unit = plan.total("cost"), str(plan.document["spec"].get("currency", "USD"))
    if budget is None or cost is None:
        return []
    limit = amount_in(plan, budget)
    told = {"cost": _number(cost), "budget": _number(limit), "rest": _number(abs(limit - cost)), "unit": unit}
    return [say("against.over_budget" if cost > limit else "against.within_budget", **told)]


def _headline(first: Plan, second: Plan, found: Comparison) -> list[dict[str, str]]:
    """List status, objective, bound, gap and the share of scenarios in which all promises are kept, of both plans."""
    heads, plans = [found.document[side] for side in ("first", "second")], (first, second)
    unit = str(heads[1]["objective"]["unit"])
    rows = [
        _facts("plan", [str(head["name"]) for head in heads]),
        _facts("status", [say(f"status.{head['status']}") for head in heads]),
        _numbers(f"{say('against.objective')} ({unit})", [plan.document["objective"]["value"] for plan in plans]),
        _numbers(f"{say('against.bound')} ({unit})", [head["bound"] for head in heads]),
        _facts("gap", ["" if head["gap"] is None else f"{head['gap']:.2%}" for head in heads]),
        _facts("kept", ["" if head["kept"] is None else f"{head['kept']:.0%}" for head in heads]),
    ]
    for key in ("chips", "peak_power_w", "carbon_kg"):
        rows.append(_numbers(say(f"against.{key}"), [plan.total(key) for plan in plans]))
    return [row for row in rows if any(row[say(f"against.{side}")] for side in ("first", "second"))]


def _facts(what: str, values: Sequence[str]) -> dict[str, str]:
    return _cells(say(f"against.{what}"), values[0], values[1], "")


def _numbers(what: str, values: Sequence[float | None]) -> dict[str, str]:
    a, b = values
    difference = "" if a is None or b is None or a == b else signed(b - a)
    if difference and a:
        difference += f" ({share_words(((b or 0.0) - a) / abs(a), '+.1%')})"
    shown = ["" if value is None else _number(value) for value in values]
    return _cells(what, shown[0], shown[1], difference)


def _cells(what: str, first: str, second: str, difference: str) -> dict[str, str]:
    names = ("against.what", "against.first", "against.second", "against.difference")
    return dict(zip(map(say, names), (what, first, second, difference), strict=True))


def _row(row: dict[str, Any]) -> dict[str, str]:
    """Write a row of a table: its keys as one name, and both values."""
    values = ("first", "second", "difference")
    parts = [
        str(value) for key, value in row.items() if key not in (*values, "unit", "share") and value not in (None, "")
    ]
    shown = [_value(row[side]) for side in ("first", "second")]
    change = row.get("difference")
    return _cells(", ".join(parts), shown[0], shown[1], "" if change is None else signed(change))


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = "" if value is None else str(value)
        return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return _number(value)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else amount(value)
