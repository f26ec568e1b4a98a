"""State what fills the memory of the chips of a serving case: weights, reserve, caches and states, and how much has room in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from catalog.units import GIGA
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import (
    SharedPrefixes,
    cache_bytes_per_chip,
    held_context_tokens,
    kv_bytes_per_chip,
    reserve_bytes,
    slots,
    weight_bytes_per_chip,
)
from models.serving.prefix_cache import shared_prefixes
from planner.estimate.case import CaseFacts
from planner.estimate.serving_configuration import ServingConfiguration, allowed_layouts
from planner.evaluate.serving import engine_choices, engine_constants, lengths_of, precisions_of, rates_of
from planner.evaluate.serving_state import prefix_cache
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import SystemFacts

UNLIMITED = 1e9  # requests of an engine without a cap
ROUNDING = 1e-6  # part of a request
LONGEST_TOKENS = 2.0**40  # beyond, nothing but other limits bounds a context
Row = dict[str, Any]


def memory_rows(facts: CaseFacts, configuration: ServingConfiguration) -> list[Row]:
    """List for each pool the bytes on its fullest chip, and the tokens, requests and the longest context for which a replica has room."""
    roles = ("prefill", "decode") if configuration.pools else ("serve",)
    return [
        {"role": role, **_room(facts, system, layout, configuration.choice, role == "decode")}
        for role, system, layout in zip(roles, configuration.systems, configuration.layouts, strict=True)
    ]


def _room(facts: CaseFacts, system: SystemFacts, layout: ServingLayouts, choice: EngineChoice, decodes: bool) -> Row:
    known, rates = engine_constants(facts.serving, system, facts.constants.serving), system.rates(choice.precision)
    arch = facts.architecture

    def held(tokens: float) -> float:
        return _one(kv_bytes_per_chip(arch, layout, tokens, choice.kv_precision))

    lengths = lengths_of(facts.serving, choice)
    context = _one(held_context_tokens(lengths, known))
    whole = _one(lengths.prompt + lengths.output)
    cache, ranks = _one(cache_bytes_per_chip(arch, rates, layout, choice.precision, known)), _one(layout.dp)
    # A decode pool takes prompts whole from another pool.
    shared = None if decodes else shared_prefixes(prefix_cache(facts.serving.spec.cache, system.chips))
    places = _places(facts, rates, layout, choice, known, shared) if held(context) else np.inf
    return {
        "system": system.name,
        "memory_bytes": system.hbm_bytes,
        "weights_bytes": _one(weight_bytes_per_chip(arch, layout, choice.precision)),
        "reserve_bytes": _one(reserve_bytes(arch, layout, known)),
        "cache_bytes": cache,
        "state_bytes": _finite(places * held(0.0)),
        "cache_tokens": _finite(cache / held(whole) * whole if held(whole) else np.inf),
        "places": _finite(places),
        "longest_context_tokens": _longest(lambda tokens: held(tokens) * ranks <= cache),
    }


def _places(
    facts: CaseFacts,
    rates: ChipRates,
    layout: ServingLayouts,
    choice: EngineChoice,
    known: ServingConstants,
    shared: SharedPrefixes | None,
) -> float:
    """Count the whole requests for which a replica has memory, prefixes that they share held once, whatever the engine's cap."""
    found = slots(
        facts.architecture, rates, layout, lengths=lengths_of(facts.serving, choice), precisions=precisions_of(choice),
        constants=replace(known, batch_cap=UNLIMITED), shared=shared,
    )  # fmt: skip
    return float(np.floor(_one(found) + ROUNDING))


def _longest(has_room: Any) -> float | None:
    """Find the longest context [token] that has room, by bisection; None where any has."""
    if has_room(LONGEST_TOKENS):
        return None
    low, high = 0.0, LONGEST_TOKENS
    while high - low > 1.0:
        middle = np.floor((low + high) / 2.0)
        low, high = (middle, high) if has_room(middle) else (low, middle)
    return float(low)


def _one(value: Any) -> float:
    return float(np.ravel(np.asarray(value, float))[0])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def shortfall(facts: CaseFacts) -> Row | None:
    """Say what one request on each attention rank lacks on a chip in the layout that lacks least; None where one has room."""
    workload, system = facts.serving, facts.system
    layouts = allowed_layouts(facts, system, facts.case.chips, facts.case.layout, "layout")
    if not len(layouts):
        return None
    known = engine_constants(workload, system, facts.constants.serving)
    found = [
        _lack(facts, layouts, choice, known, rates_of(workload, system, choice.precision))
        for choice in engine_choices(workload, system)
    ]
    least = min(found, key=lambda row: float(row["lacks_bytes"]), default=None)
    return (
        None
        if least is None or least["lacks_bytes"] <= 0.0
        else {"system": system.name, "memory_bytes": system.hbm_bytes, **least}
    )


def _lack(
    facts: CaseFacts, layouts: ServingLayouts, choice: EngineChoice, known: ServingConstants, rates: ChipRates
) -> Row:
    arch, lengths = facts.architecture, lengths_of(facts.serving, choice)
    context = held_context_tokens(lengths, known)
    weights = weight_bytes_per_chip(arch, layouts, choice.precision)
    reserve = reserve_bytes(arch, layouts, known)
    cache = kv_bytes_per_chip(arch, layouts, context, choice.kv_precision) * layouts.dp / known.cache_share
    usable = float(known.usable_memory * rates.hbm_bytes)
    lacks = np.asarray(weights + reserve + cache - usable, float)
    i = int(np.argmin(lacks))
    parts = {"weights_bytes": weights, "reserve_bytes": reserve, "cache_bytes": cache}
    return {
        "precision": choice.precision,
        "layout": {name: int(np.asarray(getattr(layouts, name))[i]) for name in ("tp", "pp", "dp", "ep")},
        **{name: float(np.broadcast_to(part, lacks.shape)[i]) for name, part in parts.items()},
        "usable_bytes": usable,
        "lacks_bytes": float(lacks[i]),
    }


def lack_words(row: Mapping[str, Any], points: int) -> Message:
    """Put in words by how much nothing fits."""
    sizes = {name.removesuffix("_bytes"): size / GIGA for name, size in row.items() if name.endswith("_bytes")}
    return Message.of("memory.lacks", points=points, precision=row["precision"], **sizes)


def memory_table(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Write the memory of each pool for people."""
    names = ("weights", "reserve", "cache", "state")
    return [
        {
            "role": row["role"],
            **{f"{Message.of(f'memory.{name}').text()} (GB)": _gigabytes(row[f"{name}_bytes"]) for name in names},
            Message.of("memory.of").text(): f"{row['memory_bytes'] / GIGA:.2f}",
            **{Message.of(f"memory.{name}").text(): _count(row[name]) for name in ("cache_tokens", "places", "longest_context_tokens")},
        }
        for row in rows
    ]  # fmt: skip


def _gigabytes(size: float | None) -> str:
    return Message.of("memory.unbounded").text() if size is None else f"{size / GIGA:.2f}"


def _count(count: float | None) -> str:
    return Message.of("memory.unbounded").text() if count is None else f"{count:,.0f}"
