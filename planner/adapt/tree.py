"""Reduce sampled scenarios to a tree: groups of performance and groups of demand, which are independent, and all their pairs as leaves.

Each group stands for the draws next to its middle (forward selection of representatives, weights kept).

Reference: Heitsch and Römisch, Scenario reduction algorithms in stochastic programming, Computational Optimization and Applications 24 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from planner.adapt.draws import Drawn
from planner.adapt.model import AdaptModel
from solvers.stochastic.data import Leaves

NO_RATE = 0.05  # share of the best efficiency that a way which does not work counts as, in distances
SPREAD_TOL = 1e-9


@dataclass(frozen=True, slots=True)
class Tree:
    """Leaves, and the groups of performance and of demand of each."""

    leaves: Leaves
    performance: Ints  # [S]
    demand: Ints  # [S]


def chosen(features: Floats, most: int) -> tuple[Ints, Floats]:
    """Select representatives [G] of draws by their features [draw, feature], and the weight of each.

    Forward selection: each next one lowers the mean distance of all draws to the nearest representative most.
    """
    wide = features.std(axis=0) > SPREAD_TOL
    if not wide.any():
        return np.zeros(1, dtype=np.int64), np.ones(1)
    scaled = features[:, wide]
    distance = np.sqrt(((scaled[:, None, :] - scaled[None, :, :]) ** 2).sum(axis=2))
    nearest = np.full(len(scaled), np.inf)
    picked: list[int] = []
    for _ in range(min(most, len(scaled))):
        total = np.minimum(nearest[:, None], distance).sum(axis=0)
        total[picked] = np.inf
        best = int(np.argmin(total))
        picked.append(best)
        nearest = np.minimum(nearest, distance[:, best])
        if nearest.max() <= SPREAD_TOL:
            break
    owner = np.argmin(distance[:, picked], axis=1)
    return np.array(picked, dtype=np.int64), np.bincount(owner, minlength=len(picked)) / len(scaled)


def needs(leaves: Leaves) -> Floats:
    """Return the logarithm of what one unit of each way and job takes, [scenario, way and job]: the distances of performance."""
    rates = np.hstack([leaves.efficiency, leaves.rate])
    most = np.maximum(rates.max(axis=0, initial=0.0), 1e-300)
    found: Floats = -np.log(np.maximum(rates / most, NO_RATE))
    return found


def reduced(model: AdaptModel, drawn: Drawn, most_performance: int, most_demand: int) -> Tree:
    """Reduce sampled scenarios to a tree of at most these numbers of groups of performance and of demand."""
    flat = np.zeros((len(model.dates.at_s), drawn.count), dtype=np.int64)
    errors, weight = chosen(needs(model.leaves(drawn, flat)), most_performance)
    factors = np.hstack([np.zeros((drawn.count, 0)), *drawn.growth.values()])
    demands, share = chosen(factors, most_demand)
    performance = np.repeat(np.arange(len(errors)), len(demands))
    demand = np.tile(np.arange(len(demands)), len(errors))
    found = drawn.paired(errors[performance], demands[demand])
    node = model.dates.nodes(performance, demand)
    return Tree(model.leaves(found, node, weight[performance] * share[demand]), performance, demand)
