"""Exchanges between ranks and waits for the host that a layer adds to its kernels, on one rank for one micro-batch.

Kernels are in layer.py, which puts all together; exchanges of whole stages and of gradients in step.py.
"""

from __future__ import annotations

import numpy as np

from models.arrays import Floats
from models.network.collectives import all_gather_s, all_to_all_s, exposed_s
from models.training.pipeline import DUALPIPE
from models.training.run import ACTIVATION_BYTES, Run
from models.transformer.moe import dispatch_copies
from models.transformer.routing import EVEN


def tensor_parallel_s(run: Run, blocks: Floats | float) -> Floats:
    """Predict the exposed tensor-parallel exchange of a number of blocks, forward (backward is the same).

    Per block an all-gather and a reduce-scatter (without sequence parallelism an all-reduce: the same) of 2 M h bytes,
    less the share that the framework hides.
    Shapes: one axis. Units: blocks [1], result [s]. Zero for tp 1.
    Reference: Shoeybi et al., arXiv:1909.08053, section 3; Korthikanti et al., arXiv:2205.05198, section 4.2.2.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> tensor_parallel_s(Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe()), 2).tolist()
    [0.0]
    """
    size = ACTIVATION_BYTES * run.tokens * run.arch.hidden
    once = all_gather_s(size, run.tp, run.link_bytes_per_s("tp", run.tp, 1.0), run.start_s(run.tp, 1.0))
    return np.asarray(2.0 * blocks * once * (1.0 - run.profile.tp_overlap), float)


def context_parallel_s(run: Run, window_s: Floats, passes: float) -> Floats:
    """Predict the exposed exchange of keys and values between context-parallel ranks, hidden in the window of the attention core.

    A ring that brings the keys and values of all cp parts: (c - 1)/c of 2 bytes per element, `passes` times, each hop with a start that
    nothing hides; of the traffic the framework hides as much as of data-parallel traffic.
    Shapes: one axis. Units: window [s], passes [1], result [s]. Zero for cp 1.
    Reference: Liu et al., Ring Attention, arXiv:2310.01889, section 3.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(cp=[1, 8]), 8192, "bf16", TRAINING, "hopper", Recipe())
    >>> context_parallel_s(run, np.zeros(2), 1.0).round(6).tolist()
    [0.0, 0.000213]
    """
    arch, cp = run.arch, run.layouts.cp.astype(float)
    elements = arch.heads * (arch.qk_dim + arch.v_dim) if arch.mla else 2.0 * arch.kv_heads * arch.head_dim
    size = passes * ACTIVATION_BYTES * elements * run.tokens * cp / run.tp
    once = all_gather_s(size, cp, run.link_bytes_per_s("cp", cp, run.tp), run.start_s(cp, run.tp))
    starts = passes * (cp - 1.0) * run.constants.collective_start_s
    return np.asarray(exposed_s(once, window_s, run.profile.dp_overlap) + starts, float)


def expert_exchange_s(run: Run, window_s: Floats | float = 0.0) -> Floats:
    """Predict the exposed dispatch and combine of one MoE layer, forward (backward is the same).

    Twice the slower of scale-up and NIC traffic of `moe.dispatch_copies` at 2 bytes per element, less the overlap. DualPipe runs
    the exchange of one micro-batch beside the kernels of another, `window_s`, and sends a token to a domain once. Where the architecture's
    routing limits the domains of a token, it crosses to each once; where it leaves no second batch to compute, nothing is hidden.
    Shapes: one axis. Units: window [s], result [s]. Zero for ep 1.
    Reference: DeepSeek-V3, arXiv:2412.19437, sections 3.2.1 and 3.2.2; DeepEP's published rates for the fused dispatcher.

    >>> from models.serving.examples import CHIP, MOE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> expert_exchange_s(Run.of(MOE, CHIP, Layouts.of(dp=8), 4096, "bf16", TRAINING, "hopper", Recipe())).tolist()
    [0.0]
    """
    recipe, c, dual = run.recipe, run.constants, run.layouts.schedule == DUALPIPE
    once = _dispatch_s(run, recipe.fused_dispatch)
    if dual.any() and not recipe.fused_dispatch:
        once = np.where(dual, _dispatch_s(run, fused=True), once)
    if not (run.arch.routing or EVEN).two_batches:
        return 2.0 * once
    hidden = c.exchange_overlap if recipe.overlapped_exchange else 0.0
    return np.where(dual, exposed_s(2.0 * once, window_s, c.exchange_overlap), 2.0 * once * (1.0 - hidden))


