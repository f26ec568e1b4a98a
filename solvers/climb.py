"""Prices of all slots made better for the bound, where they come from merged ones.

The bound is concave in the prices alpha of systems and sigma of watts, and the prices of requests follow (`Decomposition.fitted`). How dear a lot or a
site's power is over all slots of a window stays; which slots that is of moves to where more is used of it, when every request is served where
it costs least at these prices and what costs nearly as little has a share:

    alpha_{k,t} <- alpha_{k,t} (used_{k,t} / mean_t used_{k,t})^step, scaled so that the sum over the window stays;  sigma alike by watts.

Multiplicative weights along a smoothed supergradient: Arora, Hazan, Kale, Theory of Computing 8 (2012). A step is kept where it proves more; where
none does any longer, what shares with the least is drawn narrower: Nesterov, Mathematical Programming 103 (2005), for why wide comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.certificate import Bound, Prices
from solvers.data import Floats, Ints

if TYPE_CHECKING:
    from solvers.decomposition import Decomposition

STEP = 8e-3  # the first one, of each width
LONGER, SHORTER, SHORTEST = 1.3, 0.4, 5e-4  # times its length after one that proves more or less, and the length at which none follows
LITTLE = 3e-5  # of the bound: where a step gains less, none follows
ALIKE, FAR = (3e-2, 1e-2, 3e-3, 1e-3), 8.0  # widths: what costs so much more, relatively, has 1 / e of the share, and what costs so many times that more has none
LEAST, MOST = 0.2, 5.0  # between which use is counted, of the mean
EVEN, NOTHING = 0.1, 1e-3  # of the mean, and systems or watts of each slot, that count as used in any case
GATES = 0.1  # of what demand pays for open gates at the merged prices, that is kept, where that proves more than nothing of it


class Climb:
    """On the way up: the best `prices` so far, and what they prove."""

    def __init__(self, dec: Decomposition, start: Prices) -> None:
        self._dec, self._at = dec, start
        self._windows = np.zeros((dec.view.slots, dec.data.windows))
        self._windows[np.arange(dec.view.slots), dec.view.window] = 1.0
        self._gates = GATES
        self._fitted, self.prices, self.proven = self._certified(start, GATES)
        self._keep_or_not()
        self._width, self._step = 0, STEP

    def climb(self, enough: Callable[[], bool]) -> None:
        """As long as steps gain, and it is not enough."""
        systems, watts = _used(self._dec, self._fitted, ALIKE[min(self._width, len(ALIKE) - 1)])
        while self._width < len(ALIKE) and not enough():
            at = self._at
            moved = replace(at, alpha=self._weighted(at.alpha, systems), sigma=self._weighted(at.sigma, watts))
            fitted, whole, proven = self._certified(moved, self._gates)
            gain = (proven.value - self.proven.value) / max(abs(self.proven.value), 1.0)
            self._step *= LONGER if gain > 0 else SHORTER
            if gain > 0:
                self._at, self._fitted, self.prices, self.proven = moved, fitted, whole, proven
            narrower = 0 < gain < LITTLE or self._step < SHORTEST
            if narrower:
                self._width, self._step = self._width + 1, STEP
                self._keep_or_not()
            if (gain > 0 or narrower) and self._width < len(ALIKE):
                systems, watts = _used(self._dec, self._fitted, ALIKE[self._width])

    def _keep_or_not(self) -> None:
        """Whether what demand pays for gates is kept: at first it often proves more, and later on less."""
        for gates in {0.0, GATES} - {self._gates}:
            fitted, whole, proven = self._certified(self._at, gates)
            if proven.value > self.proven.value:
                self._gates, self._fitted, self.prices, self.proven = gates, fitted, whole, proven

    def _certified(self, prices: Prices, gates: float) -> tuple[Prices, Prices, Bound]:
        fitted = self._dec.fitted(prices)
        whole = fitted.mixed(replace(prices, beta=fitted.beta), 1 - gates) if gates else fitted
        return fitted, whole, self._dec.certify(whole)

    def _weighted(self, prices: Floats, used: Floats) -> Floats:
        """Prices [., T] moved to the slots in which more is used."""
        mean = used.mean(axis=1, keepdims=True)
        weighted = prices * np.clip((used + EVEN * mean + NOTHING) / ((1 + EVEN) * mean + NOTHING), LEAST, MOST) ** self._step
        before, after = prices @ self._windows, weighted @ self._windows
        return weighted * (np.divide(before, after, out=np.ones_like(before), where=after > 0) @ self._windows.T)


def _used(dec: Decomposition, prices: Prices, alike: float) -> tuple[Floats, Floats]:
    """(systems [K, T], watts [R, T]) that serving takes at prices that fit each other."""
    view, data = dec.view, dec.data
    flow = _shares(view.arc_cost + prices.beta[data.arc_pool], prices.delta, view.arc_demand, view.demand, alike)
    load = _sums(data.arc_pool, data.pools) @ flow
    asked = dec.asked(prices)
    near = np.flatnonzero((asked <= prices.beta[data.point_pool[view.serving]] * (1 + FAR * alike)).any(axis=1))
    points = view.serving[near]
    replicas = _shares(asked[near], prices.beta, data.point_pool[points], load, alike) / data.point_capacity[points, None]
    position = np.full(len(data.point_pool), -1)
    position[points] = np.arange(len(points))
    mine = np.flatnonzero(position[view.use_point] >= 0)
    uses = sparse.csr_array((view.use_systems[mine], (view.use_lot[mine], position[view.use_point[mine]])), shape=(len(data.lot_site), len(points)))
    watts = sparse.csr_array((data.point_power_w[points], (view.site[points], np.arange(len(points)))), shape=(data.sites, len(points)))
    return uses @ replicas, watts @ replicas


def _shares(cost: Floats, least: Floats, of: Ints, amount: Floats, alike: float) -> Floats:
    """[., T]: an amount [groups, T] shared among the members of each group by how little more they cost than the least [groups, T] of it."""
    least = least[of]
    weight = np.exp(-np.minimum(np.maximum(cost - least, 0.0) / np.maximum(alike * np.abs(least), 1e-300), 700.0))
    total = _sums(of, len(amount)) @ weight
    return weight * np.divide(amount, total, out=np.zeros_like(amount), where=total > 0)[of]


def _sums(of: Ints, groups: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(groups, len(of)))
