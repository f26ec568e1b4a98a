"""Round constants for the doctests of the training models. Nothing computes with them."""

from __future__ import annotations

from catalog.units import GIGA, MICRO, MILLI
from models.training.constants import TrainingConstants
from models.transformer.architecture import Architecture

TRAINING = TrainingConstants(
    efficiency_16bit=0.7, efficiency_fp8=0.6, efficiency_mxfp8=0.5, efficiency_fp4=0.4, generation_volta=0.8,
    generation_ampere=1.1, generation_hopper=1.05, generation_blackwell=0.9, generation_blackwell_ultra=1.0, generation_cdna3=0.7, generation_tpu=1.3, generation_ascend=1.0,
    generation_trainium=0.9, generation_metax=1.0, software_old=1.0, software_fsdp=1.0, software_tuned=1.0, software_other=1.0, generation_other=0.9, state_bytes=30.0, power_exponent=0.4, saturation_size=70.0, reference_intensity=150.0,
    misalignment=0.6, attention_efficiency=0.4, attention_ampere=1.1, attention_hopper=0.6, attention_blackwell=1.5,
    attention_fsdp=0.7, attention_tuned=1.3, attention_backward=2.5, small_head_exponent=0.3, score_bytes=10.0,
    memory_efficiency=0.8, elementwise_factor=1.2, elementwise_backward=1.7, intra_efficiency=0.7, inter_efficiency=0.8,
    collective_start_s=15 * MICRO, nic_exponent_old=0.6, nic_exponent_fsdp=0.8, nic_exponent_tuned=0.9, nic_exponent_xla=0.85,
    scale_decay_old=0.8, scale_decay_modern=0.1, scale_decay_other=0.4, tp_overlap_old=0.1, tp_overlap_stock=0.2,
    tp_overlap_tuned=0.7, tp_overlap_xla=0.4, dp_overlap_old=0.1, dp_overlap_fsdp=0.7, dp_overlap_stock=0.7, dp_overlap_tuned=0.8,
    dp_overlap_xla=0.8, launch_floor_old_s=0.8 * MILLI, launch_floor_s=0.2 * MILLI, launch_floor_moe=1.5,
    recompute_full_fsdp=0.7, recompute_selective=0.12, recompute_selective_moe=0.07, expert_efficiency=0.8, expert_efficiency_xla=0.7,
    expert_imbalance=1.05, permute_factor=1.1, permute_fused=0.6, expert_activation_factor=1.3, exchange_fused_intra=0.8,
    exchange_fused_inter=0.9, exchange_overlap=0.7, host_moe_layer_s=0.6 * MILLI, host_expert_s=30 * MICRO, host_grace=1.5,
    optimizer_bytes=30.0, optimizer_factor=1.3, step_overhead_s=15 * MILLI, straggler_per_doubling=0.01,
    release_rate_dense=0.04, release_rate_moe=0.05, fragmentation=1.05, runtime_bytes=2 * GIGA,
)  # fmt: skip
HYBRID = Architecture(
    layers=52, hidden=2688, heads=32, kv_heads=2, head_dim=128, ffn=0, vocab=131072, gated=False, experts=128, topk=6, shared_experts=1,
    expert_ffn=1856, shared_ffn=3712, attention_layers=6, state_layers=23, state_width=4096, state_inputs=2112,
)  # fmt: skip
