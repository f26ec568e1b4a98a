"""Check the table of systems that are owned already against the fleet."""

from __future__ import annotations

from typing import Any

from planner.verify.checked_plan import CheckedPlan

TABLE = "owned"


def check_owned(plan: CheckedPlan) -> None:
    """Count the kept and moved systems in the rows of the fleet; the rest is sold, or idle where it is worth nothing."""
    offers = [offer for offer in plan.problem.offers if offer.owned is not None]
    if not offers and TABLE not in plan.document:
        return
    rows = []
    for offer in offers:
        owned = offer.owned
        assert owned is not None
        there: dict[str, int] = {}
        for row in plan.document["fleet"]:
            if row["offer"] == offer.path:
                there[row["site"]] = there.get(row["site"], 0) + row["count"]
        kept = there.pop(owned.region, 0)
        left = int(offer.supply) - kept - sum(there.values())
        worth = owned.worth * offer.prices[owned.region]
        expected: dict[str, Any] = {
            "path": offer.path,
            "system": offer.system,
            "site": owned.region,
            "count": int(offer.supply),
            "kept": kept,
            "moved": there,
            "sold": left * (worth > 0),
            "idle": left * (worth <= 0),
            "worth": worth,
            "proceeds": worth * left,
        }
        if owned.book_value is not None:
            expected["gain"] = (worth - owned.book_value) * left
        rows.append(expected)
    plan.equal(TABLE, plan.document.get(TABLE, []), rows)
