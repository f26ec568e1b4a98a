"""Plan rows of scale-out fabrics."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from planner.candidates.fleet_options import Lot
from planner.interpret.decisions import Decisions
from planner.problem.fabric_rows import fabric_row, other_designs


def fabric_rows(decided: Decisions) -> list[dict[str, Any]]:
    """The networks between our own systems, in whole parts, and what the systems' shares of them come to."""
    held: dict[tuple[str, str, str, int], np.ndarray] = {}
    charged: dict[tuple[str, str, str, int], float] = defaultdict(float)
    lots: dict[tuple[str, str, str, int], Lot] = {}
    for _, count, lot, mask in decided.held():
        if lot.plant is not None:
            key = (lot.site.region, lot.system.name, lot.fabric, lot.plant.systems)
            held[key] = held.get(key, 0) + count * mask
            charged[key] += count * lot.fabric_capital
            lots[key] = lot
    return [
        {"site": site, "system": system, "design": design, "size": size, "systems": count}
        | fabric_row(lot.plant, count, charged[site, system, design, size], lot.site.network)
        | {"instead": other_designs(lot.site, lot.system, design, count)}
        for (site, system, design, size), counts in held.items()
        for lot, count in ((lots[site, system, design, size], int(counts.max())),)
    ]
