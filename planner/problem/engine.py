"""Which engine and compiler serve a workload, what an operator sets of them, and what own measurements say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from models.serving.many_runs import UNCAPPED
from models.serving.software import Software


@dataclass(frozen=True, slots=True)
class Correction:
    """Measured over predicted of the user's own runs: factors on TPOT, TTFT, and throughput, and the engine that they were found with."""

    tpot: float = 1.0
    ttft: float = 1.0
    throughput: float = 1.0
    engine: str = ""

    def inverse(self) -> Correction:
        """Return the factors that undo these."""
        return Correction(1.0 / self.tpot, 1.0 / self.ttft, 1.0 / self.throughput)

    def in_two_pools(self, decode: Correction) -> Correction:
        """Return the correction of two pools, of which this is that of prefill: it sets TTFT, and the worse one the throughput."""
        return Correction(decode.tpot, self.ttft, min(self.throughput, decode.throughput), decode.engine)


NONE = Correction()


MemoryRule = Literal["plain", "share", "static", "free"]


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings of the engine of one workload."""

    memory_utilisation: float | None  # share of a chip's memory that it fills; None: what its own rule leaves
    limit_factor: float = (
        UNCAPPED  # on its usual limit on running requests: as far as submitters of benchmarks raise it
    )
    base: str = ""  # the engine whose fitted factors hold; "" where the spec names none
    eager: bool | None = None  # whether the host starts each kernel; None: as the engine does on the generation
    software: tuple[Software, ...] = ()  # what its record and that of the compiler state
    corrections: tuple[tuple[str, str, Correction], ...] = ()  # chip, precision of the weights, factors
    # Whether the share holds the working memory of the largest step (share), stands beside it (static), is of what weights and that step
    # leave (free), or holds weights, caches and runtime alone (plain).
    memory_rule: MemoryRule = "plain"
    reserved_bytes: float | None = None  # context, buffers and graphs; None: those of the measured runs

    def measured_engine(self, chip: str) -> str | None:
        """Return the engine of the user's own runs on a chip; None where there are none."""
        return next((found.engine for at, _, found in self.corrections if at == chip), None)

    def correction(self, chip: str, precision: str) -> Correction:
        """Look up the correction of a chip and a precision; none where the user measured neither."""
        return next((found for at, of, found in self.corrections if (at, of) == (chip, precision)), NONE)


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What a plan chooses of how an engine runs, besides its layout and batch."""

    precision: str  # weights and matrix products
    kv_precision: str  # KV cache
    waiting: str = ""  # where the caches of sessions wait, as in `models.serving.sessions`; empty without sessions
    encoding: str = ""  # where media are encoded: "beside" the engine, or "apart"; empty without media
