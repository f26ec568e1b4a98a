"""Plan rows of the path by which the pools of a deployment exchange KV caches or weights, and of the paths from tiers of KV cache to its chips.

`planner.verify.points.paths` and `planner.verify.points.cache_paths` write them a second time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from models.formats import element_bytes
from models.serving.prefix_cache import PrefixCache
from models.serving.sessions import Session
from models.training.memory import WEIGHT_BYTES
from models.transformer.architecture import parameter_counts
from models.transformer.attention import kv_bytes
from planner.candidates.points import ENCODE, Exchange, OperatingPoint, Use, WeightExchange
from planner.evaluate.serving import lengths_of
from planner.evaluate.serving_state import reuse_of
from planner.interpret.decisions import Decisions
from planner.problem.fabrics import exchange_bytes_per_s

NETWORK, SCALE_UP, LINE = "network", "scale-up", "line"
HOST = "dram"  # tier in which caches of sessions wait
SYNCHRONISATION = "synchronisation"  # part of an iteration


def path_row(point: OperatingPoint) -> dict[str, Any] | None:
    """State kind, design, size, bandwidth and use of the path between the pools of a point; None where nothing is exchanged.

    Of prefill and decode: the links of the pool with fewer chips, conversion included, and the caches at full load. Of reinforcement
    learning: the trained weights over the narrower pool, and the share of an iteration that they take.
    """
    use, other = point.uses[0], point.uses[-1]
    if point.links_s is not None:
        systems = use.option.system, other.option.system
        link = min(each.option.scaleout_bytes_per_s for each in (use, other))
        links = min(each.workers * math.prod(each.layout[size] for size in ("tp", "pp", "dp")) for each in (use, other))
        rate = links * exchange_bytes_per_s(point.serving.spec, systems, link)
        return _row(use, NETWORK, rate, point.capacity * point.links_s)
    if point.iteration is None or point.iteration["rollout"] is None:
        return None
    rate = min(_rate(each) for each in (use, other))
    moved = WEIGHT_BYTES * float(parameter_counts(point.workload.architecture).total)
    kind = NETWORK if use is not other or use.systems - use.spares > 1 else SCALE_UP
    seconds = point.iteration["iteration_s"]
    row = _row(use, kind, rate, point.iteration["parts_s"][SYNCHRONISATION] / seconds)
    return row | {"used_bytes_per_s": moved / seconds}


def line_row(decided: Decisions, p: int) -> dict[str, Any] | None:
    """State the line between the sites of a point: the units rented, and what its caches take of them when it is busiest; None for a point of one site.

    Of a job: what it reserves, and what the weights of an iteration take of that on average.
    """
    point = decided.form.points[p]
    if point.exchange is None or decided.lines is None:
        return None
    if isinstance(point.exchange, WeightExchange):
        sent = point.exchange.sent(point.capacity)[0]
        return _over_line(point.exchange, point.exchange.bytes_per_s, sent)
    units, facts = decided.lines.units, decided.lines.network.lines
    rate = min(float(units[line] * facts[line].unit_bytes_per_s) for line, _ in point.exchange.way.uses)
    used = float(decided.active[p].max()) * point.capacity * point.exchange.cache_bytes
    return _over_line(point.exchange, rate, used)


def _over_line(exchange: Exchange | WeightExchange, rate: float, used: float) -> dict[str, Any]:
    return {
        "kind": LINE,
        "design": exchange.way.kind,
        "size": None,
        "line": " - ".join(exchange.way.hops),
        "latency_s": exchange.way.rtt_s,
        "bytes_per_s": rate,
        "used_bytes_per_s": used,
        "share": used / rate,
    }


def cache_path_rows(point: OperatingPoint) -> list[dict[str, Any]]:
    """State for each tier of KV cache outside the chips at which rate its workers read from it, and what of that they read at full load."""
    if point.steady is None or not point.steady.loads:
        return []
    use, asked = point.uses[0], point.serving.spec
    reuse = reuse_of(asked, use.option.system, use.waiting)
    chips = use.workers * math.prod(use.layout[size] for size in ("tp", "pp", "dp"))
    if isinstance(reuse, Session):
        apart = len(point.uses) > 1 and point.uses[1].role != ENCODE
        left = replace(reuse, returned=False) if apart else reuse
        tokens = left.kept_tokens(lengths_of(point.serving, use.choice))
        tiers = [(HOST, reuse.host_bytes_per_s)]
    elif isinstance(reuse, PrefixCache) and asked.cache is not None:
        tokens, bought = reuse.prefix_tokens, use.option.system.kv_tiers
        names: list[str] = [tier.name for tier in asked.cache.tiers]
        names += [tier.name for tier in bought.tiers] if bought is not None else []
        tiers = [(name, tier.bytes_per_s) for name, tier in zip(names, reuse.tiers)]
    else:
        return []
    size = float(kv_bytes(point.serving.architecture, tokens, element_bytes(use.choice.kv_precision)))
    return [
        {"tier": name, "bytes_per_s": chips * rate, "used_bytes_per_s": used, "share": used / (chips * rate)}
        for (name, rate), loads in zip(tiers, point.steady.loads)
        if math.isfinite(rate)
        for used in [point.capacity * float(loads) * size]
    ]


def _rate(use: Use) -> float:
    """Compute the bandwidth of all chips at work in a pool [byte/s]: over the network, or within the scale-up domain where there is none."""
    chips = (use.systems - use.spares) * use.option.system.chips
    return chips * (use.option.scaleout_bytes_per_s or use.option.system.scaleup_bytes_per_s)


def _row(use: Use, kind: str, bytes_per_s: float, share: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "design": use.option.fabric,
        "size": use.option.size,
        "bytes_per_s": bytes_per_s,
        "used_bytes_per_s": share * bytes_per_s,
        "share": share,
    }
