"""Pairs of fleet options on which the two pools of one deployment may stand: systems with a network between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.candidates.fleet_options import FleetOption
from planner.problem.fabrics import may_exchange, may_share_a_network
from planner.spec.workloads import Serving


def connected_pairs(fleet_options: Sequence[FleetOption]) -> Iterator[tuple[FleetOption, FleetOption]]:
    """List the pairs of fleet options (prefill and decode, or update and rollout) that share a network, which no two sites do.

    Owned ones on the same fabric design are paired with each other, a rented one only with itself.
    """
    for first in fleet_options:
        for second in fleet_options:
            if may_share_a_network(first, second) and min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) > 0:
                yield first, second


def exchanging_pairs(
    workload: Serving, fleet_options: Sequence[FleetOption]
) -> tuple[list[tuple[FleetOption, FleetOption]], int]:
    """List the connected pairs whose engines exchange KV caches, and count the pairs of two vendors that the workload does not allow."""
    pairs = list(connected_pairs(fleet_options))
    able = [pair for pair in pairs if may_exchange(workload, *(option.system for option in pair))]
    return able, len(pairs) - len(able)
