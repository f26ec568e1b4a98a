"""Search over the ways to serve one case: layouts x batch in one pool, layouts x workers x batch in two, under a stated load.

The closed forms are in `models`; how an answer is told is in `planner.estimate.answer`. Candidates of plans are in `planner.candidates.serving`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from catalog.units import MEGA
from models.serving.closed_loop import closed_loop
from models.serving.closed_pools import closed_pools
from models.serving.continuous_batching import ServingPoint
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint
from models.serving.percentiles import latency_s, within_slo
from planner.candidates.disaggregated import efficient_prefill_layouts
from planner.candidates.serving import Grid, serving_layouts
from planner.errors import Problem, SpecError, close_matches
from planner.estimate.case import CaseFacts
from planner.evaluate import disaggregated, serving
from planner.evaluate.serving import (
    BATCHES,
    engine_constants,
    lengths_of,
    limits_at_site,
    precisions,
    systems_per_replica,
)
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.problem.facts import SystemFacts
from planner.spec.case import CasePool

BATCH_GRID = np.concatenate([np.geomspace(1 / 64, 0.75, 10), BATCHES])  # below one request at a time, for small loads
STAGES = (1, 2, 4)
MOST_SPLITS = 24  # numbers of prefill workers that are tried for a pair of layouts
MOST_REFINED, FINE = 8, 49  # ways, and batches of each, that are tried between entries of the grid
HALVINGS = 40
MAX, RATE, CONCURRENCY = "max", "requests_per_s", "concurrency"
SIZES = tuple(field.name for field in fields(ServingLayouts))


@dataclass(frozen=True, slots=True)
class Load:
    """What the whole case has to carry: "max", or so many "requests_per_s" or clients ("concurrency")."""

    kind: str
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """One way to serve: `copies` of a replica, or one group of two pools; `point` is of one of them, in plain numbers."""

    precision: str
    systems: tuple[SystemFacts, ...]
    layouts: tuple[ServingLayouts, ...]  # of the one pool, or of prefill and decode workers
    workers: tuple[int, ...]
    copies: float  # that carry load
    chips: int  # in use
    batch: float
    point: ServingPoint
    pools: DisaggregatedPoint | None
    meets: bool  # all limits on latencies
    surplus_wait_s: float = 0.0  # of clients beyond what runs at once; counted in the point's time to first token

    @property
    def requests_per_s(self) -> float:
        """Of the whole case."""
        return float(self.point.requests_per_s) * self.copies

    def latency(self, metric: str, quantile: float | str) -> float:
        return float(latency_s(self.point, metric, quantile))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best way, or None; and how many operating points there were, fitted, and met the limits."""

    best: Way | None
    points: int
    fitting: int
    meeting: int


def load_of(facts: CaseFacts) -> Load:
    """The load that the case states: its `load`, or its demand, or the most that it can carry."""
    case = facts.case
    if case.load is not None:
        stated = [(kind, value) for kind in (RATE, CONCURRENCY) if (value := getattr(case.load, kind)) is not None]
        return Load(*stated[0]) if stated else Load(MAX)
    demand = case.workload.demand
    if demand is None:
        return Load(MAX)
    rate = (
        demand.requests_per_s
        if demand.requests_per_s is not None
        else demand.output_tokens / case.workload.lengths.output
    )
    return Load(RATE, rate) if rate else Load(MAX)


def able(facts: CaseFacts, systems: Sequence[SystemFacts]) -> list[str]:
    """The asked precisions that all systems have. Raises SpecError where there is none."""
    asked = facts.case.workload.precision
    found = [precision for precision in asked if all(precision in system.flop_per_s for system in systems)]
    if not found:
        chips = " and ".join(dict.fromkeys(f"{system.chip} ({', '.join(system.flop_per_s)})" for system in systems))
        raise SpecError(
            [Problem("workload.precision", f"expected one that these chips have: {chips}; got {', '.join(asked)}")]
        )
    return found


