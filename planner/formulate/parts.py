"""Program data of limits on the parts of a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.formulate.costs import Holding
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API
from solvers.model.block_data.parts import PartLimits


def part_limits(
    problem: ResolvedSpec, fleet_options: Sequence[FleetOption], holdings: Sequence[Holding]
) -> dict[str, Any]:
    """Build the field of `PlanData`; none where the spec limits no parts, no offer has a least count and nothing is rented already."""
    asked = problem.spec.simplicity
    ordered = {offer.path: offer.least for offer in problem.offers if offer.least > 1 and not offer.stated_at}
    rented = {offer.path: int(offer.supply) for offer in problem.offers if offer.rented is not None}
    ordered |= rented
    if not asked.limits and not ordered:
        return {}
    counted = np.array([fleet_options[k].offer.how != API for k, _ in holdings], dtype=bool)
    most = [math.inf if limit is None else float(limit) for limit in (asked.most_sites, asked.most_kinds)]
    place = {path: i for i, path in enumerate(ordered)}
    order = [place.get(fleet_options[k].offer.order, -1) for k, _ in holdings]
    return {
        "parts": PartLimits(
            counted=counted,
            most_sites=most[0],
            most_kinds=most[1],
            least_systems=asked.least_systems or 1,
            order=np.array(order, dtype=np.int64) if ordered else None,
            order_least=np.array(list(ordered.values()), dtype=np.int64),
            order_placed=np.array([path in rented for path in ordered], dtype=bool),
        )
    }
