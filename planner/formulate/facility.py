"""Program data of a site's hall: rack positions, and the racks that systems take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.formulate.costs import Holding
from planner.problem.facts import ResolvedSpec, racks_per_system


def facility_arrays(
    problem: ResolvedSpec, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding]
) -> dict[str, Any]:
    """Build the fields of `PlanData`; none where no site's rack positions are limited."""
    positions = np.array([site.hall.positions for site in problem.sites], dtype=float)
    if not np.isfinite(positions).any():
        return {}
    racks = [racks_of(option) for option in fleet_options]
    return {"site_racks": positions, "holding_racks": np.array([racks[k] for k, _ in holdings], dtype=float)}


def racks_of(option: FleetOption) -> float:
    """Compute the rack positions that one system of a fleet option takes; 0 for a rented one."""
    return racks_per_system(option.system, option.site, option.offer)


def rack_room(option: FleetOption) -> float:
    """Compute the systems of a fleet option for which the site has rack positions; infinite where nothing limits them."""
    racks = racks_of(option)
    return option.site.hall.positions / racks if racks else math.inf
