"""Answer a co-design case: figures of all variants, and the change that helps each chip most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.units import DAY_S, MILLION
from models.arrays import Floats, sum_of
from models.energy.power import energy_per_token_j, facility_power_w
from models.serving.continuous_batching import BOUNDS
from models.transformer.architecture import Architecture, parameter_counts
from planner.design.codesign.prices import Prices, resolve_prices
from planner.design.codesign.search import SIZES, Found, search_space
from planner.design.codesign.space import AXES, Shape, Space, resolve_space
from planner.estimate.limits import SearchLimits
from planner.evaluate.disaggregated import pool_power_w
from planner.evaluate.serving import kv_precision, systems_per_replica
from planner.messages import Message
from planner.problem.facts import SystemFacts
from planner.problem.provenance import assumption_rows
from planner.report.words import with_unit

NOTE = "how well a variant answers is not predicted: compare the parameters, and train it before its figures count"
FIGURES = ("tpot_s", "ttft_s", "step_s", "memory_bytes")
SHAPE_FIGURES = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "topk", "shared_experts", "shared_ffn", "expert_ffn",
    "dense_layers", "routed_groups", "q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim", "window_tokens",
    "window_layers", "linear_layers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodesignAnswer:
    """The document of an answer, and its rows [variant]; `document` is None where nothing fits, with the reason."""

    document: dict[str, Any] | None
    rows: list[dict[str, Any]]
    reason: str = ""


def codesign(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> CodesignAnswer:
    """Compare all variants of a case, as far as its limits let it. Raises SpecError with all problems at once, or LimitReached."""
    limits = limits or SearchLimits()
    space = resolve_space(document, overlays)
    prices, found = resolve_prices(space), search_space(space, limits)
    rows = _rows(space, prices, found)
    running, left = sum_of(row["runs"] for row in rows), int(np.count_nonzero(~found.tried))
    if not running and left:
        limits.check()
    if not running:
        fits = int(np.count_nonzero(found.room))
        why = (
            Message.of("codesign.none_is_fast", count=len(rows))
            if fits
            else Message.of("codesign.none_fits_memory", count=len(rows))
        )
        return CodesignAnswer(None, rows, why.text())
    assumptions = [a for facts in space.chips for a in facts.ledger.assumptions.values()]
    return CodesignAnswer(
        {
            "kind": "codesign",
            "architecture": space.architecture,
            "currency": prices.currency,
            "variants": len(rows),
            "running": running,
            **limits.left_out("variants", left, len(rows)),
            "points": found.pairs,
            "impossible": list(space.impossible),
            "chips": [_chip(space, prices, rows, chip) for chip in range(len(space.chips))],
            "rows": rows,
            "note": NOTE,
            "assumptions": assumption_rows(assumptions),
            "catalog_digest": space.chips[0].ledger.catalog.digest,
        },
        rows,
    )


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(space: Space, prices: Prices, found: Found) -> list[dict[str, Any]]:
    """Write the figures of all variants."""
    figures = _columns(space, prices, found)
    counts = [parameter_counts(shape.architecture) for shape in space.shapes]
    rows = []
    for i, variant in enumerate(space.variants):
        shape, facts = space.shapes[variant.shape], space.chips[variant.chip]
        row = {
            "system": facts.system.name,
            "chip": facts.system.chip,
            "attention": shape.attention,
            "experts": shape.experts,
            "width": shape.width,
            "precision": variant.precision,
            "kv_precision": kv_precision(shape.architecture, variant.precision),
            "parameters": counts[variant.shape].total,
            "active_parameters": counts[variant.shape].active,
            "runs": bool(found.runs[i]),
        }
        if not found.runs[i]:
            rows.append(row | {"why_not": _why_not(found, i)})
            continue
        layout = {name: int(np.asarray(getattr(found.layouts, name))[i]) for name in SIZES}
        plain = {name: _plain(column[i]) for name, column in figures.items()}
        rows.append(
            row
            | {"layout": layout, **plain, "bound_by": _bound(found.shares, i), "porting": prices.porting[variant.chip]}
        )
    return rows


def _why_not(found: Found, place: int) -> str:
    """Say why a variant does not run."""
    if not found.tried[place]:
        return Message.of("codesign.not_tried").text()
    if place in found.refused:
        return found.refused[place]
    return Message.of("codesign.too_slow").text() if found.room[place] else Message.of("codesign.over_memory").text()


def _columns(space: Space, prices: Prices, found: Found) -> dict[str, Floats]:
    """Compute the figures of all variants, [variant]; nan where there is none.

    tokens/s of all chips; power of the systems in use [W]; cost = (holding + power x PUE x price of electricity) / tokens.
    """
    count, runs, layouts = len(space.variants), found.runs, found.layouts
    chip = np.array([variant.chip for variant in space.variants])
    copies = np.where(runs, found.copies, np.nan)
    systems, watts, hbm, held = (np.full(count, np.nan) for _ in range(4))
    for place, facts in enumerate(space.chips):
        here = np.flatnonzero((chip == place) & runs)
        each = systems_per_replica(facts.system, np.asarray(layouts.chips)[here], np.asarray(layouts.pp)[here])
        systems[here] = copies[here] * each
        watts[here] = systems[here] * _system_w(facts.system, found, here, facts.constants.power)
        hbm[here] = facts.system.hbm_bytes
        per_s = prices.holding[place].per_s
        held[here] = np.nan if per_s is None else systems[here] * per_s
    rate = found.points["requests_per_s"] * copies
    tokens = rate * space.chips[0].serving.spec.lengths.output
    energy = energy_per_token_j(watts, tokens)
    cost = (held + facility_power_w(watts, prices.pue) * prices.electricity_per_j) / tokens * MILLION
    return {
        "requests_per_s": rate,
        "tokens_per_s": tokens,
        "chips_used": copies * np.asarray(layouts.chips),
        "tokens_per_s_per_chip": tokens / (copies * np.asarray(layouts.chips)),
        "batch": found.batch,
        **{name: found.points[name] for name in FIGURES},
        "hbm_bytes": hbm,
        "it_power_w": watts,
        "it_energy_j_per_token": energy,
        "tokens_per_s_per_w": 1.0 / energy,
        "cost_per_million_tokens": cost,
        "tokens_per_currency": MILLION / cost,
    }


def _system_w(system: SystemFacts, found: Found, here: Any, constants: Any) -> Floats:
    shares = {name: share[here] for name, share in found.shares.items()}
    return np.asarray(system.idle_w + pool_power_w(shares, system, constants))


def _bound(shares: Mapping[str, Floats], place: int) -> str:
    """Name what takes most of the time."""
    by_bound = {name: sum_of(float(shares[part][place]) for part in parts) for name, parts in BOUNDS.items()}
    return max(by_bound, key=lambda name: by_bound[name])


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# -- chips -------------------------------------------------------------------------------------------------------------


def _chip(space: Space, prices: Prices, rows: Sequence[Mapping[str, Any]], chip: int) -> dict[str, Any]:
    """Compare the variants of one chip: as named, single changes by gain, the best of all."""
    facts, holding = space.chips[chip], prices.holding[chip]
    places = [i for i, variant in enumerate(space.variants) if variant.chip == chip]
    named = rows[places[0]] if places else None
    by = "tokens_per_s_per_chip" if holding.per_s is None else "tokens_per_currency"
    running = [i for i in places if rows[i]["runs"]]
    singles = [i for i in running if _changed(rows[i], named) == 1]
    ranked = sorted(singles, key=lambda i: -rows[i][by])
    best = max(running, key=lambda i: rows[i][by], default=None)
    changes = [_change(space, prices, rows, i, named) for i in ranked]
    return {
        "system": facts.system.name,
        "chip": facts.system.chip,
        "family": facts.system.family,
        "chips": facts.case.chips,
        "how": holding.how,
        "price": holding.price,
        "porting": prices.porting[chip],
        "ranked_by": by,
        "as_named": None if named is None else dict(named),
        "changes": changes,
        "helps_most": changes[0] if changes else None,
        "best": None if best is None else _change(space, prices, rows, best, named),
        "variants": len(places),
        "running": len(running),
    }


def _changed(row: Mapping[str, Any], named: Mapping[str, Any] | None) -> int:
    return 0 if named is None else sum(row[axis] != named[axis] for axis in AXES)


def _change(
    space: Space, prices: Prices, rows: Sequence[Mapping[str, Any]], place: int, named: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Compare one variant with the named architecture on the same chip: factors on throughput, cost and energy, and payback of porting."""
    row, variant = rows[place], space.variants[place]
    axes = {axis: row[axis] for axis in AXES if named is None or row[axis] != named[axis]}
    found = {
        "changes": axes,
        "row": dict(row),
        "architecture": _record(space.shapes[variant.shape]),
        **dict.fromkeys(("throughput_factor", "cost_factor", "energy_factor", "payback_s")),
    }
    if named is None or not named["runs"]:
        return found
    found["throughput_factor"] = row["tokens_per_s_per_chip"] / named["tokens_per_s_per_chip"]
    found["energy_factor"] = row["it_energy_j_per_token"] / named["it_energy_j_per_token"]
    cost, before = row["cost_per_million_tokens"], named["cost_per_million_tokens"]
    if cost is not None and before:
        found["cost_factor"] = cost / before
        saved_per_s = (before - cost) / MILLION * row["tokens_per_s"]
        reshaped = any(axis != "precision" for axis in axes)
        if saved_per_s > 0:
            found["payback_s"] = prices.porting[variant.chip] / saved_per_s if reshaped else 0.0
    return found


