"""Reduce sampled scenarios to a tree: groups of performance and paths of demand, which are independent, and all their pairs as leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from planner.adapt.draws import Drawn
from planner.adapt.groups import chosen, next_to
from planner.adapt.model import AdaptModel
from planner.adapt.paths import Paths, branched
from solvers.stochastic.data import Leaves

NO_RATE = 0.05  # share of the best efficiency that a way which does not work counts as, in distances


@dataclass(frozen=True, slots=True)
class Tree:
    """Leaves, the group of performance and the path of demand of each, the paths, and the scenarios that the leaves are."""

    leaves: Leaves
    performance: Ints  # [S]
    demand: Ints  # [S] path
    paths: Paths
    drawn: Drawn

    def followed(self, model: AdaptModel, leaves: Leaves, drawn: Drawn) -> Ints:
        """Return the leaf that scenarios follow at each date, [date, scenario], by the performance and demand known then and nothing else.

        Leaves that are alike at a date decide alike, so that any leaf stands for knowledge still to come.
        """
        first = np.flatnonzero(self.demand == self.demand[0])  # one leaf for each group of performance
        both = np.vstack([_rates(self.leaves)[first], _rates(leaves)])
        features = needs(both)
        group = next_to(features[len(first) :], features[: len(first)])
        stages, dates = self.paths.followed(factors(model, drawn)), model.dates
        found = np.zeros((len(dates.at_s), leaves.count), dtype=np.int64)
        for d, windows in enumerate(dates.seen(model.problem.calendar)):
            stage = self.paths.stage(windows)
            path = stages[stage] if stage >= 0 else np.zeros(leaves.count, dtype=np.int64)
            performance = group if dates.performance[d] else np.zeros(leaves.count, dtype=np.int64)
            found[d] = performance * len(self.paths.weight) + path
        return found


def factors(model: AdaptModel, drawn: Drawn) -> Floats:
    """Return the factors on demand of scenarios, [scenario, workload, window]."""
    none = np.ones((drawn.count, 0, model.problem.calendar.windows))
    found: Floats = np.concatenate([none, *(each[:, None, :] for each in drawn.growth.values())], axis=1)
    return found


def needs(rates: Floats) -> Floats:
    """Return the logarithm of what one unit of each way and job takes, [scenario, way and job]: the distances of performance."""
    most = np.maximum(rates.max(axis=0, initial=0.0), 1e-300)
    found: Floats = -np.log(np.maximum(rates / most, NO_RATE))
    return found


def _rates(leaves: Leaves) -> Floats:
    return np.hstack([leaves.efficiency, leaves.rate])


def reduced(model: AdaptModel, drawn: Drawn, most: int, least: int) -> Tree:
    """Reduce sampled scenarios to a tree of at most about `most` leaves, with at least `least` groups of performance where enough of them differ."""
    flat = np.zeros((len(model.dates.at_s), drawn.count), dtype=np.int64)
    seen = model.dates.seen(model.problem.calendar)
    paths = branched(factors(model, drawn), seen)
    count = len(paths.weight)
    errors, weight = chosen(needs(_rates(model.leaves(drawn, flat))), max(most // count, least))
    performance, demand = np.repeat(np.arange(len(errors)), count), np.tile(np.arange(count), len(errors))
    found = drawn.paired(errors[performance], paths.growth[demand])
    alike = np.array([paths.at(windows)[demand] for windows in seen])
    node = model.dates.nodes(performance, alike)
    leaves = model.leaves(found, node, weight[performance] * paths.weight[demand])
    return Tree(leaves, performance, demand, paths, found)
