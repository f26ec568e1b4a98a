"""Evaluate how long a worker takes until it serves at its full rate on systems that ran something else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.serving.decode import ServingLayouts
from models.storage import load_s, warm_up_loss_s
from planner.evaluate import disaggregated, serving
from planner.problem.constants import ModelConstants
from planner.problem.engine import EngineChoice
from planner.problem.facts import ScaleOut, ServingFacts, SiteFacts, SystemFacts

START, LOAD, WARM_UP = "start", "load", "warm_up"  # parts of the time


@dataclass(frozen=True, slots=True)
class ServingPool:
    """Workers of one role: their system, what its network gives a chip, their layout, batch and number in a replica."""

    system: SystemFacts
    scaleout: ScaleOut
    layout: Mapping[str, int]
    batch: int
    workers: int


def worker_ready_s(
    workload: ServingFacts,
    site: SiteFacts,
    pools: Sequence[ServingPool],
    choice: EngineChoice,
    constants: ModelConstants,
) -> dict[str, float]:
    """Compute the parts of the time that a worker loses at its start, by name [s].

    start     the engine's start, beside the reading of weights
    load      max(((1 - s) W + D) / B, s W / P): weights W and data D [byte] from storage at B, the share s that lies on the system at P [byte/s]
    warm_up   what the worker does less than a warm one while its prefix cache fills, as time of a warm one; only where it fills slowly
    """
    asked = workload.spec.scale_up
    _, bandwidth = read_at_start(workload, site, constants)
    if asked is None:
        return {
            START: constants.loading.engine_start_s,
            LOAD: float(load_s(workload.weights_bytes, [1.0], [bandwidth])),
        }
    size = workload.weights_bytes + asked.data
    here = asked.preloaded * workload.weights_bytes / size
    rates = [bandwidth, asked.preload_bandwidth or math.inf]
    parts = {
        START: constants.loading.engine_start_s if asked.start is None else asked.start,
        LOAD: float(load_s(size, [1.0 - here, here], rates)),
    }
    if asked.warm_up and workload.spec.cache is not None:
        slower = _capacity(workload, pools, choice, constants) / _capacity(_cold(workload), pools, choice, constants)
        parts[WARM_UP] = float(warm_up_loss_s(asked.warm_up, slower))
    return parts


def read_at_start(workload: ServingFacts, site: SiteFacts, constants: ModelConstants) -> tuple[float, float]:
    """Return what a worker reads from storage when it loads, weights that do not lie on its systems and data [byte], and at which rate [byte/s]."""
    asked, stated = workload.spec.scale_up, site.storage_bytes_per_s
    bandwidth = stated if math.isfinite(stated) else constants.loading.storage_bytes_per_s
    if asked is None:
        return workload.weights_bytes, bandwidth
    return (1.0 - asked.preloaded) * workload.weights_bytes + asked.data, asked.bandwidth or bandwidth


def _cold(workload: ServingFacts) -> ServingFacts:
    """Return the workload of a worker whose prefix cache is empty."""
    return replace(workload, spec=workload.spec.model_copy(update={"cache": None}))


def _capacity(
    workload: ServingFacts, pools: Sequence[ServingPool], choice: EngineChoice, constants: ModelConstants
) -> float:
    """Compute the requests per second of a replica."""
    layouts = [ServingLayouts(**pool.layout) for pool in pools]
    if len(pools) == 1:
        (pool,) = pools
        found = serving.evaluate(
            workload, pool.system, pool.scaleout, layouts[0], float(pool.batch), choice, constants.serving
        )
        return float(found.requests_per_s)
    prefill, decode = pools
    both = disaggregated.evaluate(
        workload, (prefill.system, decode.system), (prefill.scaleout, decode.scaleout), (layouts[0], layouts[1]), float(decode.batch),
        (prefill.workers, decode.workers), choice, constants.serving,
    )  # fmt: skip
    return float(both.point.requests_per_s)
