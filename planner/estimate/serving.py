"""The answer to a serving case: the better of one pool and two under its load, with all that a reader asks of it.

Ways to serve are searched in serving_search.py; the closed forms are in `models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from catalog.units import MILLI
from models.serving.decode import ServingLayouts
from models.serving.percentiles import METRICS
from models.serving.prefill import DecodeBatch, Prompts
from models.serving.prefix_cache import prompt_cost
from models.serving.prompt_terms import prompts_together
from models.serving.speculation import decode_step, speculative_speedup
from models.serving.waterfall import ROOFLINE, decode_waterfall
from planner.errors import Problem, SpecError
from planner.estimate import serving_search as search
from planner.estimate.case import CaseFacts
from planner.evaluate.serving import QUANTILES, engine_constants, kv_precision, layout_of, lengths_of, mfu, precisions
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.intervals import serving_bounds, serving_tier
from planner.spec.slo import latency_key

SHOWN_BATCHES = (1, 4, 16, 64, 256, 1024)
LIKELY = 0.01  # relative gain below which neither of two ways is called the better


def answer_serving(facts: CaseFacts) -> dict[str, Any] | str:
    """The answer as plain values, or the reason why nothing fits. Raises SpecError for a case that contradicts itself."""
    case, asked = facts.case, facts.case.workload.disaggregation
    if case.pools is not None and (case.layout is not None or asked == "never"):
        other = "layout" if case.layout is not None else "workload.disaggregation"
        raise SpecError([Problem("pools", f"asks for separate pools, which {other} rules out; remove one of the two")])
    if case.layout is not None and asked == "always":
        raise SpecError(
            [Problem("layout", 'is that of one pool, which workload.disaggregation rules out; state "pools" instead')]
        )
    if (
        case.pools is not None
        and case.pools.prefill.chips
        and case.pools.prefill.chips + case.pools.decode.chips != case.chips
    ):
        together = case.pools.prefill.chips + case.pools.decode.chips
        raise SpecError(
            [Problem("pools", f"the chips of both pools add up to {together}, but the case has {case.chips}")]
        )
    load = search.load_of(facts)
    # A pool on another system has no counterpart in one pool on the same chips.
    alike = all(side is facts.system for side in facts.sides)
    one = search.one_pool(facts, load, case.layout) if alike else search.Outcome(None, 0, 0, 0)
    two = search.Outcome(None, 0, 0, 0) if asked == "never" else search.two_pools(facts, load)
    if case.pools is not None or asked == "always":
        way = two.best
    elif case.layout is not None:
        way = one.best
    else:
        way = two.best if search.better(load, two.best, one.best) else one.best
    if way is None:
        return _why_nothing(one, two, load)
    return {
        "kind": "serving",
        "chips": case.chips,
        "load": {load.kind: load.value} if load.value else load.kind,
        "points": {name: getattr(one, name) + getattr(two, name) for name in ("points", "fitting", "meeting")},
        **_way_document(facts, way),
        "tiers": _tiers(facts, load, way),
        "speculation": _speculation(facts, way),
        "waterfall": _waterfall(facts, way),
        "disaggregation": _disaggregation(load, one.best, two.best, alike),
    }


def _why_nothing(one: search.Outcome, two: search.Outcome, load: search.Load) -> str:
    points, fitting, meeting = one.points + two.points, one.fitting + two.fitting, one.meeting + two.meeting
    if not fitting:
        return f"nothing fits: of {points:,} operating points none has room for weights and a request in memory"
    if load.kind == search.MAX and not meeting:
        return f"nothing fits the limits: {fitting:,} operating points fit in memory, none of them meets all limits on latencies"
    return f"nothing carries the load: {fitting:,} operating points fit in memory, the load is beyond all of them"


def _way_document(facts: CaseFacts, way: search.Way) -> dict[str, Any]:
    """Everything about one way to serve, for all its chips unless said otherwise."""
    point, lengths = way.point, facts.case.workload.lengths
    latencies = {
        metric: {name: way.latency(metric, quantile) for name, quantile in QUANTILES.items()} for metric in METRICS
    }  # fmt: skip
    chips = [
        (system.rates(way.precision, facts.scaleout_bytes_per_s), count)
        for system, count in zip(way.systems, _chips_of(way))
    ]
    rate = way.requests_per_s
    return {
        "mode": "disaggregated" if way.pools else "aggregated",
        "precision": way.precision,
        "kv_precision": kv_precision(way.precision),
        "pools": _pools(way),
        "chips_used": way.chips,
        "batch": way.batch,
        "slots": float(point.slots),
        "latency_s": latencies,
        **_interval(facts, way, latencies, rate * lengths.output),
        "slo": [
            {
                "metric": metric,
                "percentile": name,
                "limit_s": limit,
                "predicted_s": latencies[metric][name],
                "slack_s": limit - latencies[metric][name],
            }
            for metric, name, limit in facts.case.workload.slo.limits()
        ],
        "meets_slo": way.meets,
        "requests_per_s": rate,
        "tokens_per_s": rate * lengths.output,
        "tokens_per_s_per_replica": float(point.requests_per_s) * lengths.output,
        "tokens_per_s_per_chip": rate * lengths.output / way.chips,
        "mfu": mfu(facts.serving, rate, chips, float(point.computed_share)),
        "memory_bytes": float(point.memory_bytes),
        "prefill_memory_bytes": float(way.pools.prefill_memory_bytes) if way.pools else None,
        "hbm_bytes": way.systems[-1].hbm_bytes,
        "prefill_utilisation": float(point.prefill_utilisation),
        "waits_s": {"prefill": float(point.prefill_wait_s), "slot": float(point.slot_wait_s) + way.surplus_wait_s},
        "breakdown": {name: float(share) for name, share in point.shares.items()},
        "bound_by": {name: float(share) for name, share in point.bound_shares().items()},
    }


def _chips_of(way: search.Way) -> list[float]:
    """Chips of each pool that carry load."""
    return [way.copies * n * float(layout.chips) for layout, n in zip(way.layouts, way.workers)]


def _pools(way: search.Way) -> list[dict[str, Any]]:
    roles = ("prefill", "decode") if way.pools else ("serve",)
    return [
        {
            "role": role,
            "system": system.name,
            "layout": layout_of(_row(layout), 0),
            "workers": workers if way.pools else int(way.copies),
            "chips": int(chips),
        }
        for role, system, layout, workers, chips in zip(roles, way.systems, way.layouts, way.workers, _chips_of(way))
    ]


def _row(layout: ServingLayouts) -> ServingLayouts:
    return ServingLayouts(*(np.ravel(size) for size in (layout.tp, layout.pp, layout.dp, layout.ep)))


def _tiers(facts: CaseFacts, load: search.Load, way: search.Way) -> dict[str, Any] | None:
    """What each tier finds and whether loading pays, at the way's load."""
    block, workload = facts.case.workload.cache, facts.case.workload
    if block is None:
        return None
    system, layout = way.systems[0], way.layouts[0]
    rates = system.rates(way.precision, facts.scaleout_bytes_per_s)
    constants = engine_constants(facts.serving, system, facts.constants.serving)
    kinds: dict[str, Any] = {"precisions": precisions(way.precision), "constants": constants}
    speculation, lengths = drafting(workload.speculation), lengths_of(facts.serving)
    prompts, decode = Prompts(lengths.prompt, lengths.scv_of_input), None
    if way.pools is not None:
        tokens = workload.lengths.output - 1.0
        each = (
            way.workers[1] * way.batch / (tokens * float(way.point.tpot_s)) / way.workers[0]
        )  # as models.serving.disaggregation has it
        most = lambda _: each
    else:
        sequences, context = way.batch / layout.pp, lengths.running_context_tokens
        mixed, step = decode_step(
            facts.architecture, rates, layout, speculation, decode_sequences=sequences, context_tokens=context, **kinds
        )
        passed = speculation.verified_tokens if speculation else 1.0
        steps = lengths.later_tokens / (speculation.tokens_per_step if speculation else 1.0)
        decoding = steps * float(step.total_s)
        most = lambda occupancy_s: way.batch / (decoding + way.batch * occupancy_s)
        prompts = replace(prompts, together=prompts_together(way.batch, steps, layout.dp))
        decode = DecodeBatch(mixed, sequences, context, passed)
    cache = prefix_cache(block, system.chips)
    _, found = prompt_cost(facts.architecture, rates, layout, cache, most, prompts, decode, **kinds)
    names = [tier.name for tier in block.tiers] or ["hbm"]
    prices = [
        None if tier.price is None else _price(*tier.price, ceil(_chips_of(way)[0] / system.chips))
        for tier in block.tiers
    ] or [None]
    rows = [
        {
            "tier": name, "hit_rate": float(hit), "load_s": float(load), "recompute_s": float(found.recompute_s),
            "loaded_share": float(loaded), "decision": _decision(float(loaded), name), "price": price,
        }
        for name, hit, loaded, load, price in zip(names, found.hits, found.loaded, found.load_s, prices)
    ]  # fmt: skip
    return {
        "hit_rate": float(sum(found.hits)),
        "computed_share": float(way.point.computed_share),
        "hbm_bytes_per_chip": cache.hbm_bytes_per_chip,
        "tiers": rows,
        "without": _without_cache(facts, load, way),
    }


