"""What is paid in each phase: the money of a phase's budget, as the program counts it and as the plan tells it.

Paid in a phase are, at their prices then and not discounted: the purchase price of the systems and the fabric that come in it; of
buildings, which outlive what stands in them, the annuities of its time; rent, colocation, energy, traffic, tokens, and fixed costs of
sites as they fall due, and so what lines cost; sending weights, evenly over time; porting, at the start. Electricity that is a decision
has no phase yet. The check: `planner.verify.phase_budgets`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from catalog.units import YEAR_S
from models.economics import annuity
from planner.candidates.fleet_options import FleetOption
from planner.problem.facts import PhaseFacts, Problem, SiteFacts
from planner.problem.phases import Term, window_at

if TYPE_CHECKING:
    pass

COST = "cost"


def paid_in(phase: PhaseFacts) -> str:
    """The functional that counts what is paid in a phase."""
    return f"paid in {phase.name}"


def told(problem: Problem) -> bool:
    """Whether every payment has its phase: not that of electricity where it is a decision."""
    return all(site.electricity is None for site in problem.sites)


def paid(problem: Problem, cost: ArrayLike, of: Callable[[int, np.ndarray], ArrayLike]) -> dict[str, np.ndarray]:
    """The present value of a part of a plan, and `of` (phase, present value) for each phase that has a budget, as functionals."""
    worth = np.asarray(cost, dtype=float)
    return {COST: worth} | {
        paid_in(phase): np.asarray(of(p, worth), dtype=float)
        for p, phase in enumerate(problem.phases)
        if math.isfinite(phase.budget)
    }


def inside(problem: Problem, phase: PhaseFacts) -> np.ndarray:
    """[slot] whether it lies in the phase."""
    calendar = problem.calendar
    return (calendar.window >= window_at(calendar, phase.start_s)) & (
        calendar.window < window_at(calendar, phase.end_s)
    )


def as_paid(problem: Problem, p: int) -> Problem:
    """The same with the worth of a payment 1 in phase `p` and 0 outside."""
    return replace(
        problem, calendar=replace(problem.calendar, discount=inside(problem, problem.phases[p]).astype(float))
    )


def of_holdings(
    problem: Problem, fleet_options: Sequence[FleetOption], holdings: Sequence[tuple[int, Term]], p: int
) -> np.ndarray:
    """[holding] what a system of each is paid for in phase `p`, whether it works or not."""
    calendar, money, phase = problem.calendar, problem.economics, problem.phases[p]
    here, edges = inside(problem, phase), calendar.edges_s
    building = float(annuity(1.0, money.discount_rate, money.facility_life_years))
    amount = np.zeros(len(holdings))
    for u, (k, term) in enumerate(holdings):
        option, seconds = fleet_options[k], calendar.seconds * (term.mask(calendar) & here)
        if not option.owned:
            amount[u] = term.price * seconds.sum()
            continue
        years = max(min(edges[term.last + 1], phase.end_s) - max(edges[term.first], phase.start_s), 0.0) / YEAR_S
        amount[u] = (
            (term.price + option.fabric_capital) * (term.phase == p)
            + option.facility_capital * building * years
            + option.hall_per_s * seconds.sum()
        )
        if option.site.electricity is None:
            amount[u] += option.idle_at_meter_w * float(seconds @ option.site.price_per_j[calendar.hour])
    return amount


def of_slots(problem: Problem, p: int, worth: np.ndarray) -> np.ndarray:
    """What falls due slot by slot [..., slot] at its present worth, as it is paid in phase `p`."""
    return worth / problem.calendar.discount * inside(problem, problem.phases[p])


def of_site(problem: Problem, site: SiteFacts, p: int) -> float:
    """Fixed cost of a site where anything stands, from when it is there."""
    calendar = problem.calendar
    return site.fixed_cost_per_s * float(
        calendar.seconds @ (inside(problem, problem.phases[p]) & (calendar.window >= window_at(calendar, site.from_s)))
    )


def of_weights(problem: Problem, p: int) -> float:
    """Per unit of the present value of sending weights, which goes on evenly through the horizon."""
    calendar, phase = problem.calendar, problem.phases[p]
    return (phase.end_s - phase.start_s) / float(calendar.window_seconds() @ calendar.window_discount())
