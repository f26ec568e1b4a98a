"""Plan rows of the path by which the pools of a deployment exchange KV caches or weights. `planner.verify.points.paths` writes them a second time."""

from __future__ import annotations

import math
from typing import Any

from models.training.memory import WEIGHT_BYTES
from models.transformer.architecture import parameter_counts
from planner.candidates.points import OperatingPoint, Use
from planner.problem.fabrics import exchange_bytes_per_s

NETWORK, SCALE_UP = "network", "scale-up"
SYNCHRONISATION = "synchronisation"  # part of an iteration


def path_row(point: OperatingPoint) -> dict[str, Any] | None:
    """State kind, design, size, bandwidth and use of the path between the pools of a point; None where nothing is exchanged.

    Of prefill and decode: the links of the pool with fewer chips, conversion included, and the caches at full load. Of reinforcement
    learning: the trained weights over the narrower pool, and the share of an iteration that they take.
    """
    use, other = point.uses[0], point.uses[-1]
    if point.links_s is not None:
        systems = use.option.system, other.option.system
        link = min(each.option.scaleout_bytes_per_s for each in (use, other))
        links = min(each.workers * math.prod(each.layout[size] for size in ("tp", "pp", "dp")) for each in (use, other))
        rate = links * exchange_bytes_per_s(point.serving.spec, systems, link)
        return _row(use, NETWORK, rate, point.capacity * point.links_s)
    if point.iteration is None or point.iteration["rollout"] is None:
        return None
    rate = min(_rate(each) for each in (use, other))
    moved = WEIGHT_BYTES * float(parameter_counts(point.workload.architecture).total)
    kind = NETWORK if use is not other or use.systems - use.spares > 1 else SCALE_UP
    seconds = point.iteration["iteration_s"]
    row = _row(use, kind, rate, point.iteration["parts_s"][SYNCHRONISATION] / seconds)
    return row | {"used_bytes_per_s": moved / seconds}


def _rate(use: Use) -> float:
    """Compute the bandwidth of all chips at work in a pool [byte/s]: over the network, or within the scale-up domain where there is none."""
    chips = (use.systems - use.spares) * use.option.system.chips
    return chips * (use.option.scaleout_bytes_per_s or use.option.system.scaleup_bytes_per_s)


def _row(use: Use, kind: str, bytes_per_s: float, share: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "design": use.option.fabric,
        "size": use.option.size,
        "bytes_per_s": bytes_per_s,
        "used_bytes_per_s": share * bytes_per_s,
        "share": share,
    }