def _without_cache(facts: CaseFacts, load: search.Load, way: search.Way) -> dict[str, Any] | None:
    """The best that the case does in the same mode when nothing is kept, or None where it does not carry the load then."""
    bare = replace(
        facts, case=facts.case.model_copy(update={"workload": facts.case.workload.model_copy(update={"cache": None})})
    )
    found = search.two_pools(bare, load) if way.pools else search.one_pool(bare, load, facts.case.layout)
    if found.best is None:
        return None
    return {
        "requests_per_s": found.best.requests_per_s,
        **{f"{metric}_s": found.best.latency(metric, "mean") for metric in METRICS},
    }


def _speculation(facts: CaseFacts, way: search.Way) -> dict[str, Any] | None:
    """Tokens per step, and the rate of decoding over that without drafts, at the way's batch and at others."""
    speculation, system, layout = drafting(facts.case.workload.speculation), way.systems[-1], way.layouts[-1]
    if speculation is None:
        return None
    lengths = facts.case.workload.lengths

    def speedup(batch: Any) -> Any:
        return speculative_speedup(
            facts.architecture, system.rates(way.precision, facts.scaleout_bytes_per_s), layout, speculation, decode_sequences=batch / layout.pp,
            context_tokens=lengths.input + 0.5 * (lengths.output - 1), precisions=precisions(way.precision),
            constants=engine_constants(facts.serving, system, facts.constants.serving),
        )  # fmt: skip

    batches = np.array([n for n in SHOWN_BATCHES if n <= way.point.slots], float)
    by_batch = [{"batch": int(batch), "speedup": float(gain)} for batch, gain in zip(batches, speedup(batches))]
    return {"tokens_per_step": speculation.tokens_per_step, "speedup": float(speedup(way.batch)), "by_batch": by_batch}


