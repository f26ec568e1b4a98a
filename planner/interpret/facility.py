"""Plan rows of halls: the racks that systems of our own fill, with their power and cooling."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import Floats, sum_of
from planner.problem.facility import OPEN, HallFacts, RackFacts
from planner.problem.limit_labels import LimitLabel, rack_positions, rack_power

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions


def facility_limits(decided: Decisions) -> Iterator[tuple[LimitLabel, float, float, str]]:
    """Yield (key, value, limit, unit): the most racks filled at once, and the power of the fullest rack, of each limited hall."""
    held = _own_systems(decided)
    for site in decided.problem.sites:
        hall = site.hall
        mine = [(rack, counts) for (region, _), (_, rack, counts) in held.items() if region == site.region]
        if math.isfinite(hall.positions):
            racks = sum_of(
                (hall.racks_per_system(rack) * counts for rack, counts in mine),
                np.zeros(decided.problem.calendar.slots),
            )
            yield rack_positions(site), float(racks.max()), hall.positions, "rack"
        if math.isfinite(hall.rack_w):
            yield rack_power(site), max((_fullest_w(hall, rack) for rack, _ in mine), default=0.0), hall.rack_w, "W"


def facility_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each kind of our own systems in a hall that states a limit."""
    return [
        {
            "site": region,
            "system": system,
            "systems": int(counts.max()),
            "racks_per_system": hall.racks_per_system(rack),
            "racks": hall.racks_per_system(rack) * int(counts.max()),
            "rack_power_w": _fullest_w(hall, rack),
            "cooling": [kind for kind in hall.cooling if kind in rack.cooling],
        }
        for (region, system), (hall, rack, counts) in _own_systems(decided).items()
    ]


def _own_systems(decided: Decisions) -> dict[tuple[str, str], tuple[HallFacts, RackFacts, Floats]]:
    """Count our own systems by slot at each site whose hall states a limit, by region and name."""
    held: dict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(decided.problem.calendar.slots))
    kinds: dict[tuple[str, str], tuple[HallFacts, RackFacts]] = {}
    for _, count, option, mask in decided.held():
        if option.owned and option.site.hall != OPEN and option.system.rack is not None:
            key = option.site.region, option.system.name
            kinds[key] = option.site.hall, option.system.rack
            held[key][mask] += count
    return {key: (*kinds[key], counts) for key, counts in held.items()}


def _fullest_w(hall: HallFacts, rack: RackFacts) -> float:
    """Compute the nameplate power of the fullest rack of a system [W]."""
    return hall.systems_in_rack(rack) * rack.least_rack_w
