"""Evaluate disaggregated serving: separate pools of prefill and decode workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.units import MICRO
from models.arrays import Ints, Result, sum_of
from models.energy.power import PowerConstants, serving_power_w
from models.formats import element_bytes
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import BOUNDS
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint, TransferLink, WorkerPool, disaggregated
from models.serving.sessions import apart, call_lengths
from models.transformer.attention import kv_bytes
from planner.evaluate.serving import corrected, engine_constants, lengths_of, precisions_of, rates_of
from planner.evaluate.serving_state import drafting, reuse_of
from planner.problem.engine import Correction, EngineChoice
from planner.problem.fabrics import exchange_bytes_per_s
from planner.problem.facts import ScaleOut, ServingFacts, SystemFacts
from planner.spec.workloads import Serving


@dataclass(frozen=True, slots=True)
class CacheLine:
    """What a line between two sites gives one KV cache."""

    bytes_per_s: float
    rtt_s: float


TRANSFER_START_S = 5 * MICRO  # latency before the first byte of a KV cache arrives


def evaluate(
    workload: ServingFacts,
    systems: tuple[SystemFacts, SystemFacts],
    scaleouts: tuple[ScaleOut, ScaleOut],
    layouts: tuple[ServingLayouts, ServingLayouts],
    batch: Result,
    workers: tuple[Result | Ints, Result | Ints],
    choice: EngineChoice,
    constants: ServingConstants,
    line: CacheLine | None = None,
) -> DisaggregatedPoint:
    """Compute the steady state of groups of workers; pairs are (prefill, decode), arrays broadcast.

    `scaleouts`: what the network between systems gives a chip. `batch`: of one decode worker. `workers`: number in a group.
    `line`: joins the two sites of a group that has its pools at two.
    """
    prefill, decode = (
        WorkerPool(
            rates_of(workload, system, choice.precision, scaleout),
            layout,
            count,
            engine_constants(workload, system, constants),
        )
        for system, scaleout, layout, count in zip(systems, scaleouts, layouts, workers, strict=True)
    )
    found = disaggregated(
        workload.architecture, prefill, decode, batch, link=link_of(workload.spec, systems, *scaleouts, line),
        lengths=lengths_of(workload, choice), precisions=precisions_of(choice),
        speculation=drafting(workload.spec.speculation), cache=reuse_of(workload.spec, systems[0], choice.waiting),
        arrival_scv=workload.spec.arrival_cv**2,
    )  # fmt: skip
    return replace(found, point=corrected(found.point, correction_of(workload, systems, choice)))


def correction_of(workload: ServingFacts, systems: tuple[SystemFacts, SystemFacts], choice: EngineChoice) -> Correction:
    """Return measured over predicted of groups on systems for prefill and decode, from the user's own measurements of their chips."""
    own = [workload.engine.correction(*workload.measured_as(system.chip, choice.precision)) for system in systems]
    return own[0].in_two_pools(own[1])


def link_of(
    workload: Serving,
    systems: tuple[SystemFacts, SystemFacts],
    prefill: ScaleOut,
    decode: ScaleOut,
    line: CacheLine | None = None,
) -> TransferLink:
    """Join two networks by the slower one, after the longer way; between vendors caches are converted too.

    Over a line between sites the prompt travels there and its cache back, which takes the round trip and the time of the cache on the line.
    """
    start_s = TRANSFER_START_S + max(prefill.latency_s, decode.latency_s)
    slower = min(prefill.bytes_per_s, decode.bytes_per_s)
    rate = exchange_bytes_per_s(workload, systems, slower)
    return TransferLink(rate, start_s) if line is None else TransferLink(rate, start_s + line.rtt_s, line.bytes_per_s)


def moved_bytes(workload: ServingFacts, system: SystemFacts, choice: EngineChoice) -> float:
    """Compute the KV cache that moves from prefill to decode for one request, or one call of a session [byte]."""
    reuse = apart(reuse_of(workload.spec, system, choice.waiting))
    prompt = call_lengths(reuse, lengths_of(workload, choice)).prompt
    return float(kv_bytes(workload.architecture, prompt, element_bytes(choice.kv_precision)))


def pool_power_w(shares: Mapping[str, Result], system: SystemFacts, constants: PowerConstants) -> Result:
    """Compute the IT power above idle of one system of a pool [W]; shares of the time below 1 in sum leave the rest idle."""
    bounds = {name: sum_of(shares.get(part, 0.0) for part in parts) for name, parts in BOUNDS.items()}
    return serving_power_w(bounds, system.idle_w, system.power_w, constants) - system.idle_w
