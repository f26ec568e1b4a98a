"""Priors of the training constants, a centre and a spread each, before any measurement. The fitted values are in the catalog.

A constant without an entry is not fitted: it is physics, a convention, or too weakly seen to move.
"""

from __future__ import annotations

from models.statistics.fitting import Prior

# Peak shares and factors: the spread is of the natural logarithm; shares within 0..1 ("logit"): of the log-odds.
TRAINING_PRIORS: dict[str, Prior] = {
    "efficiency_16bit": Prior(0.8, 0.08, upper=0.95),
    "efficiency_fp8": Prior(0.72, 0.12, upper=0.95),
    "efficiency_mxfp8": Prior(0.62, 0.12, upper=0.95),
    "efficiency_fp4": Prior(0.5, 0.15, upper=0.95),
    "generation_volta": Prior(0.65, 0.25),
    "generation_ampere": Prior(1, 0.08),
    "generation_hopper": Prior(0.97, 0.08),
    "generation_blackwell": Prior(0.85, 0.08),
    "generation_blackwell_ultra": Prior(0.95, 0.1),
    "generation_cdna3": Prior(0.75, 0.2),
    "generation_tpu": Prior(1.1, 0.1),
    "generation_ascend": Prior(1, 0.1),
    "generation_trainium": Prior(0.75, 0.12),
    "generation_metax": Prior(0.9, 0.12),
    "software_old": Prior(1, 0.05),
    "software_fsdp": Prior(1, 0.05),
    "software_tuned": Prior(1, 0.05),
    "software_other": Prior(1.0, 0.05),
    "state_bytes": Prior(40.0, 0.4),
    "host_grace": Prior(1.0, 0.15),
    "saturation_size": Prior(80, 0.3),
    "misalignment": Prior(0.35, 0.4),
    "attention_efficiency": Prior(0.42, 0.12),
    "attention_ampere": Prior(1.05, 0.12),
    "attention_hopper": Prior(0.65, 0.15),
    "attention_blackwell": Prior(1, 0.2),
    "attention_fsdp": Prior(0.95, 0.1),
    "attention_tuned": Prior(1.4, 0.15),
    "small_head_exponent": Prior(0.3, 0.5),
    "score_bytes": Prior(11.0, 0.2),
    "elementwise_factor": Prior(1.45, 0.15),
    "intra_efficiency": Prior(0.8, 0.12, upper=1.0),
    "inter_efficiency": Prior(0.75, 0.15, upper=1.0),
    "collective_start_s": Prior(15e-6, 0.4),
    "nic_exponent_old": Prior(0.7, 0.25, upper=1.0),
    "nic_exponent_fsdp": Prior(0.9, 0.2, upper=1.0),
    "nic_exponent_tuned": Prior(0.9, 0.2, upper=1.0),
    "nic_exponent_xla": Prior(0.9, 0.2, upper=1.0),
    "scale_decay_old": Prior(0.4, 0.6),
    "scale_decay_modern": Prior(0.1, 0.6),
    "scale_decay_other": Prior(0.4, 0.6),
    "tp_overlap_old": Prior(0.05, 0.8, scale="logit"),
    "tp_overlap_stock": Prior(0.15, 0.8, scale="logit"),
    "tp_overlap_tuned": Prior(0.6, 0.8, scale="logit"),
    "tp_overlap_xla": Prior(0.6, 0.8, scale="logit"),
    "dp_overlap_old": Prior(0.1, 0.8, scale="logit"),
    "dp_overlap_fsdp": Prior(0.75, 0.8, scale="logit"),
    "dp_overlap_stock": Prior(0.75, 0.8, scale="logit"),
    "dp_overlap_tuned": Prior(0.8, 0.8, scale="logit"),
    "dp_overlap_xla": Prior(0.85, 0.8, scale="logit"),
    "launch_floor_old_s": Prior(0.0009, 0.3),
    "launch_floor_s": Prior(0.2e-3, 0.5),
    "recompute_full_fsdp": Prior(0.75, 0.15, upper=1.0),
    "recompute_selective": Prior(0.12, 0.4),
    "expert_efficiency": Prior(0.85, 0.08, upper=1.0),
    "expert_efficiency_xla": Prior(0.6, 0.2, upper=1.0),
    "permute_factor": Prior(1, 0.25),
    "exchange_overlap": Prior(0.7, 0.8, scale="logit"),
    "host_moe_layer_s": Prior(0.0006, 0.25),
    "host_expert_s": Prior(2.8e-05, 0.3),
    "optimizer_factor": Prior(1.3, 0.2),
    "step_overhead_s": Prior(0.015, 0.5),
    "straggler_per_doubling": Prior(0.01, 0.5),
    "release_rate_dense": Prior(0.04, 0.5),
    "release_rate_moe": Prior(0.05, 0.5),
}

# Words by which a constant belongs to a level; the first that its name holds counts.
CAUSES = (
    ("compute of generations", ("generation_",)), ("compute of frameworks", ("software_",)), ("attention of frameworks", ("attention_fsdp", "attention_tuned")),
    ("attention of generations", ("attention_ampere", "attention_hopper", "attention_blackwell")),
    ("network of frameworks", ("overlap_", "nic_exponent", "scale_decay")), ("age", ("release_rate",)),
    ("launch", ("host", "launch", "overhead")), ("network", ("intra", "inter_", "collective", "exchange", "straggler")),
    ("memory", ("bytes", "elementwise", "permute", "optimizer")), ("compute", ("efficiency", "attention", "saturation", "misalignment", "exponent", "recompute")),
)  # fmt: skip


def training_level(name: str) -> str:
    """Name the level of a constant, within which constants are shrunk alike; one of no known cause is a level of its own.

    Shapes: none. Units: a name [1]. Reference: `models.statistics.shrinkage`.

    >>> training_level("generation_hopper"), training_level("launch_floor_s"), training_level("dp_overlap_fsdp")
    ('compute of generations', 'launch', 'network of frameworks')
    """
    return next((cause for cause, words in CAUSES if any(word in name for word in words)), name)
