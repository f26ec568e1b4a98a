"""Search the best single pool for a serving case: layouts x batch under its load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from models.arrays import Floats, Result
from models.serving.closed_loop import closed_loop
from models.serving.closed_points import closed_sessions
from models.serving.continuous_batching import NUMBERS, ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.prompt_terms import UNIFORM_SCV
from planner.estimate.batch_search import Batches, Selection, busiest_row, choose_batch
from planner.estimate.case import CaseFacts
from planner.estimate.power import capped_pool
from planner.estimate.serving_configuration import (
    CONCURRENCY,
    Load,
    SearchResult,
    ServingConfiguration,
    allowed_layouts,
    best_result,
    common_choices,
    meets_limits,
)
from planner.evaluate import serving
from planner.evaluate.serving import engine_constants, lengths_of, precisions_of, rates_of, systems_per_replica
from planner.evaluate.serving_layouts import occupied_chips
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.engine import EngineChoice


def search_one_pool(facts: CaseFacts, load: Load, asked: Mapping[str, int] | None) -> SearchResult:
    """Search the best single pool on the chips of the case over ways to run, layouts (or the `asked` one) and batches."""
    system = facts.system
    layouts = allowed_layouts(facts, system, facts.case.chips, asked, "layout")
    return best_result(_search_one_pool(facts, load, layouts, choice) for choice in common_choices(facts, [system]))


def _search_one_pool(facts: CaseFacts, load: Load, layouts: ServingLayouts, choice: EngineChoice) -> SearchResult:
    """Search the layouts and batches, run in one way."""
    if not len(layouts):
        return SearchResult(None)
    system, copies = facts.system, replicas(facts, layouts)

    def uncapped(rows: Selection, batch: Batches) -> ServingPoint:
        return serving.evaluate(
            facts.serving,
            system,
            facts.scaleout,
            layouts.take(rows),
            batch,
            choice,
            facts.constants.serving,
        )

    def evaluate(rows: Selection, batch: Batches) -> ServingPoint:
        return capped_pool(facts.power_cap, system, uncapped(rows, batch), facts.constants.power)

    if load.kind == CONCURRENCY:
        return _closed_loop(facts, load, layouts, choice, copies, uncapped)
    picked = choose_batch(facts, load, copies, np.asarray(layouts.dp), evaluate)
    if picked.row is None:
        return SearchResult(None, *picked.counts)
    row, batch = picked.row, picked.batch
    layout, point = layouts.take(row), evaluate(row, batch)
    configuration = ServingConfiguration(
        choice, (system,), (layout,), (1,), float(copies[row]), int(copies[row] * layout.chips), batch, point, None,
        meets_limits(facts, point),
    )  # fmt: skip
    return SearchResult(configuration, *picked.counts)


def _closed_loop(
    facts: CaseFacts,
    load: Load,
    layouts: ServingLayouts,
    choice: EngineChoice,
    copies: Floats,
    uncapped: Callable[[Selection, Batches], ServingPoint],
) -> SearchResult:
    """Search the best layout for clients that each wait for their answer before they send the next request.

    Means belong to the closed loop, and so is the spread of waits for the first token; that of the other times is that of as many open
    arrivals, as far as it is by other clients. The burst of clients that arrive in step stands as a wait for a slot. A power cap stretches all
    times alike, so the batch is the same with it and without.
    """
    workload, system = facts.serving.spec, facts.system
    at_work = np.minimum(copies, load.value)
    clients = load.value / at_work
    if workload.session is not None:
        found = closed_sessions(lambda batch: uncapped(slice(None), batch), clients)
        return _busiest(facts, layouts, choice, (copies, at_work), found, np.zeros(len(layouts)))
    loop = closed_loop(
        facts.architecture, rates_of(facts.serving, system, choice.precision, facts.scaleout), layouts, clients,
        lengths=lengths_of(facts.serving), precisions=precisions_of(choice),
        constants=engine_constants(facts.serving, system, facts.constants.serving),
        speculation=drafting(workload.speculation), cache=prefix_cache(workload.cache, system.chips),
    )  # fmt: skip
    point = uncapped(slice(None), loop.seen)
    runs = np.asarray(point.slots) >= 1.0
    first, own = (
        loop.first(),
        facts.serving.engine.correction(*facts.serving.measured_as(system.chip, choice.precision)),
    )
    met = replace(
        point, batch=loop.batch, fits=runs, requests_per_s=loop.requests_per_s * own.throughput, tpot_s=loop.tpot_s * own.tpot,
        tpot_prompt_s=loop.between_s * own.tpot, tpot_deviation_s=point.tpot_deviation_s * loop.swing,
        tpot_step_deviation_s=point.tpot_step_deviation_s * loop.swing, tpot_burst_s=point.tpot_burst_s * np.sqrt(loop.others),
        tpot_behind_s=point.tpot_behind_s * loop.others, prompt_s=loop.prompt_s * own.ttft,
        unloaded_ttft_s=first.constant_s * own.ttft, prefill_wait_s=first.wait_s * own.ttft, boundary_s=first.step_s * own.ttft,
        prefill_wait_probability=first.wait_probability, prefill_wait_scv=first.wait_scv,
        prefill_load=first.wait_probability, slot_wait_s=first.burst_s * own.ttft,
        slot_wait_probability=np.where(np.asarray(first.burst_s) > 0.0, first.burst_share, 0.0), slot_wait_scv=UNIFORM_SCV,
        arrivals=None,
    )  # fmt: skip
    return _busiest(facts, layouts, choice, (copies, at_work), met, np.asarray(loop.surplus_s * own.ttft))


def _busiest(
    facts: CaseFacts, layouts: ServingLayouts, choice: EngineChoice, replicas: tuple[Floats, Floats], met: ServingPoint, surplus: Floats,
) -> SearchResult:  # fmt: skip
    """Take the busiest of the layouts in a closed loop; `replicas`: of each that there is room for, and those at work."""
    system, (copies, at_work), free = facts.system, replicas, met.requests_per_s
    met = capped_pool(facts.power_cap, system, met, facts.constants.power)
    with np.errstate(invalid="ignore"):  # layouts that do not run
        surplus = surplus * np.broadcast_to(free / met.requests_per_s, surplus.shape)
    busiest = busiest_row(facts, met, at_work)
    if busiest.row is None:
        return SearchResult(None, *busiest.counts)
    row, shape = busiest.row, (len(layouts),)
    point, batch = _entry(met, shape, (row,)), float(np.broadcast_to(met.batch, shape)[row])
    configuration = ServingConfiguration(
        choice, (system,), (layouts.take(row),), (1,), float(at_work[row]), int(copies[row] * layouts.take(row).chips),
        batch, point, None, meets_limits(facts, point), float(surplus[row]),
    )  # fmt: skip
    return SearchResult(configuration, *busiest.counts)


def replicas(facts: CaseFacts, layouts: ServingLayouts) -> Floats:
    """Count the replicas on the chips of the case, [layout]; a replica smaller than a system does not span two."""
    system, each = facts.system, np.asarray(layouts.chips)
    systems, rest = divmod(facts.case.chips, system.chips)
    across = np.floor(systems / systems_per_replica(system, each, np.asarray(layouts.pp)) + 1e-9)
    return np.where(each <= system.chips, across + rest // occupied_chips(rest, each), across).astype(float)


def _entry(point: ServingPoint, shape: tuple[int, ...], index: tuple[int, ...]) -> ServingPoint:
    """Take one entry of an operating point whose fields are arrays of a shape."""

    def one(value: Result) -> Any:
        return np.broadcast_to(value, shape)[index][()]

    values = {name: one(getattr(point, name)) for name in NUMBERS}
    return replace(point, **values, shares={name: one(share) for name, share in point.shares.items()})
