"""Leave hosting costs out of the search where they are negligible, and add them to the plan afterwards.

Without them a workload may be served at any open site, and is hosted wherever it is served. The bound stays valid, since hosting can
only add cost; what it adds to the plan is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Floats
from solvers.model.data import PlanData
from solvers.model.routing import hosting_has_cost

MAX_SHARE_OF_GAP = 0.3  # total hosting cost that may be left out, as a share of the asked absolute gap


def without_hosting_cost(data: PlanData) -> PlanData:
    """Remove the costs of hosting workloads; return the data unchanged where a limit counts them or there are lines."""
    names = set(data.host_cost) | set(data.edge_cost)
    if (
        data.lines is not None
        or not hosting_has_cost(data).any()
        or any(limit.functional in names for limit in data.limits)
    ):
        return data
    none = np.zeros(0, dtype=np.int64)
    return replace(data, host_cost={}, edge_workload=none, edge_cost={}, tree_path=none.reshape(0, 3))


def max_hosting_cost(data: PlanData) -> float:
    """Sum the objective costs of all possible hosting: an upper bound on what any plan pays for it."""
    name = data.objective.functional
    return math.fsum(float(part[name].sum()) for part in (data.host_cost, data.edge_cost) if name in part)


@dataclass(frozen=True, slots=True)
class OmittedCost:
    """Upper bounds on the hosting costs left out of the search.

    `total`: over all sites; `by_site` [R]: of each site, where paths that several sites share count at each of them."""

    total: float
    by_site: Floats

    @classmethod
    def of(cls, data: PlanData) -> OmittedCost:
        """Bound the hosting costs of these data."""
        return cls(max_hosting_cost(data), hosting_cost_by_site(data))

    @classmethod
    def none(cls, data: PlanData) -> OmittedCost:
        """State that nothing was left out."""
        return cls(0.0, np.zeros(data.sites))


def hosting_cost_by_site(data: PlanData) -> Floats:
    """Sum the objective costs of all hosting at each site [R] and on the paths to it."""
    name, result = data.objective.functional, np.zeros(data.sites)
    if name in data.host_cost:
        result += data.host_cost[name].sum(axis=0)
    if name in data.edge_cost:
        _, site, on = data.tree_path.T
        np.add.at(result, site, data.edge_cost[name][on])
    return result


def place_hosting(data: PlanData, flows: Floats) -> tuple[Floats, Floats]:
    """Derive (host [W, R], edge [E]) from flows [A, T]: 1 where hosting has a cost and flow arrives, and on the path there."""
    host, edge = np.zeros((data.demand.shape[0], data.sites)), np.zeros(len(data.edge_workload))
    arcs = np.flatnonzero((flows > 0).any(axis=1))
    host[data.arc_workload[arcs], data.arc_site[arcs]] = 1.0
    host *= hosting_has_cost(data)
    workload, site, on = data.tree_path.T
    np.maximum.at(edge, on, host[workload, site])
    return host, edge
