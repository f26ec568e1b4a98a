"""Plan rows of limits: value, limit and slack."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from models.arrays import sum_of
from planner.interpret.accounts import Accounts
from planner.interpret.decisions import Decisions
from planner.interpret.facility import facility_limits
from planner.interpret.phases import paid_by_phase
from planner.interpret.simplicity import part_limits
from planner.interpret.spread import largest_shares
from planner.interpret.storage import storage_used
from planner.messages import with_codes
from planner.money.components import SYSTEM
from planner.money.terms import by_position, purchases, total
from planner.plan.rows.money import Limit
from planner.problem.limit_labels import (
    BUDGET,
    CAPITAL,
    CARBON,
    LimitLabel,
    connection,
    fabric_size,
    job_time,
    phase_budget,
    phase_capital,
)
from planner.problem.phases import API, TOKENS_PER_S, power_limits, supplies

Row = tuple[LimitLabel, float, float, str]  # key, value, limit, unit


def limit_rows(
    decided: Decisions, accounts: Accounts, latencies: Sequence[tuple[LimitLabel, float, float]]
) -> list[Limit]:
    """Build a row for every limit of the spec, with how far it is used: `value` <= `limit` throughout."""
    rows: list[Row] = [
        *_power(decided),
        *_supplies(decided),
        *_fabric_sizes(decided),
        *_amounts(decided, accounts),
        *((*row, "line") for row in (decided.lines.busy_units() if decided.lines else ())),
        *((*row, "1") for row in largest_shares(decided.problem, decided.spread())),
        *((*row, "byte/s") for row in storage_used(decided)),
        *facility_limits(decided),
        *part_limits(decided),
        *_job_times(decided),
        *((*row, "s") for row in latencies),
    ]
    found: list[Limit] = [
        {
            "path": key.path,
            "name": key.name,
            "value": value,
            "limit": limit,
            "unit": unit,
            "slack": limit - value,
            "marginal_value": None,
            "marginal_unit": None,
        }
        for key, value, limit, unit in rows
    ]
    return [with_codes(row, "name") for row in found]


def _power(decided: Decisions) -> Iterator[Row]:
    """Yield the power and the grid connections of sites."""
    own_w = decided.site_power_w(owned_only=True)
    for limit in power_limits(decided.problem):
        peak_w = float(own_w[limit.site, limit.mask(decided.problem.calendar)].max())
        yield LimitLabel(limit.path, limit.name), peak_w, limit.most_w, "W"
    if decided.electricity is not None:
        for m, site in enumerate(decided.electricity.sites):
            if site.electricity is not None and math.isfinite(site.electricity.connection_w):
                most_w = float(decided.electricity.through_connection(m).max())
                yield connection(site), most_w, site.electricity.connection_w, "W"


def _supplies(decided: Decisions) -> Iterator[Row]:
    """Yield the supplies of offers, each at its busiest time."""
    for supply in filter(lambda supply: supply.is_stated, supplies(decided.problem)):
        taken = np.zeros(decided.problem.calendar.slots)
        for (k, term), running in zip(decided.form.holdings, decided.running, strict=True):
            offer = decided.form.fleet_options[k].offer
            taken += running if offer.order == supply.offer.path and supply.phase in (None, term.phase) else 0
        unit = TOKENS_PER_S if supply.offer.how == API else "system"
        yield LimitLabel(supply.path, supply.name), float(taken.max()), supply.most, unit


def _fabric_sizes(decided: Decisions) -> Iterator[Row]:
    """Yield the sizes of networks of which systems are held."""
    for option, count in decided.most_held().values():
        if math.isfinite(option.largest):
            key = fabric_size(option.site, option.fabric, option.system.name)
            yield key, float(count), option.largest, "system"


def _amounts(decided: Decisions, accounts: Accounts) -> Iterator[Row]:
    """Yield money and carbon of the whole plan, and money of its phases."""
    problem = decided.problem
    money, terms = problem.spec.currency, decided.form.terms
    rows: list[Row] = [
        (BUDGET, sum_of(accounts.cost_lines.values()), problem.budget, money),
        (CAPITAL, total(purchases(terms), accounts.units), problem.capital, money),
        (CARBON, sum_of(accounts.carbon_lines.values()), problem.carbon_kg, "kg"),
    ]
    for p, phase in enumerate(problem.phases):
        bought = by_position(purchases(terms, p), SYSTEM, accounts.units)
        rows.append((phase_capital(phase), float(bought.sum()), phase.capital, money))
    for phase, amount in zip(problem.phases, paid_by_phase(decided, accounts), strict=True):
        rows.append((phase_budget(phase), amount, phase.budget, money))
    for key, value, limit, unit in rows:
        if math.isfinite(limit):
            yield key, float(value), limit, unit


def _job_times(decided: Decisions) -> Iterator[Row]:
    """Yield the time that each job runs at full width."""
    for job in decided.problem.training:
        seconds = decided.problem.calendar.seconds
        busy_s = sum_of(float(decided.active[p] @ seconds) for p in decided.used_by(job))
        yield job_time(job), busy_s, job.spec.deadline - job.spec.start, "s"
