"""The constants of the serving models: what each means and its unit. Their values are cited figures of the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.arrays import Result
from models.formats import Precision, operand_bits

# Engines and chip generations with factors of their own; any other takes 1. An engine is added by its name here, its factors in
# the catalog, and its name in the specification.
# TensorRT-LLM runs networks through PyTorch (tensorrt_llm) or, before release 1.0, from plans compiled ahead (tensorrt_plan).
# Engines of single devices (llama.cpp, RKLLM) share the factors of "local", but for OpenVINO, whose kernels are the chip vendor's own.
ENGINES = ("tensorrt_llm", "tensorrt_plan", "vllm", "sglang", "local", "openvino")
FAMILIES = (
    "ampere", "ada", "hopper", "blackwell", "blackwell_ultra", "bwrtx", "cdna3", "cdna4", "gaudi", "ascend", "intelgpu", "rockchip",
)  # fmt: skip
PORTED = ("cdna3", "cdna4", "gaudi", "ascend", "intelgpu")  # to which the main engines were ported from others
# Generations on which engines that were ported to them start each kernel of a step from the host: what they record ends at each attention layer
# and each collective. The vendor's own engines, and all engines elsewhere, replay a step as one recorded graph.
HOST_STARTED = ("ascend",)
REFERENCE_YEAR = 2025.5  # at which the times of host and launch are stated
TABLES = ("engines", "families")  # fields of ServingConstants that are no numbers
DIVISION = (
    "cache_share",
    "step_tokens",
    "step_requests",
    "logit_bytes",
    "state_share",
    "state_slots",
)  # fields that no measurement sets
Name = str | Sequence[str] | NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class EngineFactors:
    """Factors of a serving engine on the constants [1]; in the catalog each is `part_engine`, as in `host_vllm`."""

    host: float = 1.0  # on host_step_s and host_request_s
    launch: float = 1.0  # on the launch times of layers
    first_token: float = 1.0  # on first_token_s
    cap: float = 1.0  # on batch_cap
    wait: float = 1.0  # on steps_waited
    burst: float = 1.0  # on burst_share
    compute: float = 1.0  # on the compute efficiencies, that of attention included


@dataclass(frozen=True, slots=True)
class FamilyFactors:
    """Factors of a chip generation on the constants [1]; in the catalog each is `part_family`, as in `compute_hopper`."""

    compute: float = 1.0  # on the compute efficiencies
    memory: float = 1.0  # on memory_efficiency and kv_efficiency
    launch: float = 1.0  # on the launch times of layers, and of all-reduces where engines were ported
    experts: float = (
        1.0  # on those of MoE layers: kernels that sort tokens and multiply little, however they are started
    )
    wait: float = 1.0  # on steps_waited: engines that were ported schedule several steps at once
    widen: float = 1.0  # on the rates at which weights are read and multiplied that have to be widened first


def factor_names() -> dict[str, tuple[str, str]]:
    """Name the factors of all engines and chip generations:  catalog name -> (part, engine or generation).

    Shapes: none. Units: factors are [1]. Reference: fit on published serving measurements, see the catalog.

    >>> factor_names()["host_vllm"], factor_names()["compute_hopper"]
    (('host', 'vllm'), ('compute', 'hopper'))
    """
    groups = ((ENGINES, fields(EngineFactors)), (FAMILIES, fields(FamilyFactors)))
    return {f"{part.name}_{name}": (part.name, name) for names, parts in groups for name in names for part in parts}


@dataclass(frozen=True, slots=True)
class ServingConstants:
    """Fitted constants shared by all chips and engines, with the factors of each; every one must be given.

    `profile` gives them for an engine and chip generation, or for arrays of those.
    """

    compute_efficiency_16bit: Result  # share of the peak that large GEMMs reach, by width of the operands [1]
    compute_efficiency_8bit: Result
    compute_efficiency_4bit: Result
    memory_efficiency: Result  # share of the memory bandwidth that reading weights reaches [1]
    kv_efficiency: Result  # the same for reading the KV cache [1]
    attention_efficiency: Result  # share of the 16-bit peak that the attention core reaches in prefill [1]
    mla_attention_efficiency: float  # the same for multi-head latent attention, relative to attention_efficiency [1]
    # Extra tokens' worth of time of a small dense GEMM, at the reference intensity [token].
    dense_saturation_tokens: float
    expert_saturation_tokens: float  # the same per expert [token]
    reference_intensity: float  # ratio of peak to bandwidth at which those two hold [FLOP/byte]
    expert_efficiency: Result  # expert GEMM relative to dense GEMM [1]
    expert_width: float  # width of an expert's inner layer at which its GEMMs reach half of that [1]
    expert_skew: float  # shape of the negative binomial of tokens per expert; infinite is uniform routing [1]
    rank_imbalance: (
        float  # load of the fullest of e expert-parallel ranks over the mean, beside chance; 1: chance alone [1]
    )
    attention_imbalance: float  # scatter of the load of attention ranks, relative to random placement of requests [1]
    all_reduce_start_s: Result  # start-up of an all-reduce [s]
    all_reduce_start_host_s: Result  # the same over the links of the host [s]
    all_reduce_start_network_s: float  # an all-reduce between scale-up domains, for each doubling of them [s]
    all_reduce_efficiency: float  # share of the link rate [1]
    all_to_all_start_s: float  # start-up of a dispatch or combine [s]
    all_to_all_efficiency: float  # share of the scale-up rate [1]
    all_to_all_network_efficiency: float  # the same of the scale-out rate [1]
    pipeline_hop_s: float  # start-up of handing a micro-batch to the next stage [s]
    layer_launch_s: Result  # launch per layer [s]
    moe_layer_launch_s: Result  # extra per MoE layer [s]
    moe_launch_exponent: float  # power of the number of experts with which it grows [1]
    prefill_layer_launch_s: Result  # extra per layer in a step that carries prefill [s]
    prefill_moe_layer_launch_s: Result  # further extra per MoE layer in such a step [s]
    eager_launch: (
        float  # factor on the launch of layers, and of ported all-reduces, where the host starts each kernel [1]
    )
    host_step_s: Result  # host per step [s]
    host_request_s: Result  # host per running request and step [s]
    chunk_tokens: float  # most prefill tokens in a step [token]
    interleave_tokens: float  # prompt tokens per decode step that a waiting prompt sits out [token]
    steps_waited: Result  # decode steps that an arrival sits out [1]
    first_token_s: Result  # constant part of the time to first token [s]
    moe_first_token_factor: float  # factor on it for MoE [1]
    burst_share: Result  # share of closed-loop clients that arrive in step with each other [1]
    usable_memory: float  # share of the memory that the driver reports which an engine fills [1]
    runtime_bytes: float  # context, communication buffers and captured graphs per chip [byte]
    output_held: float  # share of the output that a running request holds in the KV cache on average [1]
    batch_cap: Result  # most running requests of an engine (per attention rank) [1]
    disaggregated_first_token_factor: float  # factor on the time to first token with separate pools [1]
    tpot_paced: float  # mean TPOT over its p99, at which a run with a limit on it settles [1]
    host_age_rate: float  # how much faster per year host and launch become with the software [1/year]
    moe_age_rate: float  # the same for experts [1/year]
    # How much slower per year kernels of software before the reference year are [1/year].
    kernel_age_rate: float
    kernel_age_rate_ported: float  # the same on generations to which engines were ported
    # Rates at which weights that have to be widened are read and multiplied, over those of the arithmetic [1].
    widened_efficiency: Result
    engines: Mapping[str, EngineFactors] = field(hash=False)  # by engine; one that is not here takes 1
    families: Mapping[str, FamilyFactors] = field(hash=False)  # by chip generation; one that is not here takes 1
    # How the engine divides the memory that it fills; set by whoever runs it, and never fitted.
    cache_share: Result = 1.0  # share of what weights and reserve leave, which the KV cache takes [1]
    step_tokens: Result = 0.0  # tokens of the largest step, for whose activations memory is set aside [token]
    step_requests: Result = 0.0  # whose logits that step computes [request]
    logit_bytes: Result = 0.0  # working memory per logit [byte]
    state_share: Result = (
        0.0  # share of what is left for caches, kept apart for states of sequences; 0: one pool for both [1]
    )
    state_slots: Result = 1.0  # states for which a running request takes room in a pool of its own [1]

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """List the constants by their names in the catalog: the fields, and the factors of engines and chip generations."""
        plain = (each.name for each in fields(cls) if each.name not in TABLES + DIVISION)
        return (*plain, *factor_names())

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> ServingConstants:
        """Build from plain numbers by name. Raises ValueError naming a figure that is missing, unknown, or not positive and finite.

        Units: as each field states [SI]. Reference: fit on published serving measurements, see the catalog.

        >>> ServingConstants.from_values({"chunk_tokens": 8192})
        Traceback (most recent call last):
        ...
        ValueError: serving constants: missing all_reduce_efficiency, all_reduce_start_host_s, ... (161 in all)
        """
        known = set(cls.names())
        missing, unknown = sorted(known - set(values)), sorted(set(values) - known)
        wrong = sorted(name for name in known & set(values) if not 0.0 < float(values[name]) < float("inf"))
        groups = (("missing", missing), ("unknown", unknown), ("not positive and finite", wrong))
        problems = [f"{label} {_listed(names)}" for label, names in groups if names]
        if problems:
            raise ValueError(f"serving constants: {'; '.join(problems)}")
        by_name: dict[str, dict[str, float]] = {}
        for factor, (part, name) in factor_names().items():
            by_name.setdefault(name, {})[part] = float(values[factor])
        return cls(
            **{name: float(values[name]) for name in known - set(factor_names())},
            engines={name: EngineFactors(**by_name[name]) for name in ENGINES},
            families={name: FamilyFactors(**by_name[name]) for name in FAMILIES},
        )

    def compute_efficiency(self, precision: Precision) -> Result:
        """Look up the share of the peak that large GEMMs reach with weights of `precision` ("bf16", "fp8", "fp4", ...) [1].

        Weights are widened no further than they must: integers of 4 bits reach the 16-bit share.
        Reference: fit on published serving measurements, see the catalog.

        >>> from models.serving.examples import SERVING
        >>> SERVING.compute_efficiency("fp8") == SERVING.compute_efficiency_8bit
        True
        """
        return self.efficiency_at(operand_bits(precision))

    def efficiency_at(self, bits: Result) -> Result:
        """Look up the share of the peak that large GEMMs reach with operands of a number of bits [1].

        Reference: fit on published serving measurements, see the catalog.

        >>> class C: compute_efficiency_16bit, compute_efficiency_8bit, compute_efficiency_4bit = 0.4, 0.5, 0.6
        >>> ServingConstants.efficiency_at(C, 16), ServingConstants.efficiency_at(C, np.array([4, 8])).tolist()
        (0.4, [0.6, 0.5])
        """
        by_bits = {16: self.compute_efficiency_16bit, 8: self.compute_efficiency_8bit, 4: self.compute_efficiency_4bit}
        if not np.ndim(bits):
            return by_bits[int(bits)]
        return np.where(bits == 16, by_bits[16], np.where(bits == 8, by_bits[8], by_bits[4]))

    def widened(self, stored_bytes: Result, bits: Result) -> Result:
        """Look up the share of the rates that kernels reach with weights stored in a number of bytes and operands of a number of bits [1]:  1 unless
        the elements are narrower than the operands, scales aside.

        Reference: Frantar et al., MARLIN, arXiv:2408.11743 (widening costs instructions beside the loads); fit on published serving measurements.

        >>> class C: widened_efficiency = 0.8
        >>> [float(ServingConstants.widened(C, width, bits)) for width, bits in ((2.0, 16), (0.516, 16), (1.0, 16), (0.5625, 4), (1.0, 8))]
        [1.0, 0.8, 0.8, 1.0, 1.0]
        """
        narrower = stored_bytes < bits / 8.0
        if not np.ndim(narrower):  # the usual case, without arrays
            return self.widened_efficiency if narrower else 1.0
        return np.where(narrower, self.widened_efficiency, 1.0)

    def profile(
        self,
        engine: Name = "other",
        family: Name = "other",
        release_year: ArrayLike = REFERENCE_YEAR,
        eager: ArrayLike | None = None,
    ) -> ServingConstants:
        """Scale the constants to an engine of a date on a generation of chips; for several at once, to arrays of one shape.

        Host and launch times: x engine x exp(-rate (year - 2025.5)), launch x generation, and x `eager_launch` where the host starts each kernel
        (`eager`; if omitted as `starts_from_host` says); that of MoE layers, which is time of kernels, x a factor of the generation of its own. On
        generations to which engines were ported the launch does not age, and the start of an all-reduce takes the factors of the launch. Efficiencies: x generation, of compute
        also x engine, and x exp(rate' (year - 2025.5)) before that year, when kernels were still to be tuned.
        Engines and generations without figures of their own take 1.
        Shapes: engine, family, year [year] broadcast. Units: as the fields. Reference: fit on published serving measurements.

        >>> from models.serving import examples
        >>> fast = examples.SERVING.profile("tensorrt_llm", "blackwell", 2026.0)
        >>> bool(fast.host_step_s < examples.SERVING.host_step_s), bool(examples.SERVING.profile().host_step_s == examples.SERVING.host_step_s)
        (True, True)
        """
        years = np.asarray(release_year, float) - REFERENCE_YEAR
        newer, experts = np.exp(-self.host_age_rate * years)[()], np.exp(-self.moe_age_rate * years)[()]
        engines, families = partial(_factor, self.engines, engine), partial(_factor, self.families, family)
        ported = np.isin(family, PORTED)
        rate = np.where(ported, self.kernel_age_rate_ported, self.kernel_age_rate)
        tuned = np.exp(rate * np.minimum(years, 0.0))[()]
        compute, memory = families("compute") * engines("compute") * tuned, families("memory") * tuned
        host = engines("host") * newer
        started = starts_from_host(engine, family) if eager is None else eager
        begun = np.where(started, self.eager_launch, 1.0)[()] * families("launch")
        software = engines("launch") * np.where(ported, 1.0, newer)[()]
        launch, routed = software * begun, software * families("experts") * experts
        start = np.where(ported, begun, 1.0)[()]
        return replace(
            self,
            compute_efficiency_16bit=self.compute_efficiency_16bit * compute,
            compute_efficiency_8bit=self.compute_efficiency_8bit * compute,
            compute_efficiency_4bit=self.compute_efficiency_4bit * compute,
            attention_efficiency=self.attention_efficiency * engines("compute") * tuned,
            memory_efficiency=np.minimum(self.memory_efficiency * memory, 1.0),
            kv_efficiency=np.minimum(self.kv_efficiency * memory, 1.0),
            host_step_s=self.host_step_s * host,
            host_request_s=self.host_request_s * host,
            all_reduce_start_s=self.all_reduce_start_s * start,
            all_reduce_start_host_s=self.all_reduce_start_host_s * start,
            layer_launch_s=self.layer_launch_s * launch,
            moe_layer_launch_s=self.moe_layer_launch_s * routed,
            prefill_layer_launch_s=self.prefill_layer_launch_s * launch,
            prefill_moe_layer_launch_s=self.prefill_moe_layer_launch_s * routed,
            expert_efficiency=np.minimum(self.expert_efficiency / experts, 1.0),
            first_token_s=self.first_token_s * engines("first_token"),
            steps_waited=self.steps_waited * engines("wait") * families("wait"),
            burst_share=np.minimum(self.burst_share * engines("burst"), 1.0),
            widened_efficiency=np.minimum(self.widened_efficiency * families("widen"), 1.0),
            batch_cap=self.batch_cap * engines("cap"),
        )


def starts_from_host(engine: Name, family: Name) -> bool | NDArray[np.bool_]:
    """Tell whether the host starts each kernel of a step (eager mode), as an engine does on a generation of chips by default.

    Shapes: names, or sequences of one length. Units: none. Reference: vLLM documentation, CUDA graphs (modes FULL and PIECEWISE).

    >>> starts_from_host("vllm", "ascend"), starts_from_host("other", "ascend"), starts_from_host(["vllm"], ["hopper"]).tolist()
    (True, False, [False])
    """
    if isinstance(engine, str) and isinstance(family, str):
        return engine in ENGINES and family in HOST_STARTED
    found: NDArray[np.bool_] = np.isin(engine, ENGINES) & np.isin(family, HOST_STARTED)
    return found


def _factor(known: Mapping[str, EngineFactors] | Mapping[str, FamilyFactors], names: Name, part: str) -> Result:
    """Look up one factor of an engine or a generation, or of several; 1 for those without factors of their own."""
    if isinstance(names, str):
        return float(getattr(known[names], part)) if names in known else 1.0
    found = {name: float(getattr(known[name], part)) if name in known else 1.0 for name in set(names)}
    return np.array([found[name] for name in names])


def _listed(names: list[str], most: int = 2) -> str:
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"