def _price(amount: float, currency: str, systems: int) -> dict[str, Any]:
    return {"per_system": amount, "systems": systems, "total": amount * systems, "currency": currency}


def _decision(loaded: float, name: str) -> str:
    if loaded == 0.0:
        return "compute again"
    if loaded < 1.0:
        return f"load {loaded:.0%} of the hits, which is what the bandwidth carries, and compute the others again"
    return "use in place" if name == "hbm" else "load"


def _waterfall(facts: CaseFacts, way: search.Way) -> list[dict[str, Any]]:
    """From the roofline of one request to the predicted time per output token; seconds added and the rate reached."""
    system, point = way.systems[-1], way.point
    fall = decode_waterfall(
        facts.architecture, system.rates(way.precision, facts.scaleout_bytes_per_s), way.layouts[-1],
        replace(point, slot_wait_s=point.slot_wait_s + way.surplus_wait_s), input_tokens=float(facts.case.workload.lengths.input),
        precisions=precisions(way.precision),
        constants=engine_constants(facts.serving, system, facts.constants.serving), speculation=drafting(facts.case.workload.speculation),
    )  # fmt: skip
    rates, total = fall.rates(), float(fall.roofline_s)
    rows = [{"cause": ROOFLINE, "added_s": total, "reached_s": total, "tokens_per_s": float(rates[ROOFLINE])}]
    for name, added in fall.causes.items():
        total += float(added)
        rows.append({"cause": name, "added_s": float(added), "reached_s": total, "tokens_per_s": float(rates[name])})
    return rows


