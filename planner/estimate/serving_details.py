"""Explain a serving configuration: prefix cache by tier, gain of speculation, and the waterfall from the roofline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from models.arrays import Result, sum_of
from models.serving.percentiles import METRICS
from models.serving.prefill import DecodeBatch, Prompts
from models.serving.prefix_cache import prompt_cost
from models.serving.prompt_terms import prompts_together
from models.serving.speculation import decode_step, speculative_speedup
from models.serving.waterfall import ROOFLINE, decode_waterfall
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.case import CaseFacts
from planner.estimate.disaggregated_search import search_two_pools
from planner.estimate.pool_comparison import chips_by_pool
from planner.estimate.routing import decode_routing
from planner.estimate.serving_configuration import Load, ServingConfiguration, draw_of_pools
from planner.evaluate.power_caps import slowed
from planner.evaluate.serving import corrected, engine_constants, lengths_of, precisions_of, rates_of
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.messages import Message

CAP = Message.of("estimate.power_cap_words").text()
MEASURED = Message.of("estimate.your_own_measurements").text()
SHOWN_BATCHES = (1, 4, 16, 64, 256, 1024)


def cache_tiers(facts: CaseFacts, load: Load, configuration: ServingConfiguration) -> dict[str, Any] | None:
    """Report hit rate, load time and decision of each cache tier at the configuration's load; None without a prefix cache."""
    workload = facts.serving.spec
    block, system, layout = workload.cache, configuration.systems[0], configuration.layouts[0]
    cache = prefix_cache(block, system.chips)
    if block is None or cache is None:
        return None
    speed = draw_of_pools(facts, configuration).speed
    max_rate, prompts, decode = _prefill_conditions(facts, _uncapped(configuration, speed))
    _, found = prompt_cost(
        facts.architecture, rates_of(facts.serving, system, configuration.precision, facts.scaleout), layout, cache, max_rate, prompts, decode,
        precisions=precisions_of(configuration.choice), constants=engine_constants(facts.serving, system, facts.constants.serving),
    )  # fmt: skip
    assert found is not None  # as there is a cache
    names = [tier.name for tier in block.tiers] or ["hbm"]
    systems = ceil(chips_by_pool(configuration)[0] / system.chips)
    prices = [tier.price and _price(*tier.price, systems) for tier in block.tiers] or [None]
    rows = [
        {
            "tier": name, "hit_rate": float(hit), "load_s": float(load) / speed, "recompute_s": float(found.recompute_s) / speed,
            "loaded_share": float(loaded), "decision": _decision(float(loaded), name), "price": price,
        }
        for name, hit, loaded, load, price in zip(names, found.hits, found.loaded, found.load_s, prices)
    ]  # fmt: skip
    return {
        "hit_rate": float(sum_of(found.hits)),
        **(
            {}
            if block.routing is None
            else {"routing": block.routing, "workers": block.workers, "imbalance": cache.imbalance}
        ),
        "computed_share": float(configuration.point.computed_share),
        "hbm_bytes_per_chip": cache.hbm_bytes_per_chip,
        "tiers": rows,
        "without": _without_cache(facts, load, configuration),
    }


def routing_row(facts: CaseFacts, configuration: ServingConfiguration) -> dict[str, Any]:
    """State what the routing of the workload does to decode steps of the configuration; nothing where none is stated."""
    return decode_routing(facts.architecture, configuration.layouts[-1], float(configuration.batch))


def _uncapped(configuration: ServingConfiguration, speed: float) -> ServingConfiguration:
    """Undo the stretching of times under a power cap: the conditions in which the closed forms find the same point."""
    return replace(configuration, point=slowed(configuration.point, 1.0 / speed))


def _prefill_conditions(
    facts: CaseFacts, configuration: ServingConfiguration
) -> tuple[Callable[[Result], Result], Prompts, DecodeBatch | None]:
    """Return (prompts per second of one prefill worker by the time that each occupies it, prompts, decode batch beside them).

    The rates come from `models.serving.disaggregation` and `models.serving.continuous_batching`.
    """
    lengths, batch = lengths_of(facts.serving), configuration.batch
    prompts = Prompts(lengths.prompt, lengths.scv_of_input)
    if configuration.pools is not None:
        prefill_workers, decode_workers = configuration.workers
        seconds = (facts.serving.spec.lengths.output - 1.0) * float(configuration.point.tpot_s)
        rate = decode_workers * batch / seconds / prefill_workers
        return lambda _: rate, prompts, None
    system, layout = configuration.systems[0], configuration.layouts[0]
    speculation = drafting(facts.serving.spec.speculation)
    sequences, context = layout.in_stage(batch), lengths.running_context_tokens
    mixed, step = decode_step(
        facts.architecture, rates_of(facts.serving, system, configuration.precision, facts.scaleout), layout, speculation,
        decode_sequences=sequences, context_tokens=context, precisions=precisions_of(configuration.choice),
        constants=engine_constants(facts.serving, system, facts.constants.serving),
    )  # fmt: skip
    verified = speculation.verified_tokens if speculation else 1.0
    steps = lengths.later_tokens / (speculation.in_answer(lengths.later_tokens) if speculation else 1.0)
    decode_s = steps * float(step.total_s)
    prompts = replace(prompts, together=prompts_together(batch / steps, layout), arriving=batch / steps)
    return lambda busy_s: batch / (decode_s + batch * busy_s), prompts, DecodeBatch(mixed, sequences, context, verified)


