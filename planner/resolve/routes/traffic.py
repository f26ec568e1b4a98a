"""Resolve how requests and weights travel: best paths and distribution trees at a price per byte, or the lines on offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from catalog.units import YEAR_S
from planner.problem.calendar import Calendar
from planner.problem.facts import ServingFacts, SiteFacts, TrainingFacts, permitted
from planner.problem.lines import LineNetwork, PathFacts, TreeFacts
from planner.resolve import apis
from planner.resolve.context import ResolveContext
from planner.resolve.routes import wan
from planner.resolve.routes.lines import Offered, jobs_across, line_network


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes between regions: `paths` by (workload, origin, site) and `trees` by workload, or `lines` where the program chooses."""

    paths: Mapping[tuple[str, str, str], PathFacts] = field(default_factory=dict)
    trees: Mapping[str, TreeFacts] = field(default_factory=dict)
    lines: LineNetwork | None = None


def resolve_routes(
    context: ResolveContext,
    sites: Sequence[SiteFacts],
    serving: Sequence[ServingFacts],
    training: Sequence[TrainingFacts],
    calendar: Calendar,
    offered: Sequence[Offered] | None,
) -> Routes:
    """Find the routes of all traffic between origins, sites and the sources of weights."""
    from solvers.wan_graph import distribution_tree, wan_graph  # networkx is slow to import

    regions = sorted(
        {site.place for site in sites}
        | {origin.region for workload in serving for origin in workload.spec.origins}
        | {workload.weights_from for workload in serving}
    )
    edges = wan.edges_between(context, regions)
    if offered is not None:
        return Routes(lines=line_network(offered, edges, sites, serving, jobs_across(training), context.ledger))
    graph = wan_graph(edges)
    paths: dict[tuple[str, str, str], PathFacts] = {}
    trees: dict[str, TreeFacts] = {}
    worth_years = float((calendar.window_seconds() / YEAR_S * calendar.window_discount()).sum())
    for workload in serving:
        allowed = [site.region for site in sites if site.api is None and permitted(workload, site)]
        reached = list(dict.fromkeys(site.place for site in sites if permitted(workload, site)))
        origins = [origin.region for origin in workload.spec.origins]
        within = None if workload.spec.residency is None else frozenset((*reached, *origins))
        found = wan.best_paths(graph, origins, reached, partial(_may_cross, within))
        paths |= {(workload.name, origin, site): path for (origin, site), path in found.items() if site in allowed}
        paths |= apis.api_paths(workload, found, sites)
        tree = distribution_tree(graph, workload.weights_from, allowed, weight="price_per_byte")
        bytes_sent = workload.weights_bytes * workload.spec.weight_updates_per_year * worth_years
        trees[workload.name] = TreeFacts(
            edges=tuple(tree.edges),
            edge_cost=tuple(bytes_sent * graph.edges[edge]["price_per_byte"] for edge in tree.edges),
            edges_above=tree.edges_above,
        )
    return Routes(paths, trees)


def _may_cross(within: frozenset[str] | None, region: str) -> bool:
    """Tell whether traffic may pass through a region; `within`: the regions that residency allows, None without a rule."""
    return within is None or region in within
