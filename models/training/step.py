"""Time and memory of a training step for every layout: layers, head, pipeline, data parallelism, optimizer, put together.

What happens inside a layer is in layer.py, memory in memory.py, the meaning of the constants in constants.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, as_result, sum_of
from models.network.collectives import all_gather_s, exposed_s, members_per_domain
from models.roofline import ChipRates
from models.training.constants import DEFAULT_RECIPE, FRAMEWORKS, Recipe, TrainingConstants
from models.training.flops import recomputed_flops_per_token, training_flops_per_token
from models.training.layer import BACKWARD_GEMMS, PARTS, Times
from models.training.layouts import OFFLOADS_ACTIVATIONS, OFFLOADS_OPTIMIZER, Layouts
from models.training.memory import (
    kept_bytes_per_token,
    parameters_per_rank,
    trained_per_rank,
    training_memory,
)
from models.training.pipeline import bubble_s, stage_layers, weight_copies
from models.training.run import ACTIVATION_BYTES, Run
from models.training.stack import fullest_stage_s, work_of
from models.transformer.architecture import Architecture

__all__ = ["BREAKDOWN", "FRAMEWORKS", "Recipe", "TrainingConstants", "TrainingStep", "training_step"]

BREAKDOWN = (*PARTS, "pp_transfer", "pp_bubble", "dp", "optimizer", "offload")
FORWARD_WINDOW = 0.6  # share of the first forward behind which parameters still arrive
REFERENCE_RANKS = 1024.0  # data-parallel ranks at which the scale decay is stated
REFERENCE_YEAR = 2026.0
CHUNK = 8192  # layouts at once, so that the working arrays stay in the processor's cache
ADAM_BYTES = 18.0  # per parameter, for which the traffic of an optimizer step is stated


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A step of every layout; arrays along one axis. The parts of `breakdown` add up to `step_s`."""

    step_s: Floats  # [s]
    tokens_per_s: Floats  # all chips [token/s]
    mfu: Floats  # model FLOPs over peak FLOPs [1]
    hfu: Floats  # the same with recomputed FLOPs [1]
    memory_bytes: Floats  # fullest chip [byte]
    breakdown: Mapping[str, Floats]  # name -> [s], names as in BREAKDOWN


def training_step(
    arch: Architecture, chip: ChipRates, layouts: Layouts, *, global_batch_sequences: int, sequence_tokens: int, precision: str,
    constants: TrainingConstants, family: str = "other", recipe: Recipe = DEFAULT_RECIPE, scaleout: Mapping[str, Floats] | None = None,
) -> TrainingStep:  # fmt: skip
    """Predict time, MFU and memory of a training step, for every layout.

    T = (m S + bubble + transfers + exposed data parallelism + optimizer + offload + fixed) x straggler x release, with S the
    forward and backward of the fullest stage (`stack.fullest_stage_s`) for one micro-batch. MFU = F B s / (T chips P), F the FLOPs that training needs per token.
    Shapes: one axis of layouts in, arrays along it out. Units: batch [1], sequence [token], results see `TrainingStep`.
    `family` is the chip generation ("hopper", ...; one without figures takes the base efficiency). Valid for legal layouts,
    see `layouts.is_legal`; it does not ask whether they fit, see `memory.fits`. Experts have shown no gain from 4 bits:
    give them the rate and the name of "mxfp8". Raises ValueError where a time is not finite: a layout that leaves its scale-up domain
    without a network, or is offloaded to a host without a link. `scaleout`: what a chip can send out of its system by parallel dimension and layout
    [byte/s], where a network gives groups different rates (`group_links.dimension_links`); else the chip's rate for all. Linear-attention layers are priced as full ones without a core.
    Reference: Narayanan et al., arXiv:2104.04473, section 3; Korthikanti et al., arXiv:2205.05198; constants see the catalog.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> step = training_step(DENSE, CHIP, Layouts.of(tp=[1, 8], dp=[64, 8]), global_batch_sequences=512, sequence_tokens=4096,
    ...     precision="bf16", constants=TRAINING, family="hopper")
    >>> bool(np.allclose(sum(step.breakdown.values()), step.step_s)), bool(step.mfu[0] > step.mfu[1] > 0.1)
    (True, True)
    """
    breakdown = {part: np.empty(len(layouts)) for part in BREAKDOWN}
    recomputed = np.empty(len(layouts))
    memory = np.empty(len(layouts))
    for start in range(0, len(layouts), CHUNK):
        part = slice(start, start + CHUNK)
        run = Run.of(
            arch,
            chip,
            layouts.take(part),
            sequence_tokens,
            precision,
            constants,
            family,
            recipe,
            _taken(scaleout, part),
        )
        for name, seconds in _step_parts(run, global_batch_sequences).items():
            breakdown[name][part] = seconds
        recomputed[part] = recomputed_flops_per_token(run)
        memory[part] = training_memory(
            arch, run.layouts, global_batch_sequences=global_batch_sequences, sequence_tokens=sequence_tokens,
            constants=constants, recipe=recipe,
        ).total  # fmt: skip
    step_s = sum_of(breakdown.values(), np.zeros(len(layouts)))
    if not np.isfinite(step_s).all():
        wrong = int(np.flatnonzero(~np.isfinite(step_s))[0])
        parts = ", ".join(n for n, part in breakdown.items() if n != "overhead" and not np.isfinite(part[wrong]))
        raise ValueError(f"layout {layouts.row(wrong)}: no finite time for {parts}; it needs a link that is not there")
    tokens_per_s = global_batch_sequences * np.asarray(sequence_tokens, float) / step_s
    per_token = training_flops_per_token(arch, sequence_tokens, recipe)
    peak = layouts.chips * chip.flop_per_s / chip.reached
    mfu, hfu = tokens_per_s * per_token / peak, tokens_per_s * (per_token + recomputed) / peak
    return TrainingStep(step_s, tokens_per_s, mfu, hfu, memory, breakdown)


