"""Place the ranks of a training point on its network: the best order of the parallel dimensions against the usual numbering.

The search is in `models.network.placement` and `models.network.placement_torus`. Step times of a plan assume the usual numbering.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.network.designs import torus_trunk
from models.network.direct import torus_dims
from models.network.group_links import Plant, levels_of
from models.network.placement import Flow, best_placement
from models.network.placement_torus import best_torus_placement
from models.training.layouts import Layouts
from models.training.run import Run
from models.training.traffic import traffic
from planner.evaluate.layouts import recipe_of
from planner.problem.constants import ModelConstants
from planner.problem.facts import SystemFacts, TrainingFacts


def placement_of(
    job: TrainingFacts,
    system: SystemFacts,
    plant: Plant | None,
    layout: Mapping[str, int],
    precision: str,
    constants: ModelConstants,
) -> dict[str, Any] | None:
    """Find the order with the least time on the busiest link [s per step], and report the usual and the worst order beside it.

    None within one system, on a provider's network, and where whole dimensions do not fill the expert groups or the torus.
    """
    layouts = Layouts.of(**layout)
    chips = int(layouts.chips[0])
    if plant is None or chips <= plant.chips_per_system:
        return None
    run = Run.of(
        job.architecture,
        system.rates(precision),
        layouts,
        job.spec.sequence_tokens,
        precision,
        constants.training,
        system.family,
        recipe_of(job, precision),
    )
    try:
        degrees, flows = traffic(run, job.batch_sequences)
    except ValueError:
        return None
    if plant.design.kind == "torus":
        return _on_torus(plant, chips, degrees, flows)
    found = best_placement(degrees, flows, levels_of(plant))
    return _row(
        list(found.best.order), found.best.bottleneck_s, found.given.bottleneck_s, found.worst.bottleneck_s, found.tried
    )


def _on_torus(plant: Plant, chips: int, degrees: Mapping[str, int], flows: Sequence[Flow]) -> dict[str, Any] | None:
    """Place the ranks on a torus of exactly the systems at work."""
    systems = chips // plant.chips_per_system
    dims = torus_dims(systems, int(np.clip(plant.ports_per_system // 2, 1, 3)))
    link = float(torus_trunk(np.array(dims), plant.ports_per_system)) * plant.port_bytes_per_s
    if systems * plant.chips_per_system != chips or math.prod(dims) != systems or not link:
        return None
    try:
        found = best_torus_placement(degrees, flows, dims, link, node_chips=plant.chips_per_system)
    except ValueError:
        return None
    given = None if found.given is None else found.given.bottleneck_s
    orders = [list(axes) for axes in found.best.orders]
    factors = {axis: list(ranks) for axis, ranks in found.best.factors.items()}
    return _row(orders, found.best.bottleneck_s, given, found.worst.bottleneck_s, found.tried) | {"factors": factors}


def _row(order: Sequence[Any], best_s: float, given_s: float | None, worst_s: float, tried: int) -> dict[str, Any]:
    """Write a placement as the row of a plan document."""
    return {"order": order, "busiest_link_s": best_s, "in_number_order_s": given_s, "worst_s": worst_s, "tried": tried}