def _without_cache(facts: CaseFacts, load: Load, configuration: ServingConfiguration) -> dict[str, Any] | None:
    """Search the best configuration of the same mode without a prefix cache; None where none carries the load."""
    bare = replace(
        facts, case=facts.case.model_copy(update={"workload": facts.serving.spec.model_copy(update={"cache": None})})
    )
    found = search_two_pools(bare, load) if configuration.pools else search_one_pool(bare, load, facts.case.layout)
    if found.best is None:
        return None
    return {
        "requests_per_s": found.best.requests_per_s,
        **{f"{metric}_s": found.best.latency(metric, "mean") for metric in METRICS},
    }


def speculation_gain(facts: CaseFacts, configuration: ServingConfiguration) -> dict[str, Any] | None:
    """Report tokens per step, and the speedup of decoding over decoding without drafts, at this batch and at others."""
    speculation, system, layout = (
        drafting(facts.serving.spec.speculation),
        configuration.systems[-1],
        configuration.layouts[-1],
    )
    if speculation is None:
        return None
    lengths = facts.serving.spec.lengths

    def speedup(batch: Any) -> Any:
        return speculative_speedup(
            facts.architecture, rates_of(facts.serving, system, configuration.precision, facts.scaleout), layout, speculation, decode_sequences=layout.in_stage(batch),
            context_tokens=facts.serving.spec.prompt_tokens + 0.5 * (lengths.output - 1), precisions=precisions_of(configuration.choice),
            constants=engine_constants(facts.serving, system, facts.constants.serving),
        )  # fmt: skip

    batches = np.array([n for n in SHOWN_BATCHES if n <= configuration.point.slots], float)
    by_batch = [{"batch": int(batch), "speedup": float(gain)} for batch, gain in zip(batches, speedup(batches))]
    return {
        "tokens_per_step": speculation.tokens_per_step,
        "speedup": float(speedup(configuration.batch)),
        "by_batch": by_batch,
    }


def _price(amount: float, currency: str, systems: int) -> dict[str, Any]:
    return {"per_system": amount, "systems": systems, "total": amount * systems, "currency": currency}


def _decision(loaded: float, name: str) -> str:
    if loaded == 0.0:
        return Message.of("estimate.compute_again").text()
    if loaded < 1.0:
        return Message.of("estimate.load_part", share=f"{loaded:.0%}").text()
    return Message.of("estimate.use_in_place" if name == "hbm" else "estimate.load_all").text()


def decode_causes(facts: CaseFacts, configuration: ServingConfiguration) -> list[dict[str, Any]]:
    """List the causes between the roofline of one request and the predicted time per output token, with seconds added."""
    speed = draw_of_pools(facts, configuration).speed
    system = configuration.systems[-1]
    own = facts.serving.engine.correction(*facts.serving.measured_as(system.chip, configuration.choice.precision))
    point = corrected(slowed(configuration.point, 1.0 / speed), own.inverse())
    outside_s = configuration.surplus_wait_s * speed
    fall = decode_waterfall(
        facts.architecture, rates_of(facts.serving, system, configuration.precision, facts.scaleout), configuration.layouts[-1],
        replace(point, slot_wait_s=point.slot_wait_s + outside_s), input_tokens=facts.serving.spec.prompt_tokens,
        precisions=precisions_of(configuration.choice),
        constants=engine_constants(facts.serving, system, facts.constants.serving), speculation=drafting(facts.serving.spec.speculation),
    )  # fmt: skip
    rates, total = fall.rates(), float(fall.roofline_s)
    rows = [{"cause": ROOFLINE, "added_s": total, "reached_s": total, "tokens_per_s": float(rates[ROOFLINE])}]
    for name, added in fall.causes.items():
        total += float(added)
        rows.append({"cause": name, "added_s": float(added), "reached_s": total, "tokens_per_s": float(rates[name])})
    if own.tpot != 1.0:
        rows.append(
            {
                "cause": MEASURED,
                "added_s": total * (own.tpot - 1.0),
                "reached_s": total * own.tpot,
                "tokens_per_s": 1.0 / (total * own.tpot),
            }
        )
        total *= own.tpot
    if speed < 1.0:
        capped_s = total / speed
        rows.append({"cause": CAP, "added_s": capped_s - total, "reached_s": capped_s, "tokens_per_s": 1.0 / capped_s})
    return rows