def _taken(scaleout: Mapping[str, Floats] | None, part: slice) -> Mapping[str, Floats] | None:
    return None if scaleout is None else {name: rates[part] for name, rates in scaleout.items()}


def _step_parts(run: Run, global_batch_sequences: int) -> Times:
    """Predict the seconds of a step by part, straggler and release included."""
    layouts, stages = run.layouts, run.layouts.pp.astype(float)
    micro_batches = layouts.micro_batches(global_batch_sequences)
    work = work_of(run)
    head_backward = (BACKWARD_GEMMS - (run.recipe.adapter_rank > 0)) * work.head
    stage = fullest_stage_s(run, work.kinds, work.head + head_backward)
    step = {name: micro_batches * stage[name] for name in PARTS}
    windows = (work.forward + work.head) / stages, (work.backward + head_backward) / stages
    gradients = 0.0 if run.recipe.adapter_rank else (work.products + work.head) / stages
    step["pp_bubble"] = np.asarray(
        bubble_s(layouts.pp, layouts.vpp, *windows, gradients, layouts.schedule) * run.recipe.flushes, float
    )
    step["pp_transfer"] = micro_batches * pipeline_transfer_s(run)
    step["dp"] = data_parallel_s(run, micro_batches, *windows)
    step["optimizer"] = optimizer_s(run)
    step["offload"] = offload_s(run, micro_batches, *windows)
    step["overhead"] = step["overhead"] + run.constants.step_overhead_s
    waiting = straggler_factor(layouts.dp * layouts.cp, run.constants.straggler_per_doubling) - 1.0
    step["overhead"] = step["overhead"] + waiting * sum_of(step.values())
    rate = run.constants.release_rate_moe if np.any(run.arch.experts) else run.constants.release_rate_dense
    progress = release_factor(run.recipe.release_year, rate)
    return {name: step[name] * progress for name in BREAKDOWN}


def pipeline_transfer_s(run: Run) -> Floats:
    """Predict the exposed hand-over between pipeline stages for one micro-batch: activations forward, their gradients backward.

    2 v transfers of 2 M h bytes / tp (scattered over the tensor-parallel ranks), plus start-up, less what the framework hides. Stages that
    all lie in one scale-up domain use its links; else every micro-batch also crosses the network, and the slowest hop sets the pace.
    Shapes: one axis. Units: [s]. Zero for pp 1.
    Reference: Narayanan et al., arXiv:2104.04473, sections 2.2.2 and 4.1 (scatter/gather).

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> pipeline_transfer_s(Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe())).tolist()
    [0.0]
    """
    layouts, c = run.layouts, run.constants
    inside = members_per_domain(layouts.pp, layouts.tp * layouts.cp * layouts.dp, run.chip.scaleup_chips) >= layouts.pp
    rate = np.where(
        inside,
        run.chip.scaleup_bytes_per_s * c.intra_efficiency,
        run.scaleout_bytes_per_s("pp") * c.inter_efficiency,
    )
    with np.errstate(divide="ignore"):
        once = ACTIVATION_BYTES * run.tokens * run.arch.hidden / run.tp / rate + c.collective_start_s
        once = once + np.where(inside, 0.0, run.chip.scaleout_latency_s)
    return np.where(layouts.pp > 1, 2.0 * layouts.vpp * once * (1.0 - run.profile.dp_overlap), 0.0)


