"""Round numbers for the doctests of the serving models: two networks, a chip, constants and two points. Nothing computes with them."""

from __future__ import annotations

from catalog.units import GIGA, MICRO, MILLI, TERA
from models.roofline import ChipRates
from models.serving.constants import EngineFactors, ServingConstants
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.workload import Lengths, Media, Precisions
from models.transformer.architecture import Architecture
from models.transformer.encoder import Encoder

DENSE = Architecture(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
MOE = Architecture(
    layers=48,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_dim=128,
    ffn=6144,
    vocab=151936,
    experts=128,
    topk=8,
    expert_ffn=768,
)
CHIP = ChipRates(
    flop_per_s=1000 * TERA, flop16_per_s=1000 * TERA, hbm_bytes_per_s=3.3 * TERA, hbm_bytes=80 * GIGA,
    scaleup_bytes_per_s=450 * GIGA, scaleup_chips=8, scaleout_bytes_per_s=50 * GIGA, tdp_w=700.0,
)  # fmt: skip
SERVING = ServingConstants(
    compute_efficiency_16bit=0.5, compute_efficiency_8bit=0.5, compute_efficiency_4bit=0.5, memory_efficiency=0.8,
    kv_efficiency=0.8, attention_efficiency=0.5, mla_attention_efficiency=0.6, dense_saturation_tokens=50.0,
    expert_saturation_tokens=100.0, reference_intensity=300.0, expert_efficiency=0.6, expert_width=300.0, expert_skew=4.0, rank_imbalance=1.2,
    all_reduce_start_s=15 * MICRO, all_reduce_start_network_s=96e-6, all_reduce_efficiency=0.75, all_to_all_start_s=20 * MICRO, all_to_all_efficiency=0.5, all_to_all_network_efficiency=0.9,
    pipeline_hop_s=5 * MICRO, layer_launch_s=20 * MICRO, moe_layer_launch_s=50 * MICRO, moe_launch_exponent=0.5, prefill_layer_launch_s=20 * MICRO, prefill_moe_layer_launch_s=50 * MICRO, attention_imbalance=0.5, eager_launch=3.0,
    host_step_s=2 * MILLI, host_request_s=10 * MICRO, chunk_tokens=8192.0, interleave_tokens=2048.0, steps_waited=1.0,
    first_token_s=15 * MILLI, moe_first_token_factor=3.0, burst_share=0.3, usable_memory=0.95, runtime_bytes=1.5 * GIGA,
    output_held=0.9, batch_cap=800.0, disaggregated_first_token_factor=1.5, all_reduce_start_host_s=8 * MICRO, tpot_paced=0.75, host_age_rate=0.2, moe_age_rate=0.2, kernel_age_rate=0.05, kernel_age_rate_ported=0.2, widened_efficiency=0.9,
    engines={
        "tensorrt_llm": EngineFactors(host=0.8, launch=0.9), "tensorrt_plan": EngineFactors(host=0.5, launch=0.9),
        "vllm": EngineFactors(host=0.8, launch=0.9), "sglang": EngineFactors(host=0.8, launch=0.9),
    },
    families={},
)  # fmt: skip
ONE = ServingLayouts(1, 1, 1, 1)
BF16 = Precisions("bf16", "bf16")
LENGTHS = Lengths(1000, 200)
MEDIA = Media(Encoder(0.4e9, 27, 1152, 729, 729), 1.0)
POINT = aggregated(DENSE, CHIP, ONE, 16, lengths=Lengths(1000, 200), precisions=BF16, constants=SERVING)
SPREAD_POINT = aggregated(
    DENSE, CHIP, ONE, 16, lengths=Lengths(1000, 200, output_scv=1.0), precisions=BF16, constants=SERVING
)
