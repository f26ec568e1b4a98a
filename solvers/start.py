"""Where the search over all slots starts: the linear program on merged slots, solved from within in one piece.

Its prices, spread over the slots that were merged, give a first bound on the full problem over all of its columns
(certificate.py) and the first cuts of the master; what it holds says which lots and which places of jobs to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from solvers.certificate import Bound, Prices, bound
from solvers.coarse import cheap_places, few, grouping, merged
from solvers.data import Floats
from solvers.hourwise import NOTHING
from solvers.warm import interior

if TYPE_CHECKING:
    from solvers.decomposition import Decomposition

NEAR = 5e-4  # of what a lot's systems cost: so little the merged prices may lack for it to be looked at
HELD = 1e-3  # systems from which on a lot is held


@dataclass(frozen=True, slots=True)
class Coarse:
    """Shapes as in hourwise.py; `running` and the prices are spread over all slots."""

    slots: int
    value: float  # of the merged program, which is no bound
    bound: Bound
    prices: Prices
    near: np.ndarray  # [K] lots that are held or nearly pay
    share: Floats  # [P] of each place of a job
    running: Floats  # [P, T] share of the slot in which a job runs there
    structure: Floats  # everything decided once


def coarse(dec: Decomposition) -> Coarse | None:
    """None where the merged program has no answer or is not solved in time."""
    capacity, places = dec.data.point_capacity.copy(), cheap_places(dec.view, dec.alone)
    group = grouping(dec.view, few(dec.view, len(places)))
    capacity[np.setdiff1d(dec.view.training, places)] = 0.0
    data = replace(merged(dec.data, group), point_capacity=capacity)
    program = dec.build(data)
    arrays, cost = program.arrays(), program.functional(dec.functional)
    answer = interior(arrays.matrix, arrays.row_lower, arrays.row_upper, arrays.lower, arrays.upper, cost, dec.left())
    if answer is None:
        return None
    x, duals = answer
    by = program.by_block(duals)
    slots, origins = data.slots, data.demand.shape[1]
    alpha, sigma, beta, delta = (np.zeros((size, slots)) for size in (len(data.lot_site), data.sites, data.pools, len(dec.view.demand)))
    for block, prices in (("installed", alpha), ("power", sigma), ("capacity", beta)):
        index, values = by.get(block, (np.zeros((0, 2), dtype=np.int64), np.zeros(0)))
        prices[index[:, 0], index[:, 1]] = -np.minimum(values, 0.0)
    index, values = by.get("balance", (np.zeros((0, 3), dtype=np.int64), np.zeros(0)))
    delta[index[:, 0] * origins + index[:, 1], index[:, 2]] = values
    known = {(block, tuple(key)): value for block, (index, values) in by.items() for key, value in zip(index.tolist(), values.tolist(), strict=True)}
    rows = np.array([known.get(key, 0.0) for key in dec.whole.keys])
    prices = Prices(alpha, sigma, beta, delta, rows).spread(group, dec.view.seconds, rows)
    values = dict(program.values(x))
    n, y = program.columns["n"], program.columns["y"]
    held = np.where(n >= 0, values["n"], 0.0)
    alone = bound(dec.view.merged(group), dec.whole, dec.power_limit, Prices(0.0 * alpha, sigma, beta, delta, rows))  # systems at the least price that holds
    place = dec.whole.columns["n"]
    lacks = np.where(place >= 0, np.append(alone.reduced, np.inf)[place], np.inf)
    near = np.zeros(len(data.lot_site), dtype=bool)
    near[data.holding_lot[(held > HELD) | (lacks < NEAR * np.maximum(dec.lot_cost[data.holding_lot], NOTHING))]] = True
    share = np.where(y >= 0, values["y"], 0.0)
    share[share < HELD] = 0.0
    jobs = data.point_job >= 0
    share[jobs] /= np.maximum(np.bincount(data.point_job[jobs], weights=share[jobs], minlength=len(data.job_work)), NOTHING)[data.point_job[jobs]]
    values["y"] = share
    structure = np.zeros(dec.whole.size)
    for block, index in dec.whole.columns.items():
        if block in values and values[block].shape == index.shape:
            structure[index[index >= 0]] = values[block][index >= 0]
    structure = np.clip(structure, 0.0, dec.whole.most)
    return Coarse(slots, float(cost @ x), bound(dec.view, dec.whole, dec.power_limit, prices), prices, near, share, values["v"][:, group], structure)


def within(dec: Decomposition, point: int, share: Floats, most: Floats | None = None) -> Floats | None:
    """The share of each slot in which a job runs, just where it may (at most `most`) and just until it is done; None where it cannot be."""
    view, job = dec.view, dec.data.point_job[point]
    most = view.reachable[job] if most is None else most
    share, wanted = np.clip(share, 0.0, most), dec.data.job_work[job] / dec.data.point_capacity[point]
    done, free = float(share @ view.seconds), float((most - share) @ view.seconds)
    if done >= wanted:
        return share * (wanted / done)
    return None if done + free < wanted * (1 - 1e-9) else share + (most - share) * min((wanted - done) / max(free, 1e-300), 1.0)
