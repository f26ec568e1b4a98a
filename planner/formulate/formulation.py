"""Program data of a problem with its candidates: costs, carbon and power per column, in the index sets of the program.

Not here: the rows and columns themselves (`solvers`), and where operating points come from (`planner.candidates.search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Floats, Ints, sum_of
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates, OperatingPoint, deployment_of
from planner.formulate.costs import (
    Arc,
    Holding,
    arc_terms,
    copy_terms,
    holding_terms,
    point_terms,
    port_terms,
    site_terms,
    slot_rates,
)
from planner.formulate.electricity import meter_arrays, meter_terms
from planner.formulate.exchange import drawn_w, exchange_data, exchange_terms, own_last
from planner.formulate.facility import facility_arrays
from planner.formulate.functionals import Functionals, functionals_of
from planner.formulate.hourly import hourly_arrays, least_costs
from planner.formulate.joint_network import joint_networks
from planner.formulate.limits import functional_limits, largest_counts, power_fields, supply_fields
from planner.formulate.lines import line_data, line_terms
from planner.formulate.parts import part_limits
from planner.formulate.porting import port_data
from planner.formulate.preemption import preemption_arrays
from planner.formulate.quality import choice_data
from planner.formulate.relays import relay_arrays, relay_terms
from planner.formulate.residency import residency_arrays
from planner.formulate.spread import spread_data
from planner.formulate.storage import storage_arrays
from planner.money.components import COPY, REPLICA, REQUEST, SITE, SYSTEM
from planner.money.terms import CARBON, COST, AnyTerms
from planner.problem.facts import ResolvedSpec
from planner.problem.lines import NO_TREE
from planner.problem.phases import terms_of
from solvers.model.block_data.choice import ChoiceData
from solvers.model.data import Objective, PlanData


@dataclass(frozen=True, slots=True)
class Formulation:
    """Input of the joint program, and the meaning of its positions."""

    data: PlanData
    fleet_options: tuple[FleetOption, ...]
    holdings: tuple[Holding, ...]
    points: tuple[OperatingPoint, ...]
    arcs: tuple[Arc, ...]
    origins: tuple[str, ...]
    arc_kinds: tuple[str, ...]  # kind of line of each arc; "" where there is no choice of lines
    standing: tuple[OperatingPoint, ...] = ()  # layouts that stand by for scenarios in which predictions fail
    terms: tuple[AnyTerms, ...] = ()  # amounts of cost, carbon and energy per unit of each decision


def formulate(problem: ResolvedSpec, candidates: Candidates, by_need: bool = False) -> Formulation:
    """Build the input of `solvers.search.joint`. Raises Unbounded where throughput is maximised and nothing limits it.

    `by_need`: bound the counts by demand and network sizes only, so that other limits can be relaxed afterwards.
    """
    calendar, fleet_options = problem.calendar, candidates.fleet_options
    choice = choice_data(problem)
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    origins = tuple(dict.fromkeys(o.region for w in problem.serving for o in w.spec.origins))
    points, point_pool, point_job = list_points(candidates, problem)
    holdings = tuple(
        (k, term) for k, option in enumerate(fleet_options) for term in terms_of(problem, option.site, option.offer)
    )
    arcs = tuple(_list_arcs(problem, candidates, site_of, origins))
    arc_kinds = tuple(kind for pool in candidates.pools for kind in pool.line_types)
    demand = _demand(problem, origins, choice)
    rates = slot_rates(problem)
    terms: tuple[AnyTerms, ...] = (
        *holding_terms(problem, fleet_options, holdings, site_of, rates),
        *point_terms(problem, points, site_of, rates),
        *exchange_terms(points, rates),
        *relay_terms(problem, points, rates),
        *arc_terms(problem, candidates, arcs, origins, arc_kinds, rates),
        *site_terms(problem, rates),
        *copy_terms(problem, rates.dates),
        *port_terms(problem, rates.dates),
        *line_terms(problem, rates),
        *meter_terms(problem, rates),
    )
    costs = functionals_of(problem, terms)
    data = PlanData(
        slot_window=calendar.window,
        slot_hours_s=calendar.seconds,
        site_fixed=costs.of(SITE, len(problem.sites)),
        point_pool=point_pool,
        point_job=point_job,
        arc_cost=costs.of(REQUEST, len(arcs), calendar.slots),
        demand=demand,
        job_work=np.array([job.spec.tokens for job in problem.training]),
        job_window_mask=np.array(
            [calendar.within(job.spec.start, job.spec.deadline) for job in problem.training]
        ).reshape(-1, calendar.slots),
        objective=_objective(problem),
        lines=line_data(problem, arcs, arc_kinds, origins, costs),
        spread=spread_data(problem, demand, choice),
        exchange=exchange_data(points, site_of),
        joint=joint_networks(fleet_options, holdings, points),
        ports=port_data(problem, points, costs),
        choice=choice,
        **_option_fields(fleet_options, site_of),
        **_holding_fields(fleet_options, holdings, costs),
        **_point_fields(fleet_options, points, calendar.slots, costs),
        **_arc_fields(arcs),
        **_tree_fields(problem, site_of, costs),
        **power_fields(problem),
        **(
            meter_arrays(problem, costs)
            | residency_arrays(problem, points)
            | relay_arrays(problem, points, costs)
            | hourly_arrays(problem, fleet_options, holdings, costs)
        ),
        **preemption_arrays(problem, points),
        **storage_arrays(problem, points),
        **facility_arrays(problem, fleet_options, holdings),
        **part_limits(problem, fleet_options, holdings),
        **supply_fields(problem, fleet_options, holdings),
    )
    limits = tuple(functional_limits(problem))
    uppers = largest_counts(problem, fleet_options, holdings, points, least_costs(data), limits, by_need)
    data = replace(data, limits=limits, holding_upper=uppers)
    return Formulation(data, fleet_options, holdings, tuple(points), arcs, origins, arc_kinds, terms=terms)


def list_points(candidates: Candidates, problem: ResolvedSpec) -> tuple[list[OperatingPoint], Ints, Ints]:
    """List all points with the pool or the job of each; the other position is -1."""
    serving = [(point, q, -1) for q, pool in enumerate(candidates.pools) for point in pool.points]
    training = [(point, -1, j) for j, job in enumerate(problem.training) for point in candidates.training[job.name]]
    listed = serving + training
    return (
        [p for p, _, _ in listed],
        np.array([q for _, q, _ in listed], dtype=np.int64),
        np.array([j for _, _, j in listed], dtype=np.int64),
    )


def _list_arcs(
    problem: ResolvedSpec, candidates: Candidates, site_of: Mapping[str, int], origins: Sequence[str]
) -> list[Arc]:
    """List an arc for every origin of every pool."""
    place = {workload.name: w for w, workload in enumerate(problem.serving)}
    return [
        (place[pool.workload.name], origins.index(origin), site_of[pool.site], q)
        for q, pool in enumerate(candidates.pools)
        for origin in pool.origins
    ]


def _option_fields(fleet_options: Sequence[FleetOption], site_of: Mapping[str, int]) -> dict[str, Any]:
    """Build the fields of fleet options: groups are systems of one kind at a site, fabrics are numbered within a group."""
    groups: dict[tuple[str, str], int] = {}
    fabrics: dict[tuple[str, str], dict[tuple[str, int | None], int]] = {}
    group, fabric = [], []
    for option in fleet_options:
        key = (option.site.region, option.system.name)
        group.append(groups.setdefault(key, len(groups)))
        known = fabrics.setdefault(key, {})
        fabric.append(known.setdefault((option.fabric, option.size), len(known)) if option.owned else -1)
    return {
        "option_site": np.array([site_of[option.site.region] for option in fleet_options], dtype=np.int64),
        "option_group": np.array(group, dtype=np.int64),
        "option_fabric": np.array(fabric, dtype=np.int64),
    }


def _holding_fields(
    fleet_options: Sequence[FleetOption], holdings: Sequence[Holding], costs: Functionals
) -> dict[str, Any]:
    """Build the fields of holdings; their largest counts follow once all costs are known."""
    options = [fleet_options[k] for k, _ in holdings]
    return {
        "holding_option": np.array([k for k, _ in holdings], dtype=np.int64),
        "holding_window": np.array([term.first for _, term in holdings], dtype=np.int64),
        "holding_last": np.array([term.last for _, term in holdings], dtype=np.int64),
        "holding_upper": np.zeros(len(holdings)),
        "holding_cost": costs.of(SYSTEM, len(holdings)),
        "holding_power_w": np.array([option.idle_at_meter_w if option.owned else 0.0 for option in options]),
    }


def _point_fields(
    fleet_options: Sequence[FleetOption], points: Sequence[OperatingPoint], slots: int, costs: Functionals
) -> dict[str, Any]:
    """Build the fields of operating points: systems used, capacity, power and costs."""
    option_of = {id(option): k for k, option in enumerate(fleet_options)}
    uses = [(p, option_of[id(use.option)], use.systems) for p, point in enumerate(points) for use in own_last(point)]
    return {
        "point_uses": np.array([(p, k) for p, k, _ in uses], dtype=np.int64).reshape(-1, 2),
        "point_deployment": _deployments(points),
        "point_uses_systems": np.array([systems for _, _, systems in uses]),
        "point_capacity": np.array([point.capacity for point in points]),
        "point_power_w": np.array(
            [
                drawn_w(point, point.site)
                if point.exchange is not None
                else sum_of(use.extra_it_w * use.option.pue for use in point.uses if use.option.owned)
                for point in points
            ]
        ),
        "point_cost": costs.of(REPLICA, len(points), slots),
    }


def _deployments(points: Sequence[OperatingPoint]) -> Ints:
    """[P]: number of the deployment of each point: points that run one workload at one site alike, however its systems are had."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(deployment_of(point), len(numbers)) for point in points], dtype=np.int64)