def _dispatch_s(run: Run, fused: bool) -> Floats:
    """Predict one dispatch, nothing hidden [s]."""
    recipe, c = run.recipe, run.constants
    group = run.arch.topk, run.arch.experts, run.layouts.ep, run.chip.scaleup_chips
    limit = (run.arch.routing or EVEN).most_domains
    inside, outside = dispatch_copies(
        *group, deduplicated=fused, consecutive=recipe.consecutive_routing, domain_limit=limit or run.arch.routed_groups
    )
    if limit:
        outside = np.minimum(outside, dispatch_copies(*group, deduplicated=True, domain_limit=limit)[1])
    vector = ACTIVATION_BYTES * run.expert_tokens * run.arch.expert_input
    intra, inter = (
        (c.exchange_fused_intra, c.exchange_fused_inter) if fused else (c.intra_efficiency, c.inter_efficiency)
    )
    rates = run.chip.scaleup_bytes_per_s * intra, run.scaleout_bytes_per_s("ep") * inter
    way_s = np.where(run.layouts.ep > run.chip.scaleup_chips, run.chip.scaleout_latency_s, 0.0)
    start_s = run.constants.collective_start_s + way_s
    return np.asarray(all_to_all_s(vector * inside, vector * outside, *rates, start_s), float)


def launch_excess_s(run: Run, kernels_s: Floats, moe: bool) -> Floats:
    """Predict the launch time of a layer beyond its kernels, where the host is the slower:  (G^4 + H^4)^(1/4) - G.

    H is the framework's floor per layer and pass; whole-iteration graphs remove it.
    Shapes: one axis. Units: kernels [s], result [s].
    Reference: smooth maximum of two overlapping times; the floor is fitted, see the catalog.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(launch_excess_s(run, np.array([1e-5]), False)[0] > launch_excess_s(run, np.array([1.0]), False)[0])
    True
    """
    if run.recipe.cuda_graphs == "full":
        return np.zeros_like(kernels_s)
    floor = run.profile.launch_floor_s * (run.constants.launch_floor_moe if moe else 1.0)
    square = kernels_s * kernels_s
    return np.sqrt(np.sqrt(square * square + floor**4)) - kernels_s


def moe_host_s(run: Run) -> Floats:
    """Predict the host time that an MoE layer adds to its kernels, forward: the host waits for token counts before it launches experts.

    0.6 ms where tokens are exchanged, and 29 us per local expert; none with whole-iteration graphs or a compiler that
    knows all shapes (XLA).
    Shapes: one axis. Units: [s].
    Reference: fitted, see the catalog; Gale et al., MegaBlocks, arXiv:2211.15841, section 5 (dropless routing).

    >>> from models.serving.examples import CHIP, MOE
    >>> from models.training.layouts import Layouts
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> args = MOE, CHIP, Layouts.of(dp=8, ep=8), 4096, "bf16", TRAINING, "hopper"
    >>> [round(float(moe_host_s(Run.of(*args, Recipe(cuda_graphs=g)))[0]) * 1e3, 2) for g in ("partial", "full")]
    [1.08, 0.0]
    """
    if run.recipe.cuda_graphs == "full" or run.recipe.framework == "xla":
        return np.zeros_like(run.tokens)
    c, ep = run.constants, run.layouts.ep
    wait = np.where(ep > 1, c.host_moe_layer_s, 0.0) + c.host_expert_s * run.arch.experts / ep
    return wait * (c.host_grace if run.recipe.grace_host else 1.0)
