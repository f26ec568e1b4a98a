"""Operating points with separate pools for prefill and decode, on one kind of system or on two.

Layouts of both sides come from the grids of `planner.serving_points`; the closed forms are in `models.disaggregation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catalog.units import MICRO
from models.batching import BOUNDS, within_slo
from models.decode import ServingLayouts
from models.disaggregation import DisaggregatedPoint, disaggregated, worker_ratios
from models.power import serving_power_w
from planner.lots import Lot
from planner.points import Point, Use
from planner.problem import Problem, ServingFacts, SystemFacts
from planner.serving_points import (
    BATCHES,
    Grid,
    at,
    chips_of,
    kv_precision,
    latencies,
    layout_of,
    limits_at_site,
    mfu,
)

MOST_WORKERS = 4  # of each kind in one group; a plan takes any number of groups
LINK_START_S = 5 * MICRO


@dataclass(frozen=True, slots=True)
class PairChoice:
    """A group of workers that goes on; arrays of `found` are indexed by `index`."""

    prefill: Grid
    decode: Grid
    prefill_layout: int
    decode_layout: int
    batch: int
    workers: tuple[int, int]
    found: DisaggregatedPoint
    index: tuple[int, ...]


def pairs_of(lots: Sequence[Lot]) -> Iterator[tuple[Lot, Lot]]:
    """(prefill, decode) lots of one site that share a network: our own of one design, or one rented kind by itself."""
    for first in lots:
        for second in lots:
            shared = first is second or (first.owned and second.owned and first.fabric == second.fabric)
            if shared and min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) > 0:
                yield first, second


def evaluate(
    workload: ServingFacts,
    systems: tuple[SystemFacts, SystemFacts],
    scaleouts: tuple[float, float],
    layouts: tuple[ServingLayouts, ServingLayouts],
    batch: np.ndarray | float,
    workers: tuple[np.ndarray | int, np.ndarray | int],
    precision: str,
    problem: Problem,
) -> DisaggregatedPoint:
    """Groups of prefill and decode workers; arrays broadcast, one group gives plain numbers."""
    lengths = workload.spec.lengths
    return disaggregated(
        workload.architecture, systems[0].rates(precision, scaleouts[0]), systems[1].rates(precision, scaleouts[1]), *layouts, batch, *workers,
        link_bytes_per_s=min(scaleouts), link_start_s=LINK_START_S,
        input_tokens=float(lengths.input), output_tokens=float(lengths.output),
        input_scv=lengths.input_cv**2, output_scv=lengths.output_cv**2,
        weight_precision=precision, kv_precision=kv_precision(precision), constants=problem.serving_constants,
    )  # fmt: skip


def choose(
    workload: ServingFacts, prefills: Sequence[Grid], decodes: Sequence[Grid], first: Lot, second: Lot, allowance_s: float, problem: Problem
) -> tuple[list[PairChoice], int]:
    """The group that serves most per system of both kinds, at each precision; and how many were evaluated.

    Prefill workers are the layouts of least occupied systems per prompt; all decode layouts, batches and ratios are tried.
    """
    limits = limits_at_site(workload.spec.slo, allowance_s)
    n_p, n_d = worker_ratios(MOST_WORKERS)
    chosen, evaluated = [], 0
    for prefill in prefills:
        decode = next((grid for grid in decodes if grid.precision == prefill.precision), None)
        if decode is None:
            continue
        index = _lean_prefill(prefill)
        found = evaluate(
            workload, (first.system, second.system), (first.scaleout_bytes_per_s, second.scaleout_bytes_per_s),
            (prefill.layouts.take((index, None, None, None)), decode.layouts.take((slice(None), None, None))),
            BATCHES[:, None], (n_p, n_d), prefill.precision, problem,
        )  # fmt: skip
        rate = np.where(within_slo(found.point, limits).satisfied, found.point.requests_per_s, 0.0)
        evaluated += rate.size
        systems = prefill.systems[index][:, None, None, None] * n_p + decode.systems[:, None, None] * n_d
        best = np.unravel_index(np.argmax(rate / systems), rate.shape)
        if rate[best] > 0:
            p, d, b, r = map(int, best)
            chosen.append(PairChoice(prefill, decode, int(index[p]), d, b, (int(n_p[r]), int(n_d[r])), found, (p, d, b, r)))
    return chosen, evaluated


def _lean_prefill(grid: Grid, most: int = 3) -> np.ndarray:
    """Layouts whose prompts occupy the fewest system-seconds, a few of them: short latency may need a wider one."""
    occupied = np.asarray(grid.point.prefill_s)[:, 0] * grid.systems
    fits = np.asarray(grid.point.fits)[:, 0]
    order = np.argsort(np.where(fits, occupied, np.inf), kind="stable")
    kept = order[: max(min(most, int(fits.sum())), 1)]
    return np.sort(kept)


def pool_power_w(shares: Mapping[str, float], system: SystemFacts, problem: Problem) -> float:
    """IT power above idle of one system of a pool [W]; what is left of the shares is idle."""
    bounds = {name: sum(shares.get(part, 0.0) for part in parts) for name, parts in BOUNDS.items()}
    return float(serving_power_w(bounds, system.idle_w, system.power_w, problem.power_constants)) - system.idle_w


def as_point(workload: ServingFacts, first: Lot, second: Lot, choice: PairChoice, problem: Problem) -> Point:
    found, shape, index = choice.found, choice.found.point.requests_per_s.shape, choice.index
    sides = (
        ("prefill", first, choice.prefill, choice.prefill_layout, choice.workers[0], 1, at(found.prefill_shares, shape, index)),
        ("decode", second, choice.decode, choice.decode_layout, choice.workers[1], int(BATCHES[choice.batch]), at(found.point.shares, shape, index)),
    )
    uses = []
    for role, lot, grid, layout, workers, batch, shares in sides:
        systems = float(grid.systems[layout]) * workers
        extra = systems * pool_power_w(shares, lot.system, problem)
        uses.append(Use(role, lot, systems, extra, grid.precision, layout_of(grid.layouts, layout), batch, workers))
    rate = float(found.point.requests_per_s[index])
    return Point(
        workload=workload,
        uses=tuple(uses),
        capacity=rate,
        latency=at(latencies(found.point, workload.spec.slo), shape, index),
        breakdown=sides[1][-1],
        mfu=mfu(workload, rate, [(use.lot.system.rates(use.precision), chips_of(use.layout) * use.workers) for use in uses]),
        memory_bytes=at({"": found.point.memory_bytes}, shape, index)[""],
    )


def not_replaceable(pairs: Sequence[Point], alone: Sequence[Point]) -> list[Point]:
    """Pairs that serve more than the same systems would with one pool each; a mere saving of power is not looked at."""
    best: dict[int, float] = {}
    for point in alone:
        use = point.uses[0]
        best[id(use.lot)] = max(best.get(id(use.lot), 0.0), point.capacity / use.systems)
    return [pair for pair in pairs if pair.capacity > (1 + 1e-9) * sum(best.get(id(use.lot), 0.0) * use.systems for use in pair.uses)]
