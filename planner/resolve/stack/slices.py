"""Slices of a chip, such as those of NVIDIA MIG: systems of one chip of which they have a share of the compute, the memory and the bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.records import Record
from planner.messages import Message
from planner.problem.facts import SystemFacts
from planner.resolve.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Slice:
    """Shares of a chip."""

    compute: float
    memory: float
    bandwidth: float

    @property
    def part(self) -> float:
        """Return the share of the chip that nothing else can use: the largest of its shares, by which power and carbon count."""
        return max(self.compute, self.memory, self.bandwidth)


def slice_of(record: Record, ledger: Ledger) -> Slice | None:
    """Read the shares of a system, 1 where one is not stated; None for a system of whole chips."""
    shares = [ledger.optional("systems", record.name, f"{name}_share") for name in ("compute", "memory", "bandwidth")]
    if shares == [None, None, None]:
        return None
    return Slice(*(1.0 if share is None else share for share in shares))


def sliced(whole: SystemFacts, mine: Slice, record: Record, ledger: Ledger) -> SystemFacts:
    """Return a slice of a system of one chip. Rates follow the share of compute, memory its own, and power, carbon and the link to the
    host the largest of all; a stated power is that of the slice."""
    power_w = whole.power_w
    if record.get("power_w") is None:
        power_w *= mine.part
        path, scope = f"systems/{whole.name}/power_w", ("energy", "*", whole.name)
        ledger.assumptions.pop(path, None)
        ledger.assume(path, power_w, "W", Message.of("slice.power", share=mine.part).text(), scope)
    return replace(
        whole,
        flop_per_s={name: rate * mine.compute for name, rate in whole.flop_per_s.items()},
        flop16_per_s=whole.flop16_per_s * mine.compute,
        attention8_flop_per_s=whole.attention8_flop_per_s * mine.compute,
        hbm_bytes=whole.hbm_bytes * mine.memory,
        hbm_bytes_per_s=whole.hbm_bytes_per_s * mine.bandwidth,
        host_bytes_per_s=whole.host_bytes_per_s * mine.part,
        embodied_kg=whole.embodied_kg * mine.part,
        power_w=power_w,
        idle_w=whole.idle_w / whole.power_w * power_w,
    )
