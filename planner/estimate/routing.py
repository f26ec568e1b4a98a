"""State what the routing of a workload does to the experts of a point: copies held, fullest rank, share of tokens dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.serving.decode import ServingLayouts, held_experts
from models.training.layouts import Layouts
from models.training.run import dispatched_tokens
from models.transformer.architecture import Architecture
from models.transformer.routing import Routing


def decode_routing(arch: Architecture, layout: ServingLayouts, sequences: float) -> dict[str, Any]:
    """State it for decode steps of a number of sequences in one layout; nothing where no routing is stated."""
    if arch.routing is None:
        return {}
    held, ranks = float(np.ravel(held_experts(arch, layout))[0]), int(np.ravel(layout.ep)[0])
    tokens = float(np.ravel(layout.in_stage(sequences))[0])
    return {"routing": {"held_experts": int(held), **_load(arch, arch.routing, held, ranks, tokens)}}


def training_routing(arch: Architecture, layout: Layouts, sequence_tokens: int) -> dict[str, Any]:
    """State it for a micro-batch of training in one layout; nothing where no routing is stated."""
    if arch.routing is None:
        return {}
    ranks = int(layout.ep[0])
    tokens = float(dispatched_tokens(layout, sequence_tokens)[0]) * ranks
    return {"routing": _load(arch, arch.routing, arch.experts, ranks, tokens)}


def _load(arch: Architecture, routing: Routing, held: float, ranks: int, tokens: float) -> dict[str, Any]:
    excess = routing.excess(arch.experts, held, ranks)
    return {
        "fullest_rank": None if excess is None else float(excess),
        "dropped_share": 1.0 - float(routing.kept(arch.experts, arch.topk, tokens)),
    }