def _disaggregation(load: search.Load, one: search.Way | None, two: search.Way | None, alike: bool) -> dict[str, Any]:
    """Whether separate pools pay against one pool on the same chips, in numbers and words."""
    rows = {
        name: None if way is None else {
            "requests_per_s": way.requests_per_s, "ttft_s": way.latency("ttft", "mean"), "tpot_s": way.latency("tpot", "mean"),
            "e2e_s": way.latency("e2e", "mean"), "meets_slo": way.meets, "pools": _pools(way),
        }
        for name, way in (("aggregated", one), ("disaggregated", two))
    }  # fmt: skip
    return {
        **rows,
        "pays": None if one is None or two is None else _gain(load, one, two) > LIKELY,
        "answer": _verdict(load, one, two, alike),
    }


def _gain(load: search.Load, one: search.Way, two: search.Way) -> float:
    """Relative gain of two pools: a larger rate, or a shorter request; without bound where only they meet the limits."""
    if one.meets != two.meets:
        return np.inf if two.meets else -np.inf
    if load.kind == search.RATE:
        return one.latency("e2e", "mean") / two.latency("e2e", "mean") - 1.0
    return two.requests_per_s / one.requests_per_s - 1.0


def _verdict(load: search.Load, one: search.Way | None, two: search.Way | None, alike: bool) -> str:
    if not alike:
        return "the pools stand on different systems: there is no single pool on the same chips to compare with"
    if two is None:
        return "separate pools are ruled out, or none carries the load within the chips and the network"
    if one is None:
        return "only separate pools carry the load: no single pool on the same chips does"
    gain = _gain(load, one, two)
    if load.kind == search.RATE:
        numbers = f"{two.latency('e2e', 'mean'):.3g} s end to end with separate pools, {one.latency('e2e', 'mean'):.3g} s with one, at the same rate"
    else:
        numbers = f"{two.requests_per_s:.3g} requests/s with separate pools, {one.requests_per_s:.3g} with one, on the same chips"
    times = ", ".join(
        f"{metric.upper()} {two.latency(metric, 'mean') / MILLI:.3g} against {one.latency(metric, 'mean') / MILLI:.3g} ms"
        for metric in ("ttft", "tpot")
    )
    if np.isinf(gain):
        return f"it {'pays' if gain > 0 else 'does not pay'}: only {'separate pools meet' if gain > 0 else 'one pool meets'} the limits ({numbers}; {times})"
    if abs(gain) <= LIKELY:
        return f"it makes no difference: {numbers} ({times})"
    return f"it {'pays' if gain > 0 else 'does not pay'}: {numbers} ({gain:+.0%}; {times})"


def _interval(
    facts: CaseFacts, way: search.Way, latencies: Mapping[str, Mapping[str, float]], tokens_per_s: float
) -> dict[str, Any]:
    """[low, high] of 80 % of runs, of every latency and of the rate of output tokens."""
    known = facts.constants.measured_serving
    tier = serving_tier(known, [(system.chip, way.precision) for system in way.systems])
    flat = {latency_key(metric, name): value for metric, row in latencies.items() for name, value in row.items()}
    bounds = serving_bounds(known, tier, flat, tokens_per_s)
    rows = {metric: {name: bounds[latency_key(metric, name)] for name in row} for metric, row in latencies.items()}
    return {"interval_80": {**rows, "tokens_per_s": bounds["capacity"]}, "tier": tier}
