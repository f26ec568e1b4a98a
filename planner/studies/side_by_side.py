"""Several plans side by side: cost by component, purchase price, chips, power and tokens of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.units import MILLION, show
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.money.components import component_words
from planner.plan import Plan
from planner.plan.rows.money import Phase
from planner.report.words import amount

Row = dict[str, Any]
TABLES = {"cost": "Cost by component", "totals": "Totals"}


@dataclass(frozen=True, slots=True)
class SideBySide:
    """`rows`: `table` ("cost" or "totals"), `what`, `unit`, and a value for each of `names`; None where a plan has none."""

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    rows: list[Row]

    @property
    def document(self) -> Row:
        """Return everything as JSON."""
        return {
            "plans": [{"name": name, "status": status} for name, status in zip(self.names, self.statuses, strict=True)],
            "rows": self.rows,
        }

    @property
    def words(self) -> list[str]:
        """List number, name and status of each plan."""
        return [
            f"{number}: {name}, {Message.of(f'status.{status}').text()}."
            for number, (name, status) in enumerate(zip(self.names, self.statuses, strict=True), 1)
        ]

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return (heading, rows) of both tables, formatted for people."""
        return [
            (heading, [self._printed(row) for row in self.rows if row["table"] == table])
            for table, heading in TABLES.items()
        ]

    def _printed(self, row: Row) -> Row:
        shown = {"component" if row["table"] == "cost" else "total": component_words(row["what"])}
        shown |= {str(number): _text(row[name], row["unit"]) for number, name in enumerate(self.names, 1)}
        return shown | {"unit": "" if row["unit"] in ("W", "s") else row["unit"]}


def side_by_side(plans: Sequence[Plan]) -> SideBySide:
    """Put plans side by side. Raises SpecError if amounts are in different currencies or two plans have one name."""
    currencies, names = (
        {plan.document["spec"].get("currency", "USD") for plan in plans},
        tuple(plan.document["name"] for plan in plans),
    )
    if len(currencies) > 1:
        words = Message.of("studies.currencies", names=" and ".join(sorted(currencies))).text()
        raise SpecError([Issue("currency", words)])
    if len(set(names)) < len(names):
        raise SpecError([Issue("name", Message.of("option.same_name").text())])
    rows = [*_cost_rows(plans, names, *currencies), *_total_rows(plans, names, *currencies)]
    return SideBySide(
        names,
        tuple(plan.status for plan in plans),
        [row for row in rows if row["what"] == "all" or any(row[name] for name in names)],
    )


def _cost_rows(plans: Sequence[Plan], names: Sequence[str], currency: str) -> list[Row]:
    """List the components, the largest over all plans first, then their sum."""
    rows = [
        _row("cost", component, currency, names, [_component(plan, component) for plan in plans])
        for component in dict.fromkeys(component for plan in plans for component in plan.document["costs"])
    ]
    rows.sort(key=lambda row: -sum(row[name] or 0.0 for name in names))
    return [*rows, _row("cost", "all", currency, names, _each(plans, lambda plan: plan.totals["cost"]))]


def _total_rows(plans: Sequence[Plan], names: Sequence[str], currency: str) -> list[Row]:
    """List the totals to compare."""
    columns: tuple[tuple[str, str, Callable[[Plan], float | None]], ...] = (
        ("purchase price", currency, lambda plan: _of_phases(plan, lambda row: row.get("capital"))),
        ("worth at the end", currency, lambda plan: _of_phases(plan, lambda row: row.get("residual"))),
        ("cost with purchases paid in full", currency, lambda plan: _of_phases(plan, lambda row: row.get("paid"))),
        ("chips", "chip", lambda plan: plan.totals["chips"]),
        ("power at the peak", "W", lambda plan: plan.totals["peak_power_w"]),
        ("first work after", "s", _begins_s),
        ("tokens", "1T", lambda plan: plan.totals["tokens"] / MILLION**2),
        ("cost per million tokens", currency, _per_million),
    )
    return [_row("totals", what, unit, names, _each(plans, read)) for what, unit, read in columns]


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit in ("W", "s"):
        return show(value, unit)
    return amount(value)


def _each(plans: Sequence[Plan], read: Callable[[Plan], float | None]) -> list[float | None]:
    return [read(plan) if plan.has_answer else None for plan in plans]


def _row(table: str, what: str, unit: str, names: Sequence[str], values: Sequence[float | None]) -> Row:
    return {"table": table, "what": what, "unit": unit, **dict(zip(names, values, strict=True))}


def _component(plan: Plan, component: str) -> float | None:
    return plan.document["costs"].get(component, 0.0) if plan.has_answer else None


def _per_million(plan: Plan) -> float | None:
    cost, tokens = plan.totals["cost"], plan.totals["tokens"]
    return cost * MILLION / tokens if tokens else None


def _of_phases(plan: Plan, read: Callable[[Phase], float | None]) -> float | None:
    """Add up a column of the phases; None without phases, and for payments where electricity is a decision."""
    amounts = [read(row) for row in plan.document.get("phases") or ()]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def _begins_s(plan: Plan) -> float | None:
    """Compute the time from the start of the horizon to the first window in which anything runs."""
    running = {row["window"] for row in plan.document["schedule"] if any(row["active"].values())}
    if not running:
        return None
    site = plan.document["schedule"][0]["site"]
    waiting: list[float] = [
        row["seconds"] for row in plan.document["schedule"] if row["site"] == site and row["window"] < min(running)
    ]
    return sum(waiting)
