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
from solvers.decomposition.lagrangian_bound import Duals, lagrangian_bound
from solvers.decomposition.reformulation import Reformulation
from solvers.model.data import PlanData

RowDuals = dict[str, tuple[Ints, Floats]]


def slot_row_duals(data: PlanData, sigma: Floats, delta: Floats, watt: float, workload: Floats) -> RowDuals:
    """The rows of the slots from prices sigma [R, T] of power and delta [W x O, T] of demand, times `watt` and `workload` [W]."""
    limit, number = (part[:, data.slot_window] for part in data.power_limit())
    site, slot = np.nonzero(np.isfinite(limit))
    w, o, t = np.nonzero(data.demand > 0)
    return {
        "power": (np.column_stack([site, slot, number[site, slot]]), -np.maximum(sigma, 0.0)[site, slot] * watt),
        "balance": (np.column_stack([w, o, t]), delta[w * data.demand.shape[1] + o, t] * workload[w]),
    }


def relaxation_duals(dec: Reformulation, duals: Duals, values: Mapping[str, Floats]) -> tuple[Duals, RowDuals]:
    """(prices with none of power where the plan opens no site; duals of supplies and of limits on what is decided once), in the numbers of the
    decomposition. A price of the most that may be held of one kind is one of the supply, where that is what allows no more."""
    first_stage, data = dec.first_stage, dec.data
    closed = (first_stage.columns["open"] >= 0) & (values["open"] < 0.5)
    rows_of_block = {
        block: [(row, index) for row, (of, index) in enumerate(first_stage.keys) if of == block]
        for block in ("supply", "limit")
    }
    worth, counts = np.minimum(duals.rows, 0.0), _count_bound_duals(dec, duals, values)
    held_upper = np.append(first_stage.upper, 0.0)[first_stage.columns["n"]]
    supply, u = data.supply_member.T
    full = held_upper[u] >= data.supply_limit[supply]
    sole = np.bincount(u[full], minlength=len(held_upper)) == 1  # of two supplies neither is worth anything by itself
    row_of = {index[0]: row for row, index in reversed(rows_of_block["supply"])}  # of several windows one will do
    for s, held in zip(supply[full].tolist(), u[full].tolist(), strict=True):
        if sole[held] and s in row_of:
            worth[row_of[s]] += counts[held]
    row_duals = {
        block: (np.array([index for _, index in known]), worth[[row for row, _ in known]])
        for block, known in rows_of_block.items()
        if known
    }
    return replace(duals, sigma=np.where(closed[:, None], 0.0, duals.sigma)), row_duals


def _count_bound_duals(dec: Reformulation, duals: Duals, values: Mapping[str, Floats]) -> Floats:
    """[U]: change of the bound per unit more of the most that may be held, where the plan has the site and the design."""
    first_stage, data = dec.first_stage, dec.data
    reduced_cost = np.append(lagrangian_bound(dec.view, first_stage, dec.power_limit, duals).reduced_cost, 0.0)[
        first_stage.columns["n"]
    ]
    result, option = np.minimum(reduced_cost, 0.0), data.holding_option
    for row, (block, index) in enumerate(first_stage.keys):
        if block in ("standing", "opening"):
            k = option[index[0]]
            chosen = (
                values["z"][data.option_group[k], data.option_fabric[k]]
                if block == "standing"
                else values["open"][data.option_site[k]]
            )
            result[index[0]] += min(duals.rows[row], 0.0) * (chosen > 0.5)
    return result
