"""Evaluate a serving point of one pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from models.energy.power import PowerConstants, serving_power_w
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import BOUNDS, ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import forward_flops_per_token
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.facts import ServingFacts, SystemFacts
from planner.spec.slo import Slo

BATCHES = np.unique(np.rint(np.geomspace(1, 8192, 53)))


QUANTILES: dict[str, str | float] = {"mean": "mean", "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def systems_per_replica(system: SystemFacts, chips: np.ndarray, stages: np.ndarray) -> np.ndarray:
    """Share of a system, or number of systems, that one replica blocks: whole copies only inside a system."""
    inside = np.maximum(system.chips // np.maximum(chips, 1), 1)
    return np.where(
        stages > 1,
        stages * np.ceil(chips / stages / system.chips),
        np.where(chips <= system.chips, 1 / inside, np.ceil(chips / system.chips)),
    )


def evaluate(
    workload: ServingFacts, system: SystemFacts, scaleout: float, layouts: ServingLayouts, batch: np.ndarray | float, precision: str,
    constants: ServingConstants,
) -> ServingPoint:  # fmt: skip
    """The steady state of layouts x batch, or of one layout and one batch; KV cache as wide as the weights' GEMMs allow."""
    return aggregated(
        workload.architecture, system.rates(precision, scaleout), layouts, batch,
        lengths=lengths_of(workload), precisions=precisions(precision), constants=engine_constants(workload, system, constants),
        speculation=drafting(workload.spec.speculation), cache=prefix_cache(workload.spec.cache, system.chips),
    )  # fmt: skip


def lengths_of(workload: ServingFacts) -> Lengths:
    """Prompt and output lengths of the workload, with their spread."""
    lengths = workload.spec.lengths
    return Lengths(float(lengths.input), float(lengths.output), lengths.input_cv**2, lengths.output_cv**2)


def engine_constants(workload: ServingFacts, system: SystemFacts, constants: ServingConstants) -> ServingConstants:
    """The constants of the workload's engine on the system's generation of chips."""
    return _profile(constants, workload.spec.engine or "other", system.family or "other")


_profile = lru_cache(maxsize=64)(ServingConstants.profile)


def kv_precision(precision: str) -> str:
    """KV cache in 8 bit where the weights are in 8 bit or fewer, else in 16 bit."""
    return "fp8" if precision in ("fp8", "fp4") else "bf16"


def precisions(weights: str) -> Precisions:
    """The precision of the weights with that of the KV cache."""
    return Precisions(weights, kv_precision(weights))


def limits_at_site(
    slo: Slo, allowance_s: float, stretch: Mapping[str, float] = {}
) -> Mapping[str, list[tuple[str | float, float]]]:
    """Limits that hold at the site once the round trip is taken off those that it counts against; `stretch`: what latencies may grow by."""
    limits: dict[str, list[tuple[str | float, float]]] = {}
    for limit in slo.at_site(allowance_s, stretch):
        limits.setdefault(limit.metric, []).append((QUANTILES[limit.percentile], limit.seconds))
    return limits


def latencies(point: ServingPoint, slo: Slo) -> dict[str, np.ndarray]:
    """ "ttft.p95" -> seconds at the site, for every limit of the SLO."""
    return {limit.key: latency_s(point, limit.metric, QUANTILES[limit.percentile]) for limit in slo.limits()}


def extra_power_w(system: SystemFacts, shares: Mapping[str, Any], constants: PowerConstants) -> Any:
    """IT power above idle of one fully occupied system whose engine's time goes by `shares` of the parts of a step [W]."""
    bounds = {name: sum(shares[part] for part in parts) for name, parts in BOUNDS.items()}
    return serving_power_w(bounds, system.idle_w, system.power_w, constants) - system.idle_w


def at(values: Mapping[str, np.ndarray], shape: tuple[int, ...], index: tuple[int, ...]) -> dict[str, float]:
    """One entry of arrays that broadcast to `shape`."""
    return {name: float(np.broadcast_to(value, shape)[index]) for name, value in values.items()}


def mfu(
    workload: ServingFacts, requests_per_s: float, chips: Sequence[tuple[ChipRates, float]], computed_share: float = 1.0
) -> float:
    """Model FLOPs of what is computed of the prompt and of the output over the peak of all chips of the replica.

    `chips`: (rates, count) of each pool.
    """
    lengths = workload.spec.lengths
    per_token = forward_flops_per_token(workload.architecture, lengths.input + lengths.output / 2)
    peak = sum(count * rates.flop_per_s for rates, count in chips)
    return float(requests_per_s * (computed_share * lengths.input + lengths.output) * per_token / peak)


def layout_of(layouts: ServingLayouts, index: int) -> dict[str, int]:
    return {name: int(np.asarray(getattr(layouts, name))[index]) for name in ("tp", "pp", "dp", "ep")}


def chips_of(layout: Mapping[str, int]) -> int:
    return layout["tp"] * layout["pp"] * layout["dp"]
