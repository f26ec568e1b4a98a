"""Plan rows of systems that are owned already (kept, moved, sold) or rented already (kept, given back, extended)."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

import numpy as np

from catalog.units import DAY_S
from models.arrays import sum_of
from planner.interpret.decisions import Decisions
from planner.interpret.phases import day_of
from planner.money.components import SYSTEM
from planner.money.terms import COST, coefficients
from planner.problem.calendar import BORDER_TOL_S


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
        left = count - kept - sum_of(moved.values())
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


def rented_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each entry of `rented`; amounts are present values in the spec's currency.

    Systems given back save the cost of keeping them to the end of the contract, or of the horizon, less that of giving them back.
    """
    problem, form = decided.problem, decided.form
    edges, start = problem.calendar.edges_s, problem.calendar.start
    paid = coefficients([term for term in form.terms if term.functional == COST], SYSTEM, [len(form.holdings)])
    rows = []
    for offer in problem.offers:
        if (rented := offer.rented) is None:
            continue
        end_s = min(rented.until_s, float(edges[-1]))
        to_end = np.array([abs(edges[term.last + 1] - end_s) < BORDER_TOL_S for _, term in form.holdings])
        mine = [u for u, (k, _) in enumerate(form.holdings) if form.fleet_options[k].offer is offer]
        kept_cost = next(float(paid[u]) for u in mine if to_end[u])
        (site,) = offer.prices
        row: dict[str, Any] = {
            "path": offer.path,
            "system": offer.system,
            "site": site,
            "count": int(offer.supply),
            "until": (start + timedelta(days=int(rented.until_s // DAY_S))).isoformat(),
            "kept": sum(int(decided.count[u]) for u in mine if to_end[u]),
            "given_back": [],
            "extended": [],
        }
        changed: dict[int, list[int]] = {}  # holdings by their last window: of each tenant one
        for u in mine:
            if decided.count[u] and not to_end[u]:
                changed.setdefault(form.holdings[u][1].last, []).append(u)
        for last, holdings in sorted(changed.items()):
            gone_s, count = float(edges[last + 1]), sum(int(decided.count[u]) for u in holdings)
            entry: dict[str, Any] = {"count": count, "day": day_of(problem, gone_s)}
            more = sum_of(float(paid[u] - kept_cost) * int(decided.count[u]) for u in holdings)
            if gone_s < end_s:
                row["given_back"].append(entry | {"saves": -more})
            else:
                row["extended"].append(entry | {"costs": more})
        rows.append(row)
    return rows
