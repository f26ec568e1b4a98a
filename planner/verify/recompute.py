"""What `planner.verify.plan` computes anew: used points one by one in plain numbers, and all amounts by plain addition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.evaluate import disaggregated, interruptions, serving, training
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.power_caps import capped_at, capped_row
from planner.evaluate.rank_placement import placement_of
from planner.problem.fabrics import share_a_network, uneven
from planner.problem.facts import (
    Problem,
    ServingFacts,
    TrainingFacts,
)
from planner.problem.intervals import serving_bounds, serving_tier, training_bounds
from planner.verify.fleet import CheckedOption, FleetOptions


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A used point, evaluated again; `stated` is what the plan must say of it.

    The rest is what it does say, since all that follows is added up from that.
    """

    workload: str
    stated: Mapping[str, Any]
    fits: bool
    capacity: float
    latency: Mapping[str, float]
    chips: float
    mfu: float
    hfu: float  # 0 but for a job
    systems: Sequence[float]  # per replica, by pool
    extra: Sequence[tuple[CheckedOption, float]]  # IT watts above idle per replica, by pool


def evaluate_point(
    problem: Problem, fleet_options: FleetOptions, workload: ServingFacts | TrainingFacts, row: Mapping[str, Any]
) -> Evaluated:
    """The row of a plan as one evaluation of the closed forms. Raises KeyError or ValueError for a row that makes no sense."""
    pools = row["pools"]
    for pool in pools:
        sizes = [pool["batch"], pool["workers"], *pool["layout"].values()]
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError(f"{row['id']}: layout, batch and workers are whole numbers, got {sizes}")
    held = [
        fleet_options[row["site"], pool["system"], pool["how"], pool["fabric"], pool["fabric_size"], pool["offer"]]
        for pool in pools
    ]
    found = _evaluate(problem, workload, held, row)
    cap = row.get("power_cap")
    if cap is None:
        return found
    site = held[0].site
    if cap not in site.power_caps or not all(option.owned for option in held):
        raise ValueError(f"{row['id']}: a power cap of {cap} is not offered there")
    plain = found.stated["pools"].values()
    capped = capped_at(
        cap,
        site.cap_curve,
        [
            (option.system, pool["systems_per_replica"], pool["extra_power_w"])
            for option, pool in zip(held, plain, strict=True)
        ],
    )
    if capped is None:
        raise ValueError(f"{row['id']}: a power cap of {cap} does not slow it down, or is too low")
    return replace(found, stated=capped_row(found.stated, capped))