# -- one pool ----------------------------------------------------------------------------------------------------------


def one_pool(facts: CaseFacts, load: Load, asked: Mapping[str, int] | None) -> Outcome:
    """The best single pool on the chips of the case, over its precisions and layouts, or for the `asked` layout."""
    system = facts.system
    layouts = _layouts(facts, system, facts.case.chips, asked, "layout")
    return _best(_one_pool(facts, load, layouts, precision) for precision in able(facts, [system]))


def _one_pool(facts: CaseFacts, load: Load, layouts: ServingLayouts, precision: str) -> Outcome:
    if not len(layouts):
        return Outcome(None, 0, 0, 0)
    system, copies = facts.system, _copies(facts, layouts)

    def evaluate(rows: Any, batch: Any) -> ServingPoint:
        return serving.evaluate(
            facts.serving,
            system,
            facts.scaleout_bytes_per_s,
            layouts.take(rows),
            batch,
            precision,
            facts.constants.serving,
        )

    if load.kind == CONCURRENCY:
        return _closed(facts, load, layouts, precision, copies, evaluate)
    picked = _pick(facts, load, copies, evaluate)
    if picked.row is None:
        return Outcome(None, *picked.counts)
    row, batch = picked.row, picked.batch
    layout, point = layouts.take(row), evaluate(row, batch)
    way = Way(
        precision, (system,), (layout,), (1,), float(copies[row]), int(copies[row] * layout.chips), batch, point, None,
        _meets(facts, point),
    )  # fmt: skip
    return Outcome(way, *picked.counts)


def _closed(
    facts: CaseFacts, load: Load, layouts: ServingLayouts, precision: str, copies: np.ndarray, evaluate: Any
) -> Outcome:
    """Clients that each wait for their answer: the means of the closed loop, the spread of open arrivals at the same batch."""
    workload, system = facts.case.workload, facts.system
    at_work = np.minimum(copies, load.value)
    clients = load.value / at_work
    loop = closed_loop(
        facts.architecture, system.rates(precision, facts.scaleout_bytes_per_s), layouts, clients,
        lengths=lengths_of(facts.serving), precisions=precisions(precision),
        constants=engine_constants(facts.serving, system, facts.constants.serving),
        speculation=drafting(workload.speculation), cache=prefix_cache(workload.cache, system.chips),
    )  # fmt: skip
    point = evaluate(slice(None), loop.batch)
    runs = np.asarray(point.slots) >= 1.0
    surplus = np.maximum(clients - np.maximum(point.slots, 1.0), 0.0) / loop.requests_per_s
    queue = np.maximum(loop.ttft_s - surplus - point.unloaded_ttft_s, 0.0)
    met = replace(
        point, fits=runs, requests_per_s=loop.requests_per_s, tpot_s=loop.tpot_s, unloaded_ttft_s=loop.ttft_s - queue,
        prefill_wait_s=queue, slot_wait_s=np.zeros(len(layouts)), slot_wait_probability=np.zeros(len(layouts)),
    )  # fmt: skip
    row, *counts = _busiest(facts, met, at_work)
    if row is None:
        return Outcome(None, *counts)
    whole = (len(layouts),)
    way = Way(
        precision, (system,), (layouts.take(row),), (1,), float(at_work[row]), int(copies[row] * layouts.take(row).chips),
        float(loop.batch[row]), (point := _entry(met, whole, (row,))), None, _meets(facts, point), float(surplus[row]),
    )  # fmt: skip
    return Outcome(way, *counts)


