"""Plan rows of phases: deliveries, costs, and use of the chips.

Tables for people: `planner.report.phases`; the check: `planner.verify.phases`.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from catalog.units import DAY_S, MILLION, YEAR_S
from models.arrays import Bools, Floats, sum_of
from planner.candidates.fleet_options import FleetOption
from planner.money.components import SYSTEM
from planner.money.terms import by_position, in_phase, in_window, purchases, total
from planner.problem.facts import PhaseFacts, ResolvedSpec
from planner.problem.phases import Term, window_at
from solvers.model.preemption import working_share

if TYPE_CHECKING:
    from planner.interpret.accounts import Accounts
    from planner.interpret.decisions import Decisions


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
    form, windows = decided.form, range(problem.calendar.windows)
    cost = np.array([total(in_window(form.terms, v), accounts.units) for v in windows])
    tokens = _tokens(decided)
    worth = problem.calendar.seconds * problem.calendar.discount
    chips = np.zeros(problem.calendar.slots)
    for _, count, option, held in decided.held():
        chips += count * option.system.chips * held
    paid, rows = paid_by_phase(decided, accounts), []
    left = np.array([_residual_share(problem, form.fleet_options[k], term) for k, term in form.holdings])
    for p, phase in enumerate(problem.phases):
        first, last = windows_of(problem, phase)
        inside = (problem.calendar.window >= first) & (problem.calendar.window <= last)
        bought = by_position(purchases(form.terms, p), SYSTEM, accounts.units)
        spent = float(cost[first : last + 1].sum())
        paid_for = float(sum_of(rate[inside] @ worth[inside] for rate in tokens.values()))
        rows.append(
            {
                "name": phase.name,
                "start": day_of(problem, phase.start_s),
                "end": day_of(problem, phase.end_s),
                "windows": [first, last],
                "capital": float(bought.sum()),
                "paid": paid[p],
                "residual": float(bought @ left),
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


def paid_by_phase(decided: Decisions, accounts: Accounts) -> list[float]:
    """Add up the payments of a plan in each phase."""
    terms = decided.form.terms
    return [total(in_phase(terms, p), accounts.units) for p in range(len(decided.problem.phases))]


def _residual_share(problem: ResolvedSpec, option: FleetOption, term: Term) -> float:
    """Return the residual value at the end of the horizon per unit of price; 0 for systems that are rented or retired before."""
    edges = problem.calendar.edges_s
    if not option.owned or term.last < problem.calendar.windows - 1:
        return 0.0
    return problem.economics.residual_of(option.system.name).at(float(edges[-1] - edges[term.first]) / YEAR_S)


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
