"""Which systems can carry workloads that the array search of co-design does not cover: sessions, media and reinforcement.

Each number of systems is searched as `flopwatt estimate` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catalog.units import GIGA
from models.roofline import ridge_flop_per_byte
from models.serving.kv_cache import weight_bytes_per_chip
from models.transformer.work import critical_tokens
from planner.errors import SpecError
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.case import CaseFacts
from planner.estimate.reinforcement import ranked_splits
from planner.estimate.serving_configuration import MAX, SIZES, Load, SearchResult, allowed_layouts
from planner.evaluate.serving import engine_constants, rates_of
from planner.messages import Message


def systems_words(count: int) -> str:
    """Say on how many systems."""
    return Message.of("characterise.on_system" if count == 1 else "characterise.on_systems", count=str(count)).text()


def serving_figures(facts: CaseFacts) -> dict[str, Any] | str:
    """State how a system carries sessions or media at most throughput within their limits, or why it does not."""
    workload, system = facts.serving, facts.system
    able = [name for name in workload.spec.precision if system.serves(name, workload.spec.arithmetic)]
    if not able:
        known, asked = ", ".join(system.flop_per_s), ", ".join(workload.spec.precision)
        return Message.of("characterise.other_precisions", known=known, asked=asked).text()
    found: SearchResult = search_one_pool(facts, Load(MAX), None)
    best, count = found.best, facts.case.chips // system.chips
    on = systems_words(count)
    if best is None or not best.meets:
        layouts = allowed_layouts(facts, system, facts.case.chips, None, "layout")
        least = min(float(np.min(weight_bytes_per_chip(facts.architecture, layouts, name))) for name in able)
        room = engine_constants(workload, system, facts.constants.serving).usable_memory * system.hbm_bytes
        if least > room:
            return Message.of(
                "characterise.memory_of_weights", on=on, least=f"{least / GIGA:.1f}", most=f"{room / GIGA:.1f}"
            ).text()
        return Message.of("characterise.no_room_within_limits", on=on).text()
    rates, choice = rates_of(facts.serving, system, best.choice.precision), best.choice
    rate = float(best.point.requests_per_s) * best.copies
    return {
        "systems": count,
        "precision": choice.precision,
        "layout": {name: int(getattr(best.layouts[-1], name)) for name in SIZES},
        "tokens_per_s_per_chip": rate * workload.spec.lengths.output / facts.case.chips,
        "ridge_flop_per_byte": float(ridge_flop_per_byte(rates.flop_per_s, rates.hbm_bytes_per_s)),
        "critical_tokens": float(critical_tokens(rates.flop_per_s, rates.hbm_bytes_per_s, choice.precision)),
    }


def reinforcement_figures(facts: CaseFacts) -> dict[str, Any] | str:
    """State the fastest split of a system, or why it has none."""
    system, count = facts.system, facts.case.chips // facts.system.chips
    try:
        splits = ranked_splits(facts)
    except SpecError as error:
        return "; ".join(problem.message for problem in error.problems)
    if not splits:
        return Message.of("characterise.no_split", count=str(count)).text()
    update = splits[0].update
    rates = system.rates(update.setup.precision)
    return {
        "systems": count,
        "precision": update.setup.precision,
        "layout": {name: int(size) for name, size in update.updates.layouts.row(0).items()},
        "way": splits[0].way,
        "iteration_s": float(splits[0].iteration_s),
        "memory_bytes": float(update.updates.memory_bytes[0]),
        "peak_flop_per_s": rates.flop_per_s * facts.case.chips,
        "ridge_flop_per_byte": float(ridge_flop_per_byte(rates.flop_per_s, rates.hbm_bytes_per_s)),
    }
