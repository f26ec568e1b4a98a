"""Evaluate serving in one pool: steady state, latencies, power and MFU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from models.arrays import Floats, Ints, Result, sum_of
from models.energy.power import PowerConstants, serving_power_w
from models.formats import cache_format
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import BOUNDS, ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.encoder_pool import apart_point, encoder_workers
from models.serving.media import encoding_s
from models.serving.percentiles import latency_s
from models.serving.prompt_terms import first_token_parts
from models.serving.sessions import OFFLOADED
from models.serving.software import with_software
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from models.transformer.attention import forward_flops_per_token
from planner.evaluate.engine_memory import with_memory
from planner.evaluate.serving_layouts import occupied_chips
from planner.evaluate.serving_state import drafting, media_of, reuse_of
from planner.problem.engine import NONE, Correction, EngineChoice, EngineSettings
from planner.problem.facts import ScaleOut, ServingFacts, SystemFacts
from planner.spec.workloads import Serving

BATCHES: Floats = np.unique(np.rint(np.geomspace(1, 8192, 53)))
"""Batches on which layouts of few attention ranks are evaluated: requests in decode of one replica."""
RANKS_OF_BATCHES = 4
APART = "apart"  # way to encode media: in a pool of its own

QUANTILES: dict[str, str | float] = {"mean": "mean", "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def systems_per_replica(system: SystemFacts, chips: Ints, stages: Ints) -> Floats:
    """Compute how many systems, or what share of one, each replica occupies.

    A replica that fits into a system takes 1 / n of it, where n such replicas fit, each on `occupied_chips`. A larger one takes whole
    systems, and none of its pipeline stages lies in two that would each hold it.
    """
    inside = system.chips // occupied_chips(system.chips, chips)
    stage = -(-chips // stages)
    stages_inside = np.maximum(system.chips // stage, 1)
    whole = np.ceil(stages / stages_inside) * np.ceil(stage / system.chips)
    return np.where(chips <= system.chips, 1 / np.maximum(inside, 1), whole)


def batch_grid(attention_ranks: Ints | int) -> Floats:
    """List the batches on which layouts are evaluated, [layout, batch], or [batch] for one: up to as many per attention rank as fit any memory.

    Layouts of up to `RANKS_OF_BATCHES` ranks share one grid; layouts of more ranks take it in proportion, in whole requests.
    """
    share = np.maximum(np.asarray(attention_ranks) / RANKS_OF_BATCHES, 1.0)
    return np.rint(np.multiply.outer(share, BATCHES))


def evaluate(
    workload: ServingFacts, system: SystemFacts, scaleout: ScaleOut, layouts: ServingLayouts, batch: Result, choice: EngineChoice,
    constants: ServingConstants,
) -> ServingPoint:  # fmt: skip
    """Compute the steady state of layouts x batch (arrays broadcast), or of one layout at one batch.

    `scaleout`: what the network between systems gives a chip.
    Times and rates are corrected by the user's own measurements of the chip where the catalog has them (`corrected`).
    """
    chip, known = rates_of(workload, system, choice.precision, scaleout), engine_constants(workload, system, constants)
    lengths = lengths_of(workload, choice)
    found = aggregated(
        workload.architecture, chip, layouts, batch, lengths=lengths, precisions=precisions_of(choice), constants=known,
        speculation=drafting(workload.spec.speculation), cache=reuse_of(workload.spec, system, choice.waiting),
        arrival_scv=workload.spec.arrival_cv**2,
    )  # fmt: skip
    point = corrected(found, workload.engine.correction(*workload.measured_as(system.chip, choice.precision)))
    if choice.encoding != APART:
        return point
    link = scaleout.bytes_per_s or system.scaleup_bytes_per_s
    return apart_point(
        point, chip, workload.architecture.hidden, lengths, link, known, arrival_scv=workload.spec.arrival_cv**2
    )[0]


OF_DECODE = (
    "step_s", "tpot_s", "tpot_deviation_s", "tpot_step_deviation_s", "tpot_burst_s", "tpot_behind_s", "tpot_prompt_s", "tpot_chunk_s"
)  # fmt: skip
OF_FIRST_TOKEN = (
    "prefill_s", "unloaded_ttft_s", "overhead_s", "prompt_s", "prefill_wait_s", "boundary_s", "slot_wait_s"
)  # fmt: skip


def corrected(point: ServingPoint, by: Correction) -> ServingPoint:
    """Multiply the times of decode, those up to the first token, and the rate by measured over predicted.

    Every percentile of TPOT and TTFT is multiplied by its factor, since each is a sum of these times. What fits in memory stays.
    """
    if by == NONE:
        return point
    times = {name: getattr(point, name) * by.tpot for name in OF_DECODE}
    times |= {name: getattr(point, name) * by.ttft for name in OF_FIRST_TOKEN}
    return replace(point, requests_per_s=point.requests_per_s * by.throughput, **times)


def encoder_use(
    workload: ServingFacts, system: SystemFacts, choice: EngineChoice, calls_per_s: Result, constants: ServingConstants
) -> tuple[Result, Result]:
    """Count the chips that encode the media of a replica apart, and the share of the time that they are at work; (0, 0) for other ways."""
    if choice.encoding != APART:
        return 0.0, 0.0
    chip, known = rates_of(workload, system, choice.precision), engine_constants(workload, system, constants)
    lengths = lengths_of(workload, choice)
    first = np.asarray(calls_per_s, float) / (1.0 if workload.spec.session is None else workload.spec.session.calls)
    chips = encoder_workers(first, chip, lengths, known)
    busy = sum_of(media.items * encoding_s(chip, media, known) for media in lengths.media)
    return chips, first * busy / chips


def lengths_of(workload: ServingFacts, choice: EngineChoice | None = None) -> Lengths:
    """Read prompt and output lengths of a workload, of the first calls of its sessions, with their squared coefficients of variation."""
    lengths = workload.spec.lengths
    media = tuple(
        media_of(block, choice is not None and choice.encoding == APART) for block in workload.spec.media or []
    )
    return Lengths(float(lengths.input), float(lengths.output), lengths.input_cv**2, lengths.output_cv**2, media)


def engine_constants(workload: ServingFacts, system: SystemFacts, constants: ServingConstants) -> ServingConstants:
    """Select the constants of the workload's engine on the chip generation of the system, with the settings of its run.

    Its record and that of the compiler may change them. It fills the share of the memory that the workload states, and its limit on running requests is raised as far as submitters of
    benchmarks raise it: what fits in memory and keeps the latency limits is for the plan to decide. A workload that states no engine
    runs on the one that the user measured on the chip, if any.
    """
    engine = workload.engine.base or workload.engine.measured_engine(system.chip) or "other"
    return _profile(constants, engine, system.family or "other", system.hbm_bytes, workload.engine)


@lru_cache(maxsize=64)
def _profile(
    constants: ServingConstants, engine: str, family: str, chip_bytes: float, settings: EngineSettings
) -> ServingConstants:
    profile = constants.profile(engine, family, eager=settings.eager)
    found = with_software(profile, settings.software, family)
    return with_memory(replace(found, batch_cap=found.batch_cap * settings.limit_factor), family, chip_bytes, settings)


def engine_choices(workload: ServingFacts, system: SystemFacts) -> list[EngineChoice]:
    """List how an engine may run a workload on a system: formats of weights that it multiplies, and where caches of sessions may wait.

    Memory of the host counts where its size and rate are known.
    """
    spec, shape = workload.spec, workload.architecture
    ways: list[str] = [""] if spec.session is None else [*spec.session.caches]
    able = [way for way in ways if way != OFFLOADED or (system.host_bytes and system.host_bytes_per_s)]
    return [
        EngineChoice(precision, kv, way, encoding)
        for precision in spec.precision
        if system.serves(precision, spec.arithmetic)
        for kv in ([*spec.kv_precision] if spec.kv_precision else [kv_precision(shape, precision)])
        for way in able
        for encoding in (spec.encoding if spec.media else [""])
    ]


def rates_of(
    workload: ServingFacts, system: SystemFacts, precision: str, scaleout: ScaleOut | None = None
) -> ChipRates:
    """Return the rates of a system for a workload with weights in a format, in the arithmetic that it states, if any."""
    return system.rates(precision, scaleout, workload.spec.arithmetic, hosted=True)


def kv_precision(shape: Architecture, precision: str) -> str:
    """Return the format of the KV cache where the spec states none: the engines' (`models.formats.cache_format`)."""
    return cache_format(shape.checkpoints, precision)


