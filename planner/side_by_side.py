"""Several plans side by side, from their documents alone: cost by component, what is bought, and when the work begins.

Not here: what makes two plans differ (`planner.studies.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.units import MILLION, show
from planner.errors import Problem, SpecError
from planner.plan import Plan
from planner.report.report import COMPONENT_WORDS, STATUS_WORDS

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """`rows`: `table` ("cost" or "totals"), `what`, `unit`, and a value for each of `names`; None where a plan has none."""

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: list[Row]

    @property
    def document(self) -> Row:
        return {"plans": [{"name": name, "status": status} for name, status in zip(self.names, self.statuses, strict=True)], "rows": self.rows}

    @property
    def words(self) -> list[str]:
        return [f"{number}: {name}, {STATUS_WORDS[status]}." for number, (name, status) in enumerate(zip(self.names, self.statuses, strict=True), 1)]

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        return [(heading, [self._printed(row) for row in self.rows if row["table"] == table]) for table, heading in (("cost", "What each costs, by component"), ("totals", "What each comes to"))]

    def _printed(self, row: Row) -> Row:
        told = {"component" if row["table"] == "cost" else "total": COMPONENT_WORDS.get(row["what"], row["what"])}
        for number, name in enumerate(self.names, 1):
            value = row[name]
            told[str(number)] = "" if value is None else show(value, row["unit"]) if row["unit"] in ("W", "s") else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
        return told | {"unit": "" if row["unit"] in ("W", "s") else row["unit"]}


def side_by_side(plans: Sequence[Plan]) -> SideBySide:
    """Raises SpecError where amounts are in different currencies or two plans have one name."""
    currencies, names = {plan["spec"].get("currency", "USD") for plan in plans}, tuple(plan["name"] for plan in plans)
    if len(currencies) > 1:
        raise SpecError([Problem("currency", f"amounts of the plans are in {' and '.join(sorted(currencies))}; solve them in one")])
    if len(set(names)) < len(names):
        raise SpecError([Problem("name", "two plans have one name; solve one of them with --set name=...")])
    currency = currencies.pop()
    components = list(dict.fromkeys(component for plan in plans for component in plan["costs"]))
    rows = [_row("cost", component, currency, names, [plan["costs"].get(component, 0.0) if plan.has_answer else None for plan in plans]) for component in components]
    rows.sort(key=lambda row: -sum(row[name] or 0.0 for name in names))
    rows.append(_row("cost", "all", currency, names, _each(plans, lambda plan: plan["totals"]["cost"])))
    for what, unit, read in (
        ("purchase price", currency, lambda plan: _of_phases(plan, "capital")),
        ("worth at the end", currency, lambda plan: _of_phases(plan, "residual")),
        ("cost with purchases paid in full", currency, lambda plan: _of_phases(plan, "paid")),
        ("chips", "chip", lambda plan: plan["totals"]["chips"]),
        ("power at the peak", "W", lambda plan: plan["totals"]["peak_power_w"]),
        ("first work after", "s", _begins_s),
        ("tokens", "1T", lambda plan: plan["totals"]["tokens"] / MILLION**2),
        ("cost per million tokens", currency, lambda plan: plan["totals"]["cost"] * MILLION / plan["totals"]["tokens"] if plan["totals"]["tokens"] else None),
    ):
        rows.append(_row("totals", what, unit, names, _each(plans, read)))
    return SideBySide(names, tuple(plan.status for plan in plans), [row for row in rows if row["what"] == "all" or any(row[name] for name in names)])


def _each(plans: Sequence[Plan], read: Callable[[Plan], float | None]) -> list[float | None]:
    return [read(plan) if plan.has_answer else None for plan in plans]


def _row(table: str, what: str, unit: str, names: Sequence[str], values: Sequence[float | None]) -> Row:
    return {"table": table, "what": what, "unit": unit, **dict(zip(names, values, strict=True))}


def _of_phases(plan: Plan, key: str) -> float | None:
    """Known where the spec has phases, but what is paid not where electricity is a decision."""
    rows = plan.document.get("phases") or ()
    return sum(row[key] for row in rows) if rows and all(row.get(key) is not None for row in rows) else None


def _begins_s(plan: Plan) -> float | None:
    """Time from the start of the horizon to the first window in which anything runs."""
    running = {row["phase"] for row in plan["schedule"] if any(row["active"].values())}
    if not running:
        return None
    site = plan["schedule"][0]["site"]
    return sum(row["seconds"] for row in plan["schedule"] if row["site"] == site and row["phase"] < min(running))
