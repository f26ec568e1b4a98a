"""The constants of the serving models: what each means and its unit. Their values are cited figures of the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result
from models.roofline import Precision, operand_bits

# Engines and chip generations with figures of their own; any other takes 1.
# TensorRT-LLM runs networks through PyTorch (tensorrt_llm) or, before release 1.0, from plans compiled ahead (tensorrt_plan).
ENGINES = ("tensorrt_llm", "tensorrt_plan", "vllm", "sglang")
FAMILIES = ("ampere", "hopper", "blackwell", "bwrtx", "cdna3", "gaudi", "ascend")
REFERENCE_YEAR = 2025.5  # at which the times of host and launch are stated
Name = str | Sequence[str] | np.ndarray


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
    dense_saturation_tokens: (
        float  # extra tokens' worth of time of a small dense GEMM, at the reference intensity [token]
    )
    expert_saturation_tokens: float  # the same per expert [token]
    reference_intensity: float  # ratio of peak to bandwidth at which those two hold [FLOP/byte]
    expert_efficiency: float  # expert GEMM relative to dense GEMM [1]
    expert_width: float  # width of an expert's inner layer at which its GEMMs reach half of that [1]
    expert_skew: float  # shape of the negative binomial of tokens per expert; infinite is uniform routing [1]
    rank_imbalance: float  # relative excess of the fullest rank per natural logarithm of expert-parallel ranks [1]
    attention_imbalance: float  # scatter of the load of attention ranks, relative to random placement of requests [1]
    all_reduce_start_s: float  # start-up of an all-reduce [s]
    all_reduce_start_host_s: float  # the same over the links of the host [s]
    all_reduce_efficiency: float  # share of the link rate [1]
    all_to_all_start_s: float  # start-up of a dispatch or combine [s]
    all_to_all_efficiency: float  # share of the link rate [1]
    pipeline_hop_s: float  # start-up of handing a micro-batch to the next stage [s]
    layer_launch_s: float  # launch per layer [s]
    moe_layer_launch_s: float  # extra per MoE layer [s]
    moe_launch_exponent: float  # power of the number of experts with which it grows [1]
    prefill_layer_launch_s: float  # extra per layer in a step that carries prefill [s]
    prefill_moe_layer_launch_s: float  # further extra per MoE layer in such a step [s]
    host_step_s: float  # host per step [s]
    host_request_s: float  # host per running request and step [s]
    chunk_tokens: float  # most prefill tokens in a step [token]
    interleave_tokens: float  # prompt tokens per decode step that a waiting prompt sits out [token]
    steps_waited: float  # decode steps that an arrival sits out [1]
    first_token_s: float  # constant part of the time to first token [s]
    moe_first_token_factor: float  # factor on it for MoE [1]
    burst_share: float  # share of closed-loop clients that arrive in step with each other [1]
    usable_memory: (
        float  # share of the memory as sold that an engine fills; chips hold binary gigabytes, so 1 is 0.93 of it [1]
    )
    runtime_bytes: float  # memory of the runtime per chip [byte]
    output_held: float  # share of the output that a running request holds in the KV cache on average [1]
    batch_cap: float  # most running requests of an engine (per attention rank) [1]
    disaggregated_first_token_factor: float  # factor on the time to first token with separate pools [1]
    tpot_paced: float  # mean TPOT over its p99, at which a run with a limit on it settles [1]
    host_age_rate: float  # how much faster per year host and launch become with the software [1/year]
    moe_age_rate: float  # the same for experts [1/year]
    host_tensorrt_llm: (
        float  # factors of engines on host and launch time, first_token_s, batch_cap, steps_waited and burst_share [1]
    )
    launch_tensorrt_llm: float
    first_token_tensorrt_llm: float
    cap_tensorrt_llm: float
    wait_tensorrt_llm: float
    burst_tensorrt_llm: float
    host_tensorrt_plan: float
    launch_tensorrt_plan: float
    first_token_tensorrt_plan: float
    cap_tensorrt_plan: float
    wait_tensorrt_plan: float
    burst_tensorrt_plan: float
    host_vllm: float
    launch_vllm: float
    first_token_vllm: float
    cap_vllm: float
    wait_vllm: float
    burst_vllm: float
    host_sglang: float
    launch_sglang: float
    first_token_sglang: float
    cap_sglang: float
    wait_sglang: float
    burst_sglang: float
    compute_ampere: float  # factors of chip generations on compute and memory efficiency, and launch [1]
    memory_ampere: float
    launch_ampere: float
    compute_hopper: float
    memory_hopper: float
    launch_hopper: float
    compute_blackwell: float
    memory_blackwell: float
    launch_blackwell: float
    compute_bwrtx: float
    memory_bwrtx: float
    launch_bwrtx: float
    compute_cdna3: float
    memory_cdna3: float
    launch_cdna3: float
    compute_gaudi: float
    memory_gaudi: float
    launch_gaudi: float
    compute_ascend: float
    memory_ascend: float
    launch_ascend: float

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> ServingConstants:
        """From plain numbers by name. Raises ValueError naming what is missing, unknown, or not positive and finite.

        Units: as each field states [SI]. Reference: fit on published serving measurements, see the catalog.

        >>> ServingConstants.from_values({"chunk_tokens": 8192})
        Traceback (most recent call last):
        ...
        ValueError: serving constants: missing all_reduce_efficiency, all_reduce_start_host_s, ... (86 in all)
        """
        known = {field.name for field in fields(cls)}
        missing, unknown = sorted(known - set(values)), sorted(set(values) - known)
        wrong = sorted(name for name in known & set(values) if not 0.0 < float(values[name]) < float("inf"))
        groups = (("missing", missing), ("unknown", unknown), ("not positive and finite", wrong))
        problems = [f"{label} {_listed(names)}" for label, names in groups if names]
        if problems:
            raise ValueError(f"serving constants: {'; '.join(problems)}")
        return cls(**{name: float(values[name]) for name in known})

    def compute_efficiency(self, precision: Precision) -> Result:
        """Share of the peak that large GEMMs reach with weights of `precision` ("bf16", "fp8", "fp4", ...) [1].

        Integer 4-bit weights are widened before the product and reach the 16-bit share.
        Reference: fit on published serving measurements, see the catalog.

        >>> class C: compute_efficiency_16bit, compute_efficiency_8bit, compute_efficiency_4bit = 0.4, 0.5, 0.6
        >>> ServingConstants.compute_efficiency(C, "fp8")
        0.5
        """
        bits = operand_bits(precision)
        by_bits = {16: self.compute_efficiency_16bit, 8: self.compute_efficiency_8bit, 4: self.compute_efficiency_4bit}
        if isinstance(precision, str):
            return by_bits[bits]
        return np.where(bits == 16, by_bits[16], np.where(bits == 8, by_bits[8], by_bits[4]))

    def profile(
        self, engine: Name = "other", family: Name = "other", release_year: ArrayLike = REFERENCE_YEAR
    ) -> ServingConstants:
        """The constants of an engine of a date on a generation of chips; of several at once, as arrays of one shape.

        Host and launch times: x engine x exp(-rate (year - 2025.5)), launch x generation; efficiencies: x generation.
        Engines and generations without figures of their own take 1.
        Shapes: engine, family, year [year] broadcast. Units: as the fields. Reference: fit on published serving measurements.

        >>> from models.serving import examples
        >>> fast = examples.SERVING.profile("tensorrt_llm", "blackwell", 2026.0)
        >>> bool(fast.host_step_s < examples.SERVING.host_step_s), bool(examples.SERVING.profile().host_step_s == examples.SERVING.host_step_s)
        (True, True)
        """
        years = np.asarray(release_year, float) - REFERENCE_YEAR
        newer, experts = np.exp(-self.host_age_rate * years)[()], np.exp(-self.moe_age_rate * years)[()]
        compute, memory = self._factor("compute", FAMILIES, family), self._factor("memory", FAMILIES, family)
        host, launch = (self._factor(part, ENGINES, engine) * newer for part in ("host", "launch"))
        launch = launch * self._factor("launch", FAMILIES, family)
        return replace(
            self,
            compute_efficiency_16bit=self.compute_efficiency_16bit * compute,
            compute_efficiency_8bit=self.compute_efficiency_8bit * compute,
            compute_efficiency_4bit=self.compute_efficiency_4bit * compute,
            memory_efficiency=np.minimum(self.memory_efficiency * memory, 1.0),
            kv_efficiency=np.minimum(self.kv_efficiency * memory, 1.0),
            host_step_s=self.host_step_s * host,
            host_request_s=self.host_request_s * host,
            layer_launch_s=self.layer_launch_s * launch,
            moe_layer_launch_s=self.moe_layer_launch_s * launch * experts,
            prefill_layer_launch_s=self.prefill_layer_launch_s * launch,
            prefill_moe_layer_launch_s=self.prefill_moe_layer_launch_s * launch * experts,
            expert_efficiency=np.minimum(self.expert_efficiency / experts, 1.0),
            first_token_s=self.first_token_s * self._factor("first_token", ENGINES, engine),
            steps_waited=self.steps_waited * self._factor("wait", ENGINES, engine),
            burst_share=np.minimum(self.burst_share * self._factor("burst", ENGINES, engine), 1.0),
            batch_cap=self.batch_cap * self._factor("cap", ENGINES, engine),
        )

    def _factor(self, part: str, known: Sequence[str], names: Name) -> Result:
        if isinstance(names, str):
            return getattr(self, f"{part}_{names}") if names in known else 1.0
        found = {name: getattr(self, f"{part}_{name}") if name in known else 1.0 for name in set(names)}
        return np.array([found[name] for name in names])


def _listed(names: list[str], most: int = 2) -> str:
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"
