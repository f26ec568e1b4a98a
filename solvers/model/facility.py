"""The facility block: the systems of a site stand in no more racks than it has positions for.

Sets
    r            sites with a limited number of rack positions
    u            holdings; r(u) the site of its fleet option
    w            windows
Data
    racks_u      racks that one system of a holding takes; below 1 where several share a rack
    positions_r  rack positions of a site
Variables
    None of its own; n_u from the fleet block.
Objective
    None of its own.
Constraints
    racks        sum_{u at r, u covers w} racks_u n_u <= positions_r    for each r, w
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats
from solvers.model.data import PlanData
from solvers.program import Program


def add_facility(program: Program, data: PlanData) -> None:
    """Add the block, after the fleet block."""
    if data.site_racks is None or data.holding_racks is None:
        return
    held, site = program.columns["n"], data.option_site[data.holding_option]
    stands = (held >= 0) & (data.holding_racks > 0) & np.isfinite(data.site_racks)[site]
    holding, window = np.nonzero(data.covers() & stands[:, None])
    key, row = np.unique(site[holding] * data.windows + window, return_inverse=True)
    place, when = np.divmod(key, data.windows)
    program.add_rows(
        "racks",
        -np.inf,
        data.site_racks[place],
        row.reshape(-1),
        held[holding],
        data.holding_racks[holding],
        index=np.column_stack([place, when]),
    )


def rack_room(data: PlanData) -> Floats:
    """[U]: systems of a holding that the rack positions of its site have room for."""
    room = np.full(len(data.holding_option), np.inf)
    if data.site_racks is not None and data.holding_racks is not None:
        positions = data.site_racks[data.option_site[data.holding_option]]
        np.divide(positions, data.holding_racks, out=room, where=data.holding_racks > 0)
    return room
