"""Costs, carbon and energy per unit of holdings, operating points and arcs.

Payments by phase are added afterwards, for all of these in one pass: `planner.formulate.phase_budgets`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.energy.carbon import embodied_carbon_kg
from planner.candidates.fleet_options import FleetOption, charged, paid_on_delivery
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.apis import request_price
from planner.formulate.functionals import CAPITAL, CARBON, COST, capital_of
from planner.problem.electricity import idle_price_per_j
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import Term
from planner.problem.reinforcement import environments_per_s

Holding = tuple[int, Term]  # (position of the fleet option, when it is held and at what price)
Arc = tuple[int, int, int, int]  # (workload, origin, site, pool)


@dataclass(frozen=True, slots=True)
class Rates:
    """Cost and carbon of one watt at the meter of each site, drawn throughout a slot.

    They apply to our own systems only where the site's electricity is not a decision of its own.
    """

    cost_per_w: Floats  # [site, slot]
    idle_cost_per_w: Floats  # [site, slot] of our own idle systems, beside the bill of a meter
    carbon_per_w: Floats  # [site, slot]
    seconds: Floats  # [slot]
    metered: Bools  # [site] whether electricity is a decision there

    def settled_w(self, owned_w: Floats, every_w: Floats, site: Ints) -> tuple[Floats, Floats]:
        """Return (watts charged at the hour's price, watts counted at the hour's carbon and energy).

        Where electricity is a decision, our own systems (`owned_w` of `every_w`) are left out of both.
        """
        metered = self.metered[site]
        return np.where(metered, 0.0, owned_w), np.where(metered, every_w - owned_w, every_w)


def slot_rates(problem: ResolvedSpec) -> Rates:
    """Compute cost and carbon of one watt for every site and slot."""
    calendar = problem.calendar
    price = np.array([site.price_per_j[calendar.hour] for site in problem.sites])
    carbon = np.array([site.carbon_kg_per_j[calendar.hour] for site in problem.sites])
    metered = np.array([site.electricity is not None for site in problem.sites])
    idle = np.array([idle_price_per_j(mine, bool(billed)) for mine, billed in zip(price, metered, strict=True)])
    worth = calendar.seconds * calendar.discount
    return Rates(price * worth, idle * worth, carbon * calendar.seconds, calendar.seconds, metered)


def holding_costs(
    problem: ResolvedSpec,
    fleet_options: Sequence[FleetOption],
    holdings: Sequence[Holding],
    site_of: Mapping[str, int],
    rates: Rates,
) -> dict[str, Floats]:
    """Compute the cost of holding one system, idle or not: capital or rent, building, and idle energy, by functional."""
    calendar, money = problem.calendar, problem.economics
    limited = {p: capital_of(phase) for p, phase in enumerate(problem.phases) if math.isfinite(phase.capital)}
    result = {name: np.zeros(len(holdings)) for name in (COST, CARBON, CAPITAL, *limited.values())}
    for u, (k, term) in enumerate(holdings):
        option = fleet_options[k]
        held = term.mask(calendar)
        idle_w, r = option.idle_at_meter_w, site_of[option.site.region]
        seconds = calendar.seconds[held]
        capital = paid_on_delivery(money, term, option)
        cost = charged(option, term)
        cost += (option.hall_per_s if option.owned else term.price) * float(seconds @ calendar.discount[held])
        cost += term.price * term.owed_worth_s
        charged_w = idle_w if option.owned else 0.0
        _, counted_w = rates.settled_w(np.array(charged_w), np.array(idle_w), np.array(r))
        result[COST][u] = cost + charged_w * rates.idle_cost_per_w[r, held].sum()
        embodied_kg = embodied_carbon_kg(option.system.embodied_kg, seconds.sum(), option.offer.life_s(money))
        result[CARBON][u] = counted_w * rates.carbon_per_w[r, held].sum() + embodied_kg
        result[CAPITAL][u] = capital
        if term.phase in limited:
            result[limited[term.phase]][u] = capital
    return result


def point_costs(
    problem: ResolvedSpec, points: Sequence[OperatingPoint], site_of: Mapping[str, int], rates: Rates
) -> dict[str, Floats]:
    """Compute the cost that one active replica adds in each slot: energy above idle, which the owner pays for rented systems, and the
    environment slots of reinforcement."""
    sites = np.array([site_of[point.site] for point in points], dtype=np.int64)
    own = np.array([sum(u.extra_it_w * u.option.site.pue for u in point.uses if u.option.owned) for point in points])
    every = np.array([sum(u.extra_it_w * u.option.site.pue for u in point.uses) for point in points])
    charged, counted = rates.settled_w(own, every, sites)
    slots = np.array([environments_per_s(point.workload) for point in points])
    worth = rates.seconds * problem.calendar.discount
    return {
        COST: charged[:, None] * rates.cost_per_w[sites] + slots[:, None] * worth,
        CARBON: counted[:, None] * rates.carbon_per_w[sites],
    }


def arc_costs(
    problem: ResolvedSpec, candidates: Candidates, arcs: Sequence[Arc], origins: Sequence[str], arc_kinds: Sequence[str]
) -> dict[str, Floats]:
    """Compute the cost over each slot of one request per second on each arc: traffic, and tokens bought from an API."""
    weight = problem.calendar.seconds * problem.calendar.discount
    result = np.zeros((len(arcs), problem.calendar.slots))
    for a, (w, o, r, q) in enumerate(arcs):
        path = problem.routes(problem.serving[w].name, origins[o], candidates.pools[q].site)[arc_kinds[a]]
        result[a] = weight * (
            problem.egress_bytes(problem.serving[w]) * path.price_per_byte
            + request_price(problem.sites[r], problem.serving[w], problem.calendar)
        )
    return {COST: result}
