"""How engines divide the memory of a chip: shares and reserves as they are shipped. The sums over weights and caches are in models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models.serving.constants import PORTED, ServingConstants
from planner.problem.engine import EngineSettings

MIB, GIB = 2.0**20, 2.0**30
# Working memory of a logit: 16 bit as computed, 32 bit as sampled, and the probabilities. Without a sampler of their own, engines that
# were ported sort them: values of 32 and places of 64 bit more.
LOGIT_BYTES, SORTED_LOGIT_BYTES = 12.0, 24.0
# Tokens and requests of the largest step: on chips from 70 GiB on, but for Ampere, and on others.
LARGE_STEP, STEP, LARGE_BYTES = (8192.0, 1024.0), (2048.0, 256.0), 70.0 * GIB
# Tokens of a chunk of prefill and requests of captured graphs, by the memory of a chip up to which they hold.
CHUNKS = (
    (35.0, 2048.0, 80.0),
    (60.0, 4096.0, 160.0),
    (90.0, 8192.0, 512.0),
    (160.0, 8192.0, 512.0),
    (float("inf"), 16384.0, 512.0),
)
PARALLEL_CHIPS = 8.0
# SGLang's pool of recurrent states: 0.9 of the memory of the KV cache (its default), and the states that a running request takes there:
# measured places of saturated runs of hybrid networks on H200 and B200 need 6.4 to 7.6 (prefix tree, overlap and speculation buffers).
STATE_POOL = (0.9 / 1.9, 7.0)


def with_memory(
    constants: ServingConstants, family: str, chip_bytes: float, settings: EngineSettings
) -> ServingConstants:
    """Set how an engine divides `chip_bytes` of memory of a chip of a family (`division`)."""
    changed: dict[str, Any] = division(family, chip_bytes, settings)
    return replace(constants, **changed)


def division(family: str, chip_bytes: float, settings: EngineSettings) -> dict[str, float]:
    """Return the constants by which an engine divides `chip_bytes` of memory of a chip of a family; one that is not named keeps its value.

    A static division also keeps a pool of states apart for networks that have them (`STATE_POOL`).
    share, static: cache = u M - weights - reserve; with "share" the working memory of the largest step belongs to the reserve.
    free: cache = u (M - weights - reserve), that step included.
    """
    share, rule = settings.memory_utilisation, settings.memory_rule
    if share is None:
        share = static_share(chip_bytes)
    kept = {} if settings.reserved_bytes is None else {"runtime_bytes": settings.reserved_bytes}
    if rule in ("plain", "static"):
        pool = STATE_POOL if rule == "static" else (0.0, 1.0)
        return {"usable_memory": share, **kept, "state_share": pool[0], "state_slots": pool[1]}
    tokens, requests = largest_step(family, chip_bytes)
    each = SORTED_LOGIT_BYTES if family in PORTED else LOGIT_BYTES
    usable, of_free = (1.0, share) if rule == "free" else (share, 1.0)
    return {
        "usable_memory": usable, **kept, "cache_share": of_free, "step_tokens": tokens, "step_requests": requests, "logit_bytes": each,
    }  # fmt: skip


def largest_step(family: str, chip_bytes: float) -> tuple[float, float]:
    """Return (tokens, requests) of the largest step that an engine profiles on a chip.

    Reference: vLLM, engine arguments (max_num_batched_tokens and max_num_seqs of its server by device).

    >>> largest_step("hopper", 85e9), largest_step("ampere", 85e9), largest_step("ada", 48e9)
    ((8192.0, 1024.0), (2048.0, 256.0), (2048.0, 256.0))
    """
    return LARGE_STEP if chip_bytes >= LARGE_BYTES and family != "ampere" else STEP


def static_share(chip_bytes: float) -> float:
    """Compute the share of a chip's memory that SGLang gives weights and cache:  1 - reserve / M.

    reserve = 512 MiB + 1.5 MiB per token of a chunk + 2 MiB per request of the captured graphs + 128 MiB per chip of tensor and pipeline
    parallelism (8 of them), at least 10 GiB on chips above 60 GiB. Reference: SGLang, server_args (mem_fraction_static).

    >>> round(static_share(81559 * 2**20), 3), round(static_share(24564 * 2**20), 3)
    (0.818, 0.806)
    """
    size = chip_bytes / GIB
    tokens, requests = next((tokens, requests) for most, tokens, requests in CHUNKS if size < most)
    reserve = 512.0 + 1.5 * tokens + 2.0 * requests + 128.0 * PARALLEL_CHIPS
    if size > 60.0:
        reserve = max(reserve, 10.0 * 1024.0)
    return 1.0 - reserve * MIB / chip_bytes
