"""Drop dominated serving points from the program, which does not change its optimum.

Points of one pool that use the same fleet options, and that the same payments enable, differ only in what a request/s takes of shared
quantities: systems of those fleet options, power, and the functionals that are minimised or limited. Where replicas are divisible, a point is dominated where another one,
or a mixture of two others, takes no more of anything for the same requests/s. A whole replica is dominated, in all slots at once, by one
with no more workers and spares of either role, none of which takes more systems, serves less, or loads longer or for more.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData, draws
from solvers.model.electricity import power_may_earn

PROPORTIONALITY_TOL = 1e-9  # relative difference below which two quantities are proportional


def undominated(data: PlanData) -> Bools:
    """[P, T]: False where a serving point is dominated; nowhere where dominated points are to be kept."""
    keep = np.ones((len(data.point_pool), data.slots), dtype=bool)
    if data.keep_dominated:
        return keep
    uses = _systems_by_option(data)
    limited = (np.isfinite(data.power_limit()[0]).any(axis=1) | data.metered())[data.point_site()]
    wanted = np.zeros_like(keep)  # more power may reduce the objective
    drawing, at_site, _ = draws(data)
    np.logical_or.at(wanted, drawing, power_may_earn(data)[at_site])
    roles_of = _roles(data)
    paid = _paid_groups(data)
    sent = {} if data.exchange is None else data.exchange.taken()
    groups: dict[tuple[int, bool, tuple[int, ...], tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for point in np.flatnonzero((data.point_pool >= 0) & (data.point_capacity > 0)).tolist():
        whole = data.point_whole is not None and data.point_whole[point]
        options = (
            roles_of[point] if whole else tuple(uses.indices[uses.indptr[point] : uses.indptr[point + 1]].tolist())
        )
        channels = sent[point][0] if point in sent else ()
        key = (int(data.point_pool[point]), whole, options, paid.get(point, ()), channels)
        groups.setdefault(key, []).append(point)
    names = sorted(data.counted() & set(data.point_cost))
    for (_, whole, fleet_options, _, _), members in groups.items():
        if len(members) < 2:
            continue
        points = np.array(members)
        rate = data.point_capacity[points, None]
        takes = [
            np.stack(
                [uses.data[uses.indptr[point] : uses.indptr[point + 1]] for point in members]
            ),  # on the same options
            (data.point_power_w[points] * limited[points])[:, None],
            *([np.array([sent[point][1] for point in members])] if members[0] in sent else ()),
        ]
        steady = np.hstack(takes) / rate  # [points, M]
        varying = (
            np.stack([data.point_cost[name][points] / rate for name in names], axis=-1)
            if names
            else np.zeros((len(points), data.slots, 0))
        )  # [points, T, functionals]
        if whole:
            replica = [steady, _replicas(data, points, len(fleet_options)), varying.reshape(len(points), -1)]
            keep[points] = _undominated(np.hstack(replica), varying[:, :, :0]) | wanted[points]
            continue
        corner, described = _corners_of(steady, varying)
        kept = np.broadcast_to(corner[:, None], varying.shape[:2])
        if not described.all():
            kept = np.where(described, kept, _undominated(steady, varying))
        keep[points] = kept | wanted[points]
    return keep


def _systems_by_option(data: PlanData) -> sparse.csr_array:
    """[P, K]: systems that a replica takes of each fleet option; of a thousand offers it uses two."""
    point, option = data.point_uses.T
    uses = sparse.csr_array((data.point_uses_systems, (point, option)), (len(data.point_pool), len(data.option_site)))
    uses.sum_duplicates()
    uses.eliminate_zeros()
    return uses


def _paid_groups(data: PlanData) -> dict[int, tuple[int, ...]]:
    """Return the groups of points that one payment enables, by point; none where nothing is paid for."""
    found: dict[int, tuple[int, ...]] = {}
    for point, group in () if data.ports is None else np.unique(data.ports.member, axis=0).tolist():
        found[point] = (*found.get(point, ()), group)
    return found


def _roles(data: PlanData) -> list[tuple[int, ...]]:
    """List the fleet options of the roles of each point, in order."""
    roles: list[list[int]] = [[] for _ in data.point_pool]
    for point, option in data.point_uses.tolist():
        roles[point].append(option)
    return [tuple(options) for options in roles]


def _replicas(data: PlanData, points: Ints, roles: int) -> Floats:
    """[points, M]: by role the workers per replica and per request/s, the systems per worker, the spares and what a load costs; and the time to load."""
    row = np.flatnonzero(np.isin(data.point_uses[:, 0], points))
    order = row[np.argsort(data.point_uses[row, 0], kind="stable")].reshape(len(points), roles)  # points ascend
    workers = data.role_workers()[order]
    systems = data.point_uses_systems[order]
    load = np.zeros((len(points), 1)) if data.point_load_s is None else data.point_load_s[points, None]
    spares = data.role_spares()[order]
    paid = () if data.relays is None else data.relays.cost.values()
    prices = [cost[order].reshape(len(points), -1) for cost in paid]
    return np.hstack([workers, workers / data.point_capacity[points, None], systems / workers, spares, *prices, load])


def _undominated(steady: Floats, varying: Floats) -> Bools:
    """[points, T]: no other single point takes at most as much of everything; of equal ones the first remains."""
    keep = np.ones(varying.shape[:2], dtype=bool)
    order = np.arange(len(keep))
    for point in order:
        as_good = (steady <= steady[point]).all(axis=1)[:, None] & (varying <= varying[point]).all(
            axis=2
        )  # [others, T]
        equal = (steady == steady[point]).all(axis=1)[:, None] & (varying == varying[point]).all(axis=2)
        keep[point] = ~(as_good & (~equal | (order < point)[:, None])).any(axis=0)
    return keep


def _corners_of(steady: Floats, varying: Floats) -> tuple[Bools, Bools]:
    """Return the points [points] that no mixture of two others dominates, and the slots [T] where that test is valid.

    It is where all quantities but systems are non-negative multiples of one another, as energy cost and carbon are of power, so that
    two numbers describe a point.
    """
    corner, nowhere = np.ones(len(steady), dtype=bool), np.zeros(varying.shape[1], dtype=bool)
    if steady.shape[1] != 2:
        return corner, nowhere
    systems, along = steady[:, 0], steady[:, 1]
    if not along.any() and varying.shape[2]:
        along = varying[:, 0, 0]
    if along.min() < 0 or (not along.any() and varying.any()):
        return corner, nowhere
    weight = np.tensordot(along, varying, axes=(0, 0)) / max(
        float(along @ along), float(np.finfo(float).tiny)
    )  # [T, functionals]
    apart = np.abs(varying - along[:, None, None] * weight).max(axis=0, initial=0.0)
    described = ((apart <= PROPORTIONALITY_TOL * np.abs(varying).max(axis=0, initial=0.0)) & (weight >= 0)).all(axis=1)
    corner[:] = False
    corner[_corners(systems, along)] = True
    return corner, described


def _corners(first: Floats, second: Floats) -> list[int]:
    """Find the corners of the lower left convex hull of points in a plane, each once."""
    chain: list[int] = []
    for point in np.lexsort((second, first)):
        if chain and second[point] >= second[chain[-1]]:
            continue
        while len(chain) > 1:
            a, b = chain[-2], chain[-1]
            turn = (first[b] - first[a]) * (second[point] - second[a]) - (second[b] - second[a]) * (
                first[point] - first[a]
            )
            if turn > 0:
                break
            chain.pop()
        chain.append(int(point))
    return chain
