"""Size of a network's weights as they are stored in a format."""

from __future__ import annotations

from models.arrays import Result
from models.formats import PARTS, Precision, checkpoint_of, stored
from models.transformer.architecture import Architecture, parameter_counts


def checkpoint_bytes(arch: Architecture, precision: Precision) -> Result:
    """Compute the size of all weights in a format:  sum over parts of N_part x (wide share x 2 byte + the rest x narrow bytes).

    Parts are attention, feed-forward blocks, routed experts, router, and the tables of embedding and head, which are never below 8 bit.
    Shapes: as precision. Units: result [byte].
    Reference: `models.formats.Checkpoint` (what published checkpoints leave in 16 bit).

    >>> from models.formats import Checkpoint
    >>> from models.serving.examples import DENSE
    >>> round(float(checkpoint_bytes(DENSE, "bf16")) / 1e9, 1)
    16.1
    """
    count, width = parameter_counts(arch), stored(arch.checkpoints, precision)
    experts = count.moe_layers * arch.experts * count.per_expert
    return (
        count.attention * width.attention + count.dense_ffn * width.ffn + experts * width.experts
        + count.router * width.router + (count.embedding + count.head) * width.tables
    )  # fmt: skip


def wide_shares(arch: Architecture, precision: str) -> dict[str, float]:
    """Compute the shares of all parameters that the checkpoint of a format leaves in 16 bit, by part:  wide share x N_part / N.

    Shapes: scalars. Units: [1]. Reference: `models.formats.Checkpoint`.

    >>> from dataclasses import replace
    >>> from models.formats import Checkpoint
    >>> from models.serving.examples import DENSE
    >>> mixed = (("int4", Checkpoint("int4", tables=1.0)),)
    >>> {part: round(share, 3) for part, share in wide_shares(replace(DENSE, checkpoints=mixed), "int4").items() if share}
    {'tables': 0.131}
    """
    count, checkpoint = parameter_counts(arch), checkpoint_of(arch.checkpoints, precision)
    experts = count.moe_layers * arch.experts * count.per_expert
    each = (count.attention, count.dense_ffn, experts, count.router, count.embedding + count.head)
    return {part: getattr(checkpoint, part) * n / sum(each) for part, n in zip(PARTS, each, strict=True)}
