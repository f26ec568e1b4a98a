"""The storage block: the jobs of a site read and write no faster than its storage permits.

Sets
    r            sites with limited storage bandwidth
    p            operating points of jobs
    t            slots
Data
    bytes_p      bandwidth that a job takes at full width [bytes/s]
    bandwidth_r  bandwidth of the site's storage [bytes/s]
Variables
    None of its own.
Objective
    None of its own.
Constraints
    storage      sum_{p at r} bytes_p v_{p,t} <= bandwidth_r    for each r, t
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats
from solvers.model.data import PlanData
from solvers.program import Program


def add_storage(program: Program, data: PlanData) -> None:
    """Add the block, after the schedule block."""
    if data.site_storage is None or data.point_storage is None:
        return
    share, site = program.columns["v"], data.point_site()
    limited = np.isfinite(data.site_storage)[site] & (data.point_storage > 0)
    point, slot = np.nonzero((share >= 0) & limited[:, None])
    key, row = np.unique(site[point] * data.slots + slot, return_inverse=True)
    place, at = np.divmod(key, data.slots)
    program.add_rows(
        "storage",
        -np.inf,
        data.site_storage[place],
        row.reshape(-1),
        share[point, slot],
        data.point_storage[point],
        index=np.column_stack([place, at]),
    )


def storage_width(data: PlanData) -> Floats:
    """[P]: largest share of a job's width that the storage of its site can feed."""
    width = np.ones(len(data.point_pool))
    if data.site_storage is not None and data.point_storage is not None:
        np.divide(data.site_storage[data.point_site()], data.point_storage, out=width, where=data.point_storage > 0)
    return np.minimum(width, 1.0)
