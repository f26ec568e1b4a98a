"""Search layout and batch of many variants at once, as `planner.estimate.batch_search` does for one.

The grids are the same: a coarse one for all layouts, a fine one for the best few. Of a row of a grid only the batches are evaluated that a
bisection asks for: memory and limits on latencies hold up to some batch, and the throughput rises up to it. Where the throughput around the
batch found does not rise, or prefill cannot keep up with a batch of the fine grid, the whole row is evaluated. A layout is refined only if it could be the best: its throughput at the next larger
batch of the coarse grid, limits aside, is no less than the best that its variant has reached. Variants are searched some at a time, those
nearest to the named architecture first, until the limits of time and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints, sum_of
from models.formats import PRECISIONS
from models.roofline import ChipRates
from models.serving.continuous_batching import NUMBERS, ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.percentiles import within_slo
from models.serving.prefix_cache import held_bytes, pool_memory, shared_prefixes
from models.serving.workload import Precisions
from models.transformer.shapes import SWITCHES
from planner.design.codesign.space import Space, by_changes
from planner.errors import Issue, SpecError
from planner.estimate.aggregated_search import replicas
from planner.estimate.batch_search import FINE_BATCHES, FRACTIONS, MAX_REFINED
from planner.estimate.case import CaseFacts
from planner.estimate.limits import SearchLimits
from planner.estimate.serving_configuration import allowed_layouts
from planner.evaluate.serving import batch_grid, engine_constants, kv_precision, lengths_of, limits_at_site, rates_of
from planner.evaluate.serving_state import drafting, prefix_cache

_FLAGS = ("gated", "tied", "mla", "checkpoints")
SIZES = tuple(field.name for field in fields(ServingLayouts))
FIGURES = (*NUMBERS, "ttft_s")
PAIRS_AT_ONCE = 20_000  # variants x layouts: about 250 MB while they are evaluated


@dataclass(frozen=True, slots=True)
class Pairs:
    """Variants x layouts, one entry each."""

    variant: Ints
    layouts: ServingLayouts
    copies: Floats  # replicas on the chips of the case


@dataclass(frozen=True, slots=True)
class Found:
    """The best layout and batch of each variant, [variant]; without one where none fits, or none meets the limits on latencies."""

    tried: Bools
    runs: Bools
    layouts: ServingLayouts  # sizes of 1 where a variant does not run
    copies: Floats  # replicas on the chips of the case
    batch: Floats
    points: Mapping[str, Floats]  # figures of the operating point; nan where there is none
    shares: Mapping[str, Floats]
    room: Ints  # pairs of the variant that hold a request in memory
    refused: Mapping[int, str]  # why no engine runs a variant in the layout that the case states
    pairs: int  # that were tried


def search_space(space: Space, limits: SearchLimits | None = None) -> Found:
    """Find the layout and batch of most throughput of every variant, within the latency limits of the case.

    Raises SpecError where the case states a layout in which no variant runs.
    """
    count, limits = len(space.variants), limits or SearchLimits()
    refused: dict[int, str] = {}
    parts = []
    for chunk in limits.within(_chunks(space, refused)):
        inner = replace(space, variants=tuple(space.variants[i] for i, _, _ in chunk))
        places = np.array([i for i, _, _ in chunk])
        parts.append((places, _search(inner, _pairs([(layouts, copies) for _, layouts, copies in chunk]))))
    if len(refused) == count:
        raise SpecError(Issue("layout", words) for words in dict.fromkeys(refused.values()))
    return _joined(count, parts, refused)


def _chunks(space: Space, refused: dict[int, str]) -> Iterator[list[tuple[int, ServingLayouts, Floats]]]:
    """Yield some variants at a time with their layouts and the replicas of each, those with the fewest changes first; fills `refused`."""
    known: dict[tuple[object, ...], tuple[ServingLayouts, Floats] | str] = {}
    chunk: list[tuple[int, ServingLayouts, Floats]] = []
    held = 0
    for i in by_changes(space):
        each = space.variants[i]
        facts, arch = space.chips[each.chip], space.shapes[each.shape].architecture
        key = (each.chip, arch.heads, arch.layers, arch.experts)
        if key not in known:
            known[key] = _layouts(replace(facts, architecture=arch))
        found = known[key]
        if isinstance(found, str):
            refused[i] = found
            continue
        chunk.append((i, *found))
        held += len(found[0])
        if held >= PAIRS_AT_ONCE:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def _joined(count: int, parts: Sequence[tuple[Ints, _Part]], refused: Mapping[int, str]) -> Found:
    """Put what was found of the parts of a space in the places of its variants."""
    tried, runs = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    tried[list(refused)] = True
    sizes = np.ones((len(SIZES), count), dtype=np.int64)
    copies, batch, room = np.zeros(count), np.full(count, np.nan), np.zeros(count, dtype=np.int64)
    points = {name: np.full(count, np.nan) for name in FIGURES}
    shares: dict[str, Floats] = {}
    for places, part in parts:
        tried[places], runs[places], room[places] = True, part.pair >= 0, part.room
        mine, pair = places[part.pair >= 0], part.pair[part.pair >= 0]
        sizes[:, mine] = [np.asarray(getattr(part.pairs.layouts, name))[pair] for name in SIZES]
        copies[mine], batch[places] = part.pairs.copies[pair], part.batch
        for name, column in points.items():
            column[places] = part.points[name]
        for name, share in part.shares.items():
            shares.setdefault(name, np.zeros(count))[places] = share
    tried_pairs = sum_of(part.pairs.variant.size for _, part in parts)
    return Found(tried, runs, ServingLayouts(*sizes), copies, batch, points, shares, room, refused, tried_pairs)


@dataclass(frozen=True, slots=True)
class _Part:
    """What was found of some variants, [variant]; `pair` is -1 where none fits, or none meets the limits."""

    pairs: Pairs
    pair: Ints
    batch: Floats
    points: Mapping[str, Floats]
    shares: Mapping[str, Floats]
    room: Ints


def _search(space: Space, pairs: Pairs) -> _Part:
    """Search the pairs of some variants at once."""
    every = np.arange(pairs.variant.size)
    rates = np.full(every.size, -np.inf)
    low, high = np.zeros(every.size), np.zeros(every.size)
    room = np.zeros(every.size, dtype=bool)
    groups = _groups(space, pairs)
    limits = limits_at_site(space.chips[0].serving.spec, 0.0)
    for group in groups:
        grid = np.concatenate(
            [np.tile(FRACTIONS, (group.rows.size, 1)), batch_grid(np.asarray(pairs.layouts.dp)[group.rows])], axis=1
        )
        column, rate, places = _best_columns(group, np.arange(group.rows.size), grid, limits, fine=False)
        last, line = grid.shape[1] - 1, np.arange(group.rows.size)
        rates[group.rows] = rate * pairs.copies[group.rows]
        low[group.rows], high[group.rows] = (grid[line, np.clip(column + step, 0, last)] for step in (-1, 1))
        room[group.rows] = places > 0.0
    chosen = _most(pairs.variant, rates, MAX_REFINED)
    reached = np.full(len(space.variants), -np.inf)
    np.maximum.at(reached, pairs.variant, rates)
    fine, batch = np.full(every.size, -np.inf), np.zeros(every.size)
    for group in groups:
        inside = np.flatnonzero(np.isin(group.rows, chosen))
        rows = group.rows[inside]
        next_larger = group.evaluate(inside, high[rows])
        able = next_larger.requests_per_s * pairs.copies[rows] >= reached[pairs.variant[rows]]
        able |= ~np.isfinite(next_larger.ttft_s)  # beyond what prefill can keep up with, throughput may fall
        inside, rows = inside[able], rows[able]
        if not rows.size:
            continue
        grid = np.geomspace(low[rows], high[rows], FINE_BATCHES, axis=1)
        column, rate, _ = _best_columns(group, inside, grid, limits, fine=True)
        fine[rows], batch[rows] = rate * pairs.copies[rows], grid[np.arange(rows.size), column]
    best = _first_most(pairs.variant, fine, rates, len(space.variants))
    points, shares = _figures(groups, best, batch, len(space.variants))
    return _Part(pairs, best, np.where(best >= 0, batch[best], np.nan), points, shares,
        np.bincount(pairs.variant[room], minlength=len(space.variants)))  # fmt: skip


# -- pairs -------------------------------------------------------------------------------------------------------------


def _pairs(of_variants: Sequence[tuple[ServingLayouts, Floats]]) -> Pairs:
    """Join the layouts of each variant, with the replicas of each."""
    columns = [np.stack([np.asarray(getattr(layouts, name)) for name in SIZES]) for layouts, _ in of_variants]
    copies = [of_each for _, of_each in of_variants]
    variant = np.repeat(np.arange(len(copies)), [of_each.size for of_each in copies])
    return Pairs(variant, ServingLayouts(*np.concatenate(columns, axis=1)), np.concatenate(copies))


def _layouts(facts: CaseFacts) -> tuple[ServingLayouts, Floats] | str:
    """List the layouts that an engine can run on the chips of the case, and the replicas of each; or say why it runs the stated one on none.

    Raises SpecError for a stated layout that is none, whatever it runs on.
    """
    try:
        found = allowed_layouts(facts, facts.system, facts.case.chips, facts.case.layout, "layout")
    except SpecError as error:
        if any(problem.path != "layout" for problem in error.problems):
            raise
        return "; ".join(problem.message for problem in error.problems)
    return found, replicas(facts, found)


@dataclass(frozen=True, slots=True)
class _Group:
    """Pairs whose closed forms branch alike: `rows` of all pairs, and their figures in columns."""

    rows: Ints
    evaluate: Callable[[Ints, Floats], ServingPoint]  # points at places in `rows`, by batch
    places: Callable[[Ints], Floats]  # requests that fit at once, by place in `rows`


def _groups(space: Space, pairs: Pairs) -> list[_Group]:
    """Group the pairs by what the closed forms branch on."""
    by_kind: dict[tuple[object, ...], list[int]] = {}
    cached = space.chips[0].serving.spec.cache is not None
    for i, variant in enumerate(space.variants):
        arch, system = space.shapes[variant.shape].architecture, space.chips[variant.chip].system
        kind = [getattr(arch, name) for name in _FLAGS] + [bool(getattr(arch, name)) for name in SWITCHES]
        by_kind.setdefault((*kind, system.chips if cached else 0), []).append(i)
    places = [np.flatnonzero(np.isin(pairs.variant, members)) for members in by_kind.values()]
    return [_group(space, pairs, rows) for rows in places if rows.size]


def _group(space: Space, pairs: Pairs, rows: Ints) -> _Group:
    variants = [space.variants[i] for i in pairs.variant[rows]]
    chip = np.array([v.chip for v in variants])
    shape, place = np.unique([v.shape for v in variants], return_inverse=True)
    arch = _stacked([space.shapes[i].architecture for i in shape], _FLAGS)
    rated, rate = np.unique(
        [PRECISIONS.index(v.precision) + len(PRECISIONS) * v.chip for v in variants], return_inverse=True
    )
    rates = _stacked([_rates(space.chips[i // len(PRECISIONS)], PRECISIONS[i % len(PRECISIONS)]) for i in rated])
    codes = np.array([PRECISIONS.index(v.precision) for v in variants])
    kv_codes = np.array(
        [PRECISIONS.index(kv_precision(space.shapes[v.shape].architecture, v.precision)) for v in variants]
    )
    constants = _stacked(
        [engine_constants(facts.serving, facts.system, facts.constants.serving) for facts in space.chips],
        ("engines", "families"),
    )
    first = space.chips[variants[0].chip]
    workload = first.serving.spec
    lengths, speculation = lengths_of(first.serving), drafting(workload.speculation)
    cache = prefix_cache(workload.cache, first.system.chips)
    layouts = pairs.layouts.take(rows)

    def of(inside: Ints) -> tuple[dict[str, Any], dict[str, Any]]:
        plain = {
            "arch": _taken(arch, place[inside]),
            "chip": _taken(rates, rate[inside]),
            "layouts": layouts.take(inside),
        }
        return plain, {
            "precisions": Precisions(codes[inside], kv_codes[inside]),
            "constants": _taken(constants, chip[inside]),
            "lengths": lengths,
        }

    def evaluate(inside: Ints, batch: Floats) -> ServingPoint:
        plain, further = of(inside)
        return aggregated(**plain, batch=batch, **further, speculation=speculation, cache=cache)

    def places(inside: Ints) -> Floats:
        plain, further = of(inside)
        held = held_bytes(plain["arch"], plain["layouts"], codes[inside], speculation)
        return np.broadcast_to(
            pool_memory(**plain, batch=1.0, held=held, **further, shared=shared_prefixes(cache))[0], inside.shape
        )

    return _Group(rows, evaluate, places)


def _rates(facts: CaseFacts, precision: str) -> ChipRates:
    return rates_of(facts.serving, facts.system, precision, facts.scaleout)


def _stacked(records: Sequence[Any], same: Sequence[str] = ()) -> Any:
    """Stack records into one whose fields are arrays, or a number where all are equal; `same`: fields that are equal in all."""
    values: dict[str, Any] = {}
    for field in fields(records[0]):
        column = [getattr(record, field.name) for record in records]
        if field.name in same:
            continue
        values[field.name] = column[0] if all(value == column[0] for value in column) else np.array(column, float)
    return replace(records[0], **values)


def _taken(record: Any, index: Ints) -> Any:
    """Take the entries at `index` of a stacked record."""
    columns = {f.name: value[index] for f in fields(record) if isinstance(value := getattr(record, f.name), np.ndarray)}
    return replace(record, **columns) if columns else record


# -- batches -----------------------------------------------------------------------------------------------------------


def _best_columns(
    group: _Group, rows: Ints, grid: Floats, limits: Mapping[str, list[tuple[str | float, float]]], fine: bool
) -> tuple[Ints, Floats, Floats]:
    """Find the batch of most throughput of each row of a rising grid; (its column, requests per second, requests that fit at once).

    The rate is minus infinity where no batch fits within the limits. `fine`: find the peak right below the batch with which prefill cannot
    keep up, too.
    """
    places = group.places(rows)
    saturated = np.zeros(rows.size, dtype=bool)  # rows in which prefill cannot keep up at a batch that was tried

    def at(lines: Ints, columns: Ints) -> Floats:
        """Requests per second, minus infinity beyond memory and limits, or where prefill cannot keep up."""
        point = group.evaluate(rows[lines], grid[lines, columns])
        keeps_up = np.broadcast_to(np.isfinite(point.ttft_s), lines.shape)
        saturated[lines[~keeps_up]] = True
        meets = np.asarray(within_slo(point, limits)) & keeps_up
        return np.where(meets, np.broadcast_to(point.requests_per_s, lines.shape), -np.inf)

    column = (grid <= places[:, None]).sum(axis=1) - 1
    rate = np.full(rows.size, -np.inf)
    tried = np.flatnonzero(column >= 0)
    rate[tried] = at(tried, column[tried])
    above = np.where(column >= 0, column, 0)  # no batch from here on meets the limits
    below, below_rate = np.full(rows.size, -1), np.full(rows.size, -np.inf)
    asked = tried[~np.isfinite(rate[tried])]
    failing = asked
    while (open_ := asked[above[asked] - below[asked] > 1]).size:
        middle = (above[open_] + below[open_]) // 2
        found = at(open_, middle)
        good = np.isfinite(found)
        below[open_[good]], below_rate[open_[good]] = middle[good], found[good]
        above[open_[~good]] = middle[~good]
    column[failing], rate[failing] = below[failing], below_rate[failing]
    known = np.flatnonzero(np.isfinite(rate) & (column > 0))
    falls = known[at(known, column[known] - 1) >= rate[known]]
    whole = np.unique(np.concatenate([falls, failing[below[failing] < 0], np.flatnonzero(saturated & fine)]))
    if whole.size:
        lines = np.repeat(whole, grid.shape[1])
        every = at(lines, np.tile(np.arange(grid.shape[1]), whole.size)).reshape(whole.size, -1)
        column[whole], rate[whole] = every.argmax(axis=1), every.max(axis=1)
    return np.maximum(column, 0), rate, places


def _most(variant: Ints, rates: Floats, count: int) -> Ints:
    """List the `count` pairs of each variant with the highest rate, without those that have none."""
    order = np.lexsort((-rates, variant))
    sorted_variant = variant[order]
    starts = np.searchsorted(sorted_variant, sorted_variant)
    rank = np.arange(order.size) - starts
    kept = order[rank < count]
    return kept[np.isfinite(rates[kept])]


def _first_most(variant: Ints, fine: Floats, coarse: Floats, count: int) -> Ints:
    """Find the pair of each variant with the highest fine rate, the better coarse one of equals; -1 where there is none."""
    found = np.full(count, -1)
    if not variant.size:
        return found
    order = np.lexsort((-coarse, -fine, variant))
    first = np.unique(variant[order], return_index=True)
    found[first[0]] = order[first[1]]
    return np.where((found >= 0) & np.isfinite(fine[found]), found, -1)


def _figures(
    groups: Sequence[_Group], best: Ints, batch: Floats, count: int
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Evaluate the chosen pairs; (figures, shares of the time), [variant]."""
    figures: dict[str, Floats] = {name: np.full(count, np.nan) for name in FIGURES}
    shares: dict[str, Floats] = {}
    of_pair = {int(pair): variant for variant, pair in enumerate(best) if pair >= 0}
    for group in groups:
        inside = np.flatnonzero(np.isin(group.rows, best[best >= 0]))
        if not inside.size:
            continue
        point = group.evaluate(inside, batch[group.rows[inside]])
        variants = np.array([of_pair[int(pair)] for pair in group.rows[inside]])
        for name in figures:
            figures[name][variants] = getattr(point, name)
        for name, share in point.shares.items():
            shares.setdefault(name, np.zeros(count))[variants] = share
    return figures, shares
