"""Priors of the serving constants, a centre and a spread each, before any measurement. The fitted values are in the catalog.

A constant without an entry is not fitted: it is physics, a convention, or too weakly seen to move.
"""

from __future__ import annotations

from models.serving.constants import ENGINES, FAMILIES, PORTED, factor_names
from models.statistics.fitting import Prior

# The spread is of the natural logarithm; shares within 0..1 ("logit"): of the log-odds.
SERVING_PRIORS: dict[str, Prior] = {
    "compute_efficiency_16bit": Prior(0.6, 0.15, upper=0.95),
    "compute_efficiency_8bit": Prior(0.55, 0.15, upper=0.95),
    "compute_efficiency_4bit": Prior(0.5, 0.15, upper=0.95),
    "memory_efficiency": Prior(0.82, 0.06, upper=0.95),
    "kv_efficiency": Prior(0.75, 0.12, upper=0.95),
    "attention_efficiency": Prior(0.45, 0.3, upper=0.9),
    "mla_attention_efficiency": Prior(0.6, 0.2),
    "dense_saturation_tokens": Prior(80.0, 0.5),
    "expert_saturation_tokens": Prior(100.0, 0.4),
    "expert_efficiency": Prior(0.65, 0.15, upper=1.0),
    "expert_width": Prior(300.0, 0.7),
    "expert_skew": Prior(4.0, 0.3),
    "rank_imbalance": Prior(1.0, 0.1),  # chance alone
    "all_reduce_start_s": Prior(12e-6, 0.2),
    "all_reduce_start_host_s": Prior(12e-6, 0.4),
    "all_reduce_efficiency": Prior(0.65, 0.15, upper=0.95),
    "all_to_all_start_s": Prior(20e-6, 0.4),
    "all_to_all_efficiency": Prior(0.5, 0.3, upper=0.95),
    "layer_launch_s": Prior(20e-6, 0.3),
    "moe_layer_launch_s": Prior(70e-6, 0.4),
    "moe_launch_exponent": Prior(0.5, 0.1, upper=1.0),
    "prefill_layer_launch_s": Prior(25e-6, 0.5),
    "prefill_moe_layer_launch_s": Prior(100e-6, 0.6),
    "eager_launch": Prior(4.0, 0.7),
    "attention_imbalance": Prior(0.5, 0.4, upper=1.0),
    "host_step_s": Prior(1.5e-3, 0.5),
    "host_request_s": Prior(12e-6, 0.5),
    "interleave_tokens": Prior(2500.0, 0.5),
    "steps_waited": Prior(1.0, 0.3),
    "first_token_s": Prior(15e-3, 0.4),
    "moe_first_token_factor": Prior(2.0, 0.5, upper=5.0),
    "burst_share": Prior(0.3, 0.5, upper=1.0),
    "usable_memory": Prior(0.91, 0.02, upper=1.0),
    "output_held": Prior(0.85, 0.1, upper=1.0),
    "batch_cap": Prior(800.0, 0.4),
    "disaggregated_first_token_factor": Prior(1.4, 0.2),
    "tpot_paced": Prior(0.75, 0.1, upper=1.0),
    "host_age_rate": Prior(0.6, 0.4),
    "moe_age_rate": Prior(0.15, 0.4),
    "kernel_age_rate": Prior(0.03, 0.7),
    "kernel_age_rate_ported": Prior(0.15, 0.7),
    "widened_efficiency": Prior(0.9, 0.1, upper=1.0),
}
SERVING_PRIORS |= {f"{part}_{engine}": Prior(1.0, spread) for engine in ENGINES
                   for part, spread in (("host", 0.5), ("launch", 0.3), ("first_token", 0.5), ("cap", 0.3), ("wait", 0.5), ("burst", 0.4), ("compute", 0.1))}  # fmt: skip
SERVING_PRIORS |= {f"{part}_{family}": Prior(1.0, spread) for family in FAMILIES
                   for part, spread in (("compute", 0.15), ("memory", 0.07), ("launch", 0.25), ("experts", 0.25), ("wait", 0.1), ("widen", 0.1))}  # fmt: skip
# Dies with less bandwidth per FLOP than those of servers.
SERVING_PRIORS |= {f"compute_{family}": Prior(1.15, 0.25) for family in ("ada", "bwrtx")}
# Layers take half as long as on the generation before.
SERVING_PRIORS |= {
    f"{part}_{family}": Prior(0.6, 0.25)
    for part in ("launch", "experts")
    for family in ("blackwell", "blackwell_ultra")
}
# What the main engines were not written for: few kernels were tuned. A graph is replayed there as elsewhere; for kernels that the host starts
# one by one see eager_launch.
SERVING_PRIORS |= {f"{part}_{family}": Prior(centre, spread) for family in PORTED
                   for part, centre, spread in (("compute", 0.8, 0.3), ("memory", 0.9, 0.15), ("launch", 1.0, 0.25), ("experts", 1.5, 0.9), ("wait", 1.5, 0.6))}  # fmt: skip
# NPUs of boards: an ARM core starts each kernel, and the memory serves that core too.
SERVING_PRIORS |= {
    "compute_rockchip": Prior(1.0, 0.3),
    "memory_rockchip": Prior(1.0, 0.2),
    "launch_rockchip": Prior(1.0, 0.9),
    "experts_rockchip": Prior(1.0, 0.9),
}
# Single devices run other kernels than servers: quantised weights are unpacked on the way.
SERVING_PRIORS |= {
    f"{part}_{engine}": Prior(centre, 0.8)
    for engine in ("local", "openvino")
    for part, centre in (("host", 0.5), ("launch", 1.0), ("first_token", 0.3))
}
SERVING_PRIORS |= {"compute_local": Prior(0.5, 0.5), "compute_openvino": Prior(1.0, 0.3)}

# Words by which a shared constant belongs to a cause; the first that its name holds counts.
CAUSES = (
    ("age", ("age_rate",)), ("network", ("all_reduce", "all_to_all", "network")), ("launch", ("launch",)), ("queue", ("first_token", "held")),
    ("host", ("host",)), ("memory", ("memory_efficiency", "kv_efficiency")),
    ("compute", ("efficiency", "saturation", "expert", "imbalance")),
    ("queue", ("wait", "interleave", "burst", "usable", "cap", "paced")),
)  # fmt: skip


def serving_level(name: str) -> str:
    """Name the level of a constant, within which constants are shrunk alike: its part of engines or generations, or its cause.

    A constant of no known cause is a level of its own. Shapes: none. Units: a name [1].
    Reference: `models.statistics.shrinkage`.

    >>> serving_level("launch_ascend"), serving_level("host_vllm"), serving_level("layer_launch_s")
    ('launch of generations', 'host of engines', 'launch')
    """
    part, of = factor_names().get(name, ("", ""))
    if part:
        return f"{part} of {'engines' if of in ENGINES else 'generations'}"
    return next((cause for cause, words in CAUSES if any(word in name for word in words)), name)
