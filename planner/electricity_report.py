"""What people read of a plan's electricity, of the days at its sites, and of its run through all hours. The rest: `planner.report`."""

from __future__ import annotations

from typing import Any

from catalog.units import DAY_S, MWH_J, TONNE_KG, show
from planner.hours import by_hour
from planner.plan import Plan

ELECTRICITY = "electricity"
TABLES = (ELECTRICITY,)  # there only where the spec asks for it
COMPONENT_WORDS = {"demand charge": "demand charges", "ppa": "power purchase agreements", "battery": "batteries (capital)"}
ITEM_WORDS = {"grid": "from the grid", "peak": "peak of", "ppa": "contract", "battery": "battery,"}


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    currency = plan["spec"].get("currency", "USD")
    return [
        ("The day at each site", _days(plan)),
        ("Electricity as a decision", [_item(row, currency) for row in plan.document.get(ELECTRICITY, ())]),
    ]


def _days(plan: Plan) -> list[dict[str, Any]]:
    """Per site and phase, the price and the load of each hour as a line of bars; of several days, their mean."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in plan["schedule"]:
        groups.setdefault((row["site"], row["phase"]), []).append(row)
    rows = []
    for (site, phase), listed in groups.items():
        hours = by_hour(listed)
        prices = [row["price_per_j"] * MWH_J for row in listed]
        loads = [row["power_w"] for row in listed]
        rows.append(
            {
                "site": site,
                "phase": phase,
                "days": f"{sum(row['seconds'] for row in listed) / DAY_S:.0f}",
                "price by UTC hour": _bars([row["price_per_j"] for row in hours]),
                "load by UTC hour": _bars([row["power_w"] for row in hours]),
                "price per MWh": f"{min(prices):.0f}-{max(prices):.0f}" if min(prices) >= 0 else f"{min(prices):.0f} to {max(prices):.0f}",
                "load": f"{show(min(loads), 'W')} to {show(max(loads), 'W')}",
            }
        )
    return rows


def _bars(values: list[float]) -> str:
    low, high = min(values), max(values)
    steps = "▁▂▃▄▅▆▇█"
    return "".join(steps[round((value - low) / (high - low) * 7) if high > low else 3] for value in values)


def _item(row: dict[str, Any], currency: str) -> dict[str, Any]:
    return {
        "site": row["site"],
        "what": " ".join(filter(None, (ITEM_WORDS[row["item"]], row["name"]))),
        "size": show(row["size"], row["unit"]),
        "energy": "" if row["energy_j"] is None else show(row["energy_j"], "J"),
        currency: f"{row['cost']:,.0f}",
        "t CO2": "" if row["carbon_kg"] is None else f"{row['carbon_kg'] / TONNE_KG:,.1f}",
    }


def dispatch_words(plan: Plan) -> str:
    """What the plan comes to in every hour of the year, where it was made on fewer; a line of its own."""
    found = plan.document.get("dispatch")
    if found is None:
        return ""
    currency = plan["spec"].get("currency", "USD")
    parts = (("unmet", "of the requests are not served"), ("unfinished", "of a job's work is not done"))
    missing = [f"{found[name] * 100:.2g}% {words}" for name, words in parts if found[name]]
    left_out = f", {' and '.join(found['left_out'])} not looked at" if found["left_out"] else ""
    return (
        f"\nThe same fleet in all {found['slots']:,} hours: {found['cost']:,.0f} {currency} ({found['difference']:+.2%}), "
        f"{found['carbon_kg'] / TONNE_KG:,.0f} t CO2; {', '.join(missing) or 'nothing is left undone'}{left_out}"
    )
