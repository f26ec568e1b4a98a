"""From candidates to the arrays of the joint program: costs, carbon and power per column, in the program's index sets.

Not here: the rows and columns themselves (`solvers`), and how points came about (`planner.candidates.search`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates, Point
from planner.formulate.apis import request_price
from planner.formulate.electricity import meter_arrays
from planner.formulate.lines import line_data
from planner.formulate.phase_budgets import as_paid, of_holdings, of_site, of_slots, of_weights, paid, paid_in
from planner.formulate.porting import port_data
from planner.formulate.preemption import preemption_arrays
from planner.formulate.quality import choice_data
from planner.formulate.spread import spread_data
from planner.formulate.storage import storage_arrays
from planner.problem.facts import NO_TREE, PhaseFacts, Problem, TrainingFacts
from planner.problem.phases import Term, power_limits, supplies, terms_of, worth_from
from solvers.model.choice_data import ChoiceData
from solvers.model.data import Limit, Objective, PlanData, PowerStages
from solvers.model.line_data import LineData

COST, CARBON, ENERGY, CAPITAL = "cost", "carbon_kg", "energy_j", "capital"


UNBOUNDED = "objective.maximise: nothing limits the throughput; give a budget, a power for every site, or a supply for every offer"


class Unbounded(Exception):
    """Nothing in the spec limits the objective."""


@dataclass(frozen=True, slots=True)
class Formulation:
    """The program's input and the meaning of its positions."""

    data: PlanData
    fleet_options: tuple[FleetOption, ...]
    holdings: tuple[tuple[int, Term], ...]  # (fleet option, when and at what price)
    points: tuple[Point, ...]
    arcs: tuple[tuple[int, int, int, int], ...]  # (workload, origin, site, pool)
    origins: tuple[str, ...]
    arc_kinds: tuple[str, ...]  # line of each arc; no kind where there is no choice, or no way to go


