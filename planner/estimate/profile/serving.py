"""Profile a serving case: every operating point as arrays, the point at work, the roofline, memory, and layouts over tp x pp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.units import GIGA
from models.arrays import Bools, Floats
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import reserve_bytes, weight_bytes_per_chip
from models.serving.percentiles import latency_s, within_slo
from models.transformer.work import decode_work, prefill_work
from planner.errors import SpecError
from planner.estimate.aggregated_search import replicas
from planner.estimate.case import CaseFacts
from planner.estimate.power import capped_pool
from planner.estimate.profile.pooled import Columns, layout_words, on_front, pooled_columns
from planner.estimate.profile.roofline import operator_rows, roof
from planner.estimate.serving import answer_serving
from planner.estimate.serving_configuration import (
    CONCURRENCY,
    MAX,
    SIZES,
    Load,
    allowed_layouts,
    common_choices,
    load_of,
)
from planner.evaluate.classes import meets_classes
from planner.evaluate.serving import (
    QUANTILES,
    batch_grid,
    engine_constants,
    evaluate,
    layout_of,
    lengths_of,
    limits_at_site,
    precisions_of,
    rates_of,
)
from planner.evaluate.serving_layouts import broken_rules, domain_of, runnable
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.intervals import Run, kind_of_network, serving_bounds, serving_tier
from planner.spec.slo import TPOT, LatencyLimit

STAGES, WIDEST = (1, 2, 4, 8), 32
MEAN = "mean"
LEAST_S = 1e-9  # time of a cause that is listed
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Points:
    """All operating points of one pool of a case in one precision; arrays are [layout, batch]."""

    layouts: ServingLayouts
    batches: Floats
    point: ServingPoint
    fits: Bools
    meets: Bools
    copies: Floats  # [layout] replicas on the chips of the case
    tpot_s: Floats  # at the percentile of the tightest limit
    tokens_per_s_per_chip: Floats
    searched: Bools  # [layout] whether plans and `estimate` try it; the others are plain tp x pp


def serving_profile(facts: CaseFacts, away_s: float = 0.0) -> Document:
    """Profile the case; `away_s`: the round trip to the users, by which its limits are shorter. Raises SpecError for a case that no engine runs."""
    load, choice = load_of(facts), common_choices(facts, [facts.system])[0]
    percentile = _percentile(facts)
    points = evaluated(facts, choice, percentile, away_s)
    try:
        answer = answer_serving(facts)
    except SpecError as error:  # the layout or the pools that the case states do not fit
        answer = "; ".join(problem.message for problem in error.problems)
    found = answer if isinstance(answer, dict) else None
    at = None if found is None else _at_work(facts, found, percentile)
    pooled = pooled_columns(facts, choice, percentile, away_s)
    rates = rates_of(facts.serving, facts.system, choice.precision, facts.scaleout)
    batch = 1.0 if found is None else max(found["batch"], 1.0)
    context = float(lengths_of(facts.serving).running_context_tokens)
    prompt, kinds = float(lengths_of(facts.serving).prompt), precisions_of(choice)
    return {
        "kind": "serving",
        "system": facts.system.name,
        "chips": facts.case.chips,
        "precision": choice.precision,
        "percentile": percentile,
        "limit_s": _limit(facts, percentile),
        "reason": "" if found else answer,
        "at": at,
        "points": with_front(point_columns(points), pooled, at),
        "interval": _bands(facts, choice),
        "operators": operator_rows("prefill", prefill_work(facts.architecture, prompt, kinds), rates)
        + operator_rows("decode", decode_work(facts.architecture, batch, context, kinds), rates),
        "batch": batch,
        "roof": roof(rates),
        "waterfall": [] if found is None else [row for row in found["waterfall"] if abs(row["added_s"]) > LEAST_S],
        "memory": [] if found is None else _memory(facts, choice, found),
        "layouts": layout_cells(facts, points, load),
    }


def _percentile(facts: CaseFacts) -> str:
    """Choose the percentile of TPOT by its tightest limit; the mean without one."""
    limits = [limit for limit in facts.serving.spec.limits() if limit.metric == TPOT]
    return min(limits, key=lambda limit: limit.seconds).percentile if limits else MEAN


def _limit(facts: CaseFacts, percentile: str) -> float | None:
    limits: list[LatencyLimit] = facts.serving.spec.limits()
    return min((x.seconds for x in limits if (x.metric, x.percentile) == (TPOT, percentile)), default=None)


def evaluated(facts: CaseFacts, choice: EngineChoice, percentile: str, away_s: float = 0.0) -> Points:
    """Evaluate all layouts on the chips of the case at all batches, in one call."""
    system, spec = facts.system, facts.serving.spec
    layouts, searched = _layouts(facts)
    batches = batch_grid(np.asarray(layouts.dp))
    found = evaluate(
        facts.serving, system, facts.scaleout, layouts.take((slice(None), None)), batches, choice, facts.constants.serving
    )  # fmt: skip
    point = capped_pool(facts.power_cap, system, found, facts.constants.power)
    shape = np.shape(point.requests_per_s)
    fits = np.broadcast_to(np.asarray(point.fits) & np.isfinite(point.ttft_s), shape)
    meets = (
        fits & np.asarray(within_slo(point, limits_at_site(spec, away_s))) & meets_classes(spec.classes, point, away_s)
    )
    tpot_s = np.broadcast_to(np.asarray(latency_s(point, TPOT, QUANTILES[percentile]), float), shape)
    per_chip = np.asarray(point.tokens_per_s, float) / np.asarray(layouts.chips, float)[:, None]
    return Points(layouts, batches, point, fits, meets, replicas(facts, layouts), tpot_s, per_chip, searched)


def _layouts(facts: CaseFacts) -> tuple[ServingLayouts, Bools]:
    """List the layouts that are searched, and every runnable tp x pp without further ranks; and which of them are searched."""
    arch, system, chips = facts.architecture, facts.system, facts.case.chips
    every = allowed_layouts(facts, system, chips, None, "layout")
    known = set(zip(*(np.asarray(getattr(every, name)).tolist() for name in SIZES)))
    more = [
        size
        for tp in _widths(facts)
        for pp in STAGES
        for ep in ({1, tp} if arch.experts else {1})
        if tp * pp <= chips and (size := (tp, pp, 1, ep)) not in known
    ]
    columns = np.array(more, dtype=np.int64).reshape(-1, len(SIZES)).T
    plain = ServingLayouts(**dict(zip(SIZES, columns)))
    plain = plain.take(np.flatnonzero(runnable(arch, system, plain, facts.scaleout.bytes_per_s > 0)))
    both = ServingLayouts(
        **{name: np.concatenate([np.asarray(getattr(each, name)) for each in (every, plain)]) for name in SIZES}
    )
    return both, np.arange(len(both)) < len(every)


def _widths(facts: CaseFacts) -> list[int]:
    """List the tensor-parallel sizes of the map: powers of two, up to twice a scale-up domain."""
    return [1 << i for i in range((2 * min(domain_of(facts.system), WIDEST)).bit_length())]


def point_columns(points: Points) -> Columns:
    """Write the points of one pool that fit as columns: tokens per second of a user and of a chip, and which meet all limits."""
    runs = points.searched[:, None] & points.fits & np.isfinite(points.tpot_s) & (points.tpot_s > 0)
    row, column = np.nonzero(runs)
    user, chip = 1.0 / points.tpot_s[runs], points.tokens_per_s_per_chip[runs]
    names = [layout_words(layout_of(points.layouts, i)) for i in range(len(points.layouts))]
    return {
        "user": user.tolist(),
        "chip": chip.tolist(),
        "meets": points.meets[runs].tolist(),
        "layout": [names[i] for i in row],
        "batch": points.batches[row, column].tolist(),
    }


def with_front(one: Columns, two: Columns, at: Mapping[str, Any] | None) -> Columns:
    """Join the points of one pool, the points of two, and the point `at` work, and tell which of all are on the front."""
    here = {} if at is None else {**at, "meets": at["meets_slo"]}
    every = {name: [*one[name], *two[name], *([here[name]] if here else [])] for name in one}
    return {**every, "front": on_front(np.array(every["user"]), np.array(every["chip"])).tolist()}


def _bands(facts: CaseFacts, choice: EngineChoice) -> dict[str, Any]:
    """Return the bounds of 80 % of runs as factors on the two rates of a point, and how close the case is to measurements."""
    known, chips = facts.constants.measured_serving, [facts.serving.measured_as(facts.system.chip, choice.precision)]
    run = Run(kind_of_network(facts.architecture), {})  # the factors are those of all points, whatever their batch
    bounds = serving_bounds(known, chips, {f"{TPOT}.{MEAN}": 1.0}, 1.0, run)
    low, high = bounds[f"{TPOT}.{MEAN}"]
    return {"user": [1.0 / high, 1.0 / low], "chip": bounds["capacity"], "tier": serving_tier(known, chips, run.kind)}


def _at_work(facts: CaseFacts, answer: Mapping[str, Any], percentile: str) -> Document:
    """Return the answer under the load of the case as a point among the others."""
    low, high = answer["interval_80"][TPOT][percentile]
    chips, rates = answer["chips_used"], answer["interval_80"]["tokens_per_s"]
    return {
        "user": 1.0 / answer["latency_s"][TPOT][percentile],
        "user_80": [1.0 / high, 1.0 / low],
        "chip": answer["tokens_per_s_per_chip"],
        "chip_80": [rate / chips for rate in rates],
        "layout": " + ".join(layout_words(pool["layout"]) for pool in answer["pools"]),
        "layouts": [{name: pool["layout"][name] for name in ("tp", "pp")} for pool in answer["pools"]],
        "mode": answer["mode"],
        "chips": chips,
        **{
            name: answer[name]
            for name in ("batch", "meets_slo", "requests_per_s", "tokens_per_s", "mfu", "latency_s", "first_token")
        },
    }


def _memory(facts: CaseFacts, choice: EngineChoice, answer: Mapping[str, Any]) -> list[Document]:
    """Divide the memory of the fullest chip of each pool: weights, what the engine itself takes, caches, and the rest of its share and beyond."""
    known = engine_constants(facts.serving, facts.system, facts.constants.serving)
    rows = []
    for pool in answer["pools"]:
        layout = ServingLayouts(**{name: np.array([size]) for name, size in pool["layout"].items()})
        weights = float(np.ravel(weight_bytes_per_chip(facts.architecture, layout, choice.precision))[0])
        runtime = float(np.ravel(reserve_bytes(facts.architecture, layout, known))[0])
        used, hbm = float(pool["memory_bytes"]), float(pool["hbm_bytes"])
        usable = known.usable_memory * hbm
        parts = {
            "weights": weights,
            "runtime": runtime,
            "caches": max(used - weights - runtime, 0.0),
            "free": max(usable - used, 0.0),
            "reserve": hbm - max(usable, used),
        }
        rows += [{"pool": pool["role"], "part": name, "bytes": size} for name, size in parts.items()]
    return rows


# -- layouts over tp x pp ----------------------------------------------------------------------------------------------


def layout_cells(facts: CaseFacts, points: Points, load: Load) -> list[Document]:
    """List the best layout of each tensor and pipeline size under the load: its time per output token, or why it cannot run."""
    tp, pp = np.asarray(points.layouts.tp), np.asarray(points.layouts.pp)
    return [
        {"tp": t, "pp": p, **_cell(facts, points, load, np.flatnonzero((tp == t) & (pp == p)), t, p)}
        for t in _widths(facts)
        for p in STAGES
    ]


def _cell(facts: CaseFacts, points: Points, load: Load, rows: Any, tp: int, pp: int) -> Document:
    none = {"seconds": None, "tokens_per_s_per_chip": None, "layout": "", "batch": None}
    if not rows.size:
        return {**none, "why_not": _why_not(facts, tp, pp)}
    if not points.fits[rows].any():
        least = np.broadcast_to(np.asarray(points.point.memory_bytes, float), points.fits.shape)[rows].min()
        usable = engine_constants(facts.serving, facts.system, facts.constants.serving).usable_memory
        words = Message.of(
            "estimate.memory_lacking",
            least=f"{least / GIGA:.1f}",
            most=f"{usable * facts.system.hbm_bytes / GIGA:.1f}",
        ).text()
        return {**none, "why_not": words}
    total = np.asarray(points.point.requests_per_s) * points.copies[:, None]
    able = points.meets[rows] if load.kind == MAX else points.fits[rows] & _carries(points, rows, total, load)
    if not able.any():
        words = Message.of("estimate.too_slow").text() if load.kind == MAX else Message.of("estimate.over_load").text()
        return {**none, "why_not": words}
    if load.kind == MAX:
        best = int(np.argmax(np.where(able, total[rows], -np.inf)))
    else:
        best = int(np.argmin(np.where(able, points.tpot_s[rows], np.inf)))
    i, j = np.unravel_index(best, able.shape)
    row = int(rows[i])
    return {
        "seconds": float(points.tpot_s[row, j]),
        "tokens_per_s_per_chip": float(points.tokens_per_s_per_chip[row, j]),
        "layout": layout_words(layout_of(points.layouts, row)),
        "batch": float(points.batches[row, j]),
        "why_not": "" if points.meets[row, j] else Message.of("dropped.too_slow").text(),
    }


def _carries(points: Points, rows: Any, total: Floats, load: Load) -> Bools:
    """Tell which batches carry the load, the first that does of each layout."""
    carried = points.batches * points.copies[:, None] if load.kind == CONCURRENCY else total
    enough = (carried[rows] >= load.value) & points.fits[rows]
    first = enough & (np.cumsum(enough, axis=1) == 1)
    return np.asarray(first, bool)


def _why_not(facts: CaseFacts, tp: int, pp: int) -> str:
    """Say why no layout of these sizes was evaluated."""
    if tp * pp > facts.case.chips:
        return Message.of("estimate.stage_over_chips", chips=facts.case.chips).text()
    one = np.array([1])
    layout = ServingLayouts(tp=np.array([tp]), pp=np.array([pp]), dp=one, ep=one)
    rules = broken_rules(facts.architecture, facts.system, layout, facts.scaleout.bytes_per_s > 0)
    broken = [words for words, breaks in rules.items() if np.any(breaks)]
    return broken[0] if broken else Message.of("estimate.over_chips").text()
