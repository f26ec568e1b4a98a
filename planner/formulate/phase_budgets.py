"""Payments by phase of each column of the joint program, added in one pass over the finished data.

A phase pays, at the prices of its time and not discounted:
- the purchase price of the systems and the fabric that are delivered in it,
- the spare parts that are bought with the systems,
- maintenance, staff and software of what is bought for its years,
- of buildings, which outlast the systems in them, the annuities of its years,
- rent, what is owed on leaving a commitment, colocation, energy, traffic, tokens of APIs, fixed costs of sites and rented lines as they fall due,
- updates of weights, which are sent evenly over the horizon, in proportion to its length,
- porting, in the first phase only,
- where electricity is a decision: purchases, contracts and demand charges as they fall due, batteries when they are bought.

Not here: the check (`planner.verify.phase_budgets`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Bools, Floats
from models.economics import annuity
from planner.candidates.fleet_options import FleetOption, paid_on_delivery
from planner.formulate.costs import Holding
from planner.formulate.electricity import MeterPayments, meter_payments
from planner.formulate.functionals import COST, paid_in
from planner.formulate.lines import LineCosts, line_costs
from planner.problem.electricity import idle_price_per_j
from planner.problem.facts import PhaseFacts, ResolvedSpec
from planner.problem.phases import window_at
from solvers.model.data import PlanData


@dataclass(frozen=True, slots=True)
class Payments:
    """Payments for one unit of each decision in one phase, in the spec's currency; index sets as in `PlanData`."""

    site: Floats  # [R]
    holding: Floats  # [U]
    point: Floats  # [P, T]
    arc: Floats  # [A, T]
    edge: Floats  # [E]
    port: Floats  # [G]; empty where nothing is to be ported
    lines: LineCosts | None  # None where lines are no decision
    meters: MeterPayments | None  # None where electricity is no decision


def with_phase_budgets(
    problem: ResolvedSpec, data: PlanData, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding]
) -> PlanData:
    """Add to finished data one functional for each phase that has a budget: `paid_in` of the phase."""
    due = {
        paid_in(phase): payments(problem, data, fleet_options, holdings, p)
        for p, phase in enumerate(problem.phases)
        if math.isfinite(phase.budget)
    }
    if not due:
        return data

    def extended(costs: Mapping[str, Floats], part: Callable[[Payments], Floats]) -> dict[str, Floats]:
        return {**costs, **{name: part(paid) for name, paid in due.items()}}

    def of_lines(costs: Mapping[str, Floats], part: Callable[[LineCosts], Floats]) -> dict[str, Floats]:
        return {**costs, **{name: part(paid.lines) for name, paid in due.items() if paid.lines is not None}}

    def of_meters(costs: Mapping[str, Floats], part: Callable[[MeterPayments], Floats]) -> dict[str, Floats]:
        return {**costs, **{name: part(paid.meters) for name, paid in due.items() if paid.meters is not None}}

    ports, lines, meters = data.ports, data.lines, data.meters
    return replace(
        data,
        site_fixed=extended(data.site_fixed, lambda paid: paid.site),
        holding_cost=extended(data.holding_cost, lambda paid: paid.holding),
        point_cost=extended(data.point_cost, lambda paid: paid.point),
        arc_cost=extended(data.arc_cost, lambda paid: paid.arc),
        edge_cost=extended(data.edge_cost, lambda paid: paid.edge),
        ports=None if ports is None else replace(ports, cost=extended(ports.cost, lambda paid: paid.port)),
        lines=None
        if lines is None
        else replace(
            lines,
            line_cost=of_lines(lines.line_cost, lambda costs: costs.line),
            way_cost=of_lines(lines.way_cost, lambda costs: costs.way),
            send_cost=of_lines(lines.send_cost, lambda costs: costs.send),
        ),
        meters=None
        if meters is None
        else replace(
            meters,
            grid_cost=of_meters(meters.grid_cost, lambda costs: costs.grid),
            peak_cost=of_meters(meters.peak_cost, lambda costs: costs.peak),
            contract_cost=of_meters(meters.contract_cost, lambda costs: costs.contract),
            taken_cost=of_meters(meters.taken_cost, lambda costs: costs.taken),
            battery_energy_cost=of_meters(meters.battery_energy_cost, lambda costs: costs.battery_j),
            battery_power_cost=of_meters(meters.battery_power_cost, lambda costs: costs.battery_w),
        ),
    )


