"""Size of a network's weights as they are stored in a format."""

from __future__ import annotations

import numpy as np

from models.arrays import Result, as_result, sum_of
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
    return (
        count.attention * width.attention + count.dense_ffn * width.ffn + expert_bytes(arch, precision)
        + count.router * width.router + (count.embedding + count.head) * width.tables
    )  # fmt: skip


def expert_bytes(arch: Architecture, precision: Precision) -> Result:
    """Compute the size of the routed experts in a format, of `checkpoint_bytes`.

    Shapes: as precision. Units: result [byte]. Reference: as `checkpoint_bytes`.

    >>> from models.serving.examples import DENSE, MOE
    >>> float(expert_bytes(DENSE, "bf16")), float(expert_bytes(MOE, "bf16")) < float(checkpoint_bytes(MOE, "bf16"))
    (0.0, True)
    """
    count = parameter_counts(arch)
    return count.moe_layers * arch.experts * count.per_expert * stored(arch.checkpoints, precision).experts


def tensor_count(arch: Architecture) -> Result:
    """Count the tensors of a network's weights, each expert's matrices by themselves:  the tensors of its blocks, a norm for each, tables and last norm.

    Attention has 4 matrices (query, key, value, output), with a latent 5 and the norms of its latents; a linear or state-space block is taken as as
    many. A feed-forward block has its 2 or 3 matrices, one of experts E + 1 times as many and a router where experts are shared, else E times.
    Shapes: as the architecture. Units: result [1]. Biases, scales and indexers are not counted.
    Reference: names of tensors in the published checkpoints of Llama 3.1 8B (291) and Qwen3-30B-A3B (18,867, of which 96 norms of query and key).

    >>> from models.serving.examples import DENSE
    >>> float(tensor_count(DENSE))
    291.0
    """
    mixing = np.asarray(arch.attention_blocks, float) + arch.state_blocks
    attention = 7.0 if arch.mla else 4.0
    shared = np.asarray(arch.shared_width) > 0
    routed = arch.moe_layers * (arch.ffn_matrices * (np.asarray(arch.experts, float) + shared) + 1.0)
    dense = (np.asarray(arch.ffn_layers, float) - arch.moe_layers) * arch.ffn_matrices
    norms = mixing + arch.ffn_layers
    return as_result(mixing * attention + dense + routed + norms + 2.0 + np.where(arch.tied, 0.0, 1.0))


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
    return {part: getattr(checkpoint, part) * n / sum_of(each) for part, n in zip(PARTS, each, strict=True)}
