"""The part limits block: systems at few sites, of few kinds at each, no fewer of a kind than are worth running, and least orders.

Sets
    u            holdings that are counted
    g            groups of fleet options: a kind of systems at a site; g(u) the group of a holding, r(g) the site of a group
    r            sites
    w            windows
    o            orders with a least count; o(u) the order of a holding
Data
    upper_u      most systems of a holding
    most_sites   most sites with systems
    most_kinds   most kinds of systems at a site at a time
    least        least systems of a kind at a site, where there are any
    least_o      least systems of an order, if it is placed
Variables
    kept_{g,w}   in {0, 1}, 1 when systems of a kind are held at a site in a window
    occupied_r   in {0, 1}, 1 when systems are held at a site
    placed_o     in {0, 1}, 1 when an order is placed; 1 for one that is placed already
Objective
    None of its own.
Constraints
    kept         n_u <= upper_u kept_{g(u),w}    for each u that covers w
    in use       kept_{g,w} <= occupied_{r(g)}    for each g, w
    sites        sum_r occupied_r <= most_sites
    kinds        sum_{g at r} kept_{g,w} <= most_kinds    for each r, w
    enough       least kept_{g,w} <= sum_{u of g, u covers w} n_u    for each g, w
    placed       n_u <= upper_u placed_{o(u)}    for each u of an order
    order        least_o placed_o <= sum_{u of o} n_u    for each o
"""

from __future__ import annotations

import math

import numpy as np

from solvers.model.block_data.parts import PartLimits
from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper
from solvers.program import Program


def add_part_limits(program: Program, data: PlanData) -> None:
    """Add the block, after the fleet block."""
    if data.parts is None:
        return
    _add_orders(program, data, data.parts)
    if data.parts.limited:
        _add_limits(program, data, data.parts)


def _add_orders(program: Program, data: PlanData, parts: PartLimits) -> None:
    """Add the rows of orders with a least count."""
    if parts.order is None:
        return
    held, orders = program.columns["n"], len(parts.order_least)
    (mine,) = np.nonzero((parts.order >= 0) & (held >= 0))
    order = parts.order[mine]
    already = np.zeros(orders) if parts.order_placed is None else parts.order_placed.astype(float)
    placed = program.add_columns("placed", (orders,), lower=already, upper=1.0, integer=True)
    program.add_linking_rows("placed", held[mine], placed[order], holding_upper(data)[mine], mine[:, None])
    rows, columns = np.concatenate([np.arange(orders), order]), np.concatenate([placed, held[mine]])
    values = np.concatenate([parts.order_least.astype(np.float64), -np.ones(len(mine))])
    program.add_rows("order", -np.inf, 0.0, rows, columns, values, index=np.arange(orders)[:, None])


def _add_limits(program: Program, data: PlanData, parts: PartLimits) -> None:
    """Add the limits on sites, on kinds and on the systems of a kind."""
    held = program.columns["n"]
    mine = parts.counted & (held >= 0)
    group, site = data.option_group[data.holding_option], data.option_site[data.holding_option]
    holding, window = np.nonzero(data.covers() & mine[:, None])
    shape = int(data.option_group.max(initial=-1)) + 1, data.windows
    there = np.zeros(shape, dtype=bool)
    there[group[holding], window] = True
    kept = program.add_columns("kept", shape, upper=1.0, integer=True, where=there)
    program.add_linking_rows(
        "kept",
        held[holding],
        kept[group[holding], window],
        holding_upper(data)[holding],
        np.column_stack([holding, window]),
    )
    groups, windows = np.nonzero(there)
    site_of = np.zeros(shape[0], dtype=np.int64)
    site_of[group] = site
    places = site_of[groups]
    if math.isfinite(parts.most_sites):
        stands = np.zeros(data.sites, dtype=bool)
        stands[places] = True
        occupied = program.add_columns("occupied", (data.sites,), upper=1.0, integer=True, where=stands)
        index = np.column_stack([groups, windows])
        program.add_linking_rows("in use", kept[groups, windows], occupied[places], 1.0, index)
        one = np.zeros(data.sites, dtype=np.int64)
        program.add_rows("sites", -np.inf, parts.most_sites, one, occupied, 1.0, count=1)
    if math.isfinite(parts.most_kinds):
        key, row = np.unique(places * data.windows + windows, return_inverse=True)
        index = np.column_stack(np.divmod(key, data.windows))
        program.add_rows("kinds", -np.inf, parts.most_kinds, row.reshape(-1), kept[groups, windows], 1.0, index=index)
    if parts.least_systems > 1:
        number = np.full(shape, -1)
        number[groups, windows] = np.arange(len(groups))
        rows = np.concatenate([np.arange(len(groups)), number[group[holding], window]])
        columns = np.concatenate([kept[groups, windows], held[holding]])
        values = np.concatenate([np.full(len(groups), float(parts.least_systems)), -np.ones(len(holding))])
        program.add_rows("enough", -np.inf, 0.0, rows, columns, values, index=np.column_stack([groups, windows]))