def data_parallel_s(run: Run, micro_batches: Floats, forward_s: Floats, backward_s: Floats) -> Floats:
    """Predict the exposed data-parallel exchange of a step: gradients reduced, weights gathered.

    ZeRO 0-1: a reduce-scatter and an all-gather of 2 bytes per trained parameter of the rank, once per step, hidden behind backward and
    0.6 of forward of one micro-batch. ZeRO-2 keeps no whole gradients: it reduces the gradients of every micro-batch, behind its backward. ZeRO-3 without pipeline: an all-gather in forward, both in backward, for every
    micro-batch, each hidden behind its own pass; frozen weights are gathered, but have no gradients to reduce. Dense parameters over dp cp ranks, experts over tp cp dp / ep.
    Bandwidth falls with the ranks: / (1 + k d / 1024).
    Shapes: one axis. Units: micro-batches [1], windows of one micro-batch on one stage [s], result [s].
    Reference: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7; Zhao et al., FSDP, arXiv:2304.11277, section 3.3.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(dp=[1, 64]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> data_parallel_s(run, np.ones(2), np.zeros(2), np.zeros(2)).round(2).tolist()
    [0.0, 0.15]
    """
    layouts, overlap = run.layouts, run.profile.dp_overlap
    ranks = (layouts.dp * layouts.cp).astype(float)
    unsplit = layouts.ep > 1
    expert_ranks = np.where(unsplit, run.tp * ranks / layouts.ep, ranks)

    def gathered(parameters: tuple[Floats, Floats]) -> Floats:
        once = _gather_parameters_s(run, "dp", parameters[0], ranks, run.tp)
        if not np.any(run.arch.experts):
            return once
        stride = np.where(unsplit, layouts.ep, run.tp)
        return once + _gather_parameters_s(run, "expert_dp", parameters[1], expert_ranks, stride)

    trained = gathered(trained_per_rank(run.arch, layouts, run.recipe))
    once = exposed_s(2.0 * trained, backward_s + FORWARD_WINDOW * forward_s, overlap)
    reduced = (layouts.zero == 2) & (micro_batches > 1)
    if reduced.any():
        every = micro_batches * exposed_s(trained, backward_s, overlap) + exposed_s(
            trained, FORWARD_WINDOW * forward_s, overlap
        )
        once = np.where(reduced, every, once)
    sharded = (layouts.zero == 3) & (layouts.pp == 1)
    if not sharded.any():
        return np.asarray(once, float)
    weights = trained
    if run.recipe.adapter_rank:
        weights = trained + gathered(parameters_per_rank(run.arch, layouts, run.recipe.mtp_layers))
    each = exposed_s(weights, forward_s, overlap) + exposed_s(weights + trained, backward_s, overlap)
    return np.where(sharded, micro_batches * each, once)


def _gather_parameters_s(run: Run, dimension: str, parameters: Floats, ranks: Floats, stride: Floats | Ints) -> Floats:
    decay = 1.0 + run.profile.scale_decay * ranks / REFERENCE_RANKS
    rate = run.link_bytes_per_s(dimension, ranks, stride, run.profile.nic_exponent) / decay
    return np.asarray(all_gather_s(ACTIVATION_BYTES * parameters, ranks, rate, run.start_s(ranks, stride)), float)


def optimizer_s(run: Run) -> Floats:
    """Predict the optimizer step: memory traffic of the rank's share of the parameters.

    b n / beta times a factor, in proportion to the bytes of weight, gradient and state over those with Adam, n the parameters of the rank, divided over its data-parallel ranks from ZeRO-1 on.
    Shapes: one axis. Units: [s].
    Reference: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3.1 (state read and written); factor see the catalog.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> run = Run.of(DENSE, CHIP, Layouts.of(dp=64, zero=[0, 1]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> times = optimizer_s(run)
    >>> float(times[0] / times[1])
    64.0
    """
    c = run.constants
    held = run.recipe.weight_bytes + run.recipe.gradient_bytes + run.recipe.optimizer_bytes
    share = _optimizer_share(run) * held / ADAM_BYTES
    seconds: Floats = c.optimizer_bytes * c.optimizer_factor * share / run.chip.hbm_bytes_per_s
    return seconds


