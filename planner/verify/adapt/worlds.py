"""Draw worlds for the replay of an adaptive plan from the distributions that spec and calibration state, by a sampler of the checks' own.

A further uncertain quantity is a further field of `Worlds`, drawn in `draw_worlds`, and read where the replay prices or dispatches.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from catalog.units import YEAR_S
from models.arrays import Floats
from models.statistics.intervals import tier_of
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.intervals import Calibration
from planner.spec.load.forecast import DemandForecast, Estimates, Launch, added_share
from planner.spec.requirements.adapt import Adapt
from planner.verify.adapt.cut import from_start

LATENCIES_AND_RATE = ("tpot", "ttft", "throughput")
NETWORKS = ("dense", "moe")
LIKELY = 0.5  # probability from which a plan counts with a launch
YEAR_TOL = 1e-9


@dataclass(frozen=True, slots=True)
class Worlds:
    """Factors by world: on planned demand [world, window], and measured over predicted by chip and figure [world]."""

    growth: Mapping[str, Floats]
    errors: Mapping[str, Mapping[str, Floats]]
    count: int


def draw_worlds(problem: ResolvedSpec, asked: Adapt, count: int, seed: int) -> Worlds:
    """Draw worlds: errors of one chip go together, as in one run; chips and workloads are independent."""
    random = np.random.default_rng(seed)
    growth = {}
    for workload in problem.serving:
        forecast = workload.spec.demand.forecast
        if forecast is None:
            level = 1.0 + asked.demand * random.uniform(-1.0, 1.0, count)
            growth[workload.name] = np.tile(level[:, None], problem.calendar.windows)
        else:
            growth[workload.name] = _over_plan(problem, workload, forecast, random, count)
    errors: dict[str, dict[str, Floats]] = {}
    for chip in sorted({system.chip for system in problem.systems.values() if system.chip}) if asked.times else ():
        errors[chip] = {}
        if problem.serving:
            known = problem.constants.measured_serving
            levels = _levels_together(random, known, count)
            errors[chip] |= {name: error(known, chip, name, levels[:, i]) for i, name in enumerate(LATENCIES_AND_RATE)}
        if problem.training:
            level = random.uniform(size=count)
            errors[chip] |= {name: error(problem.constants.measured_training, chip, name, level) for name in NETWORKS}
    return Worlds(growth, errors, count)


def _levels_together(random: np.random.Generator, known: Calibration, count: int) -> Floats:
    """Draw levels [world, figure] with the rank correlations of the errors of held-out runs, from a normal copula."""
    assert known.rank_correlation is not None
    normal = 2.0 * np.sin(np.pi / 6.0 * np.asarray(known.rank_correlation, dtype=float))
    values, vectors = np.linalg.eigh(normal)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    root /= np.sqrt((root**2).sum(axis=1, keepdims=True))  # unit variances
    levels: Floats = ndtr(random.standard_normal((count, len(values))) @ root.T)
    return levels


def error(known: Calibration, chip: str, figure: str, level: Floats) -> Floats:
    """Return measured over predicted at levels: log-normal on a chip with runs of its own, otherwise the table of runs as unlike as those on this chip."""
    own = [spread for (other, _, name), spread in known.spreads.items() if (other, name) == (chip, figure)]
    if own and chip in known.chips:
        return np.asarray(np.exp(ndtri(level) * max(own)))
    anchored = any((other, name) == (chip, figure) for other, _, name in known.anchors)
    table = known.residuals[tier_of(anchored, chip in known.chips, chip in known.relatives), figure]
    logarithm = np.interp(level, known.levels, np.log(np.asarray(table)))
    return np.asarray(np.exp(logarithm * known.narrowed.get((chip, figure), 1.0)))


def triangle(level: Floats, low: float, middle: float, high: float) -> Floats:
    """Invert the triangular distribution with its mode in the middle."""
    if high <= low:
        return np.full(len(level), middle)
    turn = (middle - low) / (high - low)
    rising = low + np.sqrt(np.maximum(level, 0.0) * (high - low) * (middle - low))
    falling = high - np.sqrt(np.maximum(1.0 - level, 0.0) * (high - low) * (high - middle))
    return np.asarray(np.where(level < turn, rising, falling))


def _estimate(random: np.random.Generator, known: Estimates | None, otherwise: float, count: int) -> Floats:
    if known is None:
        return np.full(count, otherwise)
    middle = float(known.typical)  # type: ignore[attr-defined]
    low, high = (middle if end is None else float(end) for end in (known.low, known.high))  # type: ignore[attr-defined]
    return triangle(random.uniform(size=count), low, middle, high)


Event = tuple[Floats, Floats, Floats]
"""A launch by world: year, factor, and addition as a share of the stated demand; the year is infinite where it does not happen."""


def _over_plan(
    problem: ResolvedSpec, workload: ServingFacts, forecast: DemandForecast, random: np.random.Generator, count: int
) -> Floats:
    """Draw paths of a forecast; return the most of each in a window over the planned demand of that window, [world, window]."""
    start = problem.spec.horizon.start
    demand, one = workload.spec.demand, np.ones(1)
    growth = _estimate(random, forecast.growth, 0.0, count)
    level = _estimate(random, forecast.level, 1.0, count)
    events: list[Event] = []
    planned: list[Event] = []
    for launch in forecast.launches:
        low, middle, high = (from_start(start, at) for at in _moments(launch))
        years = np.maximum(triangle(random.uniform(size=count), *(max(at, 0.0) for at in (low, middle, high))), 0.0)
        happens = random.uniform(size=count) < launch.probability
        added = added_share(launch, *demand.stated)
        addition = triangle(random.uniform(size=count), *added)
        events.append(
            (np.where(happens, years / YEAR_S, np.inf), _estimate(random, launch.factor, 1.0, count), addition)
        )
        year = max(middle, 0.0) / YEAR_S if launch.probability >= LIKELY else np.inf
        factor = 1.0 if launch.factor is None else float(launch.factor.typical)
        planned.append((one * year, one * factor, one * added[1]))
    typical = one * (0.0 if forecast.growth is None else forecast.growth.typical)
    level_typical = one * (1.0 if forecast.level is None else forecast.level.typical)
    edges = [float(edge) / YEAR_S for edge in problem.calendar.edges_s]
    columns = []
    for begin, end in itertools.pairwise(edges):
        most = _demand_at(np.full(count, begin), level, growth, events)
        whole = np.arange(np.ceil(begin), np.ceil(end - YEAR_TOL))
        for moment in (*(np.full(count, float(year)) for year in whole), *(years for years, *_ in events)):
            inside = (moment >= begin) & (moment < end - YEAR_TOL)
            if inside.any():
                at = np.where(inside, moment, begin)
                most = np.maximum(most, _demand_at(at, level, growth, events))
        columns.append(most / _demand_at(one * begin, level_typical, typical, planned))
    return np.array(columns).T


def _moments(launch: Launch) -> tuple:  # type: ignore[type-arg]
    return tuple(launch.date if at is None else at for at in (launch.earliest, launch.date, launch.latest))


def _demand_at(years: Floats, level: Floats, growth: Floats, events: Sequence[Event]) -> Floats:
    """Compute demand over the stated demand at a year of each world: growth in whole years, then launches so far."""
    found = level * (1.0 + growth) ** np.floor(years + YEAR_TOL)
    added = np.zeros(len(years))
    for at, factor, addition in events:
        there = at <= years + YEAR_TOL
        found = found * np.where(there, factor, 1.0)
        added = added + np.where(there, addition, 0.0)
    return np.asarray(found + added)
