"""Choose the figures of a spec that a study moves one at a time, and their levels: those named by the user, or the usual ones.

Not here: the effect of moving them (`planner.studies.sensitivity`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from catalog.units import show
from planner.errors import Issue, SpecError
from planner.limits.electricity import electricity_limits
from planner.limits.limit import Limit
from planner.limits.limits import basic_limits
from planner.limits.phases import phase_limits
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.problem.provenance import Citation
from planner.report.words import how_words, whole
from planner.resolve.names import catalog_of
from planner.spec.changes import COUNTED
from planner.spec.document import Edits, at, edited
from planner.spec.model import parse_spec
from planner.studies.base.varied import latency_paths, price_edits, times, work_path

PRICE, ENERGY, DEMAND, AMOUNT, DEADLINE, LATENCY, ASKED = (
    "price",
    "electricity",
    "demand",
    "amount",
    "deadline",
    "latency",
    "asked",
)
EITHER_WAY = {PRICE: 0.2, ENERGY: 0.2, DEMAND: 0.15, AMOUNT: 0.1, DEADLINE: 0.1, LATENCY: 0.2}
WORK_WORDS = {"serving": "requests", "training": "tokens", "reinforcement": "iterations"}
"""What a workload of a kind asks for, as the end of its code."""
_SHARE = re.compile(r"\s*([+-]\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True, slots=True)
class Level:
    """A figure moved to one side.

    `money`: a change of the problem's prices that no edit of the spec can express; `only_money`: operating points do not change;
    `wider`: plans stay feasible and none costs more; `amount`: of a limit.
    """

    words: str
    edits: Edits = ()
    money: Callable[[ResolvedSpec], ResolvedSpec] | None = None
    only_money: bool = False
    wider: bool = False
    amount: float = math.nan


@dataclass(frozen=True, slots=True)
class Factor:
    """A figure with its two levels. `path`: its place in the spec; `way`: (system, how) of a price."""

    kind: str
    path: str
    name: str
    low: Level
    high: Level
    way: tuple[str, str] | None = None


# -- the figures to move -----------------------------------------------------------------------------------------------


def factors_of(document: Mapping[str, Any], problem: ResolvedSpec, vary: Sequence[str], defaults: bool) -> list[Factor]:
    """List the figures to move, those named by the user first. Raises SpecError for a text that cannot be read."""
    asked = [_asked(document, text) for text in vary]
    if not defaults:
        return asked
    named = {factor.path for factor in asked}
    return asked + [factor for factor in _usual(document, problem) if factor.path not in named]


# -- named by the user -------------------------------------------------------------------------------------------------


def _asked(document: Mapping[str, Any], text: str) -> Factor:
    """Parse PATH=LOW:HIGH."""
    path, equals, levels = text.partition("=")
    parts = levels.split(":")
    if not equals or not path or len(parts) != 2 or not all(part.strip() for part in parts):
        raise SpecError(
            [
                Issue(
                    "--vary",
                    Message.of("option.path_and_levels", given=text).text(),
                )
            ]
        )
    low, high = (level_of(document, path, part) for part in parts)
    errors = [error for level in (low, high) if (error := _error(document, level)) is not None]
    if len(errors) == 2:  # one invalid level is an answer, two are a mistake
        raise errors[0]
    return Factor(ASKED, path, path, low, high)


def _error(document: Mapping[str, Any], level: Level) -> SpecError | None:
    """Test whether the spec may hold a level."""
    try:
        parse_spec(edited(document, level.edits))
    except SpecError as error:
        return error
    return None


def level_of(document: Mapping[str, Any], path: str, text: str) -> Level:
    """Parse a level: a value, or a change such as -10% of what the spec states at `path`."""
    written = at(document, path)
    if share := _SHARE.fullmatch(text):
        if written is None:
            raise SpecError(
                [
                    Issue(
                        f"--vary {path}",
                        Message.of("studies.change_of_unstated", change=text).text(),
                    )
                ]
            )
        value = times(document, path, 1.0 + float(share[1]) / 100.0)
        if value is None:
            raise SpecError([Issue(f"--vary {path}", Message.of("studies.change_of_text", change=text).text())])
    else:
        try:
            value = json.loads(text)
        except ValueError:
            value = text.strip()
    return Level(str(value), ((path, value),))


# -- the usual ones ----------------------------------------------------------------------------------------------------


def _usual(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Factor]:
    yield from _stated_prices(document, problem)
    yield from _catalog_prices(document, problem)
    yield from _api_prices(document, problem)
    yield _electricity()
    yield from _demand(document, problem)
    names = list(dict.fromkeys(w.asked for w in (*problem.serving, *problem.training)))
    amounts = basic_limits(document, problem, catalog_of(problem.spec, (), {}), names)
    latencies = {path for i in range(len(document["workloads"])) for path in latency_paths(document, i)}
    for limit in (*amounts, *electricity_limits(document, problem, names), *phase_limits(document, problem)):
        if limit.is_number:
            yield _limit(limit, latencies)


def _stated_prices(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Factor]:
    facts_of = {facts.path: facts for facts in problem.offers if not facts.stated_at}
    for i, offer in enumerate(problem.spec.offers or ()):
        if offer.price is None or f"offers[{i}]" not in facts_of:
            continue
        path, facts = f"offers[{i}].price", facts_of[f"offers[{i}]"]
        if problem.spec.prices is not None and path in problem.spec.prices.ranges:
            levels = _ranged(document, path)
        else:
            levels = _low_and_high(
                Level(str(edits[0][1]), edits, only_money=True, wider=ratio < 1)
                for ratio in _around(PRICE)
                for edits in [price_edits(document, f"offers[{i}]", ratio)]
            )
        yield Factor(
            PRICE,
            path,
            Message.of("sensitivity.price", system=facts.system, how=how_words(facts.how)).text(),
            *levels,
            way=(facts.system, facts.how),
        )


def _low_and_high(levels: Iterable[Level]) -> tuple[Level, Level]:
    low, high = levels
    return low, high


def _ranged(document: Mapping[str, Any], path: str) -> tuple[Level, Level]:
    """Move a stated price with a range to its low and its high."""
    ranges = dict(document["prices"]["ranges"])
    bounds, typical = ranges.pop(path), at(document, path)
    values = [bounds.get(side) or typical for side in ("low", "high")]
    return _low_and_high(
        Level(value, ((path, value), ("prices.ranges", ranges)), only_money=True, wider=value == values[0])
        for value in values
    )


def _catalog_prices(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Factor]:
    """Move the catalog's prices to their low and high; those without a range as far as stated prices."""
    priced = {f"offers[{i}]" for i, offer in enumerate(problem.spec.offers or ()) if offer.price is not None}
    ways = {(offer.system, offer.how) for offer in problem.offers if not offer.stated_at and offer.path not in priced}
    for system, how in ways_in_order(problem, ways):
        figures = [
            c for c in problem.citations if c.path.startswith(f"offers/{system}, {how}") and c.path.endswith("/price")
        ]
        if not figures:
            continue
        ranged = any(c.figure.low is not None or c.figure.high is not None for c in figures)
        low, high = ({c.path: _bound(c, side, ranged) for c in figures} for side in ("low", "high"))
        units = {c.path: c.figure.unit for c in figures}
        levels = [
            Level(
                _span(figures, values),
                (
                    (
                        "overrides",
                        {
                            **(document.get("overrides") or {}),
                            **{
                                path: {"value": f"{v:.12g} {units[path]}", "note": "moved"}
                                for path, v in values.items()
                            },
                        },
                    ),
                ),
                only_money=True,
                wider=side == "low",
            )
            for side, values in (("low", low), ("high", high))
        ]
        moves = _low_and_high(
            replace(level, edits=()) if all(c.figure.number == values[c.path] for c in figures) else level
            for level, values in zip(levels, (low, high), strict=True)
        )
        code = "sensitivity.price" if ranged else "sensitivity.price_unranged"
        yield Factor(
            PRICE,
            f"offers/{system}/{how}",
            Message.of(code, system=system, how=how_words(how)).text(),
            *moves,
            way=(system, how),
        )


