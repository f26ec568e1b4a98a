"""Say how weights are held and multiplied: what a published checkpoint leaves in 16 bit, and which chips widen a format on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from models.formats import FORMATS, OPERAND_BITS, PARTS, arithmetic_of, checkpoint_of
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.checkpoint import checkpoint_bytes
from planner.facts import Fact
from planner.messages import Message
from planner.problem.facts import ServingFacts, SystemFacts


def format_facts(workload: ServingFacts, network: str, systems: Iterable[SystemFacts]) -> Iterator[Fact]:
    """Note the formats of a workload's weights that a checkpoint mixes with 16 bit, and those that chips widen before they multiply.

    `network`: name of its record; `systems`: those that it may run on.
    """
    shape, chips = workload.architecture, {system.chip: system for system in systems}
    for precision in dict.fromkeys(workload.spec.precision):
        kind = checkpoint_of(shape.checkpoints, precision).kind
        if share := wide_share(shape, precision):
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


def wide_share(shape: Architecture, precision: str) -> float:
    """Compute the share of the parameters that the checkpoint of a format leaves in 16 bit [1]; 0 where none is known to."""
    count, checkpoint = parameter_counts(shape), checkpoint_of(shape.checkpoints, precision)
    parts = (
        count.attention, count.dense_ffn, count.moe_layers * shape.experts * count.per_expert, count.router,
        count.embedding + count.head,
    )  # fmt: skip
    wide = sum(n * getattr(checkpoint, part) for n, part in zip(parts, PARTS, strict=True))
    return float(wide / sum(parts))