@dataclass(frozen=True, slots=True)
class Rates:
    """Per slot: what one watt at the meter of each site costs and emits over the slot's whole time.

    Where a site's electricity is a decision of its own, its price and carbon are not those of its systems.
    """

    cost_per_w: np.ndarray  # [site, slot]
    carbon_per_w: np.ndarray
    seconds: np.ndarray  # [slot]
    metered: np.ndarray  # [site] whether electricity is a decision there

    def settled_w(self, owned_w: np.ndarray, every_w: np.ndarray, site: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(watts whose cost, watts whose carbon and energy is settled by price and carbon of the hour): all but a meter's."""
        metered = self.metered[site]
        return np.where(metered, 0.0, owned_w), np.where(metered, every_w - owned_w, every_w)


def slot_rates(problem: Problem) -> Rates:
    calendar = problem.calendar
    price = np.array([site.price_per_j[calendar.hour] for site in problem.sites])
    carbon = np.array([site.carbon_kg_per_j[calendar.hour] for site in problem.sites])
    metered = np.array([site.electricity is not None for site in problem.sites])
    return Rates(price * calendar.seconds * calendar.discount, carbon * calendar.seconds, calendar.seconds, metered)


def formulate(problem: Problem, candidates: Candidates, by_need: bool = False) -> Formulation:
    """Arrays for `solvers.joint`. Raises Unbounded when a most-throughput question has no limit at all.

    `by_need`: counts are bounded by the demand and the networks only, so that other limits may be loosened afterwards.
    """
    calendar, fleet_options = problem.calendar, candidates.fleet_options
    rates = slot_rates(problem)
    site_of = {site.region: i for i, site in enumerate(problem.sites)}
    option_of = {id(option): k for k, option in enumerate(fleet_options)}
    origins = tuple(dict.fromkeys(o.region for w in problem.serving for o in w.spec.origins))
    points, point_pool, point_job = _list_points(candidates, problem)
    holdings = tuple(
        (k, term) for k, option in enumerate(fleet_options) for term in terms_of(problem, option.site, option.offer)
    )
    limits = tuple(_limits(problem))
    place = {workload.name: w for w, workload in enumerate(problem.serving)}
    arcs = tuple(
        (place[pool.workload.name], origins.index(origin), site_of[pool.site], q)
        for q, pool in enumerate(candidates.pools)
        for origin in pool.origins
    )
    arc_kinds = tuple(kind for pool in candidates.pools for kind in pool.kinds)
    uses = [(p, option_of[id(use.option)], use.systems) for p, point in enumerate(points) for use in point.uses]
    objective = _objective(problem)
    holding_cost = _holding_costs(problem, fleet_options, holdings, site_of, rates)
    groups: dict[tuple[str, str], int] = {}
    choice = choice_data(problem)
    demand = _demand(problem, origins, choice)
    data = PlanData(
        slot_window=calendar.window,
        slot_hours_s=calendar.seconds,
        site_fixed=paid(
            problem,
            [site.fixed_cost_per_s * worth_from(calendar, site) for site in problem.sites],
            lambda p, _: [of_site(problem, site, p) for site in problem.sites],
        ),
        option_site=np.array([site_of[option.site.region] for option in fleet_options], dtype=np.int64),
        option_group=np.array(
            [groups.setdefault((option.site.region, option.system.name), len(groups)) for option in fleet_options],
            dtype=np.int64,
        ),
        option_fabric=_fabric_numbers(fleet_options),
        holding_option=np.array([k for k, _ in holdings], dtype=np.int64),
        holding_window=np.array([term.first for _, term in holdings], dtype=np.int64),
        holding_last=np.array([term.last for _, term in holdings], dtype=np.int64),
        holding_upper=_uppers(problem, fleet_options, holdings, points, holding_cost, objective, limits, by_need),
        holding_cost=holding_cost,
        holding_power_w=np.array(
            [fleet_options[k].idle_at_meter_w if fleet_options[k].owned else 0.0 for k, _ in holdings]
        ),
        point_pool=point_pool,
        point_job=point_job,
        point_uses=np.array([(p, k) for p, k, _ in uses], dtype=np.int64).reshape(-1, 2),
        point_uses_systems=np.array([systems for _, _, systems in uses]),
        point_capacity=np.array([point.capacity for point in points]),
        point_power_w=np.array(
            [sum(use.extra_it_w * use.option.site.pue for use in point.uses if use.option.owned) for point in points]
        ),
        point_cost=_point_costs(problem, points, site_of, rates),
        arc_workload=np.array([a[0] for a in arcs], dtype=np.int64),
        arc_origin=np.array([a[1] for a in arcs], dtype=np.int64),
        arc_site=np.array([a[2] for a in arcs], dtype=np.int64),
        arc_pool=np.array([a[3] for a in arcs], dtype=np.int64),
        arc_cost=paid(
            problem,
            _egress(problem, candidates, arcs, origins, arc_kinds),
            lambda p, worth: of_slots(problem, p, worth),
        ),
        demand=demand,
        job_work=np.array([job.spec.tokens for job in problem.training]),
        job_window_mask=np.array(
            [calendar.within(job.spec.start, job.spec.deadline) for job in problem.training]
        ).reshape(-1, calendar.slots),
        limits=limits,
        objective=objective,
        lines=_lines(problem, arcs, arc_kinds, origins),
        spread=spread_data(problem, demand),
        ports=port_data(problem, points),
        choice=choice,
        **_power(problem),
        **meter_arrays(problem),
        **preemption_arrays(problem, points),
        **storage_arrays(problem, points),
        **_supplies(problem, fleet_options, holdings),
        **_trees(problem, site_of),
    )
    return Formulation(data, fleet_options, holdings, tuple(points), arcs, origins, arc_kinds)


def _list_points(candidates: Candidates, problem: Problem) -> tuple[list[Point], np.ndarray, np.ndarray]:
    serving = [(point, q, -1) for q, pool in enumerate(candidates.pools) for point in pool.points]
    training = [(point, -1, j) for j, job in enumerate(problem.training) for point in candidates.training[job.name]]
    listed = serving + training
    return (
        [p for p, _, _ in listed],
        np.array([q for _, q, _ in listed], dtype=np.int64),
        np.array([j for _, _, j in listed], dtype=np.int64),
    )


def _fabric_numbers(fleet_options: Iterable[FleetOption]) -> np.ndarray:
    numbers: dict[tuple[str, str], dict[tuple[str, int | None], int]] = {}
    result = []
    for option in fleet_options:
        known = numbers.setdefault((option.site.region, option.system.name), {})
        result.append(known.setdefault((option.fabric, option.size), len(known)) if option.owned else -1)
    return np.array(result, dtype=np.int64)


def _holding_costs(problem: Problem, fleet_options, holdings, site_of, rates: Rates) -> dict[str, np.ndarray]:
    """What holding one system costs whether it works or not: capital or rent, building, and idle energy."""
    calendar, money = problem.calendar, problem.economics
    limited = {p: capital_of(phase) for p, phase in enumerate(problem.phases) if math.isfinite(phase.capital)}
    result = paid(problem, np.zeros(len(holdings)), lambda p, _: of_holdings(problem, fleet_options, holdings, p))
    result |= {name: np.zeros(len(holdings)) for name in (CARBON, ENERGY, CAPITAL, *limited.values())}
    for u, (k, term) in enumerate(holdings):
        option = fleet_options[k]
        held = term.mask(calendar)
        idle_w, r = option.idle_at_meter_w, site_of[option.site.region]
        seconds = calendar.seconds[held]
        capital = term.price + option.fabric_capital if option.owned else 0.0
        cost = capital * term.share + option.facility_capital * term.facility_share
        cost += (option.hall_per_s if option.owned else term.price) * float(seconds @ calendar.discount[held])
        paid_w, counted_w = rates.settled_w(idle_w if option.owned else 0.0, idle_w, r)
        cost += paid_w * rates.cost_per_w[r, held].sum()
        result[COST][u] = cost
        result[CARBON][u] = counted_w * rates.carbon_per_w[
            r, held
        ].sum() + option.system.embodied_kg * seconds.sum() / option.offer.life_s(money)
        result[ENERGY][u] = counted_w * seconds.sum()
        result[CAPITAL][u] = capital
        if term.phase in limited:
            result[limited[term.phase]][u] = capital
    return result


def _point_costs(problem: Problem, points, site_of, rates: Rates) -> dict[str, np.ndarray]:
    """What running one replica adds in each slot: energy above idle; the landlord pays it for rented systems."""
    sites = np.array([site_of[point.site] for point in points], dtype=np.int64)
    own = np.array([sum(u.extra_it_w * u.option.site.pue for u in point.uses if u.option.owned) for point in points])
    every = np.array([sum(u.extra_it_w * u.option.site.pue for u in point.uses) for point in points])
    charged, counted = rates.settled_w(own, every, sites)
    return paid(problem, charged[:, None] * rates.cost_per_w[sites], lambda p, worth: of_slots(problem, p, worth)) | {
        CARBON: counted[:, None] * rates.carbon_per_w[sites],
        ENERGY: counted[:, None] * rates.seconds,
    }


def _egress(problem: Problem, candidates: Candidates, arcs, origins, arc_kinds) -> np.ndarray:
    """Cost over the slot of one request per second on each arc: traffic, and tokens that are bought."""
    weight = problem.calendar.seconds * problem.calendar.discount
    result = np.zeros((len(arcs), problem.calendar.slots))
    for a, (w, o, r, q) in enumerate(arcs):
        path = problem.routes(problem.serving[w].name, origins[o], candidates.pools[q].site)[arc_kinds[a]]
        result[a] = weight * (
            problem.egress_bytes(problem.serving[w]) * path.price_per_byte
            + request_price(problem.sites[r], problem.serving[w], problem.calendar)
        )
    return result


def _demand(problem: Problem, origins, choice: ChoiceData | None) -> np.ndarray:
    """[workload, origin, slot]; what several may answer stands at the first of them."""
    demand = np.zeros((len(problem.serving), len(origins), problem.calendar.slots))
    for w, workload in enumerate(problem.serving):
        if choice is not None and choice.leads()[w] != w:
            continue
        for origin, rate in zip(workload.spec.origins, workload.requests_by_slot(problem.calendar), strict=True):
            demand[w, origins.index(origin.region)] = rate
    return demand


def _lines(problem: Problem, arcs, arc_kinds, origins) -> LineData | None:
    found = line_data(problem, arcs, arc_kinds, origins)
    if found is None or not any(math.isfinite(phase.budget) for phase in problem.phases):
        return found
    due = [line_data(as_paid(problem, p), arcs, arc_kinds, origins) for p in range(len(problem.phases))]
    parts = ("line_cost", "way_cost", "send_cost")
    return replace(
        found,
        **{
            part: paid(problem, getattr(found, part)[COST], lambda p, _, part=part: getattr(due[p], part)[COST])
            for part in parts
        },
    )


def _power(problem: Problem) -> dict[str, Any]:
    """Limits on power: of sites throughout, and of those where it changes by stretches of windows."""
    found = power_limits(problem)
    steady, staged = np.full(len(problem.sites), np.inf), [limit for limit in found if limit.windows is not None]
    for limit in found:
        if limit.windows is None:
            steady[limit.site] = limit.most_w
    if not staged:
        return {"site_power_limit_w": steady}
    windows = np.array([limit.windows for limit in staged], dtype=np.int64)
    site, most = (
        np.array([limit.site for limit in staged], dtype=np.int64),
        np.array([limit.most_w for limit in staged]),
    )
    return {
        "site_power_limit_w": steady,
        "power_stages": PowerStages(site=site, first=windows[:, 0], last=windows[:, 1], limit_w=most),
    }


def _supplies(problem: Problem, fleet_options, holdings) -> dict[str, np.ndarray]:
    limited = supplies(problem)
    members = [
        (s, u)
        for s, supply in enumerate(limited)
        for u, (k, term) in enumerate(holdings)
        if fleet_options[k].offer is supply.offer and supply.phase in (None, term.phase)
    ]
    # systems of one kind bought in several ways or phases stand on one network together
    shared: dict[tuple[str, str, str, int | None], list[int]] = {}
    for u, (k, _) in enumerate(holdings):
        if fleet_options[k].plant is not None:
            shared.setdefault(
                (
                    fleet_options[k].site.region,
                    fleet_options[k].system.name,
                    fleet_options[k].fabric,
                    fleet_options[k].size,
                ),
                [],
            ).append(u)
    together = [held for held in shared.values() if len(held) > 1]
    members += [(len(limited) + i, u) for i, held in enumerate(together) for u in held]
    return {
        "supply_limit": np.array(
            [*(supply.most for supply in limited), *(fleet_options[holdings[held[0]][0]].largest for held in together)]
        ),
        "supply_member": np.array(members, dtype=np.int64).reshape(-1, 2),
    }


def _trees(problem: Problem, site_of) -> dict:
    owner, cost, above = [], [], []
    for w, workload in enumerate(problem.serving):
        tree, first = problem.trees.get(workload.name, NO_TREE), len(owner)
        owner += [w] * len(tree.edges)
        cost += tree.edge_cost
        above += [(w, site_of[site], first + edge) for site, edges in tree.edges_above.items() for edge in edges]
    return {
        "edge_workload": np.array(owner, dtype=np.int64),
        "edge_cost": paid(problem, np.array(cost, dtype=float), lambda p, worth: worth * of_weights(problem, p)),
        "tree_path": np.array(above, dtype=np.int64).reshape(-1, 3),
    }


def _limits(problem: Problem) -> Iterable[Limit]:
    for path, functional, upper in (
        ("limits.budget", COST, problem.budget),
        ("limits.capital", CAPITAL, problem.capital),
        ("limits.carbon", CARBON, problem.carbon_kg),
    ):
        if math.isfinite(upper):
            yield Limit(path, functional, upper)
    for phase in problem.phases:
        if math.isfinite(phase.capital):
            yield Limit(f"{phase.path}.capital", capital_of(phase), phase.capital)
        if math.isfinite(phase.budget):
            yield Limit(f"{phase.path}.budget", paid_in(phase), phase.budget)


def capital_of(phase: PhaseFacts) -> str:
    """The functional that counts what is bought in a phase."""
    return f"{CAPITAL} of {phase.name}"


def _objective(problem: Problem) -> Objective:
    asked = problem.spec.objective
    if asked.maximise == "throughput":
        named = [w.asked for w in problem.serving].index(asked.workload) if asked.workload else -1
        return Objective("throughput", named)
    return Objective({"cost": COST, "carbon": CARBON}[asked.minimise])


def _uppers(
    problem: Problem,
    fleet_options,
    holdings,
    points,
    holding_cost,
    objective: Objective,
    limits: Sequence[Limit],
    by_need: bool,
) -> np.ndarray:
    """Largest useful count of each holding: physics and money (unless `by_need`), else what would carry the whole demand alone."""
    need = np.zeros(len(fleet_options))
    option_of = {id(option): k for k, option in enumerate(fleet_options)}
    per_request: dict[tuple[int, str], float] = {}
    for point in points:
        systems_of: dict[int, float] = {}
        for use in point.uses:  # both pools of a point may stand on one fleet option
            k = option_of[id(use.option)]
            systems_of[k] = systems_of.get(k, 0.0) + use.systems
        for k, systems in systems_of.items():
            if isinstance(point.workload, TrainingFacts):
                need[k] += systems
            else:
                key = (k, point.workload.asked)
                per_request[key] = max(per_request.get(key, 0.0), systems / point.capacity)
    peaks = {workload.asked: workload.peak_requests_per_s for workload in problem.serving}
    for (k, name), systems in per_request.items():
        peak = peaks[name]
        need[k] += systems * peak if not objective.maximises else (math.inf if peak > 0 else 0.0)
    result = np.zeros(len(holdings))
    for u, (k, term) in enumerate(holdings):
        option = fleet_options[k]
        draw = option.idle_at_meter_w if option.owned else 0.0
        needed = [math.ceil(need[k]) if math.isfinite(need[k]) else math.inf, option.largest]
        ceilings = needed if by_need else [
            *needed,
            option.offer.supply,
            option.offer.phase_supply[term.phase] if option.offer.phase_supply else math.inf,
            option.site.power_limit_w / draw if draw else math.inf,
            *(limit.upper / holding_cost[limit.functional][u] for limit in limits if holding_cost[limit.functional][u] > 0),
        ]  # fmt: skip
        result[u] = math.floor(min(ceilings)) if math.isfinite(min(ceilings)) else math.inf
    if not np.isfinite(result).all():
        raise Unbounded
    return result