def _api_prices(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Factor]:
    """Move the prices of each API together."""
    for i, api in enumerate(problem.spec.apis or ()):
        levels = _low_and_high(
            Level(f"{ratio - 1:+.0%}", price_edits(document, f"apis[{i}]", ratio), wider=ratio < 1)
            for ratio in _around(PRICE)
        )
        yield Factor(PRICE, f"apis[{i}]", Message.of("sensitivity.prices_api", api=api.name).text(), *levels)


def ways_in_order(problem: ResolvedSpec, ways: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """List (system, how) in the order of the offers."""
    return [way for way in dict.fromkeys((offer.system, offer.how) for offer in problem.offers) if way in ways]


def _bound(citation: Citation, side: str, ranged: bool) -> float:
    figure = citation.figure
    if ranged:
        bound = getattr(figure, side)
        return figure.number if bound is None else bound
    return figure.number * _around(PRICE)[side == "high"]


def _span(figures: Sequence[Citation], values: Mapping[str, float]) -> str:
    ascending = sorted(values.values())
    unit = figures[0].figure.unit
    size, per = (3600.0, unit.replace("/s", "/h")) if unit.endswith("/s") else (1.0, unit)
    low, high = (
        f"{value * size:,.6g}" if value * size < 1000 else whole(value * size)
        for value in (ascending[0], ascending[-1])
    )
    return f"{low} {per}" if low == high else f"{low} to {high} {per}"


def _electricity() -> Factor:
    low, high = (
        Level(f"{ratio - 1:+.0%}", money=partial(_at_electricity, ratio), only_money=True, wider=ratio < 1)
        for ratio in _around(ENERGY)
    )
    return Factor(ENERGY, "electricity", Message.of("studies.price_of_electricity").text(), low, high)


def _at_electricity(ratio: float, problem: ResolvedSpec) -> ResolvedSpec:
    """Multiply the prices of electricity."""
    return replace(problem, sites=tuple(replace(site, price_per_j=site.price_per_j * ratio) for site in problem.sites))


def _demand(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Factor]:
    for i, workload in enumerate(problem.spec.workloads):
        path = work_path(document, i)
        levels = _low_and_high(
            Level(str(value := times(document, path, ratio)), ((path, value),), wider=ratio < 1)
            for ratio in _around(DEMAND)
        )
        code = f"sensitivity.{WORK_WORDS[workload.kind]}"
        yield Factor(DEMAND, path, Message.of(code, workload=workload.name).text(), *levels)


def _limit(limit: Limit, latencies: Collection[str]) -> Factor:
    """Move an amount, a latency of these paths, or a deadline, which stays within the horizon."""
    kind = AMOUNT if limit.is_row else LATENCY if limit.path in latencies else DEADLINE

    def moved(ratio: float) -> Level:
        amount = min(limit.amount * ratio, limit.most)
        edits = limit.grown(amount)
        stated = edits[0][1]
        counted = limit.unit is None or limit.unit in COUNTED
        words = show(stated, limit.unit or "") if isinstance(stated, int) and not counted else f"{stated}"
        return Level(words, edits, wider=ratio > 1, amount=amount)

    low, high = (moved(ratio) for ratio in _around(kind))
    return Factor(kind, limit.path, limit.name, low, high)


def _around(kind: str) -> tuple[float, float]:
    return 1.0 - EITHER_WAY[kind], 1.0 + EITHER_WAY[kind]
