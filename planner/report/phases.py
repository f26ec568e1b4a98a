"""Format the table of the phases of a plan. Its contents: `planner.interpret.phases`."""

from __future__ import annotations

from typing import Any

from planner.plan import Plan

PHASES = "phases"


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of the phases."""
    currency = plan["spec"].get("currency", "USD")
    budgets = {row["path"]: row["limit"] for row in plan["limits"]}
    rows = [_row(row, budgets.get(f"phases[{p}].budget")) for p, row in enumerate(plan.document.get(PHASES, ()))]
    return [(f"Phase by phase ({currency})", rows)]


def _row(row: dict[str, Any], budget: float | None) -> dict[str, Any]:
    per_million = row["cost_per_million_tokens"]
    return {
        "phase": row["name"],
        "from": row["start"],
        "bought for": f"{row['capital']:,.0f}",
        "paid in it": ""
        if row["paid"] is None
        else f"{row['paid']:,.0f}" + ("" if budget is None else f" of {budget:,.0f}"),
        "worth at the end": f"{row['residual']:,.0f}",
        "chips": f"{row['chips']:,}",
        "tokens": f"{sum(row['tokens'].values()) / 1e12:,.3f}T",
        "cost": f"{row['cost']:,.0f}",
        "per million tokens": "" if per_million is None else f"{per_million:.4f}",
        "chips at work": "; ".join(f"{pool['role']} {pool['chips']:,.0f} {pool['system']}" for pool in row["pools"]),
        "prefill : decode": ratio(row["pools"]),
    }


def phase_name(plan: Plan, phase: int) -> str:
    """Name a phase of the schedule as the spec does; its number where the spec names none.

    Where a phase of the spec takes several of the schedule, their order is added.
    """
    for row in plan.document.get(PHASES) or ():
        windows = row["windows"]
        if phase in windows:
            place = f" ({windows.index(phase) + 1}/{len(windows)})" if len(windows) > 1 else ""
            return f"{row['name']}{place}"
    return str(phase + 1)


def ratio(pools: list[dict[str, Any]]) -> str:
    """Format the ratio of prefill chips to decode chips; empty without separate pools.

    >>> ratio([{"role": "prefill", "chips": 30.0}, {"role": "decode", "chips": 60.0}])
    '1 : 2.00'
    """
    chips = {role: sum(pool["chips"] for pool in pools if pool["role"] == role) for role in ("prefill", "decode")}
    return f"1 : {chips['decode'] / chips['prefill']:.2f}" if all(chips.values()) else ""