def _copies(facts: CaseFacts, layouts: ServingLayouts) -> np.ndarray:
    """Replicas on the chips of the case; a replica inside a system does not reach into the next."""
    system, chips = facts.system, facts.case.chips
    whole, rest = divmod(chips, system.chips)
    each = np.asarray(layouts.chips)
    inside = whole * (system.chips // np.maximum(each, 1)) + rest // each
    across = np.floor(whole / systems_per_replica(system, each, np.asarray(layouts.pp)) + 1e-9)
    return np.where((each <= system.chips) & (np.asarray(layouts.pp) == 1), inside, across).astype(float)


# -- two pools ---------------------------------------------------------------------------------------------------------


def two_pools(facts: CaseFacts, load: Load) -> Outcome:
    """The best prefill and decode pools on the chips of the case, within what it states of them."""
    if facts.scaleout_bytes_per_s <= 0:
        return Outcome(None, 0, 0, 0)
    return _best(_two_pools(facts, load, precision) for precision in able(facts, facts.sides))


def _two_pools(facts: CaseFacts, load: Load, precision: str) -> Outcome:
    case, constants = facts.case, facts.constants.serving
    stated = (case.pools.prefill, case.pools.decode) if case.pools else (CasePool(), CasePool())
    sides = [
        _layouts(facts, system, side.chips or case.chips, side.layout, f"pools.{name}.layout")
        for system, side, name in zip(facts.sides, stated, ("prefill", "decode"))
    ]
    if not all(len(side) for side in sides):
        return Outcome(None, 0, 0, 0)
    if stated[0].layout is None:
        grid = Grid(
            facts.sides[0], precision, sides[0], systems_per_replica(facts.sides[0], np.asarray(sides[0].chips), np.asarray(sides[0].pp)),
            serving.evaluate(
                facts.serving, facts.sides[0], facts.scaleout_bytes_per_s, sides[0].take((slice(None), None)), np.ones((1, 1)), precision, constants
            ),
        )  # fmt: skip
        sides[0] = sides[0].take(efficient_prefill_layouts(grid, limits_at_site(case.workload.slo, 0.0), constants))
    first, second, n_p, n_d = _splits(case.chips, sides, stated)
    if not n_p.size:
        return Outcome(None, 0, 0, 0)

    def evaluate(rows: Any, batch: Any) -> DisaggregatedPoint:
        return disaggregated.evaluate(
            facts.serving, facts.sides, (facts.scaleout_bytes_per_s,) * 2, (sides[0].take(first[rows]), sides[1].take(second[rows])),
            batch, (n_p[rows], n_d[rows]), precision, constants,
        )  # fmt: skip

    if load.kind == CONCURRENCY:
        closed = lambda rows, clients: closed_pools(lambda batch: evaluate(rows, batch), clients, constants)
        point = closed(np.arange(n_p.size), np.full(n_p.size, load.value))[0].point
        row, *counts = _busiest(facts, point, np.ones(n_p.size))
        if row is None:
            return Outcome(None, *counts)
        found, surplus = closed(row, load.value)
    else:
        picked = _pick(facts, load, np.ones(n_p.size), lambda rows, batch: evaluate(rows, batch).point)
        if picked.row is None:
            return Outcome(None, *picked.counts)
        row, counts = picked.row, picked.counts
        found, surplus = evaluate(row, picked.batch), 0.0
    way = Way(
        precision, facts.sides, (sides[0].take(first[row]), sides[1].take(second[row])), (int(n_p[row]), int(n_d[row])), 1.0,
        int(found.chips), float(found.point.batch), found.point, found, _meets(facts, found.point), float(surplus),
    )  # fmt: skip
    return Outcome(way, *counts)


def _splits(chips: int, sides: Sequence[ServingLayouts], stated: Sequence[CasePool]) -> tuple[np.ndarray, ...]:
    """(prefill layout, decode layout, prefill workers, decode workers) of every split of the chips that is tried."""
    found: list[tuple[int, int, int, int]] = []
    each = [np.asarray(side.chips) for side in sides]
    for i, first in enumerate(each[0]):
        for j, second in enumerate(each[1]):
            most = (stated[0].chips or chips - second) // first
            counts = (
                [stated[0].workers]
                if stated[0].workers
                else [most]
                if stated[0].chips
                else np.geomspace(1, max(most, 1), MOST_SPLITS)
            )
            for n_p in sorted({round(n) for n in counts}):
                left = stated[1].chips or chips - n_p * first
                n_d = stated[1].workers or left // second
                if n_p >= 1 and n_d >= 1 and n_p <= most and n_d * second <= left:
                    found.append((i, j, n_p, int(n_d)))
    columns = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return tuple(columns)


# -- both --------------------------------------------------------------------------------------------------------------


def _layouts(
    facts: CaseFacts, system: SystemFacts, chips: int, asked: Mapping[str, int] | None, path: str
) -> ServingLayouts:
    """The legal layouts on at most so many chips, or the one that the case states. Raises SpecError for an impossible one."""
    arch, network = facts.architecture, facts.scaleout_bytes_per_s > 0
    if asked is None:
        every = serving_layouts(arch, system, STAGES if network else (1,))
        return every.take(np.flatnonzero(np.asarray(every.chips) <= chips))
    if unknown := [name for name in asked if name not in SIZES]:
        raise SpecError(
            Problem(f"{path}.{name}", f"unknown size{close_matches(name, SIZES)}; known here: {', '.join(SIZES)}")
            for name in unknown
        )
    if small := [name for name, size in asked.items() if size < 1]:
        raise SpecError(Problem(f"{path}.{name}", "expected a whole number of at least 1") for name in small)
    sizes = {name: asked.get(name, 1) for name in SIZES}
    if "ep" not in asked and sizes["dp"] > 1:
        sizes["ep"] = sizes["tp"] * sizes["dp"]
    legal = serving_layouts(arch, system, sorted({1, sizes["pp"]}) if network else (1,))
    match = np.logical_and.reduce([np.asarray(getattr(legal, name)) == size for name, size in sizes.items()])
    if not match.any():
        words = (
            f"tp divides the {arch.heads} heads, tp x dp stays in the scale-up domain of {system.scaleup_chips} chips and are powers of two, dp above 1 needs experts, "
            "ep is 1, tp or tp x dp and divides the experts, pp above 1 needs a network and whole domains"
        )
        raise SpecError([Problem(path, f"no engine would run it on {system.name}: {words}")])
    if int(np.prod([sizes[name] for name in ("tp", "pp", "dp")])) > chips:
        raise SpecError([Problem(path, f"tp x pp x dp is more than the {chips} chips")])
    return legal.take(np.flatnonzero(match)[:1])


@dataclass(frozen=True, slots=True)
class _Picked:
    row: int | None
    batch: float
    counts: tuple[int, int, int]  # points, fitting, meeting


def _pick(facts: CaseFacts, load: Load, copies: np.ndarray, evaluate: Callable[[Any, Any], ServingPoint]) -> _Picked:
    """The way, of as many as there are `copies`, that serves most or carries the rate best, and its batch.

    All ways are tried on a coarse grid, the best few between its entries, and the batch of the best is then made exact.
    """
    every = np.arange(copies.size)
    coarse = evaluate(every[:, None], BATCH_GRID)
    score, column, counts = _scores(facts, load, coarse, copies[:, None])
    best = every[np.isfinite(score)]
    if not best.size:
        return _Picked(None, 0.0, counts)
    best = best[np.argsort(-score[best], kind="stable")][:MOST_REFINED]
    low, high = (BATCH_GRID[np.clip(column[best] + step, 0, BATCH_GRID.size - 1)] for step in (-1, 1))
    between = np.geomspace(low, high, FINE, axis=1)
    score, column, _ = _scores(facts, load, evaluate(best[:, None], between), copies[best][:, None])
    if not np.isfinite(score).any():
        return _Picked(None, 0.0, counts)
    winner = int(score.argmax())
    row, grid, place = int(best[winner]), between[winner], int(column[winner])
    if load.kind == MAX:
        return _Picked(row, float(grid[place]), counts)
    return _Picked(
        row, _at_load(lambda b: float(evaluate(row, b).requests_per_s * copies[row]), load.value, grid, place), counts
    )


def _scores(
    facts: CaseFacts, load: Load, point: ServingPoint, copies: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[int, int, int]]:
    """(score, place of the batch) of each way, the score minus infinity where it cannot carry the load; and the counts.

    Within the limits comes before all else; then the rate or, where that is given, the mean time end to end.
    """
    total = np.asarray(point.requests_per_s) * copies
    shape = total.shape
    able = np.broadcast_to(np.asarray(point.fits) & np.isfinite(point.ttft_s), shape)
    meets = able & np.asarray(within_slo(point, limits_at_site(facts.case.workload.slo, 0.0)))
    counts = total.size, int(np.count_nonzero(np.broadcast_to(point.fits, shape))), int(meets.sum())
    rows = np.arange(shape[0])
    if load.kind == MAX:
        rates = np.where(meets, total, -np.inf)
        return rates.max(axis=1), rates.argmax(axis=1), counts
    enough = able & (total >= load.value)
    place = enough.argmax(axis=1)
    able_to = enough[rows, place]
    good = able_to & meets[rows, place]
    score = 1.0 / (1.0 + np.broadcast_to(latency_s(point, "e2e", "mean"), shape)[rows, place])
    return np.where(able_to, score + good, -np.inf), place, counts


def _busiest(facts: CaseFacts, point: ServingPoint, copies: np.ndarray) -> tuple[int | None, int, int, int]:
    """Which of the ways that clients keep busy serves most, within the limits if that can be; and the counts."""
    able = np.asarray(point.fits) & np.isfinite(point.ttft_s)
    meets = able & np.asarray(within_slo(point, limits_at_site(facts.case.workload.slo, 0.0)))
    rate = np.where(able, point.requests_per_s * copies, -np.inf)
    best = int(np.lexsort((-rate, ~meets))[0])
    return best if able[best] else None, able.size, int(able.sum()), int(meets.sum())


def _at_load(carried: Callable[[float], float], wanted: float, grid: np.ndarray, column: int) -> float:
    """The batch that carries just so much, between two entries of the grid; its last entry where that is too much."""
    low, high = (grid[column - 1] if column else grid[0] / MEGA), grid[column]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if carried(middle) < wanted else (low, middle)
    return float(high)


def _meets(facts: CaseFacts, point: ServingPoint) -> bool:
    return bool(within_slo(point, limits_at_site(facts.case.workload.slo, 0.0)))


def _entry(point: ServingPoint, shape: tuple[int, ...], index: tuple[int, ...]) -> ServingPoint:
    """One entry of a point of arrays."""
    one = lambda value: np.broadcast_to(value, shape)[index][()]
    values = {f.name: one(getattr(point, f.name)) for f in fields(point) if f.name != "shares"}
    return replace(point, **values, shares={name: one(share) for name, share in point.shares.items()})


def better(load: Load, one: Way | None, other: Way | None) -> bool:
    """Whether `one` carries the load better than `other`."""
    if one is None or other is None:
        return one is not None
    return _merit(load, one) > _merit(load, other)


def _merit(load: Load, way: Way) -> tuple[bool, float]:
    return way.meets, -way.latency("e2e", "mean") if load.kind == RATE else way.requests_per_s


def _best(outcomes: Iterator[Outcome]) -> Outcome:
    found = list(outcomes)
    points, fitting, meeting = (
        sum(getattr(outcome, name) for outcome in found) for name in ("points", "fitting", "meeting")
    )
    ways = [outcome.best for outcome in found if outcome.best is not None]
    # Precisions of one case carry one load, so that any measure of it compares them.
    best = max(ways, key=lambda way: (way.meets, way.requests_per_s, -way.latency("e2e", "mean"))) if ways else None
    return Outcome(best, points, fitting, meeting)
