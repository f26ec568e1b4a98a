"""Evaluate disaggregated serving: separate pools of prefill and decode workers."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.units import MICRO
from models.arrays import Ints, Result
from models.energy.power import serving_power_w
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import BOUNDS
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint, TransferLink, WorkerPool, disaggregated
from planner.evaluate.serving import engine_constants, lengths_of, precisions
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.facts import Problem, ServingFacts, SystemFacts

TRANSFER_START_S = 5 * MICRO  # latency before the first byte of a KV cache arrives


def evaluate(
    workload: ServingFacts,
    systems: tuple[SystemFacts, SystemFacts],
    scaleouts: tuple[float, float],
    layouts: tuple[ServingLayouts, ServingLayouts],
    batch: Result,
    workers: tuple[Result | Ints, Result | Ints],
    precision: str,
    constants: ServingConstants,
) -> DisaggregatedPoint:
    """Compute the steady state of groups of workers; pairs are (prefill, decode), arrays broadcast.

    `scaleouts`: bytes per second of a chip out of its system. `batch`: of one decode worker. `workers`: number in a group.
    """
    prefill, decode = (
        WorkerPool(system.rates(precision, scaleout), layout, count, engine_constants(workload, system, constants))
        for system, scaleout, layout, count in zip(systems, scaleouts, layouts, workers, strict=True)
    )
    return disaggregated(
        workload.architecture, prefill, decode, batch, link=TransferLink(min(scaleouts), TRANSFER_START_S),
        lengths=lengths_of(workload), precisions=precisions(precision),
        speculation=drafting(workload.spec.speculation), cache=prefix_cache(workload.spec.cache, systems[0].chips),
    )  # fmt: skip


def pool_power_w(shares: Mapping[str, float], system: SystemFacts, problem: Problem) -> float:
    """Compute the IT power above idle of one system of a pool [W]; shares of the time below 1 in sum leave the rest idle."""
    bounds = {name: sum(shares.get(part, 0.0) for part in parts) for name, parts in BOUNDS.items()}
    return float(serving_power_w(bounds, system.idle_w, system.power_w, problem.constants.power)) - system.idle_w
