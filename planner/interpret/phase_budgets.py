"""What is paid in each phase, from the decisions of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.formulate.lines import window_worth_s
from planner.formulate.phase_budgets import COST, as_paid, of_holdings, of_site, of_slots, of_weights, told
from planner.problem.facts import Problem

if TYPE_CHECKING:
    from planner.interpret.accounts import Accounts
    from planner.interpret.decisions import Decisions
    from planner.interpret.lines import LineDecisions


def of_lines(problem: Problem, lines: LineDecisions, p: int) -> float:
    """Units that are rented, and what is sent beside requests, stage by stage in proportion to the time of each in the phase."""
    seconds = window_worth_s(as_paid(problem, p).calendar)
    of_stage = np.bincount(lines.when.of_window, weights=seconds, minlength=len(lines.when.worth_s))
    sent = sum(sent.cost / lines.when.worth_s[sent.stage] * of_stage[sent.stage] for sent in lines.sent)
    ready = lines.form.data.lines.line_usable
    return float(
        sent
        + sum(
            units * line.unit_price_per_s * (ready[i] @ seconds)
            for i, (units, line) in enumerate(zip(lines.units, problem.lines.lines))
        )
    )


def paid_by_phase(decided: Decisions, accounts: Accounts) -> list[float]:
    """What a plan pays in each phase; empty where some payments have none."""
    problem, form = decided.problem, decided.form
    if not told(problem):
        return []
    once = [
        sum(amount for (component, *_), amount in accounts.lines.items() if component == name)
        for name in ("weights", "porting")
    ]
    found = []
    for p in range(len(problem.phases)):
        due = (of_slots(problem, p, form.data.point_cost[COST]) * decided.active).sum() + (
            of_slots(problem, p, form.data.arc_cost[COST]) * decided.flow
        ).sum()
        held = of_holdings(problem, form.fleet_options, form.holdings, p) @ decided.count
        sites = sum(of_site(problem, site, p) for site, opened in zip(problem.sites, decided.opened) if opened)
        lines = of_lines(problem, decided.lines, p) if decided.lines is not None else once[0] * of_weights(problem, p)
        found.append(float(due + held + sites + lines + once[1] * (p == 0)))
    return found
