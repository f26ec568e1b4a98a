"""Tell which programs the decomposition covers and pays off for, without loading it. Not here: the search itself (`solvers.decomposition.solve`)."""

from __future__ import annotations

import numpy as np

from solvers.model.data import COST, PlanData
from solvers.model.fabric import exceedable
from solvers.model.routing import capacity_is_equality

MIN_COLUMNS = 200_000  # columns of the full program from which on a solver does not finish it in one piece


def supports(data: PlanData) -> bool:
    """Whether nothing but first-stage variables ties the slots together."""
    parts = (
        data.lines,
        data.spread,
        data.meters,
        data.wait_slots,
        data.scenarios,
        data.ports,
        data.choice,
        data.point_restart_s,
        data.site_storage,
        data.holding_lower,
        data.hourly,
        data.supply_used,
        data.parts,
    )
    parted = not exceedable(data).any()
    once = not any(
        np.any(part.get(limit.functional, 0.0)) for limit in data.limits for part in (data.point_cost, data.arc_cost)
    )
    some = data.objective.functional == COST and data.slots > 0 and bool((data.job_work > 0).all())
    return all(part is None for part in parts) and parted and once and some and not capacity_is_equality(data).any()


def pays_off(data: PlanData) -> bool:
    """Whether the whole program is too large for a solver to finish in one piece."""
    return data.slots > 1 and estimated_columns(data) >= MIN_COLUMNS


def estimated_columns(data: PlanData) -> int:
    """Estimate the number of columns of the full program."""
    return int(
        data.slots * (len(data.arc_site) + (data.point_pool >= 0).sum())
        + (
            data.job_window_mask.sum(axis=1)
            * np.bincount(data.point_job[data.point_job >= 0], minlength=len(data.job_work))
        ).sum()
        if len(data.job_work)
        else data.slots * (len(data.arc_site) + len(data.point_pool))
    )
