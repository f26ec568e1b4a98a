"""Reduce sampled scenarios to a tree: groups of performance, of prices and of deliveries, and paths of demand, which are independent, and all their
combinations as leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from planner.adapt.deliveries import arrived, groups_of
from planner.adapt.deliveries import followed as came
from planner.adapt.draws import Drawn
from planner.adapt.groups import chosen, next_to
from planner.adapt.model import AdaptModel
from planner.adapt.paths import Paths, branched
from solvers.stochastic.data import Leaves

SOME, FEW = 3, 2  # most groups of prices and of deliveries: where one of both is uncertain, and where both are
NO_RATE = 0.05  # share of the best efficiency that a way which does not work counts as, in distances


@dataclass(frozen=True, slots=True)
class Tree:
    """Leaves, with the group of performance, the path of demand, the group of prices and the group of deliveries of each, and what these are.

    Leaves follow one another by performance, then prices, deliveries and paths.
    """

    leaves: Leaves
    performance: Ints  # [S]
    demand: Ints  # [S] path
    prices: Ints  # [S]
    deliveries: Ints  # [S]
    paths: Paths
    price_factors: Floats  # [group, price]
    leads: Floats  # [group, offer]
    drawn: Drawn

    def followed(self, model: AdaptModel, leaves: Leaves, drawn: Drawn) -> Ints:
        """Return the leaf that scenarios follow at each date, [date, scenario], by the performance, demand, prices and deliveries known then and nothing else.

        Leaves that are alike at a date decide alike, so that any leaf stands for knowledge still to come.
        """
        first = np.flatnonzero(
            (self.demand == 0) & (self.prices == 0) & (self.deliveries == 0)
        )  # one for each performance
        both = np.vstack([_rates(self.leaves)[first], _rates(leaves)])
        features = needs(both)
        group = next_to(features[len(first) :], features[: len(first)])
        stages, dates, none = (
            self.paths.followed(factors(model, drawn)),
            model.dates,
            np.zeros(leaves.count, dtype=np.int64),
        )
        priced = next_to(priced_by(model, drawn.prices), priced_by(model, self.price_factors)) if model.moving else none
        orders = model.orders()
        own, known = orders.known(drawn.leads, dates), orders.known(self.leads, dates)
        come = came(known, self.leads, own)
        found = np.zeros((len(dates.at_s), leaves.count), dtype=np.int64)
        for d, windows in enumerate(dates.seen(model.problem.calendar)):
            stage = self.paths.stage(windows)
            path = stages[stage] if stage >= 0 else none
            performance = group if dates.performance[d] else none
            price = priced if dates.knows_prices(d) else none
            found[d] = self._leaf(performance, price, come[d], path)
        return found

    def _leaf(self, performance: Ints, prices: Ints, deliveries: Ints, paths: Ints) -> Ints:
        """Number the leaf of each combination."""
        return ((performance * len(self.price_factors) + prices) * len(self.leads) + deliveries) * len(
            self.paths.weight
        ) + paths


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


def priced_by(model: AdaptModel, prices: Floats) -> Floats:
    """Return the distances of prices, [scenario, price]: how far each moves what it moves most."""
    found: Floats = (prices - 1.0) * (model.moving.weight() if model.moving is not None else 1.0)
    return found


def reduced(model: AdaptModel, drawn: Drawn, most: int, least: int) -> Tree:
    """Reduce sampled scenarios to a tree of at most about `most` leaves, with at least `least` groups of performance where enough of them differ."""
    flat, dates = np.zeros((len(model.dates.at_s), drawn.count), dtype=np.int64), model.dates
    seen = dates.seen(model.problem.calendar)
    paths = branched(factors(model, drawn), seen)
    few = FEW if model.moving is not None and drawn.lead_s else SOME
    prices, price_weight = groups_of_prices(model, drawn, few)
    leads, lead_weight = groups_of(drawn.leads, few)
    beside = len(paths.weight) * len(prices) * len(leads)
    errors, weight = chosen(needs(_rates(model.leaves(drawn, flat))), max(most // beside, least))
    sizes = len(errors), len(prices), len(leads), len(paths.weight)
    performance, price, lead, demand = (each.ravel() for each in np.indices(sizes))
    found = drawn.paired(errors[performance], paths.growth[demand], prices[price], leads[lead])
    alike = np.array([paths.at(windows)[demand] for windows in seen])
    group_leads = drawn.leads[leads]
    orders = model.orders()
    come = arrived(orders.known(group_leads, dates))[:, lead] if drawn.lead_s else None
    node = dates.nodes(performance, alike, price, come)
    shares = weight[performance] * price_weight[price] * lead_weight[lead] * paths.weight[demand]
    return Tree(
        model.leaves(found, node, shares),
        performance,
        demand,
        price,
        lead,
        paths,
        drawn.prices[prices],
        group_leads,
        found,
    )


def groups_of_prices(model: AdaptModel, drawn: Drawn, most: int) -> tuple[Ints, Floats]:
    """Select representatives of draws of prices, with their weights; one where no price is uncertain."""
    if model.moving is None:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    return chosen(priced_by(model, drawn.prices), most)