def _evaluate(
    problem: Problem, workload: ServingFacts | TrainingFacts, held: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Evaluated:
    pools = row["pools"]
    if isinstance(workload, TrainingFacts):
        return _training(problem, workload, held[0], row)
    if [pool["role"] for pool in pools] == ["serve"]:
        return _one_pool(problem, workload, held[0], row)
    if [pool["role"] for pool in pools] == ["api"]:
        return _bought(workload, held[0], row)
    if [pool["role"] for pool in pools] == ["prefill", "decode"]:
        return _two_pools(problem, workload, held, row)
    raise ValueError(f"pools {[pool['role'] for pool in pools]} are not those of a serving point")


def _layout(pool: Mapping[str, Any], workload: ServingFacts) -> ServingLayouts:
    layout = ServingLayouts(**pool["layout"])
    if min(pool["layout"].values()) < 1 or workload.architecture.heads % layout.tp:
        raise ValueError(f"layout {pool['layout']} is not legal")
    return layout


def systems_of(option: CheckedOption, pool: Mapping[str, Any]) -> float:
    """Systems that one replica of the pool blocks."""
    layout = pool["layout"]
    stage, chips, domain = layout["tp"] * layout["dp"], option.system.chips, option.system.scaleup_chips
    # beyond a scale-up domain only whole systems, with one chip per attention rank
    spread = layout["tp"] == layout["pp"] == 1 and domain == chips and stage % chips == 0
    leaves = layout["pp"] > 1 or stage > chips
    if (stage > min(domain, chips) and not spread) or (leaves and option.scaleout_bytes_per_s <= 0):
        raise ValueError(f"layout {layout} does not fit {option.system.name} on {option.fabric}")
    each = layout["pp"] * max(stage / chips, 1.0) if leaves else 1.0 / (chips // stage)
    return each * pool["workers"]


def _ready(option: CheckedOption) -> float:
    """Systems held over those at work, where some may be taken away. Raises ValueError where nothing may be served."""
    spot = option.offer.spot
    if spot is not None and spot.headroom is None:
        raise ValueError(f"{option.system.name} on the spot market serves nothing without headroom")
    return 1.0 + spot.headroom if spot is not None else 1.0


def _one_pool(problem: Problem, workload: ServingFacts, option: CheckedOption, row: Mapping[str, Any]) -> Evaluated:
    pool = row["pools"][0]
    if pool["workers"] != 1:
        raise ValueError("a single pool has one worker per replica")
    layout, rates = _layout(pool, workload), option.system.rates(pool["precision"], option.scaleout_bytes_per_s)
    found = serving.evaluate(
        workload,
        option.system,
        option.scaleout_bytes_per_s,
        layout,
        float(pool["batch"]),
        pool["precision"],
        problem.constants.serving,
    )
    shares = {name: float(share) for name, share in found.shares.items()}
    systems = systems_of(option, pool)
    extra = systems * serving.extra_power_w(option.system, shares, problem.constants.power)
    return _evaluated(
        workload, row, [option], [systems * _ready(option)], [extra], bool(found.fits), float(found.requests_per_s), _latency(found, workload), shares,
        serving.mfu(workload, float(found.requests_per_s), [(rates, float(layout.chips))], float(found.computed_share)), float(found.memory_bytes),
        **_spread(problem, row, [option], float(found.requests_per_s), _latency(found, workload)),
    )  # fmt: skip


def _two_pools(
    problem: Problem, workload: ServingFacts, held: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Evaluated:
    first, second = row["pools"]
    if first["batch"] != 1 or first["precision"] != second["precision"]:
        raise ValueError("a prefill worker takes one prompt at a time, and both pools have one precision")
    if not share_a_network(*held) or min(option.scaleout_bytes_per_s for option in held) <= 0:
        raise ValueError("both pools must share a network")
    layouts = (_layout(first, workload), _layout(second, workload))
    found = disaggregated.evaluate(
        workload, (held[0].system, held[1].system), (held[0].scaleout_bytes_per_s, held[1].scaleout_bytes_per_s), layouts,
        float(second["batch"]), (first["workers"], second["workers"]), first["precision"], problem.constants.serving,
    )  # fmt: skip
    sides = [{n: float(v) for n, v in shares.items()} for shares in (found.prefill_shares, found.point.shares)]
    systems = [systems_of(option, pool) for option, pool in zip(held, row["pools"])]
    extra = [
        n * disaggregated.pool_power_w(shares, option.system, problem)
        for n, shares, option in zip(systems, sides, held)
    ]
    rate = float(found.point.requests_per_s)
    chips = [
        (option.system.rates(p["precision"]), float(layout.chips) * p["workers"])
        for option, p, layout in zip(held, row["pools"], layouts)
    ]
    return _evaluated(
        workload, row, held, [n * _ready(option) for n, option in zip(systems, held)], extra, bool(found.point.fits), rate, _latency(found.point, workload), sides[1],
        serving.mfu(workload, rate, chips, float(found.point.computed_share)), float(found.point.memory_bytes),
        **_spread(problem, row, held, rate, _latency(found.point, workload)),
    )  # fmt: skip


def _bought(workload: ServingFacts, option: CheckedOption, row: Mapping[str, Any]) -> Evaluated:
    """A request per second from an API: what it promises, in tokens per second."""
    api, pool = option.site.api, row["pools"][0]
    if (
        api is None
        or not api.serves(workload)
        or pool["layout"]
        or pool["batch"]
        or pool["workers"] != 1
        or pool["precision"]
    ):
        raise ValueError(f"{row['id']}: is no way to buy tokens")
    latency = {f"{metric}.{p}": api.latency[f"{metric}.{p}"] for metric, p, _ in workload.spec.slo.limits()}
    return _evaluated(
        workload, row, [option], [float(workload.spec.lengths.output)], [0.0], True, 1.0, latency, {}, 0.0, 0.0
    )


def _training(problem: Problem, job: TrainingFacts, option: CheckedOption, row: Mapping[str, Any]) -> Evaluated:
    pool = row["pools"][0]
    if len(row["pools"]) != 1 or pool["role"] != "train" or pool["workers"] != 1 or pool["batch"] != 0:
        raise ValueError("a training point has one pool")
    setup = TrainingSetup(
        job, option.system, pool["precision"], problem.constants, option.scaleout_bytes_per_s, uneven(option.plant)
    )
    terms = interruptions.RunTerms.of(option.system, option.offer, option.site)
    width = training.evaluate_layout(setup, pool["layout"], terms, row["tier"])
    working = math.ceil(width.chips / option.system.chips)
    if working > 1 and option.scaleout_bytes_per_s <= 0:
        raise ValueError(f"{working} systems of {option.system.name} need a network")
    spares = interruptions.spares_of(job, width.chips, option.system, option.owned, problem.constants.reliability)
    if "spares" in pool and pool["spares"] != spares:
        raise ValueError(f"{spares:g} systems are spares, not {pool['spares']:g}")
    extra = working * training.extra_power_w(option.system, problem)
    return _evaluated(
        job, row, [option], [working + spares], [extra], width.fits, width.tokens_per_s, {}, width.breakdown, width.mfu, width.memory_bytes, width.goodput,
        width.time_s, training_bounds(width.interval, width.time_s, width.tokens_per_s), width.interval.tier,
        placement_of(job, option.system, option.plant, width.layout, pool["precision"], problem.constants), {"hfu": width.hfu} if "hfu" in row else {},  # plans of earlier versions do not say it
    )  # fmt: skip


def _spread(
    problem: Problem,
    row: Mapping[str, Any],
    fleet_options: Sequence[CheckedOption],
    capacity: float,
    latency: Mapping[str, float],
) -> dict[str, Any]:
    """The 80 % interval of a serving point, of the tier that the row states or, where it states none, of its own."""
    known = problem.constants.measured_serving
    tier = row["tier"] or serving_tier(
        known,
        [(option.system.chip, pool["precision"]) for option, pool in zip(fleet_options, row["pools"], strict=True)],
    )
    return {"interval": serving_bounds(known, tier, latency, capacity), "tier": tier}


def _latency(found, workload: ServingFacts) -> dict[str, float]:
    quantiles = serving.QUANTILES
    return {
        f"{metric}.{p}": float(latency_s(found, metric, quantiles[p])) for metric, p, _ in workload.spec.slo.limits()
    }


def _evaluated(
    workload, row, fleet_options, systems, extra, fits, capacity, latency, breakdown, mfu, memory, goodput=1.0, time_s: Mapping[str, float] = {}, interval: Mapping[str, Any] | None = None,
    tier: str = "", placement: Mapping[str, Any] | None = None, of_job: Mapping[str, Any] = {},
) -> Evaluated:  # fmt: skip
    pools = [
        {**pool, "systems_per_replica": n, "extra_power_w": watts}
        for pool, n, watts in zip(row["pools"], systems, extra)
    ]  # fmt: skip
    return Evaluated(
        workload=workload.name,
        stated={
            "pools": dict(enumerate(pools)), "capacity": capacity, "latency_s": latency, "breakdown": breakdown, "mfu": mfu,
            "memory_bytes": memory, "goodput": goodput, "time_s": time_s, "interval_80": interval, "tier": tier,
            "placement": placement, **of_job,
        },
        fits=fits, capacity=row["capacity"], latency=row["latency_s"], mfu=row["mfu"], hfu=row["hfu"] if of_job else 0.0,
        systems=[pool["systems_per_replica"] for pool in row["pools"]],
        chips=sum(pool["systems_per_replica"] * option.system.chips for pool, option in zip(row["pools"], fleet_options)),
        extra=[(option, pool["extra_power_w"]) for pool, option in zip(row["pools"], fleet_options)],
    )  # fmt: skip