def _optimizer_share(run: Run) -> Floats:
    """Count the parameters whose optimizer state a rank updates [1]."""
    layouts = run.layouts
    dense, expert = trained_per_rank(run.arch, layouts, run.recipe)
    copies = np.asarray(weight_copies(layouts.schedule), float)
    ranks = (layouts.dp * layouts.cp).astype(float)
    expert_ranks = np.where(layouts.ep > 1, run.tp * ranks / layouts.ep, ranks)
    sharded = dense / (ranks * copies) + expert / (expert_ranks * copies)
    share: Floats = np.where(layouts.zero >= 1, sharded, (dense + expert) / copies)
    return share


def offload_s(run: Run, micro_batches: Floats, forward_s: Floats, backward_s: Floats) -> Floats:
    """Predict the exposed traffic of a step between the chip and the memory of its host.

    Optimizer state: 12 bytes per parameter of the rank's share in and, at the same time, out once per step, with nothing to hide
    behind. Activations: a stage's go out in forward and back in backward, for every micro-batch, each hidden behind its own pass as far as
    the framework hides data-parallel traffic. The link reaches the share of its rate that kernels reach of the memory's.
    Shapes: one axis. Units: micro-batches [1], windows of one micro-batch on one stage [s], result [s]. Zero where nothing is offloaded.
    Reference: Ren et al., ZeRO-Offload, arXiv:2101.06840, section 4; Rhu et al., vDNN, arXiv:1602.08124, section 3.2 (layer by layer).

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> from dataclasses import replace
    >>> run = Run.of(DENSE, replace(CHIP, host_bytes_per_s=60e9), Layouts.of(dp=64, offload=[0, 1]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> offload_s(run, np.ones(2), np.ones(2), np.ones(2)).round(3).tolist()
    [0.0, 0.031]
    """
    layouts = run.layouts
    if not layouts.offload.any():
        return np.zeros_like(run.tokens)
    arch = run.arch
    stage = run.tokens * kept_bytes_per_token(arch, layouts, run.sequence_tokens, run.recipe)
    stage = stage * stage_layers(arch.layers, layouts.pp)
    with np.errstate(divide="ignore"):
        rate = np.asarray(run.chip.host_bytes_per_s, float) * run.constants.memory_efficiency
        moved, state = stage / rate, run.recipe.optimizer_bytes * _optimizer_share(run) / rate
    overlap = run.profile.dp_overlap
    each = exposed_s(moved, forward_s, overlap) + exposed_s(moved, backward_s, overlap)
    return np.where((layouts.offload & OFFLOADS_OPTIMIZER) > 0, state, 0.0) + np.where(
        (layouts.offload & OFFLOADS_ACTIVATIONS) > 0, micro_batches * each, 0.0
    )


def straggler_factor(replicas: Floats | Ints | float, per_doubling: float) -> Floats | float:
    """Compute how much longer a step takes because all replicas wait for the slowest:  1 + k log2(d).

    Within a replica delays average out over the micro-batches; between replicas the last one counts.
    Shapes: as replicas. Units: data- and context-parallel ranks d [1], k [1], result [1].
    Reference: Jiang et al., MegaScale, arXiv:2402.15627, section 6 (stragglers); slope fitted, see the catalog.

    >>> float(straggler_factor(1024, 0.01)), float(straggler_factor(1, 0.01))
    (1.1, 1.0)
    """
    return as_result(1.0 + per_doubling * np.log2(np.asarray(replicas, float)))


def release_factor(year: Floats | float, rate: float) -> Floats | float:
    """Scale the step time to software of another date than 2026.0:  exp(-rate (year - 2026)).

    Shapes: as year. Units: year [year], rate [1/year], result [1]. Valid from 2020 to about 2027.
    Reference: fitted over dated releases of the same configurations, see the catalog.

    >>> float(release_factor(2026.0, 0.04)), round(float(release_factor(2021.0, 0.04)), 2)
    (1.0, 1.22)
    """
    return as_result(np.exp(-rate * (np.asarray(year, float) - REFERENCE_YEAR)))