def _record(shape: Shape) -> dict[str, Any]:
    """Write a variant as a record of the catalog, to be tried in a case or spec of its own."""
    arch: Architecture = shape.architecture
    text = {"type": "moe" if arch.experts else "dense", "gated": _flag(arch.gated), "tied": _flag(arch.tied)}
    units = {"window_tokens": "token"}
    note = f"attention {shape.attention}, experts {shape.experts}, width {shape.width:g}"
    return {
        "name": f"variant: {note}",
        "text": text | ({"attention": "mla"} if arch.mla else {}),
        "figures": {
            name: {"value": getattr(arch, name), "unit": units.get(name, "1"), "note": note}
            for name in SHAPE_FIGURES
            if getattr(arch, name)
        },
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"


# -- for people --------------------------------------------------------------------------------------------------------


def sections(answer: Mapping[str, Any], best: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows), with `best` single changes of each chip."""
    money = answer["currency"]
    named = [
        {"system": chip["system"], **_shown(chip["as_named"], money), "price": _price(chip, money), "porting": chip["porting"]}
        for chip in answer["chips"] if chip["as_named"] is not None
    ]  # fmt: skip
    found = [(f"{answer['architecture']} as named", named)]
    for chip in answer["chips"]:
        what = (
            Message.of("codesign.by_cost").text()
            if chip["ranked_by"] == "tokens_per_currency"
            else Message.of("codesign.by_throughput").text()
        )
        rows = [_change_row(change, money) for change in chip["changes"][:best]]
        if rows:
            found.append((Message.of("codesign.head_changes", system=chip["system"], what=what).text(), rows))
    together = [
        {"system": chip["system"], **_change_row(chip["best"], money)} for chip in answer["chips"] if chip["best"] is not None
    ]  # fmt: skip
    return [*found, (Message.of("codesign.head_best").text(), together)]


def _price(chip: Mapping[str, Any], money: str) -> str:
    if chip["price"] is None:
        return "none known"
    unit = money if chip["how"] == "buy" else f"{money}/h"
    return f"{with_unit(chip['price'] * (1.0 if chip['how'] == 'buy' else 3600.0), unit)}, {chip['how']}"


def _shown(row: Mapping[str, Any], money: str) -> dict[str, Any]:
    if not row["runs"]:
        return {"precision": row["precision"], "tokens/s per chip": row["why_not"]}
    return {
        "precision": row["precision"],
        "layout": " ".join(f"{name}{size}" for name, size in row["layout"].items() if size != 1) or "1 chip",
        "tokens/s per chip": row["tokens_per_s_per_chip"],
        "TPOT (ms)": row["tpot_s"] * 1000.0,
        "memory": f"{row['memory_bytes'] / 1e9:.1f} of {row['hbm_bytes'] / 1e9:.0f} GB",
        f"{money}/1M tokens": row["cost_per_million_tokens"],
        "J/token": row["it_energy_j_per_token"],
        "bound by": row["bound_by"],
    }


def _change_row(change: Mapping[str, Any], money: str) -> dict[str, Any]:
    words = ", ".join(
        f"{axis} {value:g}" if isinstance(value, float) else f"{axis} {value}"
        for axis, value in change["changes"].items()
    )
    row = change["row"]
    days = change["payback_s"]
    return {
        "change": words or "as named",
        "throughput x": change["throughput_factor"],
        "cost x": change["cost_factor"],
        "J/token x": change["energy_factor"],
        "parameters (G)": row["parameters"] / 1e9,
        "active (G)": row["active_parameters"] / 1e9,
        **_shown(row, money),
        "porting pays after (d)": None if days is None else days / DAY_S,
    }
