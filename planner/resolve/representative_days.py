"""Choose representative days of a year by k-medoids; the days of the true peaks are kept besides.

They are chosen once for the year: a day is represented by one of its own stretch, the days that lie in the same windows, so that jobs,
phases and deliveries add no days of their own but where a stretch would have none.
A plan on these days solves the reduced problem; `planner.solving.full_year_dispatch` runs it through all hours of the year.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from catalog.units import DAY_S, YEAR_S
from models.arrays import Bools, Floats, Ints
from planner.problem.calendar import DAYS_PER_YEAR, SLOTS_PER_DAY, build_calendar
from planner.problem.facts import ResolvedSpec, ServingFacts, SiteFacts

SERIES_TOL = 1e-9  # series that differ less between days, relative to their size, have no peak day


def representative(problem: ResolvedSpec, days: int) -> ResolvedSpec:
    """Reduce the problem of a full year to `days` medoids of its days, and the days of the peaks of price and demand.

    Each medoid represents the days nearest to it in its stretch; there are more than `days` where there are more stretches. Every series
    keeps its mean over each stretch: demand and output of plants on the medoid days are scaled for that, prices and carbon shifted.
    """
    by_day = [series.reshape(DAYS_PER_YEAR, SLOTS_PER_DAY) for series in _series(problem)]
    peaks = sorted({day for series in _peaking(problem) if (day := _peak_day(series)) is not None})
    others = np.setdiff1d(np.arange(DAYS_PER_YEAR), peaks)
    if days >= len(others):
        return problem
    calendar, money = problem.calendar, problem.economics
    stretch = stretches(calendar.edges_s, money.years)
    apart, count = _apart(distances(by_day, others), stretch[others]), max(days, len(np.unique(stretch[others])))
    medoids, nearest = k_medoids(apart, min(count, len(others)))
    kept = np.sort(np.concatenate([others[medoids], np.array(peaks, dtype=int)]))
    stands_for = np.arange(DAYS_PER_YEAR)
    stands_for[others] = others[medoids][nearest]
    reduced = _Reduced(kept, np.searchsorted(kept, stands_for), np.isin(kept, peaks), stretch)
    return replace(
        problem,
        calendar=build_calendar(
            money.years,
            money.discount_rate,
            calendar.edges_s[1:-1],
            calendar.start,
            stands_for,
            money.payments_per_year,
        ),
        sites=tuple(reduced.site(site) for site in problem.sites),
        serving=tuple(reduced.workload(workload) for workload in problem.serving),
    )


def stretches(edges_s: Floats, years: int) -> Ints:
    """Number the stretches of the year [365]: days of equal number lie in the same windows in every year of the horizon.

    A day that a border cuts belongs where its noon does.

    >>> np.unique(stretches(np.array([0.0, 90.0, 500.0, 730.0]) * DAY_S, 2), return_counts=True)[1].tolist()
    [90, 45, 230]
    """
    noon_s = (np.arange(DAYS_PER_YEAR) + 0.5) * DAY_S
    windows = np.searchsorted(edges_s, noon_s[:, None] + YEAR_S * np.arange(years), side="right")
    return np.unique(windows, axis=0, return_inverse=True)[1].reshape(-1)


def _apart(distance: Floats, stretch: Ints) -> Floats:
    """Put days [day, day] of different stretches farther apart than all days of one can be together, so that none represents another."""
    far = (float(distance.max(initial=0.0)) + 1.0) * len(distance)
    return np.where(stretch[:, None] == stretch[None, :], distance, far)


def _series(problem: ResolvedSpec) -> Iterator[Floats]:
    """Yield every series of the problem over its 8,760 hours."""
    for site in problem.sites:
        yield site.price_per_j
        yield site.carbon_kg_per_j
        yield from (contract.share for contract in (site.electricity.contracts if site.electricity else ()))
    for workload in problem.demands():
        yield from workload.requests_per_s


def _peaking(problem: ResolvedSpec) -> Iterator[Floats]:
    """Yield the series whose peak days are kept: prices, and demand by origin and in total."""
    yield from (site.price_per_j for site in problem.sites)
    for workload in problem.demands():
        yield from workload.requests_per_s
        yield workload.requests_per_s.sum(axis=0)


def _peak_day(series: Floats) -> int | None:
    """Return the day of the largest hour; None where all days reach it."""
    highest = series.reshape(DAYS_PER_YEAR, SLOTS_PER_DAY).max(axis=1)
    top = highest.max()
    return None if top - highest.min() <= SERIES_TOL * abs(top) else int(np.argmax(highest))


def distances(by_day: list[Floats], days: Ints) -> Floats:
    """Compute the Euclidean distances [day, day] over all series, each in units of its own standard deviation."""
    varied = [(series, spread) for series in by_day if (spread := series.std()) > SERIES_TOL * np.abs(series).max()]
    features = np.hstack(
        [(series[days] - series.mean()) / spread for series, spread in varied] or [np.zeros((len(days), 1))]
    )
    square = (features**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * features @ features.T, 0.0)))


def k_medoids(distance: Floats, k: int) -> tuple[Ints, Ints]:
    """Cluster points: return (medoids, index of the medoid nearest to each point) with a sum of distances that no single swap lowers.

    The start is greedy, then the best swap is made until none helps; so the result is deterministic.
    Kaufman and Rousseeuw, Finding Groups in Data (1990), chapter 2 (PAM).

    >>> d = np.abs(np.subtract.outer([0.0, 1.0, 2.0, 10.0, 11.0], [0.0, 1.0, 2.0, 10.0, 11.0]))
    >>> [part.tolist() for part in k_medoids(d, 2)]
    [[1, 3], [0, 0, 0, 1, 1]]
    """
    chosen: list[int] = []
    least = np.full(len(distance), np.inf)
    for _ in range(k):
        total = np.minimum(least, distance).sum(axis=1)  # sum for each point, were it added
        total[chosen] = np.inf
        chosen.append(int(np.argmin(total)))
        least = np.minimum(least, distance[chosen[-1]])
    medoids = np.array(chosen)
    while True:
        to = distance[medoids]
        first = to.min(axis=0)
        owner = to.argmin(axis=0)
        second = np.partition(to, 1, axis=0)[1] if k > 1 else np.full(len(first), np.inf)
        change = np.empty((k, len(distance)))
        for m in range(k):
            left = np.where(owner == m, second, first)  # without medoid m
            change[m] = np.minimum(left, distance).sum(axis=1) - first.sum()
        change[:, medoids] = np.inf
        m, point = map(int, np.unravel_index(np.argmin(change), change.shape))
        if not change[m, point] < -1e-9 * max(first.sum(), 1e-300):
            order = np.argsort(medoids)
            return medoids[order], np.argsort(order)[owner]
        medoids[m] = point


class _Reduced:
    """Reduce series of a year to the days kept; `alone`: days that represent only themselves, and stay unchanged."""

    def __init__(self, kept: Ints, day_of: Ints, alone: Bools, stretch: Ints):
        """`stretch` [365]: the stretch of each day; every series keeps its sum over each."""
        self.kept, self.weight, self.typical = kept, np.bincount(day_of, minlength=len(kept)), ~alone
        self._stretch = stretch

    def site(self, site: SiteFacts) -> SiteFacts:
        """Reduce the series of a site."""
        electricity = site.electricity
        if electricity is not None:
            contracts = (replace(c, share=np.minimum(self._scaled(c.share), 1.0)) for c in electricity.contracts)
            electricity = replace(electricity, contracts=tuple(contracts))
        return replace(
            site,
            price_per_j=self._shifted(site.price_per_j),
            carbon_kg_per_j=np.maximum(self._shifted(site.carbon_kg_per_j), 0.0),
            electricity=electricity,
        )

    def workload(self, workload: ServingFacts) -> ServingFacts:
        """Reduce the demand of a workload."""
        return replace(workload, requests_per_s=np.array([self._scaled(rate) for rate in workload.requests_per_s]))

    def _split(self, series: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (series [day kept, hour], sum over each stretch that its medoid days should represent, sum that they do)."""
        by_day = series.reshape(DAYS_PER_YEAR, SLOTS_PER_DAY)
        kept = by_day[self.kept]
        daily = kept.sum(axis=1) * self.weight
        total = np.asarray(np.bincount(self._stretch, by_day.sum(axis=1)), dtype=float)
        wanted = total - self._by_stretch(np.where(self.typical, 0.0, daily))
        return kept.copy(), wanted, self._by_stretch(np.where(self.typical, daily, 0.0))

    def _by_stretch(self, daily: Floats) -> Floats:
        """Add up an amount of each day kept by its stretch."""
        return np.asarray(np.bincount(self._stretch[self.kept], daily, int(self._stretch.max()) + 1), dtype=float)

    def _scaled(self, series: Floats) -> Floats:
        """Scale the medoid days so that the series keeps its sum over each stretch."""
        kept, wanted, stood_for = self._split(series)
        factor = np.divide(wanted, stood_for, out=np.ones_like(wanted), where=stood_for > 0)
        kept *= np.where(self.typical, factor[self._stretch[self.kept]], 1.0)[:, None]
        return kept.ravel()

    def _shifted(self, series: Floats) -> Floats:
        """Shift the medoid days so that the series keeps its sum over each stretch."""
        kept, wanted, stood_for = self._split(series)
        hours = self._by_stretch(np.where(self.typical, self.weight, 0) * float(SLOTS_PER_DAY))
        shift = np.divide(wanted - stood_for, hours, out=np.zeros_like(wanted), where=hours > 0)
        kept += np.where(self.typical, shift[self._stretch[self.kept]], 0.0)[:, None]
        return kept.ravel()
