"""Compare separate pools for prefill and decode with one pool on the same chips."""

from __future__ import annotations

from typing import Any

import numpy as np

from catalog.units import MILLI
from models.serving.decode import ServingLayouts
from planner.estimate.serving_configuration import RATE, Load, ServingConfiguration
from planner.evaluate.serving import layout_of
from planner.messages import Message
from planner.report.words import MOST_SHARE, more_words

GAIN_TOL = 0.01  # relative gain below which neither of two configurations counts as better


def chips_by_pool(configuration: ServingConfiguration) -> list[float]:
    """Count the chips of each pool that carry load."""
    return [
        configuration.copies * n * float(layout.chips)
        for layout, n in zip(configuration.layouts, configuration.workers)
    ]


def pool_rows(configuration: ServingConfiguration) -> list[dict[str, Any]]:
    """List the pools of a configuration: role, system, layout, workers, chips, and the memory of the fullest chip."""
    roles, memory = ["serve"], [configuration.point.memory_bytes]
    if configuration.pools:
        roles, memory = ["prefill", "decode"], [configuration.pools.prefill_memory_bytes, *memory]
    return [
        {
            "role": role,
            "system": system.name,
            "layout": layout_of(_row(layout), 0),
            "workers": workers if configuration.pools else int(configuration.copies),
            "chips": int(chips),
            "memory_bytes": float(used),
            "hbm_bytes": system.hbm_bytes,
        }
        for role, system, layout, workers, chips, used in zip(
            roles,
            configuration.systems,
            configuration.layouts,
            configuration.workers,
            chips_by_pool(configuration),
            memory,
        )
    ]


def _row(layout: ServingLayouts) -> ServingLayouts:
    return ServingLayouts(*(np.ravel(size) for size in (layout.tp, layout.pp, layout.dp, layout.ep)))


def compare_pools(
    load: Load, one: ServingConfiguration | None, two: ServingConfiguration | None, alike: bool
) -> dict[str, Any]:
    """Report whether separate pools pay off against one pool on the same chips, in numbers and words."""
    rows = {
        name: None if configuration is None else {
            "requests_per_s": configuration.requests_per_s, "ttft_s": configuration.latency("ttft", "mean"), "tpot_s": configuration.latency("tpot", "mean"),
            "e2e_s": configuration.latency("e2e", "mean"), "meets_slo": configuration.meets, "pools": pool_rows(configuration),
        }
        for name, configuration in (("aggregated", one), ("disaggregated", two))
    }  # fmt: skip
    return {
        **rows,
        "pays": None if one is None or two is None else _gain(load, one, two) > GAIN_TOL,
        "answer": _verdict(load, one, two, alike),
    }


def _gain(load: Load, one: ServingConfiguration, two: ServingConfiguration) -> float:
    """Compute the relative gain of two pools over one: in throughput, or in end-to-end latency under a given rate.

    Infinite where only two pools meet the limits, minus infinity where only one pool does.
    """
    if one.meets != two.meets:
        return np.inf if two.meets else -np.inf
    if load.kind == RATE:
        return one.latency("e2e", "mean") / two.latency("e2e", "mean") - 1.0
    return two.requests_per_s / one.requests_per_s - 1.0


def _verdict(load: Load, one: ServingConfiguration | None, two: ServingConfiguration | None, alike: bool) -> str:
    """State in a sentence whether separate pools pay off."""
    if not alike:
        return Message.of("estimate.pools_not_alike").text()
    if two is None:
        return Message.of("estimate.no_pools").text()
    if one is None:
        return Message.of("estimate.only_pools").text()
    gain = _gain(load, one, two)
    if load.kind == RATE:
        amounts = {name: f"{each.latency('e2e', 'mean'):.3g}" for name, each in (("one", one), ("two", two))}
        numbers = Message.of("estimate.pools_by_time", **amounts).text()
    else:
        amounts = {name: f"{each.requests_per_s:.3g}" for name, each in (("one", one), ("two", two))}
        numbers = Message.of("estimate.pools_by_rate", **amounts).text()
    times = {
        f"{metric}_{name}": f"{each.latency(metric, 'mean') / MILLI:.3g}"
        for metric in ("ttft", "tpot")
        for name, each in (("one", one), ("two", two))
    }
    told = {"numbers": numbers, "times": Message.of("estimate.pools_times", **times).text()}
    if np.isinf(gain):
        return Message.of("estimate.pools_alone_meet" if gain > 0 else "estimate.pool_alone_meets", **told).text()
    if abs(gain) <= GAIN_TOL:
        return Message.of("estimate.pools_equal", **told).text()
    share = f"{gain:+.0%}" if gain <= MOST_SHARE else more_words(gain, "")
    return Message.of("estimate.pools_pay" if gain > 0 else "estimate.pools_do_not_pay", gain=share, **told).text()
