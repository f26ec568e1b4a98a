"""Traffic of a training step by parallel dimension, which `placement` places.

Bytes only, whether or not they hide behind computation; how long they take is in the modules beside it.
"""

from __future__ import annotations

import math

from models.network.placement import Flow
from models.training.memory import parameters_per_rank, trained_per_rank
from models.training.run import ACTIVATION_BYTES, Run

GRADIENTS_AND_WEIGHTS = 2.0  # a reduce-scatter and an all-gather
GATHERS = 2.0  # ZeRO-3: weights gathered forward and backward, besides the gradients that are scattered
BACK_AND_FORTH = 2.0


def traffic(run: Run, global_batch_sequences: int) -> tuple[dict[str, int], list[Flow]]:
    """List (degrees of the dimensions above one, fastest first; flows of a step) of the run's one layout.

    Bytes that a rank sends: tp 4 (t-1)/t 2 M h per block and micro-batch; cp 3 (c-1)/c of keys and values; dp 2 (d-1)/d 2 n (ZeRO-3
    without pipeline 3 m (d-1)/d 2 n); ep 4 (e-1)/e k 2 M h per MoE layer and micro-batch; pp 2 v 2 M h / tp per micro-batch.
    Experts lie on the first ranks of a stage, so dimensions that they share in part are in two: "dp in ep" and "dp".
    Shapes: scalar layout. Units: flows [byte per rank and step]. Raises ValueError where the experts' ranks are no whole dimensions.
    Reference: the collectives of `exchange`, `step.data_parallel_s` and `step.pipeline_transfer_s`; Narayanan et al.,
    arXiv:2104.04473, section 3.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> degrees, flows = traffic(Run.of(DENSE, CHIP, Layouts.of(tp=8, dp=4, pp=2), 4096, "bf16", TRAINING, "hopper", Recipe()), 64)
    >>> degrees, [(flow.axes, round(flow.bytes_per_rank / 1e9, 1)) for flow in flows]
    ({'tp': 8, 'dp': 4, 'pp': 2}, [(('tp',), 60.1), (('dp',), 1.5), (('pp',), 0.1)])
    """
    layouts, arch = run.layouts, run.arch
    tp, cp, dp, pp, ep = (int(size[0]) for size in (layouts.tp, layouts.cp, layouts.dp, layouts.pp, layouts.ep))
    degrees, within, without = _dimensions({"tp": tp, "cp": cp, "dp": dp}, ep)
    micro_batches = float(layouts.micro_batches(global_batch_sequences)[0])
    tokens, expert_tokens, stream = float(run.tokens[0]), float(run.expert_tokens[0]), ACTIVATION_BYTES * arch.hidden

    blocks = arch.blocks
    elements = arch.heads * (arch.qk_dim + arch.v_dim) if arch.mla else 2.0 * arch.kv_heads * arch.head_dim
    every = (float(part[0]) for part in parameters_per_rank(arch, layouts, run.recipe.mtp_layers))
    trained = (float(part[0]) for part in trained_per_rank(arch, layouts, run.recipe))
    sharded = int(layouts.zero[0]) == 3 and pp == 1
    dense, expert = (
        micro_batches * (GATHERS * whole + part) if sharded else GRADIENTS_AND_WEIGHTS * part
        for whole, part in zip(every, trained, strict=True)
    )
    shared = cp * dp if ep == 1 else tp * cp * dp // ep
    own = tuple(axis for axis in within + without if axis.partition(" ")[0] != "tp")
    tensor = tuple(axis for axis in within + without if axis.partition(" ")[0] == "tp")
    sends = [
        (tensor, 2.0 * BACK_AND_FORTH * _others(tp) * blocks / pp * micro_batches * tokens * stream, "ring"),
        (tuple(a for a in own if a.startswith("cp")), 3.0 * _others(cp) * ACTIVATION_BYTES * elements * tokens * cp / tp * arch.attention_blocks / pp * micro_batches, "ring"),
        (own, _others(cp * dp) * ACTIVATION_BYTES * dense, "ring"),
        (without if ep > 1 else own, _others(shared) * ACTIVATION_BYTES * expert, "ring"),
        (within, 2.0 * BACK_AND_FORTH * _others(ep) * arch.topk * ACTIVATION_BYTES * arch.expert_input * expert_tokens * arch.moe_layers / pp * micro_batches, "all-to-all"),
        (("pp",), BACK_AND_FORTH * int(layouts.vpp[0]) * micro_batches * tokens * stream / tp * (pp > 1), "line"),
    ]  # fmt: skip
    degrees |= {"pp": pp} if pp > 1 else {}
    return degrees, [Flow(axes, float(size), pattern) for axes, size, pattern in sends if axes and size > 0.0]


def _others(group: int) -> float:
    return (group - 1.0) / group


def _dimensions(stage: dict[str, int], ep: int) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Split the dimensions into (degrees, axes within the experts' group, axes outside it): the group is the first `ep` ranks of the stage."""
    degrees, within, without, left = {}, [], [], ep
    for axis, size in stage.items():
        inner = math.gcd(size, left)
        left //= inner
        if left > 1 and inner < size:
            raise ValueError(f"{ep} ranks of experts are no whole dimensions of {stage}")
        if inner > 1:
            name = axis if inner == size else f"{axis} in ep"
            degrees[name] = inner
            within.append(name)
        if size > inner:
            degrees[axis] = size // inner
            without.append(axis)
    return degrees, tuple(within), tuple(without)
