"""The constants of the serving models: what each means and its unit. Their values are cited figures of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ServingConstants:
    """Fitted constants shared by all chips and engines; every one must be given."""

    compute_efficiency_16bit: float  # share of the peak that large GEMMs reach, by width of the operands [1]
    compute_efficiency_8bit: float
    compute_efficiency_4bit: float
    memory_efficiency: float  # share of the memory bandwidth that reading weights reaches [1]
    kv_efficiency: float  # the same for reading the KV cache [1]
    attention_efficiency: float  # share of the 16-bit peak that the attention core reaches in prefill [1]
    mla_attention_efficiency: float  # the same for multi-head latent attention, relative to attention_efficiency [1]
    dense_saturation_tokens: float  # extra tokens' worth of time of a small dense GEMM, at the reference intensity [token]
    expert_saturation_tokens: float  # the same per expert [token]
    reference_intensity: float  # ratio of peak to bandwidth at which those two hold [FLOP/byte]
    expert_efficiency: float  # expert GEMM relative to dense GEMM [1]
    expert_skew: float  # shape of the negative binomial of tokens per expert; infinite is uniform routing [1]
    rank_imbalance: float  # relative excess of the fullest rank per natural logarithm of expert-parallel ranks [1]
    all_reduce_start_s: float  # start-up of an all-reduce [s]
    all_reduce_efficiency: float  # share of the link rate [1]
    all_to_all_start_s: float  # start-up of a dispatch or combine [s]
    all_to_all_efficiency: float  # share of the link rate [1]
    pipeline_hop_s: float  # start-up of handing a micro-batch to the next stage [s]
    layer_launch_s: float  # launch per layer [s]
    moe_layer_launch_s: float  # extra per MoE layer [s]
    prefill_layer_launch_s: float  # extra per layer in a step that carries prefill [s]
    host_step_s: float  # host per step [s]
    host_request_s: float  # host per running request and step [s]
    chunk_tokens: float  # most prefill tokens in a step [token]
    interleave_tokens: float  # prompt tokens per decode step that a waiting prompt sits out [token]
    steps_waited: float  # decode steps that an arrival sits out [1]
    first_token_s: float  # constant part of the time to first token [s]
    moe_first_token_factor: float  # factor on it for MoE [1]
    burst_share: float  # share of closed-loop clients that arrive in step with each other [1]
    usable_memory: float  # share of the memory that an engine fills [1]
    runtime_bytes: float  # memory of the runtime per chip [byte]
    output_held: float  # share of the output that a running request holds in the KV cache on average [1]
    batch_cap: float  # most running requests of an engine (per attention rank) [1]
    disaggregated_first_token_factor: float  # factor on the time to first token with separate pools [1]

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> ServingConstants:
        """From plain numbers by name. Raises ValueError naming what is missing, unknown, or not positive and finite.

        Units: as each field states [SI]. Reference: first fit on published serving measurements, see the catalog.

        >>> ServingConstants.from_values({"chunk_tokens": 8192})
        Traceback (most recent call last):
        ...
        ValueError: serving constants: missing all_reduce_efficiency, all_reduce_start_s, ... (33 in all)
        """
        known = {field.name for field in fields(cls)}
        missing, unknown = sorted(known - set(values)), sorted(set(values) - known)
        wrong = sorted(name for name in known & set(values) if not 0.0 < float(values[name]) < float("inf"))
        groups = (("missing", missing), ("unknown", unknown), ("not positive and finite", wrong))
        problems = [f"{label} {_listed(names)}" for label, names in groups if names]
        if problems:
            raise ValueError(f"serving constants: {'; '.join(problems)}")
        return cls(**{name: float(values[name]) for name in known})

    def compute_efficiency(self, precision: str) -> float:
        """Share of the peak that large GEMMs reach with weights of `precision` ("bf16", "fp8", "fp4", ...) [1].

        Integer 4-bit weights are widened before the product and reach the 16-bit share.
        Reference: first fit on published serving measurements, see the catalog.

        >>> class C: compute_efficiency_16bit, compute_efficiency_8bit, compute_efficiency_4bit = 0.4, 0.5, 0.6
        >>> ServingConstants.compute_efficiency(C, "fp8")
        0.5
        """
        by_precision = {
            "fp32": self.compute_efficiency_16bit,
            "bf16": self.compute_efficiency_16bit,
            "fp16": self.compute_efficiency_16bit,
            "int4": self.compute_efficiency_16bit,
            "fp8": self.compute_efficiency_8bit,
            "int8": self.compute_efficiency_8bit,
            "fp4": self.compute_efficiency_4bit,
        }
        if precision not in by_precision:
            raise ValueError(f"unknown precision {precision!r}; known: {', '.join(by_precision)}")
        return by_precision[precision]


def _listed(names: list[str], most: int = 2) -> str:
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"
