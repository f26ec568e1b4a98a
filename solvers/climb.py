"""Prices of all slots made better for the bound, where they come from merged ones.

The bound is concave in the prices alpha of systems and sigma of watts, and the prices of requests follow (`Decomposition.fitted`). How dear a lot or a
site's power is over all slots of a window stays; which slots that is of moves to where more is used of it, when every request is served where
it costs least at these prices and what costs nearly as little has a share:

    alpha_{k,t} <- alpha_{k,t} (used_{k,t} / mean_t used_{k,t})^step, scaled so that the sum over the window stays;  sigma alike by watts.

Multiplicative weights along a smoothed supergradient: Arora, Hazan, Kale, Theory of Computing 8 (2012). A step is kept where it proves more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.certificate import Bound, Prices
from solvers.data import Floats, Ints

if TYPE_CHECKING:
    from solvers.decomposition import Decomposition

STEPS, STEP = 12, 4e-3  # at most, and the first one
LONGER, SHORTER, SHORTEST = 1.3, 0.4, 5e-4  # times its length after one that proves more or less, and the length at which none follows
LITTLE = 3e-5  # of the bound: where a step gains less, none follows
ALIKE, FAR = 3e-3, 8.0  # what costs so much more, relatively, has 1 / e of the share, and what costs so many times that more has none
LEAST, MOST = 0.2, 5.0  # between which use is counted, of the mean
EVEN, NOTHING = 0.1, 1e-3  # of the mean, and systems or watts of each slot, that count as used in any case
GATES = 0.1  # of what demand pays for open gates at the merged prices, that is kept


def climbed(dec: Decomposition, start: Prices) -> tuple[Prices, Bound]:
    """The best prices on the way from these, and what they prove."""
    view = dec.view
    windows = np.zeros((view.slots, dec.data.windows))
    windows[np.arange(view.slots), view.window] = 1.0

    def certified(prices: Prices) -> tuple[Prices, Prices, Bound]:
        fitted = dec.fitted(prices)
        whole = fitted.mixed(replace(prices, beta=fitted.beta), 1 - GATES)
        return fitted, whole, dec.certify(whole)

    fitted, best, proven = certified(start)
    bare = dec.certify(fitted)
    if bare.value > proven.value:
        return fitted, bare
    prices, step, systems, watts = start, STEP, *_used(dec, fitted)
    for _ in range(STEPS):
        moved = replace(prices, alpha=_weighted(prices.alpha, systems, step, windows), sigma=_weighted(prices.sigma, watts, step, windows))
        fitted, whole, value = certified(moved)
        gain = (value.value - proven.value) / max(abs(proven.value), 1.0)
        step *= LONGER if gain > 0 else SHORTER
        if gain > 0:
            prices, best, proven = moved, whole, value
        if 0 < gain < LITTLE or step < SHORTEST or dec.left() <= 0:
            break
        if gain > 0:
            systems, watts = _used(dec, fitted)
    return best, proven


def _weighted(prices: Floats, used: Floats, step: float, windows: Floats) -> Floats:
    """Prices [., T] moved to the slots in which more is used."""
    mean = used.mean(axis=1, keepdims=True)
    weighted = prices * np.clip((used + EVEN * mean + NOTHING) / ((1 + EVEN) * mean + NOTHING), LEAST, MOST) ** step
    before, after = prices @ windows, weighted @ windows
    return weighted * (np.divide(before, after, out=np.ones_like(before), where=after > 0) @ windows.T)


def _used(dec: Decomposition, prices: Prices) -> tuple[Floats, Floats]:
    """(systems [K, T], watts [R, T]) that serving takes at prices that fit each other."""
    view, data = dec.view, dec.data
    flow = _shares(view.arc_cost + prices.beta[data.arc_pool], prices.delta, view.arc_demand, view.demand)
    load = _sums(data.arc_pool, data.pools) @ flow
    asked = dec.asked(prices)
    near = np.flatnonzero((asked <= prices.beta[data.point_pool[view.serving]] * (1 + FAR * ALIKE)).any(axis=1))
    points = view.serving[near]
    replicas = _shares(asked[near], prices.beta, data.point_pool[points], load) / data.point_capacity[points, None]
    position = np.full(len(data.point_pool), -1)
    position[points] = np.arange(len(points))
    mine = np.flatnonzero(position[view.use_point] >= 0)
    uses = sparse.csr_array((view.use_systems[mine], (view.use_lot[mine], position[view.use_point[mine]])), shape=(len(data.lot_site), len(points)))
    watts = sparse.csr_array((data.point_power_w[points], (view.site[points], np.arange(len(points)))), shape=(data.sites, len(points)))
    return uses @ replicas, watts @ replicas


def _shares(cost: Floats, least: Floats, of: Ints, amount: Floats) -> Floats:
    """[., T]: an amount [groups, T] shared among the members of each group by how little more they cost than the least [groups, T] of it."""
    least = least[of]
    weight = np.exp(-np.minimum(np.maximum(cost - least, 0.0) / np.maximum(ALIKE * np.abs(least), 1e-300), 700.0))
    total = _sums(of, len(amount)) @ weight
    return weight * np.divide(amount, total, out=np.zeros_like(amount), where=total > 0)[of]


def _sums(of: Ints, groups: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(groups, len(of)))
