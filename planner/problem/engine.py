"""Which engine and compiler serve a workload, and what an operator sets of them."""

from __future__ import annotations

from dataclasses import dataclass

from models.serving.many_runs import UNCAPPED
from models.serving.software import Software


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the engine of one workload."""

    memory_utilisation: float  # share of a chip's memory that weights, KV cache and activations may fill
    limit_factor: float = (
        UNCAPPED  # on its usual limit on running requests: as far as submitters of benchmarks raise it
    )
    base: str = ""  # the engine whose fitted factors hold; "" where the spec names none
    software: tuple[Software, ...] = ()  # what its record and that of the compiler state


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What a plan chooses of how an engine runs, besides its layout and batch."""

    precision: str  # of the weights and matrix products
    kv_precision: str  # of the KV cache
    waiting: str = ""  # where the caches of sessions wait, as in `models.serving.sessions`; empty without sessions
    encoding: str = ""  # where media are encoded: "beside" the engine, or "apart"; empty without media