def precisions(shape: Architecture, weights: str) -> Precisions:
    """Pair the format of the weights with that of the KV cache where the spec states none."""
    return Precisions(weights, kv_precision(shape, weights))


def precisions_of(choice: EngineChoice) -> Precisions:
    """Return the precisions that the closed forms take."""
    return Precisions(choice.precision, choice.kv_precision)


def limits_at_site(
    workload: Serving, allowance_s: float, stretch: Mapping[str, float] = {}
) -> Mapping[str, list[tuple[str | float, float]]]:
    """List the latency limits at the site by metric, as (quantile, seconds): the SLO less the round trip `allowance_s`.

    `stretch`: factor by metric on predicted latencies that the plan counts on, by which its limits are divided.
    """
    limits: dict[str, list[tuple[str | float, float]]] = {}
    for limit in workload.limits_at_site(allowance_s, stretch):
        limits.setdefault(limit.metric, []).append((QUANTILES[limit.percentile], limit.seconds))
    return limits


def latencies(point: ServingPoint, workload: Serving) -> dict[str, Result]:
    """Predict the latency of every limit of the SLO, keyed as "ttft.p95" [s], at the site."""
    return {limit.key: latency_s(point, limit.metric, QUANTILES[limit.percentile]) for limit in workload.limits()}