def _arc_fields(arcs: Sequence[Arc]) -> dict[str, Any]:
    fields = ("arc_workload", "arc_origin", "arc_site", "arc_pool")
    return {name: np.array([arc[i] for arc in arcs], dtype=np.int64) for i, name in enumerate(fields)}


def _tree_fields(problem: ResolvedSpec, site_of: Mapping[str, int], costs: Functionals) -> dict[str, Any]:
    """Build the fields of the trees along which weights reach the sites of each workload."""
    owner: list[int] = []
    above: list[tuple[int, int, int]] = []
    for w, workload in enumerate(problem.serving):
        tree, first = problem.trees.get(workload.name, NO_TREE), len(owner)
        owner += [w] * len(tree.edges)
        above += [(w, site_of[site], first + edge) for site, edges in tree.edges_above.items() for edge in edges]
    return {
        "edge_workload": np.array(owner, dtype=np.int64),
        "edge_cost": costs.of(COPY, len(owner)),
        "tree_path": np.array(above, dtype=np.int64).reshape(-1, 3),
    }


def _demand(problem: ResolvedSpec, origins: Sequence[str], choice: ChoiceData | None) -> Floats:
    """Build the demand [workload, origin, slot]; what several workloads may answer stands at the first of them."""
    demand = np.zeros((len(problem.serving), len(origins), problem.calendar.slots))
    for w, workload in enumerate(problem.serving):
        if choice is not None and choice.leads()[w] != w:
            continue
        for origin, rate in zip(workload.spec.origins, workload.requests_by_slot(problem.calendar), strict=True):
            demand[w, origins.index(origin.region)] = rate
    return demand


def _objective(problem: ResolvedSpec) -> Objective:
    """Translate the objective of the spec."""
    asked = problem.spec.objective
    if asked.maximise == "throughput":
        named = [w.asked for w in problem.serving].index(asked.workload) if asked.workload else -1
        return Objective("throughput", named)
    return Objective(CARBON if asked.minimise == "carbon" else COST)
