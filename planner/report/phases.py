"""Format the table of the phases of a plan. Its contents: `planner.interpret.phases`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import accumulate
from typing import Any

from catalog.units import DAY_S
from planner.messages import DEFAULT, Message, listed, named, say
from planner.plan import Plan
from planner.plan.rows.fleet import FleetRow
from planner.plan.rows.money import Phase, PhasePool
from planner.report.words import whole

PHASES = "phases"


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of the phases."""
    currency = plan.document["spec"].get("currency", "USD")
    budgets = {row["path"]: row["limit"] for row in plan.document["limits"]}
    rows = [_row(row, budgets.get(f"phases[{p}].budget")) for p, row in enumerate(plan.document.get("phases", ()))]
    return [(say("heading.phases", currency=currency), rows)]


def _row(row: Phase, budget: float | None) -> dict[str, Any]:
    per_million = row["cost_per_million_tokens"]
    paid = "" if row["paid"] is None else whole(row["paid"])
    return {
        "phase": row["name"],
        "from": row["start"],
        "bought_for": whole(row["capital"]),
        "paid_in_it": paid if budget is None or not paid else say("amount.of", part=paid, whole=whole(budget)),
        "worth_at_the_end": whole(row["residual"]),
        "chips": f"{row['chips']:,}",
        "tokens": f"{sum(row['tokens'].values()) / 1e12:,.3f}T",
        "cost": whole(row["cost"]),
        "levelised_per_million_tokens": "" if per_million is None else f"{per_million:.4f}",
        "chips_at_work": listed(
            say("phase.chips", role=named("role", pool["role"]), chips=f"{pool['chips']:,.0f}", system=pool["system"])
            for pool in row["pools"]
        ),
        "prefill_decode": ratio(row["pools"]),
    }


def phase_name(plan: Plan, phase: int, language: str = DEFAULT) -> str:
    """Name a window of the schedule: as the spec names its phase, or by dates where the spec has none.

    Where a phase of the spec takes several windows, their order is added.
    """
    for row in plan.document.get("phases") or ():
        windows = row["windows"]
        if phase in windows:
            place = f" ({windows.index(phase) + 1}/{len(windows)})" if len(windows) > 1 else ""
            return f"{row['name']}{place}"
    return span_words(plan, (phase, phase), language)


def windows_of(row: FleetRow) -> tuple[int, int] | None:
    """Return the first and last window in which a row of the fleet is held; None for throughout."""
    if row.get("windows"):
        return row["windows"][0], row["windows"][-1]
    return None if row["window"] is None else (row["window"], row["window"])


def span_words(plan: Plan, span: tuple[int, int] | None, language: str = DEFAULT) -> str:
    """Name the windows of the schedule in which something is held: by phases where the spec has any, else by dates; empty for throughout."""
    if span is None:
        return ""
    if plan.document.get("phases"):
        first, last = (phase_name(plan, at, language) for at in span)
        return first if first == last else Message.of("span.between", start=first, end=last).text(language)
    dates = window_dates(plan)
    start, end = dates[span[0]], dates[span[1] + 1]
    if start == dates[0] and end == dates[-1]:
        return ""
    code = "span.from" if end == dates[-1] else "span.until" if start == dates[0] else "span.between"
    told = {"start": start.isoformat()} if code != "span.until" else {}
    told |= {"end": end.isoformat()} if code != "span.from" else {}
    return Message.of(code, **told).text(language)


def window_dates(plan: Plan) -> list[date]:
    """List the day on which each window of the schedule begins, and that on which the last one ends."""
    from planner.spec.model import Horizon

    rows = plan.document["schedule"]
    lasts: dict[int, float] = {}
    for row in rows:
        if row["site"] == rows[0]["site"]:
            lasts[row["window"]] = lasts.get(row["window"], 0.0) + row["seconds"]
    stated = plan.document["spec"].get("horizon", {}).get("start")
    first = date.fromisoformat(stated) if stated else Horizon().start
    ends = accumulate((lasts[window] for window in sorted(lasts)), initial=0.0)
    return [first + timedelta(days=round(seconds / DAY_S)) for seconds in ends]


def ratio(pools: Sequence[PhasePool]) -> str:
    """Format the ratio of prefill chips to decode chips; empty without separate pools.

    >>> ratio([{"role": "prefill", "chips": 30.0}, {"role": "decode", "chips": 60.0}])
    '1 : 2.00'
    """
    chips = {role: sum(pool["chips"] for pool in pools if pool["role"] == role) for role in ("prefill", "decode")}
    return f"1 : {chips['decode'] / chips['prefill']:.2f}" if all(chips.values()) else ""
