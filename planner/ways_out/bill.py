"""Write the bill of materials as CSV: systems to obtain, parts of networks, contracts and batteries, lines of cost, one row each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.fleet import Fabric
from planner.tables import as_csv
from planner.version import __version__
from planner.ways_out.deployed import Deployed
from planner.ways_out.files import File

Row = dict[str, Any]
PARTS = {"switches": "switch", "links": "link", "copper_links": "copper link", "optics": "transceiver"}
"""Count of a network -> the part; copper links are among the links."""


def bill_files(deployed: Deployed) -> Iterable[File]:
    """Write one table; a CSV has no comments, so that each row names version, plan and bound in columns."""
    plan = deployed.plan
    shared: Row = {
        "plan": deployed.plan_id,
        "bound": plan["bound"],
        "objective": plan.value,
        "unit_of_objective": plan.objective["unit"],
        "flopwatt": __version__,
    }
    yield File("bill.csv", as_csv([{**row, **shared} for row in rows(plan)]))


def rows(plan: Plan) -> list[Row]:
    """List what to obtain (fleet, networks between own systems, purchases of electricity), then what the plan costs, line by line."""
    currency = str(plan["spec"].get("currency", "USD"))
    found = [
        _row(
            "system",
            each["site"],
            each["system"],
            each["count"],
            each.get("unit", "system"),
            currency,
            how=each["how"],
            offer=each["offer"],
            window=each["window"],
            obtained=each.get("obtained"),
            price=each.get("price"),
        )
        for each in plan.fleet
    ]
    found += [row for fabric in plan.fabrics for row in _network(fabric, currency)]
    for meter in plan.document.get("electricity", []):
        found.append(
            _row(
                meter["item"],
                meter["site"],
                meter["name"],
                meter["size"],
                meter["unit"],
                currency,
                amount=meter["cost"],
            )
        )
    found += [
        _row(
            "cost",
            line["site"],
            line["system"],
            None,
            "",
            currency,
            how=line["how"],
            part=line["component"],
            amount=line["amount"],
        )
        for line in plan.cost_lines
    ]
    return found


def _network(fabric: Fabric, currency: str) -> Iterable[Row]:
    """List a network with its price, then its parts, which that price includes."""
    name = Message.of("ways_out.network", design=fabric["design"], system=fabric["system"]).text()
    yield _row("network", fabric["site"], name, 1, "network", currency, amount=fabric["price"])
    counts: dict[str, Any] = {**fabric}
    for key, part in PARTS.items():
        if counts[key]:
            yield _row("part of network", fabric["site"], f"{part}, {name}", counts[key], part, currency)


def _row(kind: str, site: str, item: str, count: float | None, unit: str, currency: str, **more: Any) -> Row:
    """Build a row: `price` is of one, `amount` of all; `part` names the component of a cost."""
    columns = ("part", "how", "offer", "window", "obtained", "price", "amount")
    return {
        "kind": kind,
        "site": site,
        "item": item,
        "count": count,
        "unit": unit,
        **{name: more.get(name) for name in columns},
        "currency": currency,
    }
