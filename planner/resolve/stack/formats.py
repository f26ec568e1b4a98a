"""Say how weights are held and multiplied: what a published checkpoint leaves in 16 bit, and which chips widen a format on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from models.arrays import sum_of
from models.formats import FORMATS, OPERAND_BITS, arithmetic_of, kind_of
from models.transformer.checkpoint import checkpoint_bytes, wide_shares
from planner.facts import Fact
from planner.messages import Message
from planner.problem.facts import ServingFacts, SystemFacts


def format_facts(workload: ServingFacts, network: str, systems: Iterable[SystemFacts]) -> Iterator[Fact]:
    """Note the formats of a workload's weights that a checkpoint mixes with 16 bit, and those that chips widen before they multiply.

    `network`: name of its record; `systems`: those that it may run on.
    """
    shape, chips = workload.architecture, {system.chip: system for system in systems}
    for precision in dict.fromkeys(workload.spec.precision):
        kind = kind_of(shape.checkpoints, precision)
        if share := sum_of(wide_shares(shape, precision).values()):
            size = float(checkpoint_bytes(shape, precision)) / 1e9
            told = Message.of("formats.mixed", architecture=network, format=kind, share=100.0 * share, gigabytes=size)
            yield Fact(f"{workload.path}.precision", told)
        widened: dict[str, list[str]] = {}
        for chip, system in sorted(chips.items()):
            used = arithmetic_of(precision, system.flop_per_s, workload.spec.arithmetic or "")
            if used is not None and OPERAND_BITS[used] > 8.0 * FORMATS[kind].value_bytes:
                widened.setdefault(used, []).append(chip)
        for used, names in widened.items():
            told = Message.of("formats.widened", chips=", ".join(names), format=kind, arithmetic=used)
            yield Fact(f"{workload.path}.precision", told)
