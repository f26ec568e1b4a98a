"""Resolve the block `routing` of a workload: each statement becomes part of the architecture that it runs."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from models.transformer import routing
from models.transformer.architecture import Architecture
from planner.errors import Issue
from planner.messages import Message
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Serving, Training

Routed = Serving | Training | Reinforcement


def with_routing(shape: Architecture, workload: Routed) -> Architecture:
    """State the routing of a workload in its architecture; one without experts stays as it is."""
    block = workload.routing
    if block is None or not shape.experts:
        return shape
    stated = routing.Routing(
        block.popularity,
        block.imbalance,
        block.redundant_experts,
        block.most_domains or 0,
        inf if block.capacity_factor is None else block.capacity_factor,
        block.two_batches,
    )
    return replace(shape, routing=stated)


def wrong_routing(shape: Architecture, workload: Routed, path: str) -> list[Issue]:
    """List the problem of a routing without experts, or of copies of experts where nothing but training holds them."""
    if workload.routing is None:
        return []
    trained = workload.kind == "training" or (workload.kind == "reinforcement" and workload.algorithm == "dpo")
    if shape.experts and trained and workload.routing.redundant_experts:
        return [Issue(f"{path}.routing.redundant_experts", Message.of("resolve.experts_trained_once").text())]
    if shape.experts:
        return []
    return [Issue(f"{path}.routing", Message.of("resolve.no_experts", architecture=workload.architecture).text())]
