"""Choose the operating points over which replicas are made whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.interface import Options
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.model.fleet import system_prices
from solvers.search.consolidation import restricted
from solvers.search.direct import solve_direct
from solvers.search.parts import points_in_use
from solvers.solution import Solution

SAVES = 0.05  # relative saving per request from which a replica is worth its larger price

ALIKE = 0.002  # relative difference of two attempts' plans up to which no other points are tried: the rest of the gap is the bound's


def are_alike(values: Sequence[float]) -> bool:
    """Tell whether two attempts in a row found plans of nearly one value."""
    return len(values) > 1 and abs(values[0] - values[1]) <= ALIKE * max(map(abs, values))


def attempts(
    data: PlanData, few: Solution, divisible: Solution, taken: Mapping[str, Floats], options: Options
) -> Iterator[tuple[Solution, Bools]]:
    """Yield the solutions to make whole, each with the points over which: those it uses and smaller ones, then all of the same cells.

    Before them the relaxation over few deployments and the points `taken` by the slot that decides, of which whole replicas are known to be worth
    their price there.
    """
    if taken:
        kept = points_in_use(taken) | points_in_use(few.values)
        found = solve_direct(restricted(data.divisible(), kept), replace(options, progress=None))
        if found.values:
            yield found, kept
    yield few, kept_points(data, few)
    if few is not divisible:
        yield divisible, kept_points(data, divisible)
    yield few, points_of_cells(data, few)


def kept_points(data: PlanData, solution: Solution) -> Bools:
    """Return the points [P] that a solution uses, and smaller replicas for the same pools.

    Smaller ones: on the fleet options held, each point whose replica serves a request for less money than any cheaper replica; and in any
    case the cheapest replica of the pool.
    """
    kept = points_in_use(solution.values) | (solution.values["y"] > 0.5)
    held = np.zeros(len(data.option_site), dtype=bool)
    np.logical_or.at(held, data.holding_option, solution.values["n"] > 0.5)
    point, option = data.point_uses.T
    here = np.ones(len(kept), dtype=bool)
    np.logical_and.at(here, point, held[option])
    price = np.zeros(len(kept))
    np.add.at(price, point, data.point_uses_systems * system_prices(build(data.divisible()), data)[option])
    able = (data.point_pool >= 0) & (data.point_capacity > 0)
    per_request = np.divide(price, data.point_capacity, out=np.full(len(price), np.inf), where=able)
    for q in range(data.pools):
        members = np.flatnonzero(able & (data.point_pool == q))
        members = members[np.argsort(price[members], kind="stable")]
        kept[members[:1]] = True
        members = members[here[members]]
        before = np.append(np.inf, np.minimum.accumulate(per_request[members])[:-1])
        kept[members[per_request[members] < before * (1 - SAVES)]] = True
    return kept


def points_of_cells(data: PlanData, solution: Solution) -> Bools:
    """Return all points [P] of the workloads, or the jobs, at the sites at which the solution uses some."""
    workload = np.full(data.pools, -1)
    workload[data.arc_pool] = data.arc_workload
    owner = np.where(data.point_pool >= 0, workload[data.point_pool], -2 - data.point_job)
    cell = owner * (data.sites + 1) + data.point_site()
    return np.isin(cell, np.unique(cell[points_in_use(solution.values)]))
