"""Plan rows of limits: value, limit and slack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.interpret.accounts import Accounts
from planner.interpret.decisions import Decisions
from planner.interpret.phase_budgets import paid_by_phase
from planner.interpret.spread import limit_values
from planner.interpret.storage import storage_used
from planner.problem.phases import API, power_limits, supplies


def limit_rows(
    decided: Decisions, accounts: Accounts, slo: Sequence[tuple[str, str, float, float]]
) -> list[dict[str, Any]]:
    """Every limit of the question with how far it is used; `value` <= `limit` throughout."""
    problem, form = decided.problem, decided.form
    calendar = problem.calendar
    rows: list[tuple[str, str, float, float, str]] = []
    own = decided.site_power_w(owned_only=True)
    rows += [
        (limit.path, limit.name, float(own[limit.site, limit.mask(calendar)].max()), limit.most_w, "W")
        for limit in power_limits(problem)
    ]
    for m, site in enumerate(decided.meters.sites if decided.meters else ()):
        if math.isfinite(site.electricity.connection_w):
            rows.append(
                (
                    f"{site.electricity.path}.connection",
                    f"connection of {site.region}",
                    float(decided.meters.grid[m].max()),
                    site.electricity.connection_w,
                    "W",
                )
            )
    for supply in supplies(problem):
        taken = np.zeros(calendar.slots)
        for term, count, option, held in decided.held():
            taken[held] += count if option.offer is supply.offer and supply.phase in (None, term.phase) else 0
        rows.append(
            (
                supply.path,
                supply.name,
                float(taken.max()),
                supply.most,
                "token/s" if supply.offer.how == API else "system",
            )
        )
    for option, count in decided.most_held().values():
        if math.isfinite(option.largest):
            rows.append(
                (
                    f"{option.site.path}.fabrics",
                    f"size of one {option.fabric} network of {option.system.name} in {option.site.region}",
                    float(count),
                    option.largest,
                    "system",
                )
            )
    bought = [
        (term.phase, count * (term.price + option.fabric_capital))
        for term, count, option, _ in decided.held()
        if option.owned
    ]
    capital = sum(amount for _, amount in bought) + (decided.meters.capital if decided.meters else 0.0)
    for path, name, value, limit, unit in (
        (
            "limits.budget",
            "present value of all costs",
            sum(accounts.lines.values()),
            problem.budget,
            problem.spec.currency,
        ),
        ("limits.capital", "purchase price of systems and fabric", capital, problem.capital, problem.spec.currency),
        ("limits.carbon", "carbon", sum(accounts.carbon.values()), problem.carbon_kg, "kg"),
        *(
            (
                f"{phase.path}.capital",
                f"purchase price in {phase.name}",
                sum(a for q, a in bought if q == p),
                phase.capital,
                problem.spec.currency,
            )
            for p, phase in enumerate(problem.phases)
        ),
        *(
            (f"{phase.path}.budget", f"payments in {phase.name}", amount, phase.budget, problem.spec.currency)
            for phase, amount in zip(problem.phases, paid_by_phase(decided, accounts))
        ),
    ):
        if math.isfinite(limit):
            rows.append((path, name, float(value), limit, unit))
    for path, name, used, most in decided.lines.busy_units() if decided.lines else ():
        rows.append((path, name, used, most, "line"))
    rows += [(*row, "1") for row in limit_values(problem, decided.spread())]
    rows += [(*row, "byte/s") for row in storage_used(decided)]
    for job in problem.training:
        busy = sum(float(decided.active[p] @ calendar.seconds) for p in decided.used if form.points[p].workload is job)
        rows.append(
            (
                f"{job.path}.deadline",
                f"full-width time of {job.name} between start and deadline",
                busy,
                job.spec.deadline - job.spec.start,
                "s",
            )
        )
    rows += [(path, name, value, limit, "s") for path, name, value, limit in slo]
    return [
        {
            "path": path,
            "name": name,
            "value": value,
            "limit": limit,
            "unit": unit,
            "slack": limit - value,
            "marginal_value": None,
            "marginal_unit": None,
        }
        for path, name, value, limit, unit in rows
    ]
