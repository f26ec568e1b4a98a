"""Payments of a plan in each of its phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.formulate.lines import stage_totals
from planner.formulate.phase_budgets import (
    Payments,
    paid_per_present_value,
    payments,
    window_seconds_inside,
)

if TYPE_CHECKING:
    from planner.interpret.accounts import Accounts
    from planner.interpret.decisions import Decisions


def paid_by_phase(decided: Decisions, accounts: Accounts) -> list[float]:
    """Add up the payments of a plan in each phase."""
    problem, form = decided.problem, decided.form
    total: dict[str, float] = {"weights": 0.0, "porting": 0.0}
    for (component, *_), amount in accounts.cost_lines.items():
        if component in total:
            total[component] += amount
    found = []
    for p, phase in enumerate(problem.phases):
        due = payments(problem, form.data, form.fleet_options, form.holdings, p)
        paid = (due.point * decided.active).sum() + (due.arc * decided.flow).sum()
        paid += due.holding @ decided.count + due.site @ decided.opened
        if decided.electricity is not None and due.meters is not None:
            paid += decided.electricity.paid(due.meters)
        if decided.lines is not None:
            paid += _paid_for_lines(decided, due, p)
        else:
            paid += total["weights"] * paid_per_present_value(problem, phase)
        found.append(float(paid + total["porting"] * (p == 0)))
    return found


def _paid_for_lines(decided: Decisions, due: Payments, p: int) -> float:
    """Add up the payments of phase `p` for rented units, and for traffic besides requests in its part of each stage."""
    lines, problem = decided.lines, decided.problem
    assert lines is not None and due.lines is not None
    seconds = stage_totals(lines.when, window_seconds_inside(problem, problem.phases[p]))
    sent = sum(sent.cost / lines.when.worth_s[sent.stage] * seconds[sent.stage] for sent in lines.sent)
    return float(due.lines.line @ lines.units + sent)