FIRST_TOKEN = ("mean", "p50", "p95", "p99")


def first_token(point: ServingPoint) -> dict[str, float]:
    """Describe the time to first token at the site [s]: its mean, median and far percentiles, and the parts that its mean is the sum of."""
    found = {name: float(latency_s(point, "ttft", QUANTILES[name])) for name in FIRST_TOKEN}
    return found | {name.removesuffix("_s"): float(part) for name, part in first_token_parts(point).items()}


def call_s(point: ServingPoint) -> float | None:
    """Predict the mean time of a call of one point [s]; None where requests belong to no task."""
    return None if point.task is None else float(latency_s(point, "e2e", "mean"))


def extra_power_w(system: SystemFacts, shares: Mapping[str, Result], constants: PowerConstants) -> Result:
    """Compute the IT power above idle of one fully occupied system [W]; `shares`: of the time, by part of a step."""
    bounds: dict[str, Result] = {name: sum_of(shares[part] for part in parts) for name, parts in BOUNDS.items()}
    return serving_power_w(bounds, system.idle_w, system.power_w, constants) - system.idle_w


def encoder_power_w(system: SystemFacts, busy: float, constants: PowerConstants) -> Result:
    """Compute the IT power above idle of one system of encoders that compute for a share `busy` of the time [W]."""
    return (
        serving_power_w(
            {"compute": busy, "memory": 0.0, "communication": 0.0, "host": 0.0},
            system.idle_w,
            system.power_w,
            constants,
        )
        - system.idle_w
    )


def entry_at(values: Mapping[str, Result], shape: tuple[int, ...], index: tuple[int, ...]) -> dict[str, float]:
    """Take one entry of arrays that broadcast to `shape`."""
    return {name: float(np.broadcast_to(value, shape)[index]) for name, value in values.items()}


def mfu(
    workload: ServingFacts, requests_per_s: float, chips: Sequence[tuple[ChipRates, float]], computed_share: float = 1.0
) -> float:
    """Compute the model FLOPs utilisation: FLOPs of computed prompt and output tokens over the peak of all chips.

    `chips`: (rates, count) of each pool. `computed_share`: of the prompt tokens, those that no prefix cache supplies.
    """
    lengths = workload.spec.lengths
    prompt = workload.spec.prompt_tokens
    per_token = forward_flops_per_token(workload.architecture, prompt + lengths.output / 2)
    peak = sum_of(count * rates.flop_per_s / rates.reached for rates, count in chips)
    return float(requests_per_s * (computed_share * prompt + lengths.output) * per_token / peak)


def layout_of(layouts: ServingLayouts, index: int) -> dict[str, int]:
    """Write one of the layouts as plan documents do."""
    return {name: int(np.asarray(getattr(layouts, name))[index]) for name in ("tp", "pp", "dp", "ep")}
