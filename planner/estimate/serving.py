"""Answer a serving case: the better of one pool and two under its load, as a document.

Searches are in `aggregated_search` and `disaggregated_search`, explanations in `serving_details` and `pool_comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from models.arrays import sum_of
from models.serving.percentiles import METRICS, TASK
from models.serving.prompt_terms import first_token_parts
from planner.errors import Issue, SpecError
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.case import CaseFacts
from planner.estimate.disaggregated_search import search_two_pools
from planner.estimate.memory import lack_words, memory_rows, shortfall
from planner.estimate.pool_comparison import chips_by_pool, compare_pools, pool_rows
from planner.estimate.power import power_document
from planner.estimate.serving_configuration import (
    CONCURRENCY,
    MAX,
    Load,
    SearchResult,
    ServingConfiguration,
    draw_of_pools,
    is_better,
    load_of,
)
from planner.estimate.serving_details import cache_tiers, decode_causes, routing_row, speculation_gain
from planner.estimate.sessions import session_row
from planner.evaluate.classes import class_rows
from planner.evaluate.rate_sensitivity import at_other_rates
from planner.evaluate.reach import THROUGHPUT, outside_of
from planner.evaluate.serving import QUANTILES, mfu, rates_of, systems_per_replica
from planner.messages import Message
from planner.problem.intervals import Run, row_of, serving_bounds, serving_tier
from planner.report.words import cap_words
from planner.spec.slo import latency_key

WORDS_OF_PARTS = {
    "overhead_s": Message.of("estimate.front_end").text(), "prefill_s": Message.of("estimate.prefill_of_prompt").text(), "chunking_s": Message.of("estimate.steps_of_others").text(),
    "prefill_wait_s": Message.of("estimate.wait_for_prompts").text(), "slot_wait_s": Message.of("estimate.wait_for_place").text(),
}  # fmt: skip


def answer_serving(facts: CaseFacts) -> dict[str, Any] | str:
    """Answer the case in plain values, or with the reason why nothing fits. Raises SpecError for a case that contradicts itself."""
    case, asked = facts.case, facts.serving.spec.disaggregation
    _check_consistency(facts)
    load = load_of(facts)
    alike, one, two = _search(facts, load)
    if case.pools is not None or asked == "always":
        configuration, tried = two.best, [two]
    elif case.layout is not None:
        configuration, tried = one.best, [one]
    else:
        configuration, tried = two.best if is_better(load, two.best, one.best) else one.best, [one, two]
    if configuration is None:
        return _failure_reason(facts, tried, load)
    return {
        "kind": "serving",
        "chips": case.chips,
        "load": {load.kind: load.value} if load.value else load.kind,
        "points": {name: getattr(one, name) + getattr(two, name) for name in ("points", "fitting", "meeting")},
        **_configuration_document(facts, configuration),
        **session_row(facts, configuration),
        **(
            {"queues": list(class_rows(facts.serving.spec.classes, configuration.point))}
            if facts.serving.spec.classes
            else {}
        ),
        **routing_row(facts, configuration),
        "tiers": cache_tiers(facts, load, configuration),
        "speculation": speculation_gain(facts, configuration),
        "waterfall": decode_causes(facts, configuration),
        "disaggregation": compare_pools(load, one.best, two.best, alike),
    }


def _search(facts: CaseFacts, load: Load) -> tuple[bool, SearchResult, SearchResult]:
    """Search (whether both pools stand on one type of system, the best single pool, the best two pools)."""
    case = facts.case
    # Pools on two types of system have no single pool on the same chips to compare with.
    alike = all(side is facts.system for side in facts.sides)
    one = search_one_pool(facts, load, case.layout) if alike else SearchResult(None)
    apart = facts.serving.spec.disaggregation != "never"
    return alike, one, search_two_pools(facts, load) if apart else SearchResult(None)


def _check_consistency(facts: CaseFacts) -> None:
    """Raise SpecError where layout, pools, chips and the requested disaggregation contradict each other."""
    case, asked = facts.case, facts.serving.spec.disaggregation
    if case.pools is not None and (case.layout is not None or asked == "never"):
        other = "layout" if case.layout is not None else "workload.disaggregation"
        raise SpecError([Issue("pools", Message.of("estimate.pools_ruled_out", key=other).text())])
    if case.layout is not None and asked == "always":
        raise SpecError([Issue("layout", Message.of("estimate.layout_of_one_pool").text())])
    stated = [pool.chips for pool in (case.pools.prefill, case.pools.decode) if pool.chips] if case.pools else []
    if stated and sum_of(stated) != case.chips:  # a case states the chips of both pools or of neither
        raise SpecError(
            [Issue("pools", Message.of("estimate.chips_of_pools", count=sum_of(stated), given=case.chips).text())]
        )


def _failure_reason(facts: CaseFacts, tried: Sequence[SearchResult], load: Load) -> str:
    """State why no configuration is feasible."""
    points, fitting, meeting = (
        sum_of(getattr(found, name) for found in tried) for name in ("points", "fitting", "meeting")
    )
    if not fitting and facts.power_cap is not None:
        free = sum_of(found.fitting for found in _search(replace(facts, power_cap=None), load)[1:])
        if free:
            return Message.of("estimate.under_power_cap", points=free, cap=cap_words(facts.power_cap.share)).text()
    if not fitting and (lack := shortfall(facts)) is not None:
        return lack_words(lack, points).text()
    if not fitting:
        return Message.of("estimate.no_point_fits_memory", points=points).text()
    if load.kind == MAX and not meeting:
        return Message.of("estimate.no_point_is_fast", points=fitting).text()
    return Message.of("estimate.no_point_carries_load", points=fitting).text()


def _configuration_document(facts: CaseFacts, configuration: ServingConfiguration) -> dict[str, Any]:
    """Document one configuration; figures are of all its chips unless the key says otherwise."""
    point, lengths = configuration.point, facts.serving.spec.lengths
    latencies = {
        metric: {name: configuration.latency(metric, quantile) for name, quantile in QUANTILES.items()}
        for metric in (METRICS if facts.serving.spec.session is None else (*METRICS, TASK))
    }  # fmt: skip
    chips = [
        (rates_of(facts.serving, system, configuration.precision, facts.scaleout), count)
        for system, count in zip(configuration.systems, chips_by_pool(configuration))
    ]
    rate, draw = configuration.requests_per_s, draw_of_pools(facts, configuration)
    systems_w = [
        configuration.copies
        * n
        * float(systems_per_replica(system, np.asarray(layout.chips), np.asarray(layout.pp)))
        * each_w
        for system, layout, n, each_w in zip(
            configuration.systems, configuration.layouts, configuration.workers, draw.system_w, strict=True
        )
    ]
    return {
        "mode": "disaggregated" if configuration.pools else "aggregated",
        "precision": configuration.precision,
        "kv_precision": configuration.choice.kv_precision,
        "pools": [{**row, "it_power_w": watts} for row, watts in zip(pool_rows(configuration), systems_w, strict=True)],
        "chips_used": configuration.chips,
        "batch": configuration.batch,
        "slots": float(point.slots),
        "latency_s": latencies,
        **_interval(facts, configuration, latencies, rate * lengths.output),
        "slo": [
            {
                "metric": limit.metric,
                "percentile": limit.percentile,
                "limit_s": limit.seconds,
                "predicted_s": latencies[limit.metric][limit.percentile],
                "slack_s": limit.seconds - latencies[limit.metric][limit.percentile],
            }
            for limit in facts.serving.spec.limits()
        ],
        "meets_slo": configuration.meets,
        "requests_per_s": rate,
        "tokens_per_s": rate * lengths.output,
        "tokens_per_s_per_replica": float(point.requests_per_s) * lengths.output,
        "tokens_per_s_per_chip": rate * lengths.output / configuration.chips,
        **power_document(facts.power_cap, draw.speed, sum_of(systems_w), rate * lengths.output),
        "mfu": mfu(facts.serving, rate, chips, float(point.computed_share)),
        "memory_bytes": float(point.memory_bytes),
        "hbm_bytes": configuration.systems[-1].hbm_bytes,
        "memory": memory_rows(facts, configuration),
        "prefill_utilisation": float(point.prefill_utilisation),
        **_first_token(facts, configuration),
        "breakdown": {name: float(share) for name, share in point.shares.items()},
        "bound_by": {name: float(share) for name, share in point.bound_shares().items()},
    }


def _first_token(facts: CaseFacts, configuration: ServingConfiguration) -> dict[str, Any]:
    """Split the mean time to first token into its parts: service, chunking, and waits; a burst of clients waits for the prompts before it."""
    parts = {name: float(part) for name, part in first_token_parts(configuration.point).items()}
    surplus = configuration.surplus_wait_s
    parts["chunking_s"] -= surplus
    if load_of(facts).kind == CONCURRENCY and configuration.pools is None and facts.serving.spec.session is None:
        parts["prefill_wait_s"] += parts["slot_wait_s"]
        parts["slot_wait_s"] = 0.0
    parts["slot_wait_s"] += surplus
    mean = configuration.latency("ttft", "mean")
    rows = [{"part": WORDS_OF_PARTS[name], "mean_s": part, "share": part / mean} for name, part in parts.items()]
    return {"waits_s": {"prefill": parts["prefill_wait_s"], "slot": parts["slot_wait_s"]}, "first_token": rows}


def _interval(
    facts: CaseFacts,
    configuration: ServingConfiguration,
    latencies: Mapping[str, Mapping[str, float]],
    tokens_per_s: float,
) -> dict[str, Any]:
    """Compute the 80 % interval [low, high] of every latency and of the output tokens per second."""
    known = facts.constants.measured_serving
    chips = [facts.serving.measured_as(system.chip, configuration.precision) for system in configuration.systems]
    flat = {latency_key(metric, name): value for metric, row in latencies.items() for name, value in row.items()}
    lengths = facts.serving.spec.lengths
    run = Run.of(
        facts.serving.architecture,
        float(configuration.layouts[-1].chips),
        lengths.input + lengths.output,
        configuration.batch,
        configuration.precision,
    )
    bounds = row_of(serving_bounds(known, chips, flat, tokens_per_s, run, at_other_rates(configuration.point)))
    rows = {metric: {name: bounds[latency_key(metric, name)] for name in row} for metric, row in latencies.items()}
    return {
        "interval_80": {**rows, "tokens_per_s": bounds["capacity"]},
        "tier": serving_tier(known, chips, run.kind),
        "outside": outside_of(known, chips, THROUGHPUT, run),
    }
