"""What people read of a plan's electricity, of the days at its sites, and of its run through all hours. The rest: `planner.report.report`."""

from __future__ import annotations

from datetime import date
from typing import Any

from catalog.units import DAY_S, MWH_J, TONNE_KG, YEAR_S, show
from planner.plan import Plan
from planner.report.hours import by_hour

ELECTRICITY = "electricity"
TABLES = (ELECTRICITY,)  # there only where the spec asks for it
COMPONENT_WORDS = {
    "demand charge": "demand charges",
    "ppa": "power purchase agreements",
    "battery": "batteries (capital)",
}
ITEM_WORDS = {"grid": "from the grid", "peak": "peak of", "ppa": "contract", "battery": "battery,"}


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    currency = plan["spec"].get("currency", "USD")
    return [
        ("The days that stand for the year", _typical_days(plan)),
        ("The day at each site", _days(plan)),
        ("Electricity as a decision", [_item(row, currency) for row in plan.document.get(ELECTRICITY, ())]),
    ]


def _days(plan: Plan) -> list[dict[str, Any]]:
    """Per site and phase, the price and the load of each hour as a line of bars; of several days, their mean."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    apis = {api["name"] for api in plan["spec"].get("apis") or ()}
    for row in (row for row in plan["schedule"] if row["site"] not in apis):
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
                "price per MWh": f"{min(prices):.0f}-{max(prices):.0f}"
                if min(prices) >= 0
                else f"{min(prices):.0f} to {max(prices):.0f}",
                "load": f"{show(min(loads), 'W')} to {show(max(loads), 'W')}",
            }
        )
    return rows


def _typical_days(plan: Plan) -> list[dict[str, Any]]:
    """The days that were planned, how many days of a year each stands for, and what they are like; none of one typical day or a whole year."""
    days: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in plan["schedule"]:
        if "day" in row:
            days.setdefault(row["day"], {}).setdefault(row["slot"], []).append(row)
    if not 0 < len(days) < 365:
        return []
    years = sum(slots[0]["seconds"] for of_day in days.values() for slots in of_day.values()) / YEAR_S
    tokens: dict[int, float] = {}
    for row in plan["routes"]:
        tokens[row["slot"]] = tokens.get(row["slot"], 0.0) + row["tokens_per_s"]
    rows = []
    for day, slots in sorted(days.items()):
        seconds = {slot: listed[0]["seconds"] for slot, listed in slots.items()}
        energy = sum(row["energy_j"] for listed in slots.values() for row in listed)
        paid = sum(row["energy_j"] * row["price_per_j"] for listed in slots.values() for row in listed)
        rows.append(
            {
                "day": day,
                "weekday": f"{date.fromisoformat(day):%A}",
                "days a year": f"{sum(seconds.values()) / DAY_S / years:.0f}",
                "output tokens a day": f"{DAY_S * sum(tokens.get(slot, 0.0) * s for slot, s in seconds.items()) / sum(seconds.values()) / 1e9:,.1f}B",
                "highest load": show(max(sum(row["power_w"] for row in listed) for listed in slots.values()), "W"),
                "price per MWh at the load": f"{paid / energy * MWH_J:.1f}" if energy else "",
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
