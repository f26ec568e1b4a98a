"""A lower bound on the full problem from any prices of slots and any duals of the structure, over every column there is.

The bound relaxes the rows of the slots at the prices given: what is left falls apart into replicas (which the raised alpha
makes worthless), flows, jobs and the structure. It shares no code with the search that found the prices, and needs nothing
of them but their signs, so a poor search gives a weak bound and never a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.data import Floats
from solvers.hourwise import Slotwise, Structure


@dataclass(frozen=True, slots=True)
class Prices:
    """Of all lots, sites and pools of the problem in each slot, of demand, and of the structure's rows (signs as in a minimisation)."""

    alpha: Floats  # [K, T] at least 0
    sigma: Floats  # [R, T] at least 0
    beta: Floats  # [Q, T] at least 0
    delta: Floats  # [D, T]
    rows: Floats  # of the structure


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound, the raised prices of systems, what each structural column would still save, and the jobs' least costs by point."""

    value: float
    alpha: Floats  # [K, T]
    reduced: Floats  # of the structure's columns
    job_cost: Floats  # [points of jobs]


def bound(view: Slotwise, structure: Structure, power_limit: Floats, prices: Prices) -> Bound:
    """max-min value of the relaxation:  rhs of all rows at their prices + each column at the bound that its reduced cost asks for.

    alpha_{k,t}  raised until cap beta - cost - power sigma <= sum uses alpha for every replica, so replicas add nothing
    flows        each arc-slot at  min(0, cost + beta - delta) x its most, if its gate is open
    n_u          cost + idle power x sigma - alpha over the slots it covers, and its structural rows
    jobs         each point at the least cost of a pattern at these prices
    """
    data = view.data
    sigma, beta = np.maximum(prices.sigma, 0.0), np.maximum(prices.beta, 0.0)
    alpha = view.least_alpha(beta, sigma, np.maximum(prices.alpha, 0.0))
    rows = np.clip(prices.rows, np.where(np.isfinite(structure.row_upper), -np.inf, 0.0), np.where(np.isfinite(structure.row_lower), np.inf, 0.0))
    sides = np.where(rows > 0, structure.row_lower, structure.row_upper)
    value = float((rows * np.where(rows == 0.0, 0.0, np.where(np.isfinite(sides), sides, 0.0))).sum())
    limit = np.where(np.isfinite(power_limit), power_limit, 0.0)
    sigma = np.where(np.isfinite(power_limit)[:, None], sigma, 0.0)
    value += float((prices.delta * view.demand).sum() - limit @ sigma.sum(axis=1))

    reduced = structure.cost - structure.matrix.T @ rows
    _hold(view, structure, alpha, sigma, reduced)
    saved = np.minimum(view.arc_cost + beta[data.arc_pool] - prices.delta[view.arc_demand], 0.0) * view.demand[view.arc_demand]
    gated = structure.arc_gate >= 0
    np.add.at(reduced, structure.arc_gate[gated], saved[gated].sum(axis=1))
    value += float(saved[~gated].sum())

    cost, _ = view.cheapest(view.training, alpha, sigma)
    place = structure.columns["y"][view.training] if len(view.training) else np.zeros(0, dtype=np.int64)
    there = place >= 0
    reduced[place[there]] += np.where(np.isfinite(cost[there]), cost[there], 0.0)
    blocked = place[there & ~np.isfinite(cost)]
    value += _assign(view, structure, reduced, blocked)
    value += float((np.minimum(reduced, 0.0) * np.where(reduced < 0, structure.most, 0.0)).sum())
    return Bound(value, alpha, reduced, cost)


def _hold(view: Slotwise, structure: Structure, alpha: Floats, sigma: Floats, reduced: Floats) -> None:
    """Takes from each holding what its systems earn in the slots that it covers, and charges its idle power."""
    data = view.data
    windows = data.windows
    earned, power = np.zeros((len(alpha), windows)), np.zeros((len(sigma), windows))
    np.add.at(earned.T, view.window, alpha.T)
    np.add.at(power.T, view.window, sigma.T)
    covers = data.covers()
    lot = data.holding_lot
    net = (covers * (data.holding_power_w[:, None] * power[data.lot_site[lot]] - earned[lot])).sum(axis=1)
    place = structure.columns["n"]
    held = place >= 0
    reduced[place[held]] += net[held]


def _assign(view: Slotwise, structure: Structure, reduced: Floats, blocked: Floats) -> float:
    """Chooses the price of each job anew: exactly one of its points is taken, so the least reduced cost is paid in any case."""
    place = structure.columns["y"][view.training] if len(view.training) else np.zeros(0, dtype=np.int64)
    total = 0.0
    job = view.data.point_job[view.training]
    reduced[blocked] = np.inf
    for j in np.unique(job):
        mine = place[(job == j) & (place >= 0)]
        least = float(reduced[mine].min())
        total += least
        reduced[mine] = np.where(np.isfinite(reduced[mine]), reduced[mine] - least, 0.0)
    return total
