"""Plan rows of routes, and of the activity at each site in each slot."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.interpret.decisions import Decisions
from planner.interpret.deployments import resident_of
from planner.problem.electricity import slot_prices


def route_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each arc and slot in which requests flow."""
    rows = []
    for a, (w, o, r, q) in enumerate(decided.form.arcs):
        workload = decided.problem.serving[w]
        rows += [
            {
                "origin": decided.form.origins[o],
                "site": decided.problem.sites[r].region,
                "workload": workload.name,
                "slot": int(t),
                "tokens_per_s": float(decided.flow[a, t] * workload.spec.lengths.output),
                "pool": decided.pool_name(q),
                **({} if decided.lines is None else {"line": decided.form.arc_kinds[a]}),
            }
            for t in np.flatnonzero(decided.flow[a])
        ]
    return rows


def schedule_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each site and slot: active replicas, power, and the price and carbon of the hour."""
    calendar, active, rows = decided.problem.calendar, decided.active, []
    every, own = decided.site_power_w(owned_only=False), decided.site_power_w(owned_only=True)
    for r, site in enumerate(decided.problem.sites):
        here = [p for p in decided.used if decided.form.points[p].site == site.region]
        if not every[r].any() and site.electricity is None and not here:
            continue
        prices = slot_prices(site.price_per_j, calendar, decided.problem.economics)
        for t in range(calendar.slots):
            hour = int(calendar.hour[t])
            rows.append(
                {
                    "site": site.region,
                    "slot": t,
                    "window": int(calendar.window[t]),
                    **calendar.when(t),
                    "seconds": float(calendar.seconds[t]),
                    "power_w": float(every[r, t]),
                    "own_power_w": float(own[r, t]),
                    "energy_j": float(every[r, t] * calendar.seconds[t]),
                    "price_per_j": float(prices[t]),
                    "carbon_kg_per_j": float(site.carbon_kg_per_j[hour]),
                    **(decided.electricity.of_slot(site.region, t) if decided.electricity else {}),
                    "active": {decided.point_ids[p]: float(active[p, t]) for p in here if active[p, t] > 0},
                    **({"resident": resident_of(decided, site.region, t)} if decided.resident else {}),
                }
            )
    return rows
