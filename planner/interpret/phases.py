"""Plan rows of phases: deliveries, costs, and use of the chips.

Tables for people: `planner.report.phases`; the check: `planner.verify.phases`.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog.units import DAY_S, MILLION, YEAR_S
from models.arrays import Bools, Floats
from models.economics import annuity, window_present_worth
from planner.candidates.fleet_options import paid_on_delivery
from planner.formulate.costs import slot_rates
from planner.formulate.functionals import COST
from planner.interpret.phase_budgets import paid_by_phase
from planner.money.components import ENVIRONMENTS
from planner.problem.facts import PhaseFacts, ResolvedSpec
from planner.problem.phases import Term, window_at
from planner.problem.reinforcement import environments_per_s
from solvers.model.preemption import working_share

if TYPE_CHECKING:
    from planner.interpret.accounts import Accounts
    from planner.interpret.decisions import Decisions

DATED, ENERGY = (
    (
        "systems",
        "fabric",
        "maintenance",
        "spare parts",
        "staff",
        "software",
        "facility",
        "colocation",
        "rent",
        "early exit",
        "egress",
        "api",
        ENVIRONMENTS.key,
    ),
    "energy",
)  # energy of a meter belongs to no system


def obtained(problem: ResolvedSpec, term: Term) -> dict[str, Any]:
    """Describe the phase and windows of a holding, for its fleet row."""
    return {
        "obtained": problem.phases[term.phase].name if problem.phases else None,
        "windows": [term.first, term.last],
        "price": term.price,
    }


def windows_of(problem: ResolvedSpec, phase: PhaseFacts) -> tuple[int, int]:
    """Return the first and the last window of a phase."""
    return window_at(problem.calendar, phase.start_s), window_at(problem.calendar, phase.end_s) - 1


def phase_rows(decided: Decisions, accounts: Accounts) -> list[dict[str, Any]]:
    """Build one row for each phase."""
    problem = decided.problem
    undated = sum(
        amount
        for (component, _, system, _), amount in accounts.cost_lines.items()
        if component not in DATED and not (component == ENERGY and system)
    )
    cost = _cost_by_window(decided, undated)
    tokens = _tokens(decided)
    worth = problem.calendar.seconds * problem.calendar.discount
    chips = np.zeros(problem.calendar.slots)
    for _, count, option, held in decided.held():
        chips += count * option.system.chips * held
    paid, rows = paid_by_phase(decided, accounts), []
    for p, phase in enumerate(problem.phases):
        first, last = windows_of(problem, phase)
        inside = (problem.calendar.window >= first) & (problem.calendar.window <= last)
        bought = [
            (term, count * paid_on_delivery(problem.economics, term, option), option)
            for term, count, option, _ in decided.held()
            if option.owned and term.phase == p
        ]
        spent = float(cost[first : last + 1].sum())
        paid_for = float(sum(rate[inside] @ worth[inside] for rate in tokens.values()))
        rows.append(
            {
                "name": phase.name,
                "start": day_of(problem, phase.start_s),
                "end": day_of(problem, phase.end_s),
                "windows": [first, last],
                "capital": float(sum(amount for _, amount, _ in bought)),
                "paid": paid[p],
                "residual": float(
                    sum(amount * _residual_share(problem, term, option.system.name) for term, amount, option in bought)
                ),
                "chips": int(chips[inside].max(initial=0)),
                "cost": spent,
                "tokens": {
                    name: float(rate[inside] @ problem.calendar.seconds[inside]) for name, rate in tokens.items()
                },
                "cost_per_million_tokens": spent / paid_for * MILLION if paid_for else None,
                "pools": _pools(decided, inside),
            }
        )
    return rows


def day_of(problem: ResolvedSpec, moment_s: float) -> str:
    """Return the date of a moment of the horizon."""
    return (problem.calendar.start + timedelta(days=int(moment_s // DAY_S))).isoformat()


def _residual_share(problem: ResolvedSpec, term: Term, system: str) -> float:
    """Return the residual value at the end of the horizon per unit of price; 0 for what is retired before."""
    edges = problem.calendar.edges_s
    if term.last < problem.calendar.windows - 1:
        return 0.0
    return problem.economics.residual_of(system).at(float(edges[-1] - edges[term.first]) / YEAR_S)


def _cost_by_window(decided: Decisions, undated: float) -> Floats:
    """Compute the present value of the costs of each window [V]: rent, energy and egress when they fall due.

    What a purchase is charged is spread over the time for which it is held, as equal payments at the end of each year.

    `undated`: costs without a date of their own, which are spread evenly over time.
    """
    problem, rates = decided.problem, slot_rates(decided.problem)
    calendar, money = problem.calendar, problem.economics
    place = {site.region: r for r, site in enumerate(problem.sites)}
    years = calendar.edges_s / YEAR_S
    worth = np.asarray(window_present_worth(money.discount_rate, years[:-1], years[1:], money.years))
    cost, by_slot = np.zeros(calendar.windows), np.zeros(calendar.slots)
    for term, count, option, held in decided.held():
        if option.owned:
            there = slice(term.first, term.last + 1)
            spread = term.price * term.charges.of_system + option.fabric_capital * term.charges.share
            yearly = spread / worth[there].sum() + option.staff_per_year + option.software_per_year
            yearly += option.facility_capital * annuity(1.0, money.discount_rate, money.facility_life_years)
            cost[there] += count * yearly * worth[there]
        cost[term.last] += count * term.price * term.owed_worth_s
        by_slot[held] += (
            count * (option.hall_per_s if option.owned else term.price) * (calendar.seconds * calendar.discount)[held]
        )
        r = place[option.site.region]
        if option.owned:
            by_slot[held] += count * option.idle_at_meter_w * rates.idle_cost_per_w[r, held]
    for p in decided.used:
        slots_per_s = environments_per_s(decided.form.points[p].workload)
        by_slot += slots_per_s * decided.active[p] * calendar.seconds * calendar.discount
        for use in decided.form.points[p].uses:
            r = place[use.option.site.region]
            if use.option.owned and not rates.metered[r]:
                by_slot += use.extra_it_w * use.option.site.pue * decided.active[p] * rates.cost_per_w[r]
    by_slot += (decided.form.data.arc_cost[COST] * decided.flow).sum(axis=0)
    cost += np.bincount(calendar.window, weights=by_slot, minlength=calendar.windows)
    time = np.bincount(calendar.window, weights=calendar.seconds * calendar.discount, minlength=calendar.windows)
    undated_cost: Floats = undated * time / time.sum()
    return cost + undated_cost


def _tokens(decided: Decisions) -> dict[str, Floats]:
    """Compute the tokens per second of each workload in each slot."""
    problem, form = decided.problem, decided.form
    rates = {w.name: np.zeros(problem.calendar.slots) for w in (*problem.serving, *problem.training)}
    for a, (w, *_) in enumerate(form.arcs):
        rates[problem.serving[w].name] += decided.flow[a] * problem.serving[w].spec.lengths.output
    for p in decided.used:
        if form.points[p].workload in problem.training:
            rates[form.points[p].workload.name] += form.data.point_capacity[p] * working_share(
                form.data, p, decided.active[p]
            )
    return rates


def _pools(decided: Decisions, inside: Bools) -> list[dict[str, Any]]:
    """Find the most chips at work in some slots, by workload, role and system."""
    chips: dict[tuple[str, str, str], Floats] = defaultdict(lambda: np.zeros(len(inside)))
    for p in decided.used:
        point = decided.form.points[p]
        for use in point.uses:
            chips[point.workload.name, use.role, use.option.system.name] += (
                use.systems * use.option.system.chips * decided.active[p]
            )
    return [
        {"workload": workload, "role": role, "system": system, "chips": float(busy[inside].max())}
        for (workload, role, system), busy in sorted(chips.items())
        if busy[inside].max(initial=0.0) > 0
    ]
