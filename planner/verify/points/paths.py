"""Compute the path between the pools of a point again, from its row: what it is, its bandwidth, and what is used of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.transformer.architecture import parameter_counts
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.fleet.options import CheckedOption
from planner.verify.points.evaluated import Recomputed
from planner.verify.points.exchange import stands_apart

BYTES = 2.0  # a trained weight, as it is sent


def path_of(
    workload: ServingFacts | TrainingFacts,
    options: Sequence[CheckedOption],
    row: Mapping[str, Any],
    found: Recomputed,
) -> dict[str, Any] | None:
    """Build the expected path of a point: caches between prefill and decode, weights between update and rollout; None where nothing is exchanged."""
    first, second, pools = options[0], options[-1], row["pools"]
    if isinstance(workload, ServingFacts) and found.links_s is not None and stands_apart(row):
        return dict(row["path"])  # which `planner.verify.load.exchange` compares with the lines rented
    if isinstance(workload, ReinforcementFacts) and stands_apart(row):
        return dict(row["path"])  # likewise
    path: dict[str, Any] = {"kind": "network", "design": pools[0]["topology"], "size": pools[0]["network_size"]}
    if found.links_s is not None and isinstance(workload, ServingFacts):
        chips = [_chips_of_workers(pool) for pool in pools]
        second_per_byte = 1.0 / min(option.scaleout_bytes_per_s for option in options)
        if first.system.vendor != second.system.vendor and workload.spec.kv_exchange is not None:
            second_per_byte += 1.0 / workload.spec.kv_exchange.conversion
        rate = min(chips) / second_per_byte
        share = row["capacity"] * found.links_s
        return path | {"bytes_per_s": rate, "used_bytes_per_s": rate * share, "share": share}
    if found.iteration is None or found.iteration["rollout"] is None:
        return None
    at_work = [pool["systems_per_replica"] - pool.get("spares", 0.0) for pool in pools]
    rates = [
        count * option.system.chips * (option.scaleout_bytes_per_s or option.system.scaleup_bytes_per_s)
        for count, option in zip(at_work, options, strict=True)
    ]
    if len(pools) == 1 and at_work[0] <= 1:
        path["kind"] = "scale-up"
    seconds = found.iteration["iteration_s"]
    weights = BYTES * float(parameter_counts(workload.architecture).total)
    share = found.iteration["parts_s"]["synchronisation"] / seconds
    return path | {"bytes_per_s": min(rates), "used_bytes_per_s": weights / seconds, "share": share}


def _chips_of_workers(pool: Mapping[str, Any]) -> int:
    """Count the chips of the workers of a pool in one replica."""
    layout = pool["layout"]
    return int(pool["workers"] * layout["tp"] * layout["pp"] * layout["dp"])
