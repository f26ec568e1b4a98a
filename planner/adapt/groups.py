"""Select representatives of draws by forward selection, weights kept.

Reference: Heitsch and Römisch, Scenario reduction algorithms in stochastic programming, Computational Optimization and Applications 24 (2003).
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Ints

SPREAD_TOL = 1e-9


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
    owner = next_to(scaled, scaled[picked])
    return np.array(picked, dtype=np.int64), np.bincount(owner, minlength=len(picked)) / len(scaled)


def next_to(features: Floats, middles: Floats) -> Ints:
    """Return for each draw the representative next to it, by features [draw, feature] and [representative, feature]."""
    distance = ((features[:, None, :] - middles[None, :, :]) ** 2).sum(axis=2)
    found: Ints = np.argmin(distance, axis=1)
    return found
