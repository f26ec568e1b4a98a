"""What the limits of a problem solved slot by slot are worth: prices of the search as duals of the program's rows, in SI.

A dual is the change of the objective per unit of the row's side, at most 0 for a limit.

with the fleet held   prices of the slots' programs at the plan; with jobs, which may run at other hours while the fleet stays, these are none
relaxed               prices of the linear part over all slots, of which `relaxed_bound` is made: choices and counts in fractions, no integer held;
                      where that opens a site in part, and the plan opens it, they say more of its power than the linear part does
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.lagrangian_bound import Prices, bound
from solvers.decomposition.reformulation import Decomposition
from solvers.model.data import PlanData

Duals = dict[str, tuple[Ints, Floats]]


def of_slots(data: PlanData, sigma: Floats, delta: Floats, watt: float, workload: Floats) -> Duals:
    """The rows of the slots from prices sigma [R, T] of power and delta [W x O, T] of demand, times `watt` and `workload` [W]."""
    limit, number = (by_window[:, data.slot_window] for by_window in data.power_limit())
    site, slot = np.nonzero(np.isfinite(limit))
    w, o, t = np.nonzero(data.demand > 0)
    return {
        "power": (np.column_stack([site, slot, number[site, slot]]), -np.maximum(sigma, 0.0)[site, slot] * watt),
        "balance": (np.column_stack([w, o, t]), delta[w * data.demand.shape[1] + o, t] * workload[w]),
    }


def relaxed(dec: Decomposition, prices: Prices, values: Mapping[str, Floats]) -> tuple[Prices, Duals]:
    """(prices with none of power where the plan opens no site; duals of supplies and of limits on what is decided once), in the numbers of the
    decomposition. A price of the most that may be held of one kind is one of the supply, where that is what allows no more."""
    whole, data = dec.whole, dec.data
    closed = (whole.columns["open"] >= 0) & (values["open"] < 0.5)
    keys = {
        block: [(row, index) for row, (of, index) in enumerate(whole.keys) if of == block]
        for block in ("supply", "limit")
    }
    worth, counts = np.minimum(prices.rows, 0.0), _of_counts(dec, prices, values)
    most = np.append(whole.most, 0.0)[whole.columns["n"]]
    supply, u = data.supply_member.T
    full = most[u] >= data.supply_limit[supply]
    alone = np.bincount(u[full], minlength=len(most)) == 1  # of two supplies neither is worth anything by itself
    row_of = {index[0]: row for row, index in reversed(keys["supply"])}  # of several windows one will do
    for s, held in zip(supply[full].tolist(), u[full].tolist(), strict=True):
        if alone[held] and s in row_of:
            worth[row_of[s]] += counts[held]
    duals = {
        block: (np.array([index for _, index in known]), worth[[row for row, _ in known]])
        for block, known in keys.items()
        if known
    }
    return replace(prices, sigma=np.where(closed[:, None], 0.0, prices.sigma)), duals


def _of_counts(dec: Decomposition, prices: Prices, values: Mapping[str, Floats]) -> Floats:
    """[U]: change of the bound per unit more of the most that may be held, where the plan has the site and the design."""
    whole, data = dec.whole, dec.data
    reduced = np.append(bound(dec.view, whole, dec.power_limit, prices).reduced, 0.0)[whole.columns["n"]]
    result, option = np.minimum(reduced, 0.0), data.holding_option
    for row, (block, index) in enumerate(whole.keys):
        if block in ("standing", "opening"):
            k = option[index[0]]
            chosen = (
                values["z"][data.option_group[k], data.option_fabric[k]]
                if block == "standing"
                else values["open"][data.option_site[k]]
            )
            result[index[0]] += min(prices.rows[row], 0.0) * (chosen > 0.5)
    return result
