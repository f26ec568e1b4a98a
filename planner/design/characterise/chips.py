"""Which systems can carry a workload at all, on how many of them, and why the others cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.errors import MissingFigure
from catalog.lookup import Catalog
from catalog.units import GIGA, MILLI
from models.roofline import ridge_flop_per_byte
from models.serving.kv_cache import weight_bytes_per_chip
from models.serving.percentiles import latency_s
from models.training.layouts import Layouts
from models.transformer.work import critical_tokens
from planner.candidates.layouts import layout_parts
from planner.design.characterise.searched import reinforcement_figures, serving_figures, systems_words
from planner.design.codesign.search import search_space
from planner.design.codesign.space import Shape, Space, Variant
from planner.errors import SpecError, words_of
from planner.estimate.case import CaseFacts, resolve_case
from planner.estimate.limits import SearchLimits
from planner.estimate.serving_configuration import allowed_layouts
from planner.evaluate import serving
from planner.evaluate.layouts import fits, memory_needed
from planner.evaluate.serving import QUANTILES, engine_choices, engine_constants, rates_of
from planner.messages import Message, listed
from planner.spec.stack.codesign import AS_NAMED, Codesign
from planner.spec.workloads import Training

COUNTS = (1, 4, 16)  # systems on which a serving workload is tried
TRAINING_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
LEARNING_COUNTS = (1, 2, 4, 8, 16)
MOST_CHIPS = 4096  # beyond which no more systems are joined


@dataclass(frozen=True, slots=True)
class Tried:
    """A system on the numbers of it that a case can have, and why it has none."""

    system: str
    facts: tuple[CaseFacts, ...]
    why_not: str = ""


def able_systems(
    document: Mapping[str, Any], catalog: Catalog, names: Sequence[str], limits: SearchLimits
) -> list[dict[str, Any]]:
    """List for each system whether it can carry the workload of a case document; `tried` is false where the limits came before that was known."""
    workload = document["workload"]
    training, learning = (workload.get("kind") == kind for kind in ("training", "reinforcement"))
    counts = TRAINING_COUNTS if training else LEARNING_COUNTS if learning else COUNTS
    tried = [_tried(document, catalog, name, counts) for name in limits.within(names)]
    if training:
        rows = _training_rows(tried, limits)
    elif learning:
        rows = _searched_rows(tried, reinforcement_figures, limits)
    elif workload.get("session") or workload.get("media"):
        rows = _searched_rows(tried, serving_figures, limits)
    else:
        rows = _serving_rows(tried, limits)
    known = {row["system"] for row in rows}
    rows += [_not_tried(Tried(name, ())) for name in names if name not in known]
    return sorted(rows, key=lambda row: (not row["can"], row["system"]))


def _tried(document: Mapping[str, Any], catalog: Catalog, name: str, counts: Sequence[int]) -> Tried:
    """Resolve the case on growing numbers of a system."""
    found: list[CaseFacts] = []
    try:
        chips = int(catalog.get("systems", name).figure("chips").number)
    except MissingFigure as error:
        return Tried(name, (), words_of(error))
    for count in counts:
        if count > 1 and count * chips > MOST_CHIPS:
            break
        try:
            found.append(resolve_case({**document, "system": name, "chips": count * chips}, catalog=catalog))
        except SpecError as error:
            if not found:
                return Tried(name, (), "; ".join(problem.message for problem in error.problems))
            break  # no network joins so many
    return Tried(name, tuple(found))


def _searched_rows(
    tried: Sequence[Tried], figures: Callable[[CaseFacts], dict[str, Any] | str], limits: SearchLimits
) -> list[dict[str, Any]]:
    """Take for each system the fewest of it that carry the workload, each number searched for itself."""
    rows = []
    for each in limits.within(tried):
        why: dict[str, Any] | str = each.why_not
        for facts in each.facts:
            why = figures(facts)
            if not isinstance(why, str):
                break
        rows.append(
            _cannot(each, why)
            if isinstance(why, str)
            else _row(each.system, each.facts[0]) | {"can": True, "tried": True, "why_not": "", **why}
        )
    return rows


# -- serving -----------------------------------------------------------------------------------------------------------


def _serving_rows(tried: Sequence[Tried], limits: SearchLimits) -> list[dict[str, Any]]:
    every = [facts for each in tried for facts in each.facts]
    if not every:
        return [_cannot(each, each.why_not) for each in tried]
    variants = [
        Variant(0, precision, place)
        for place, facts in enumerate(every)
        for precision in facts.serving.spec.precision
        if facts.system.serves(precision, facts.serving.spec.arithmetic)
    ]
    shape = Shape(every[0].architecture, AS_NAMED, AS_NAMED, 1.0)
    space = Space("", Codesign(), (shape,), tuple(every), tuple(variants), ())
    found = search_space(space, limits) if variants else None
    rows = []
    for each in tried:
        if not each.facts:
            rows.append(_cannot(each, each.why_not))
            continue
        mine = [i for i, v in enumerate(variants) if any(every[v.chip] is facts for facts in each.facts)]
        if not mine or found is None:
            system = each.facts[0].system
            asked = ", ".join(each.facts[0].serving.spec.precision)
            rows.append(
                _cannot(
                    each,
                    Message.of("characterise.other_precisions", known=", ".join(system.flop_per_s), asked=asked).text(),
                )
            )
            continue
        if not all(found.tried[i] for i in mine):
            rows.append(_not_tried(each))
            continue
        able = [i for i in mine if found.runs[i]]
        if not able:
            rows.append(_cannot(each, _why_not(each.facts, any(found.room[i] for i in mine))))
            continue
        fewest = min(every[variants[i].chip].case.chips for i in able)
        best = max((i for i in able if every[variants[i].chip].case.chips == fewest), key=lambda i: _rate(found, i))
        facts = every[variants[best].chip]
        precision = variants[best].precision
        output = facts.serving.spec.lengths.output
        rates = rates_of(facts.serving, facts.system, precision)
        rows.append(_row(each.system, facts) | {
            "can": True,
            "tried": True,
            "why_not": "",
            "systems": fewest // facts.system.chips,
            "precision": precision,
            "layout": {size: int(np.asarray(getattr(found.layouts, size))[best]) for size in ("tp", "pp", "dp", "ep")},
            "tokens_per_s_per_chip": _rate(found, best) * output / fewest,
            "ridge_flop_per_byte": float(ridge_flop_per_byte(rates.flop_per_s, rates.hbm_bytes_per_s)),
            "critical_tokens": float(critical_tokens(rates.flop_per_s, rates.hbm_bytes_per_s, precision)),
        })  # fmt: skip
    return rows


def _rate(found: Any, place: int) -> float:
    return float(found.points["requests_per_s"][place] * found.copies[place])


def _row(system: str, facts: CaseFacts) -> dict[str, Any]:
    return {
        "system": system,
        "chip": facts.system.chip,
        "chips": facts.system.chips,
        "hbm_bytes": facts.system.hbm_bytes,
        "hbm_bytes_per_s": facts.system.hbm_bytes_per_s,
    }


def _cannot(each: Tried, why: str) -> dict[str, Any]:
    found = _row(each.system, each.facts[0]) if each.facts else {"system": each.system}
    return found | {"can": False, "tried": True, "why_not": why}


def _not_tried(each: Tried) -> dict[str, Any]:
    return _cannot(each, Message.of("characterise.not_tried").text()) | {"tried": False}


def _why_not(tried: Sequence[CaseFacts], room: bool) -> str:
    """Say what rules a system out on the most of it that was tried: memory, or latencies."""
    facts = tried[-1]
    spec = facts.serving.spec
    names = [name for name in spec.precision if facts.system.serves(name, spec.arithmetic)]
    layouts = allowed_layouts(facts, facts.system, facts.case.chips, facts.case.layout, "layout")
    count = facts.case.chips // facts.system.chips
    on = systems_words(count)
    if not room:
        least = min(float(np.min(weight_bytes_per_chip(facts.architecture, layouts, name))) for name in names)
        usable = engine_constants(facts.serving, facts.system, facts.constants.serving).usable_memory
        may = f"{usable * facts.system.hbm_bytes / GIGA:.1f}"
        return Message.of("characterise.memory_of_request", on=on, least=f"{least / GIGA:.1f}", most=may).text()
    best: dict[str, float] = {}
    for choice in engine_choices(facts.serving, facts.system):
        point = serving.evaluate(
            facts.serving, facts.system, facts.scaleout, layouts, 1.0 / 64, choice, facts.constants.serving
        )
        for limit in facts.serving.spec.limits():
            held = np.where(point.slots > 0, latency_s(point, limit.metric, QUANTILES[limit.percentile]), np.inf)
            best[limit.key] = min(best.get(limit.key, np.inf), float(np.min(held)))
    missed = [
        Message.of(
            "characterise.latency_at_best",
            metric=limit.key,
            best=f"{best[limit.key] / MILLI:.3g}",
            most=f"{limit.seconds / MILLI:.3g}",
        ).text()
        for limit in facts.serving.spec.limits()
        if best[limit.key] > limit.seconds
    ]
    return Message.of(
        "characterise.latency", on=on, reason=listed(missed) or Message.of("characterise.no_layout_meets").text()
    ).text()


# -- training ----------------------------------------------------------------------------------------------------------


def _training_rows(tried: Sequence[Tried], limits: SearchLimits) -> list[dict[str, Any]]:
    rows = []
    for each in limits.within(tried):
        if not each.facts:
            rows.append(_cannot(each, each.why_not))
            continue
        spec = each.facts[0].case.workload
        assert isinstance(spec, Training)
        able = [name for name in spec.precision if each.facts[0].system.trains(name)]
        if not able:
            known = ", ".join(each.facts[0].system.flop_per_s)
            rows.append(
                _cannot(
                    each,
                    Message.of("characterise.other_precisions", known=known, asked=", ".join(spec.precision)).text(),
                )
            )
            continue
        rows.append(_training_row(each, able[0]))
    return rows


def _training_row(each: Tried, precision: str) -> dict[str, Any]:
    """Find the fewest systems on which a layout holds the job."""
    least = np.inf
    for facts in each.facts:
        setup = facts.training_setup(precision)
        best: tuple[float, Layouts] | None = None
        for layouts in layout_parts(facts.job, facts.case.chips, facts.system):
            needed = memory_needed(setup, layouts)
            within = np.flatnonzero(fits(setup, layouts, needed))
            least = min(least, float(needed.min()))
            if within.size and (best is None or needed[within].min() < best[0]):
                tightest = int(within[needed[within].argmin()])
                best = float(needed[tightest]), layouts.take(np.array([tightest]))
        if best is not None:
            rates = facts.system.rates(precision)
            return _row(each.system, facts) | {
                "can": True,
                "tried": True,
                "why_not": "",
                "systems": facts.case.chips // facts.system.chips,
                "precision": precision,
                "layout": {name: int(size) for name, size in best[1].row(0).items()},
                "memory_bytes": best[0],
                "peak_flop_per_s": rates.flop_per_s * facts.case.chips,
                "ridge_flop_per_byte": float(ridge_flop_per_byte(rates.flop_per_s, rates.hbm_bytes_per_s)),
            }
    count = each.facts[-1].case.chips // each.facts[-1].system.chips
    hbm = each.facts[0].system.hbm_bytes
    words = (
        Message.of("characterise.no_legal_layout", count=str(count))
        if np.isinf(least)
        else Message.of(
            "characterise.smallest_layout", least=f"{least / GIGA:.1f}", most=f"{hbm / GIGA:.1f}", count=str(count)
        )
    )
    return _cannot(each, words.text())
