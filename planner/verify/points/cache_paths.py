"""Compute the paths from tiers of KV cache to the chips of a point again, from its row and the spec: bandwidth, and what requests read of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from models.formats import element_bytes
from models.transformer.attention import kv_bytes
from planner.evaluate.serving import lengths_of
from planner.messages import Message
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.verify.fleet.options import CheckedOption
from planner.verify.points.evaluated import Recomputed
from planner.verify.points.serving import choice_of


def cache_paths_of(
    workload: ServingFacts | TrainingFacts,
    options: Sequence[CheckedOption],
    row: Mapping[str, Any],
    found: Recomputed,
) -> list[dict[str, Any]]:
    """Build the expected rows of a point: one for each tier outside the memory of the chips, in the order of the tiers.

    Raises ValueError where the model reads from more or fewer tiers than spec and system have.
    """
    if not isinstance(workload, ServingFacts) or not found.loads:
        return []
    pool, tiers = row["pools"][0], list(_tiers(workload, options[0]))
    if len(tiers) != len(found.loads):
        told = {"point": row["id"], "tiers": len(tiers), "read": len(found.loads)}
        raise ValueError(Message.of("path.verify_tiers_read", **told).text())
    layout = pool["layout"]
    worker_share = layout["tp"] * layout["pp"] * layout["dp"] / options[0].system.chips
    read = row["capacity"] * _bytes_read(workload, options[0], row)
    rows = []
    for (name, of_system), share in zip(tiers, found.loads, strict=True):
        if math.isfinite(of_system):
            rate = of_system * worker_share * pool["workers"]
            rows.append(
                {"tier": name, "bytes_per_s": rate, "used_bytes_per_s": read * share, "share": read * share / rate}
            )
    return rows


def _tiers(workload: ServingFacts, option: CheckedOption) -> Iterator[tuple[str, float]]:
    """Yield (tier, rate at which all chips of one system read from it [byte/s]); infinite for the memory of the chips."""
    asked, system = workload.spec, option.system
    if asked.session is not None:
        yield "dram", system.host_bytes_per_s * system.chips
        return
    assert asked.cache is not None  # as something is read
    for tier in asked.cache.tiers:
        yield tier.name, math.inf if tier.name == "hbm" or tier.bandwidth is None else tier.bandwidth
    if asked.cache.reuse is None:
        if not asked.cache.tiers:  # a stated hit rate: prefixes stay in the memory of the chips
            yield "hbm", math.inf
    elif system.kv_tiers is not None:
        for bought in system.kv_tiers.tiers:
            yield bought.name, bought.bytes_per_s


def _bytes_read(workload: ServingFacts, option: CheckedOption, row: Mapping[str, Any]) -> float:
    """Compute the cache that a request reads where it finds one: the prefix, or what a session left [byte]."""
    asked, pool = workload.spec, row["pools"][0]
    choice = choice_of(workload, option, pool)
    if asked.session is None:
        assert asked.cache is not None  # as something is read
        tokens = float(asked.cache.prefix_tokens)
    else:
        first, block = lengths_of(workload, choice), asked.session
        more = block.calls - 1.0  # calls after the first of a task, whose number varies by the square of calls_cv
        before = ((1.0 + block.calls_cv**2 * (block.calls / more) ** 2) * more + 1.0) / 2.0
        tokens = float(first.prompt + before * (block.growth + first.output) - block.growth)
        if pool["role"] == "prefill":  # which no answer returns to
            tokens -= float(first.output)
    return float(kv_bytes(workload.architecture, tokens, element_bytes(choice.kv_precision)))
