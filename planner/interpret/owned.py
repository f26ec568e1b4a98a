"""Plan rows of systems that are owned already: how many are kept, moved and sold."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from planner.interpret.decisions import Decisions


def owned_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each entry of `owned`; amounts are in the spec's currency."""
    held: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for _, count, option, _ in decided.held():
        if option.offer.owned is not None:
            held[option.offer.path][option.site.region] += count
    rows = []
    for offer in decided.problem.offers:
        if (owned := offer.owned) is None:
            continue
        at = held[offer.path]
        count, kept = int(offer.supply), at.get(owned.region, 0)
        moved = {region: n for region, n in at.items() if region != owned.region}
        left = count - kept - sum(moved.values())
        worth = offer.prices[owned.region] * owned.worth
        rows.append(
            {
                "path": offer.path,
                "system": offer.system,
                "site": owned.region,
                "count": count,
                "kept": kept,
                "moved": moved,
                "sold": left if worth > 0 else 0,
                "idle": 0 if worth > 0 else left,
                "worth": worth,
                "proceeds": left * worth,
                **({} if owned.book_value is None else {"gain": left * (worth - owned.book_value)}),
            }
        )
    return rows
