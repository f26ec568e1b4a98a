"""Plan rows of prices of electricity of which a part is unknown: what they hold, and the plan's cost at what industry pays on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Floats, sum_of
from planner.interpret.accounts import Accounts
from planner.interpret.decisions import Decisions
from planner.money.components import DEMAND_CHARGE
from planner.problem.facts import SiteFacts


def content_rows(decided: Decisions, accounts: Accounts) -> list[dict[str, Any]]:
    """Build one row for each site with an unknown part of its price, whether the plan draws there or not."""
    calendar, cost = decided.problem.calendar, sum_of(accounts.cost_lines.values())
    own, rows = decided.site_power_w(owned_only=True), []
    for r, site in enumerate(decided.problem.sites):
        contents = site.contents
        if not contents.unknown:
            continue
        price: Floats = site.price_per_j[calendar.hour]
        worth = calendar.discount * calendar.risen(decided.problem.economics.escalation.electricity)
        drawn_j = _bought_w(decided, site, own[r]) * calendar.seconds
        paid_apart = sum_of(
            amount
            for (component, place, *_), amount in accounts.cost_lines.items()
            if component == DEMAND_CHARGE.key and place == site.region
        )
        more = float((drawn_j * worth) @ (contents.industrial_per_j - price)) - paid_apart
        rows.append(
            {
                "path": f"{site.path}.contents",
                "site": site.region,
                **dict(contents.states),
                "price_per_j": float(np.average(price, weights=calendar.seconds)),
                "industrial_per_j": contents.industrial_per_j,
                "industrial_source": contents.industrial_source,
                "energy_j": float(drawn_j.sum()),
                "cost": cost,
                "cost_at_industrial": cost + more,
            }
        )
    return rows


def _bought_w(decided: Decisions, site: SiteFacts, own_w: Floats) -> Floats:
    """Return the power from the grid in each slot [W]: at the meter where electricity is a decision, else all that our own systems draw."""
    if decided.electricity is None or site.electricity is None:
        return own_w
    at = next(m for m, metered in enumerate(decided.electricity.sites) if metered.region == site.region)
    grid: Floats = decided.electricity.grid[at]
    return grid