def payments(
    problem: ResolvedSpec, data: PlanData, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding], p: int
) -> Payments:
    """Compute the payments of phase `p` per unit of each decision; `data` holds their present values as COST."""
    calendar, phase = problem.calendar, problem.phases[p]
    inside = slots_inside(problem, phase)
    return Payments(
        site=np.array(
            [
                site.fixed_cost_per_s
                * float(calendar.seconds @ (inside & (calendar.window >= window_at(calendar, site.from_s))))
                for site in problem.sites
            ],
            dtype=float,
        ),
        holding=_holding_payments(problem, fleet_options, holdings, p, inside),
        point=data.point_cost[COST] / calendar.discount * inside,
        arc=data.arc_cost[COST] / calendar.discount * inside,
        edge=data.edge_cost[COST] * paid_per_present_value(problem, phase),
        port=np.zeros(0) if data.ports is None else data.ports.cost[COST] * (p == 0),
        lines=None if data.lines is None else line_costs(problem, window_seconds_inside(problem, phase)),
        meters=None if data.meters is None else meter_payments(problem, phase, inside),
    )


def slots_inside(problem: ResolvedSpec, phase: PhaseFacts) -> Bools:
    """Mark the slots [T] whose window lies in the phase."""
    calendar = problem.calendar
    first, end = window_at(calendar, phase.start_s), window_at(calendar, phase.end_s)
    return (calendar.window >= first) & (calendar.window < end)


def window_seconds_inside(problem: ResolvedSpec, phase: PhaseFacts) -> Floats:
    """Sum the seconds of each window [V] that lie in the phase."""
    calendar = problem.calendar
    weights = calendar.seconds * slots_inside(problem, phase)
    return np.bincount(calendar.window, weights=weights, minlength=calendar.windows).astype(np.float64)


def paid_per_present_value(problem: ResolvedSpec, phase: PhaseFacts) -> float:
    """Compute the payment in a phase per unit of present value, for payments spread evenly over the horizon."""
    calendar = problem.calendar
    return (phase.end_s - phase.start_s) / float(calendar.window_seconds() @ calendar.window_discount())


def _holding_payments(
    problem: ResolvedSpec, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding], p: int, inside: Bools
) -> Floats:
    """Compute the payment for one system of each holding [U] in phase `p`, idle or not."""
    calendar, money, phase = problem.calendar, problem.economics, problem.phases[p]
    edges, amount = calendar.edges_s, np.zeros(len(holdings))
    prices = {
        site.region: idle_price_per_j(site.price_per_j, site.electricity is not None) for site in problem.sites
    }  # of this calendar: options may be held from another
    building = float(annuity(1.0, money.discount_rate, money.facility_life_years))
    for u, (k, term) in enumerate(holdings):
        option, seconds = fleet_options[k], calendar.seconds * (term.mask(calendar) & inside)
        if not option.owned:
            left_in_it = edges[term.last + 1] > phase.start_s and edges[term.last] < phase.end_s
            amount[u] = term.price * (seconds.sum() + (term.owed_s if left_in_it else 0.0))
            continue
        years = max(min(edges[term.last + 1], phase.end_s) - max(edges[term.first], phase.start_s), 0.0) / YEAR_S
        amount[u] = (
            paid_on_delivery(money, term, option) * (term.phase == p)
            + (term.price + option.fabric_capital) * money.maintenance * years
            + (option.facility_capital * building + option.staff_per_year + option.software_per_year) * years
            + option.hall_per_s * seconds.sum()
        )
        amount[u] += option.idle_at_meter_w * float(seconds @ prices[option.site.region][calendar.hour])
    return amount
