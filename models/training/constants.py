"""The constants and the software of a training run: what each means and its unit. The constants' values are figures of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats

FRAMEWORKS = ("megatron-2021", "megatron", "nvidia-tuned", "fsdp", "xla", "other")
# Chip generations with a figure of their own.
GEMM_FAMILIES = (
    "volta", "ampere", "hopper", "blackwell", "blackwell_ultra", "cdna3", "tpu", "ascend", "trainium", "metax",
)  # fmt: skip
ATTENTION_FAMILIES = ("ampere", "hopper", "blackwell")
ATTENTION_AS = {"blackwell_ultra": "blackwell"}  # generations that share the figure of another
CUDA_GRAPHS = ("none", "partial", "full")


@dataclass(frozen=True, slots=True)
class FrameworkProfile:
    """What distinguishes one kind of training software; all [1] but the floor [s]."""

    tp_overlap: float
    dp_overlap: float
    nic_exponent: float
    scale_decay: float
    attention: float
    gemm: float
    launch_floor_s: float


@dataclass(frozen=True, slots=True)
class TrainingConstants:
    """Fitted constants shared by all chips and runs; every one must be given."""

    efficiency_16bit: float  # share of the peak that large GEMMs reach, by precision [1]
    efficiency_fp8: float
    efficiency_mxfp8: float
    efficiency_fp4: float
    generation_volta: float  # factor on it by chip generation; any other generation takes the last [1]
    generation_ampere: float
    generation_hopper: float
    generation_blackwell: float
    generation_blackwell_ultra: float
    generation_cdna3: float
    generation_tpu: float
    generation_ascend: float
    generation_trainium: float
    generation_metax: float
    generation_other: float
    software_old: float  # factor on it by framework; any other takes 1 [1]
    software_fsdp: float
    software_tuned: float
    software_other: float
    power_exponent: float  # how the sustained rate follows power per peak, relative to the generation's usual [1]
    saturation_size: float  # extent at which one GEMM dimension halves the rate, at the reference intensity [1]
    reference_intensity: float  # ratio of 16-bit peak to bandwidth at which that holds [FLOP/byte]
    misalignment: float  # extra time of a GEMM whose N or K per rank is no multiple of 64 [1]
    attention_efficiency: float  # share of the 16-bit peak that a fused attention core reaches [1]
    attention_ampere: float  # factor on it by chip generation; any other takes 1 [1]
    attention_hopper: float
    attention_blackwell: float
    attention_fsdp: float  # factor on it by framework; any other takes 1 [1]
    attention_tuned: float
    attention_backward: float  # backward over forward of a fused attention core [1]
    small_head_exponent: float  # attention efficiency falls with (head dimension / 128) to this power [1]
    score_bytes: float  # traffic per score of an attention core that is not fused [byte]
    state_bytes: float  # traffic of convolution and scan of a state space per inner element, forward [byte]
    memory_efficiency: float  # share of the memory bandwidth that kernels reach [1]
    elementwise_factor: float  # traffic of element-wise kernels over the least possible [1]
    elementwise_backward: float  # backward over forward of it [1]
    intra_efficiency: float  # share of the scale-up bandwidth that collectives reach [1]
    inter_efficiency: float  # share of the NIC bandwidth that collectives reach [1]
    collective_start_s: float  # start-up of a collective [s]
    nic_exponent_old: float  # NICs of a domain that rings reach: members to this power [1]
    nic_exponent_fsdp: float
    nic_exponent_tuned: float
    nic_exponent_xla: float
    scale_decay_old: float  # loss of bandwidth per 1024 data-parallel ranks [1]
    scale_decay_modern: float
    scale_decay_other: float
    tp_overlap_old: float  # share of tensor-parallel traffic hidden behind computation [1]
    tp_overlap_stock: float
    tp_overlap_tuned: float
    tp_overlap_xla: float
    dp_overlap_old: float  # share of data-parallel traffic hidden in its window [1]
    dp_overlap_fsdp: float
    dp_overlap_stock: float
    dp_overlap_tuned: float
    dp_overlap_xla: float
    launch_floor_old_s: float  # host time below which a layer's forward or backward does not fall [s]
    launch_floor_s: float
    launch_floor_moe: float  # factor on it in a layer with experts [1]
    recompute_full_fsdp: (
        float  # share of forward repeated with full recompute that stops at the last tensor needed (FSDP) [1]
    )
    recompute_selective: float  # share of forward repeated with selective recompute [1]
    recompute_selective_moe: float  # the same with fine-grained modules of a mixture of experts [1]
    expert_efficiency: float  # expert GEMM relative to dense GEMM [1]
    expert_efficiency_xla: float
    expert_imbalance: float  # tokens of the fullest rank over the mean [1]
    permute_factor: float  # traffic of permuting tokens over the least possible [1]
    permute_fused: float  # factor on it with a fused dispatcher [1]
    expert_activation_factor: float  # traffic of the experts' activation over the dense one [1]
    exchange_fused_intra: float  # share of the scale-up bandwidth that a fused dispatcher reaches [1]
    exchange_fused_inter: float  # share of the NIC bandwidth [1]
    exchange_overlap: float  # share of the exchange hidden where the software overlaps it [1]
    host_moe_layer_s: float  # host wait per MoE layer and forward with expert parallelism [s]
    host_expert_s: float  # host time per local expert, MoE layer and forward [s]
    host_grace: float  # factor on both with Grace hosts [1]
    optimizer_bytes: float  # memory traffic of the optimizer per parameter of its shard [byte]
    optimizer_factor: float  # factor on it [1]
    step_overhead_s: float  # fixed part of a step [s]
    straggler_per_doubling: float  # relative loss per doubling of the data-parallel replicas [1]
    release_rate_dense: float  # yearly progress of software, natural logarithm of the step time [1]
    release_rate_moe: float
    fragmentation: float  # memory reserved over memory used [1]
    runtime_bytes: float  # memory of runtime and communication buffers per chip [byte]

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> TrainingConstants:
        """Build from plain numbers by name. Raises ValueError naming a figure that is missing, unknown, or not positive and finite.

        Shapes: scalars. Units: as each field states [SI]. Reference: first fit on published training measurements, see the catalog.

        >>> TrainingConstants.from_values({"efficiency": 0.5})
        Traceback (most recent call last):
        ...
        ValueError: training constants: missing attention_ampere, attention_backward, ... (81 in all); unknown efficiency
        """
        known = {field.name for field in fields(cls)}
        wrong = [name for name in known & set(values) if not 0.0 < float(values[name]) < float("inf")]
        problems = (
            ("missing", known - set(values)),
            ("unknown", set(values) - known),
            ("not positive and finite", wrong),
        )
        if found := [f"{label} {_listed(sorted(names))}" for label, names in problems if names]:
            raise ValueError(f"training constants: {'; '.join(found)}")
        return cls(**{name: float(values[name]) for name in known})

    def gemm_efficiency(self, precision: str) -> float:
        """Look up the share of the peak that large GEMMs reach at a precision [1]. Integer 8-bit takes the figure of FP8, and each kind of 4 bits that of FP4.

        Shapes: scalars. Units: [1]. Reference: first fit on published training measurements, see the catalog.

        >>> from models.training.examples import TRAINING
        >>> TRAINING.gemm_efficiency("bf16")
        0.7
        """
        by_precision = {
            "bf16": self.efficiency_16bit,
            "fp16": self.efficiency_16bit,
            "fp8": self.efficiency_fp8,
            "int8": self.efficiency_fp8,
            "mxfp8": self.efficiency_mxfp8,
            **dict.fromkeys(("fp4", "mxfp4", "nvfp4"), self.efficiency_fp4),
        }
        if precision not in by_precision:
            raise ValueError(f"unknown training precision {precision!r}; known: {', '.join(by_precision)}")
        return by_precision[precision]

    def generation_factors(self, family: str) -> tuple[float, float]:
        """Look up (GEMM, attention) efficiency of a chip generation relative to the base [1]; a generation without figures takes that
        of the others, and 1 for attention.

        Shapes: scalars. Units: [1]. Reference: first fit on published training measurements, see the catalog.

        >>> from models.training.examples import TRAINING
        >>> TRAINING.generation_factors("hopper"), TRAINING.generation_factors("biren")
        ((1.05, 0.6), (0.9, 1.0))
        """
        gemm = getattr(self, f"generation_{family}") if family in GEMM_FAMILIES else self.generation_other
        like = ATTENTION_AS.get(family, family)
        attention = getattr(self, f"attention_{like}") if like in ATTENTION_FAMILIES else 1.0
        return gemm, attention

    def framework_profile(self, framework: str) -> FrameworkProfile:
        """Look up overlaps, ring reach and launch floor of a kind of training software.

        Where a kind has no figure of its own it takes the nearest: stock Megatron and others the reach of FSDP.
        Shapes: scalars. Units: [1], floor [s]. Reference: first fit on published training measurements, see the catalog.

        >>> from models.training.examples import TRAINING
        >>> TRAINING.framework_profile("xla").launch_floor_s == TRAINING.launch_floor_s
        True
        """
        if framework not in FRAMEWORKS:
            raise ValueError(f"unknown training framework {framework!r}; known: {', '.join(FRAMEWORKS)}")
        kind = {"megatron-2021": "old", "nvidia-tuned": "tuned", "xla": "xla"}.get(framework, "fsdp")
        decay = {"megatron-2021": self.scale_decay_old, "other": self.scale_decay_other}.get(
            framework, self.scale_decay_modern
        )
        return FrameworkProfile(
            tp_overlap=self.tp_overlap_stock if kind == "fsdp" else getattr(self, f"tp_overlap_{kind}"),
            dp_overlap=self.dp_overlap_stock
            if framework in ("megatron", "other")
            else getattr(self, f"dp_overlap_{kind}"),
            nic_exponent=getattr(self, f"nic_exponent_{kind}"),
            scale_decay=decay,
            attention={"fsdp": self.attention_fsdp, "nvidia-tuned": self.attention_tuned}.get(framework, 1.0),
            gemm={
                "megatron-2021": self.software_old,
                "fsdp": self.software_fsdp,
                "nvidia-tuned": self.software_tuned,
                "other": self.software_other,
            }.get(framework, 1.0),
            launch_floor_s=self.launch_floor_old_s if kind == "old" else self.launch_floor_s,
        )


# Bytes per trained weight of (weight, optimizer state): a 16-bit weight with a 32-bit master copy beside the state of each kind, or
# 32-bit weights alone. Two moments of 32 bit; of 8 bit (Dettmers et al., arXiv:2110.02861); one momentum (Muon, arXiv:2502.16982); rows
# and columns of the second moment, which are negligible (Shazeer and Stern, Adafactor, arXiv:1804.04235).
OPTIMIZERS: Mapping[str, tuple[float, float]] = {
    "adam": (2.0, 12.0), "adam_fp32": (4.0, 8.0), "adam_8bit": (2.0, 6.0), "muon": (2.0, 8.0), "adafactor": (2.0, 4.0),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the training software does; inputs, not constants. The defaults are the cautious reading of "unknown".

    release_year is the date of the software [year]; flushes are optimizer steps' worth of pipeline drains per step [1];
    power_ratio is sustained power per peak relative to what the generation usually has [1]; forgotten is the share of the activations that are dropped and repeated beyond
    the level of the layout, cheap modules first [1]. With an adapter_rank the weights are frozen, and adapters of that rank [1] beside the
    projections of attention, with adapts_ffn beside the feed-forward blocks' too, are trained instead. Inputs of
    matrix products that backward needs are kept as they are multiplied, at operand_bytes [byte], and so are frozen weights. Sequences packed of
    examples attend within an example of example_tokens [token] only (0: to the whole sequence). The optimizer, one of `OPTIMIZERS`, decides
    the bytes of weights and state, gradient_bytes [byte] the size of a gradient. With narrow_activations the inputs of the activation function are
    kept at operand_bytes too, instead of in 16 bit.
    """

    framework: str = "other"
    release_year: float = 2026.0
    fused_attention: bool = True
    fused_dispatch: bool = False
    overlapped_exchange: bool = False
    consecutive_routing: bool = False
    cuda_graphs: str = "partial"
    grace_host: bool = False
    mtp_layers: int = 0
    flushes: float = 1.0
    power_ratio: float = 1.0
    forgotten: float = 0.0
    adapter_rank: int = 0
    adapts_ffn: bool = False
    operand_bytes: float = 2.0
    example_tokens: float = 0.0
    optimizer: str = "adam"
    gradient_bytes: float = 4.0
    narrow_activations: bool = False

    def __post_init__(self) -> None:
        if self.framework not in FRAMEWORKS:
            raise ValueError(f"unknown training framework {self.framework!r}; known: {', '.join(FRAMEWORKS)}")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"unknown optimizer {self.optimizer!r}; known: {', '.join(OPTIMIZERS)}")
        if self.cuda_graphs not in CUDA_GRAPHS:
            raise ValueError(f"unknown cuda_graphs {self.cuda_graphs!r}; known: {', '.join(CUDA_GRAPHS)}")

    @property
    def weight_bytes(self) -> float:
        """Bytes of a trained weight, as products and exchanges hold it or as the only copy [byte]."""
        return OPTIMIZERS[self.optimizer][0]

    @property
    def optimizer_bytes(self) -> float:
        """Bytes of the optimizer's state for each trained weight, a master copy included [byte]."""
        return OPTIMIZERS[self.optimizer][1]

    def attended_tokens(self, sequence_tokens: ArrayLike) -> Floats:
        """Return the tokens within which attention looks: the tokens of an example where sequences are packed, else the whole sequence.

        Shapes: as the sequence. Units: [token]. Reference: Krell et al., arXiv:2107.02027, section 3 (packing without cross-contamination).

        >>> float(Recipe(example_tokens=512.0).attended_tokens(8192)), float(Recipe().attended_tokens(8192))
        (512.0, 8192.0)
        """
        whole = np.asarray(sequence_tokens, float)
        return np.minimum(self.example_tokens, whole) if self.example_tokens else whole


DEFAULT_RECIPE = Recipe()


def _listed(names: list[str], most: int = 2) -> str:
    return ", ".join(names) if len(names) <= most + 1 else f"{', '.join(names[:most])}, ... ({len(names)} in all)"
