"""Duals of the program's rows, in SI, from the prices of the decomposition.

A dual is the change of the objective per unit of the row's side, at most 0 for a limit. There are two kinds.

with the fleet fixed   prices of the subproblems at the plan; none if there are jobs, which could run in other slots with the same fleet
relaxed                prices of the LP relaxation, from which `relaxed_bound` follows. Where that opens a site in part and the plan opens
                       it, the price of the site's power is that of the open site
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.decomposition.lagrangian_bound import Duals, lagrangian_bound
from solvers.decomposition.reformulation import Reformulation
from solvers.model.data import PlanData
from solvers.model.facility import rack_room

RowDuals = dict[str, tuple[Ints, Floats]]
FIRST_STAGE_LIMITS = ("supply", "racks", "limit")  # rows of limits over first-stage variables


def slot_row_duals(data: PlanData, sigma: Floats, delta: Floats, watt: float, workload: Floats) -> RowDuals:
    """Return the duals of power and demand from prices sigma [R, T] and delta [W x O, T]; `watt` and `workload` [W] scale them to SI."""
    limit, number = (part[:, data.slot_window] for part in data.power_limit())
    site, slot = np.nonzero(np.isfinite(limit))
    w, o, t = np.nonzero(data.demand > 0)
    return {
        "power": (np.column_stack([site, slot, number[site, slot]]), -np.maximum(sigma, 0.0)[site, slot] * watt),
        "balance": (np.column_stack([w, o, t]), delta[w * data.demand.shape[1] + o, t] * workload[w]),
    }


def relaxation_duals(dec: Reformulation, duals: Duals, values: Mapping[str, Floats]) -> tuple[Duals, RowDuals]:
    """Return the prices, 0 for power of sites that the plan does not open, and the duals of supplies, racks and first-stage limits.

    Both are scaled as in the decomposition. The reduced cost of a holding at its upper bound belongs to the supply, or the rack positions, that this bound is from.
    """
    first_stage, data = dec.first_stage, dec.data
    closed = (first_stage.columns["open"] >= 0) & (values["open"] < 0.5)
    rows_of_block = {
        block: [(row, index) for row, (of, index) in enumerate(first_stage.keys) if of == block]
        for block in FIRST_STAGE_LIMITS
    }
    worth, counts = np.minimum(duals.rows, 0.0), _count_bound_duals(dec, duals, values)
    held_upper = np.append(first_stage.upper, 0.0)[first_stage.columns["n"]]
    supply, u = data.supply_member.T
    full = held_upper[u] >= data.supply_limit[supply]
    sole = np.bincount(u[full], minlength=len(held_upper)) == 1  # where two supplies bind, neither has a value alone
    row_of = {index[0]: row for row, index in reversed(rows_of_block["supply"])}  # any one of several windows
    for s, held in zip(supply[full].tolist(), u[full].tolist(), strict=True):
        if sole[held] and s in row_of:
            worth[row_of[s]] += counts[held]
    if data.holding_racks is not None:
        room, site = rack_room(data), data.option_site[data.holding_option]
        alone = np.bincount(site[np.isfinite(room)], minlength=data.sites) == 1
        filled = np.isfinite(room) & alone[site] & (held_upper > room - 1) & (sole == 0)
        row_of = {index[0]: row for row, index in reversed(rows_of_block["racks"])}
        for held in np.flatnonzero(filled).tolist():
            if int(site[held]) in row_of:
                worth[row_of[int(site[held])]] += counts[held] / data.holding_racks[held]
    row_duals = {
        block: (np.array([index for _, index in known]), worth[[row for row, _ in known]])
        for block, known in rows_of_block.items()
        if known
    }
    return replace(duals, sigma=np.where(closed[:, None], 0.0, duals.sigma)), row_duals


def _count_bound_duals(dec: Reformulation, duals: Duals, values: Mapping[str, Floats]) -> Floats:
    """Return the change of the bound per unit of each holding's upper bound [U], if the plan has the site and the design."""
    first_stage, data = dec.first_stage, dec.data
    reduced_cost = np.append(lagrangian_bound(dec.view, first_stage, dec.power_limit, duals).reduced_cost, 0.0)[
        first_stage.columns["n"]
    ]
    result: Floats = np.minimum(reduced_cost, 0.0)
    option = data.holding_option
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
