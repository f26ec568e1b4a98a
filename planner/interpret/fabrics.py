"""Plan rows of scale-out fabrics."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.interpret.decisions import Decisions
from planner.problem.fabric_rows import fabric_row, other_designs


def fabric_rows(decided: Decisions) -> list[dict[str, Any]]:
    """The networks between our own systems, in whole parts, and what the systems' shares of them come to."""
    held: dict[tuple[str, str, str, int], np.ndarray] = {}
    charged: dict[tuple[str, str, str, int], float] = defaultdict(float)
    fleet_options: dict[tuple[str, str, str, int], FleetOption] = {}
    for _, count, option, mask in decided.held():
        if option.plant is not None:
            key = (option.site.region, option.system.name, option.fabric, option.plant.systems)
            held[key] = held.get(key, 0) + count * mask
            charged[key] += count * option.fabric_capital
            fleet_options[key] = option
    return [
        {"site": site, "system": system, "design": design, "size": size, "systems": count}
        | fabric_row(option.plant, count, charged[site, system, design, size], option.site.network)
        | {"instead": other_designs(option.site, option.system, design, count)}
        for (site, system, design, size), counts in held.items()
        for option, count in ((fleet_options[site, system, design, size], int(counts.max())),)
    ]
