"""Evaluate the point of a serving workload again: one pool, separate pools of prefill and decode, or an API."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.evaluate import disaggregated, serving
from planner.evaluate.classes import class_rows
from planner.evaluate.serving_layouts import broken_rules
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.verify.fleet.joint_network import stand_together
from planner.verify.fleet.options import CheckedOption, key_at
from planner.verify.points.evaluated import Recomputed
from planner.verify.points.exchange import joined_by_a_line, line_for
from planner.verify.points.intervals import outside_rows, serving_bounds, serving_run, serving_tier, stated_bounds


def one_pool(
    problem: ResolvedSpec, workload: ServingFacts, options: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Recomputed:
    """Evaluate a replica with prefill and decode on the same chips, and encoders of media on these or on others."""
    option, pool = options[0], row["pools"][0]
    if pool["workers"] != 1:
        raise ValueError(Message.of("verify.single_pool_worker").text())
    layout, rates = (
        layout_on(option, pool, workload),
        serving.rates_of(workload, option.system, pool["precision"], option.scaleout),
    )
    found = serving.evaluate(
        workload,
        option.system,
        option.scaleout,
        layout,
        float(pool["batch"]),
        choice_of(workload, option, pool),
        problem.constants.serving,
    )
    shares = {name: float(share) for name, share in found.shares.items()}
    systems, rate = systems_of(option, pool), float(found.requests_per_s)
    latency, computed_share = _latency(found, workload), float(found.computed_share)
    encoders = _encoders(problem, workload, options, row, rate)
    held = held_per_used(problem, option, workload)
    return Recomputed(
        systems=[systems * held, *(count * held for count, _, _ in encoders)],
        extra_it_w=[
            systems * float(serving.extra_power_w(option.system, shares, problem.constants.power)),
            *(watts for _, watts, _ in encoders),
        ],
        capacity=rate,
        latency_s=latency,
        computed_share=computed_share,
        loads=[float(share) for share in found.loads],
        breakdown=shares,
        mfu=serving.mfu(workload, rate, [(rates, systems * option.system.chips)], computed_share),
        memory_bytes=[float(found.memory_bytes), *(weights for _, _, weights in encoders)],
        fits=bool(found.fits),
        first_token_s=_first_token_s(found),
        call_s=_call_s(found),
        classes=class_rows(workload.spec.classes, found),
        **_interval(problem, workload, row, options, (latency, rate, found)),
    )


def _encoders(
    problem: ResolvedSpec, workload: ServingFacts, options: Sequence[CheckedOption], row: Mapping[str, Any], rate: float
) -> list[tuple[float, float, float]]:
    """Compute (systems, watts above idle, weights [byte]) of the pool that encodes a replica's media apart; none for other ways.

    Raises ValueError where its row is not such a pool.
    """
    pool, *others = row["pools"]
    if (pool.get("encoding") == "apart") != bool(others):
        raise ValueError(Message.of("verify.encoder_pool").text())
    if not others:
        return []
    mine, option = others[0], options[1]
    if (
        key_at(row["site"], mine) != key_at(row["site"], pool)
        or mine.get("encoding") != "apart"
        or mine["batch"] != 1
        or {*mine["layout"].values()} != {1}
    ):
        raise ValueError(Message.of("verify.encoders_on_chips").text())
    choice = choice_of(workload, options[0], pool)
    chips, busy = serving.encoder_use(workload, option.system, choice, rate, problem.constants.serving)
    if mine["workers"] != int(chips):
        raise ValueError(Message.of("verify.encoders_at_work", found=int(chips), given=str(mine["workers"])).text())
    systems = int(chips) / option.system.chips
    weights = sum(2.0 * block.encoder.parameters for block in workload.spec.media or [])
    return [
        (
            systems,
            systems * float(serving.encoder_power_w(option.system, float(busy), problem.constants.power)),
            weights,
        )
    ]


def two_pools(
    problem: ResolvedSpec, workload: ServingFacts, options: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Recomputed:
    """Evaluate a replica of prefill workers and decode workers that send the KV cache over the network."""
    first, second = row["pools"]
    prefill, decode = options
    if first.get("encoding") == "apart":
        raise ValueError(Message.of("verify.encoders_before_single_pool").text())
    choice = choice_of(workload, prefill, first)
    if first["batch"] != 1 or choice != choice_of(workload, decode, second):
        raise ValueError(Message.of("verify.prefill_worker").text())
    if prefill.system.vendor != decode.system.vendor and workload.spec.kv_exchange is None:
        raise ValueError(Message.of("path.verify_vendors_apart", point=row["id"]).text())
    line = line_for(problem, workload, row)
    joined = stand_together(prefill, decode) if line is None else joined_by_a_line(options)
    if not joined or min(option.scaleout_bytes_per_s for option in options) <= 0:
        raise ValueError(Message.of("verify.pools_share_network").text())
    layouts = (layout_on(prefill, first, workload), layout_on(decode, second, workload))
    found = disaggregated.evaluate(
        workload,
        (prefill.system, decode.system),
        (prefill.scaleout, decode.scaleout),
        layouts,
        float(second["batch"]),
        (first["workers"], second["workers"]),
        choice,
        problem.constants.serving,
        line,
    )
    shares = [{n: float(v) for n, v in side.items()} for side in (found.prefill_shares, found.point.shares)]
    used = list(zip(options, row["pools"], shares, strict=True))
    systems = [systems_of(option, pool) for option, pool, _ in used]
    watts = [
        float(disaggregated.pool_power_w(side, option.system, problem.constants.power)) for option, _, side in used
    ]
    chips = [
        (serving.rates_of(workload, option.system, pool["precision"]), count * option.system.chips)
        for (option, pool, _), count in zip(used, systems, strict=True)
    ]
    rate, latency = float(found.point.requests_per_s), _latency(found.point, workload)
    return Recomputed(
        systems=[n * held_per_used(problem, option, workload) for n, option in zip(systems, options, strict=True)],
        extra_it_w=[n * each for n, each in zip(systems, watts, strict=True)],
        capacity=rate,
        latency_s=latency,
        computed_share=float(found.point.computed_share),
        loads=[float(share) for share in found.point.loads],
        links_s=float(found.links_s),
        breakdown=shares[1],
        mfu=serving.mfu(workload, rate, chips, float(found.point.computed_share)),
        memory_bytes=[float(found.prefill_memory_bytes), float(found.point.memory_bytes)],
        fits=bool(found.point.fits),
        first_token_s=_first_token_s(found.point),
        call_s=_call_s(found.point),
        classes=class_rows(workload.spec.classes, found.point),
        **_interval(problem, workload, row, options, (latency, rate, found.point)),
    )


def bought(workload: ServingFacts, option: CheckedOption, row: Mapping[str, Any]) -> Recomputed:
    """Read the stated latencies of an API for one request per second; its "systems" are tokens per second."""
    api, pool = option.site.api, row["pools"][0]
    plain = not (pool["layout"] or pool["batch"] or pool["precision"]) and pool["workers"] == 1
    if api is None or not api.serves(workload) or not plain:
        raise ValueError(Message.of("verify.no_way_to_buy_tokens", point=row["id"]).text())
    return Recomputed(
        systems=[float(workload.spec.lengths.output)],
        extra_it_w=[0.0],
        capacity=1.0,
        latency_s={limit.key: api.latency[limit.key] for limit in workload.spec.limits()},
    )


def systems_of(option: CheckedOption, pool: Mapping[str, Any]) -> float:
    """Count the systems that one replica of the pool occupies."""
    layout = pool["layout"]
    each = _systems_of_worker(option.system.chips, layout["tp"] * layout["dp"], layout["pp"])
    return float(each * pool["workers"])


def _systems_of_worker(system_chips: int, stage: int, stages: int) -> float:
    """Count the systems of one worker: a share that holds a block of chips, or whole systems that hold each stage undivided."""
    chips = stage * stages
    if stage > system_chips:
        return stages * math.ceil(stage / system_chips)
    if chips > system_chips:
        return math.ceil(stages / (system_chips // stage))
    power, half = 1, system_chips
    while power < chips:
        power *= 2
    while half % 2 == 0 and half // 2 >= chips:
        half //= 2
    return 1 / (system_chips // min(power, half))


def choice_of(workload: ServingFacts, option: CheckedOption, pool: Mapping[str, Any]) -> EngineChoice:
    """Read how the engine of a pool runs. Raises ValueError for a way that the spec or the system rules out."""
    spec, weights = workload.spec, pool["precision"]
    asked, cache = spec.kv_precision, cache_of(workload, pool)
    ways: list[str] = [""] if spec.session is None else [*spec.session.caches]
    if (asked is None) == ("kv_precision" in pool) or (asked is not None and cache not in asked):
        raise ValueError(Message.of("verify.cache_precision", given=str(cache or "no precision")).text())
    waiting = pool.get("waiting", "")
    if waiting not in ways:
        raise ValueError(Message.of("verify.session_caches", given=str(waiting or "nowhere")).text())
    if waiting == "offloaded" and not (option.system.host_bytes > 0 and option.system.host_bytes_per_s > 0):
        raise ValueError(Message.of("verify.host_memory", system=option.system.name).text())
    encoding = pool.get("encoding", "")
    if encoding not in (spec.encoding if spec.media else [""]):
        raise ValueError(Message.of("verify.media_encoding", given=str(encoding or "nowhere")).text())
    return EngineChoice(weights, cache, waiting, encoding)


def cache_of(workload: ServingFacts, pool: Mapping[str, Any]) -> str:
    """Name the format of a pool's KV cache: what the plan states, else what the checkpoint asks for, else 16 bit.

    Checkpoints in NVFP4 ask for 8 bit (`kv_cache_quant_algo` of NVIDIA Model Optimizer), which `fp4` of an unknown kind is taken to be.
    """
    if "kv_precision" in pool:
        return str(pool["kv_precision"])
    known = {name: (each.kind, each.cache) for name, each in workload.architecture.checkpoints}
    kind, asked = known.get(pool["precision"], (pool["precision"], ""))
    return asked or ("fp8" if kind in ("nvfp4", "fp4") else "bf16")


def layout_on(option: CheckedOption, pool: Mapping[str, Any], workload: ServingFacts) -> ServingLayouts:
    """Read the layout of a pool. Raises ValueError for one that no engine can run there."""
    layout, networked = ServingLayouts(**pool["layout"]), option.scaleout_bytes_per_s > 0
    if min(pool["layout"].values()) < 1:
        raise ValueError(Message.of("verify.layout_sizes", layout=str(pool["layout"])).text())
    broken = broken_rules(workload.architecture, option.system, layout, networked)
    if rules := [rule for rule, breaks in broken.items() if breaks.any()]:
        raise ValueError(
            Message.of(
                "verify.layout_illegal",
                layout=str(pool["layout"]),
                system=option.system.name,
                fabric=option.fabric,
                rules="; ".join(rules),
            ).text()
        )
    return layout


def held_per_used(problem: ResolvedSpec, option: CheckedOption, workload: ServingFacts) -> float:
    """Return the systems held per system at work: more than 1 on a spot market, with a share of redundancy, and where some stay free.

    Raises ValueError where the offer has no headroom for serving.
    """
    spot, redundancy = option.offer.spot, workload.spec.redundancy
    held = (1.0 + redundancy if isinstance(redundancy, float) else 1.0) / (1.0 - problem.spec.packing.free)
    if spot is None:
        return held
    if spot.headroom is None:
        raise ValueError(Message.of("verify.spot_without_headroom", system=option.system.name).text())
    return held * (1.0 + spot.headroom)


def _interval(
    problem: ResolvedSpec,
    workload: ServingFacts,
    row: Mapping[str, Any],
    options: Sequence[CheckedOption],
    figures: tuple[Mapping[str, float], float, ServingPoint],
) -> dict[str, Any]:
    """Bound the figures of a serving point (latencies, capacity, the point itself), and classify how much of it is known."""
    latency, capacity, point = figures
    known = problem.constants.measured_serving
    chips = [
        workload.measured_as(option.system.chip, pool["precision"])
        for option, pool in zip(options, row["pools"], strict=True)
    ]
    lengths = workload.spec.lengths
    run = serving_run(workload.architecture, row["pools"], lengths.input + lengths.output)
    return {
        "interval": stated_bounds(serving_bounds(known, chips, latency, capacity, run, _at_rate(point))),
        "tier": serving_tier(known, chips, run.kind),
        "outside": outside_rows(known, chips, "throughput", run, "serving"),
    }


def _at_rate(found: ServingPoint) -> Callable[[str, float], float] | None:
    """Return the factor on a latency at a multiple of the rate of a point with open arrivals."""
    if found.arrivals is None:
        return None

    def factor(name: str, times: float) -> float:
        metric, percentile = name.split(".")
        at = serving.QUANTILES[percentile]
        return float(latency_s(found.with_waits_at(times), metric, at)) / float(latency_s(found, metric, at))

    return factor


def _first_token_s(found: ServingPoint) -> dict[str, float]:
    """Compute mean, median and far percentiles of the time to first token, and the parts of its mean [s]."""
    alone = found.overhead_s + found.prompt_s
    parts = (
        ("overhead", found.overhead_s),
        ("prefill", found.prompt_s + found.encoding_s),
        ("chunking", found.unloaded_ttft_s - alone),
        ("prefill_wait", found.prefill_wait_s + found.encoder_wait_s),
        ("slot_wait", found.slot_wait_s),
    )
    known = {name: float(part) for name, part in parts}
    far = {f"p{share}": float(latency_s(found, "ttft", share / 100)) for share in (50, 95, 99)}
    return {**known, **far, "mean": sum(known.values())}


def _call_s(found: ServingPoint) -> float | None:
    """Add up the mean time of a call of a session [s]: to its first token, and of each of the others."""
    if found.task is None:
        return None
    before = found.encoding_s + found.encoder_wait_s
    first = before + found.unloaded_ttft_s + found.prefill_wait_s + found.slot_wait_s
    return float(first + (found.output_tokens - 1.0) * found.tpot_s)


def _latency(found: ServingPoint, workload: ServingFacts) -> dict[str, float]:
    """Predict the percentiles that the SLO limits, at the site [s]."""
    return {
        limit.key: float(latency_s(found, limit.metric, serving.QUANTILES[limit.percentile]))
        for limit in workload.spec.limits()
    }
