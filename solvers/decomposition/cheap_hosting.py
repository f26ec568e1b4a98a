"""Hosting that costs next to nothing, left out of a search: a workload may then be served at any site that is open, and is placed wherever it is.

What a plan costs at least stays true without it, since hosting only ever adds; what it adds to the plan is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Floats
from solvers.model.data import PlanData
from solvers.model.routing import hosting_has_cost

CHEAP = 0.3  # of what a plan may cost too much, that all hosting there could be may cost


def without_hosting_cost(data: PlanData) -> PlanData:
    """The data without costs of placing a workload, where no limit counts them; else as they are."""
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
    """What all hosting that there could be costs by the objective."""
    name = data.objective.functional
    return sum(float(part[name].sum()) for part in (data.host_cost, data.edge_cost) if name in part)


@dataclass(frozen=True, slots=True)
class OmittedCost:
    """What hosting may cost that is left out: at most that of all sites together, and of each [R], ways that several share counted at each."""

    total: float
    by_site: Floats

    @classmethod
    def of(cls, data: PlanData) -> OmittedCost:
        return cls(max_hosting_cost(data), hosting_cost_by_site(data))

    @classmethod
    def none(cls, data: PlanData) -> OmittedCost:
        return cls(0.0, np.zeros(data.sites))


def hosting_cost_by_site(data: PlanData) -> Floats:
    """[R]: what all hosting at a site, and all on the way there, costs at most by the objective."""
    name, result = data.objective.functional, np.zeros(data.sites)
    if name in data.host_cost:
        result += data.host_cost[name].sum(axis=0)
    if name in data.edge_cost:
        _, site, on = data.tree_path.T
        np.add.at(result, site, data.edge_cost[name][on])
    return result


def place_hosting(data: PlanData, flows: Floats) -> tuple[Floats, Floats]:
    """(host [W, R], edge [E]) for flows [A, T]: 1 where placing costs something and any flow goes, and on all the way there."""
    host, edge = np.zeros((data.demand.shape[0], data.sites)), np.zeros(len(data.edge_workload))
    arcs = np.flatnonzero((flows > 0).any(axis=1))
    host[data.arc_workload[arcs], data.arc_site[arcs]] = 1.0
    host *= hosting_has_cost(data)
    workload, site, on = data.tree_path.T
    np.maximum.at(edge, on, host[workload, site])
    return host, edge
