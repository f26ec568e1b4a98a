"""Draw paths of a demand from its forecast: growth, level, and launches that may not happen.

D(t) = D0 (L (1 + g)^floor(t) prod_i F_i + sum_i A_i), products and sums over the launches that happened by t; t in years from the start of
the horizon, L level, g growth per year, F_i factors and A_i additions over the stated demand D0. Growth counts in yearly steps, as
`growth_per_year` does (decision 0038), unless more steps of a year are asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import ArrayLike

from catalog.units import DAY_S, YEAR_S
from models.arrays import Bools, Floats
from models.statistics.sampling import triangular
from planner.spec.load.forecast import DemandForecast, Estimates, Launch, added_share
from planner.spec.phases import Moment
from planner.spec.workloads import Demand

LIKELY = 0.5  # probability from which the typical path has a launch
STEP_TOL_YEARS = 1e-9
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class LaunchDraws:
    """A launch in each draw: its date, and its size."""

    name: str
    years: Floats  # [draw] from the start of the horizon; infinite where it does not happen
    factor: Floats  # [draw] on the demand
    addition: Floats  # [draw] share of the stated demand that is added


@dataclass(frozen=True, slots=True)
class DemandDraws:
    """Draws of the uncertain figures of a forecast, each independent of the others."""

    growth: Floats  # [draw] per year, as a share
    level: Floats  # [draw] factor on the stated demand
    launches: tuple[LaunchDraws, ...] = ()

    def __len__(self) -> int:
        return len(self.growth)

    def take(self, chosen: ArrayLike) -> DemandDraws:
        """Return some of the draws: by position, or by a mask."""
        at = np.asarray(chosen)
        launches = (LaunchDraws(x.name, x.years[at], x.factor[at], x.addition[at]) for x in self.launches)
        return DemandDraws(self.growth[at], self.level[at], tuple(launches))


def demand_factor(dates_in_years: ArrayLike, draws: DemandDraws, steps_per_year: float = 1.0) -> Floats:
    """Compute demand over stated demand at each date in each draw:  L (1 + g)^(floor(k t)/k) prod F_i + sum A_i,  [draw, date].

    Sums and products are over launches dated at or before t. Units: dates [year] from the start of the horizon. `steps_per_year`: k, the
    steps of growth in a year, 1 as in plans; infinite: growth is smooth, as observed demand grows.

    >>> draws = DemandDraws(growth=np.array([0.5]), level=np.array([2.0]))
    >>> demand_factor([0.0, 0.9, 2.0], draws).tolist()
    [[2.0, 2.0, 4.5]]
    """
    t = np.asarray(dates_in_years, dtype=float)
    steps = t if np.isinf(steps_per_year) else np.floor((t + STEP_TOL_YEARS) * steps_per_year) / steps_per_year
    path: Floats = draws.level[:, None] * (1.0 + draws.growth[:, None]) ** steps
    added = np.zeros(path.shape)
    for launch in draws.launches:
        there: Bools = launch.years[:, None] <= t + STEP_TOL_YEARS
        path = path * np.where(there, launch.factor[:, None], 1.0)
        added += np.where(there, launch.addition[:, None], 0.0)
    return path + added


def stream(seed: int, name: str) -> np.random.Generator:
    """Seed a random stream by the name of a figure, so that no figure's draws depend on which others are drawn."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def draw_demand(demand: Demand, name: str, start: date, count: int, seed: int) -> DemandDraws:
    """Draw a demand's forecast; each figure has a stream of its own, by the name of the workload and of the figure."""
    forecast = demand.forecast or DemandForecast()

    def uniform(figure: str) -> Floats:
        return stream(seed, f"forecast {name} {figure}").random(count)

    return DemandDraws(
        growth=between(forecast.growth, uniform("growth"), 0.0),
        level=between(forecast.level, uniform("level"), 1.0),
        launches=tuple(_drawn_launch(launch, demand, start, uniform) for launch in forecast.launches),
    )


def typical_demand(demand: Demand, start: date) -> DemandDraws:
    """Return the one draw by which plans count: typical figures, and the launches that are at least as likely as not."""
    forecast, one = demand.forecast or DemandForecast(), np.ones(1)
    growth, level = forecast.growth, forecast.level
    return DemandDraws(
        growth=one * (0.0 if growth is None else growth.typical),
        level=one * (1.0 if level is None else level.typical),
        launches=tuple(
            LaunchDraws(
                launch.name,
                one * (years_from(start, launch.date) if launch.probability >= LIKELY else NEVER),
                one * (1.0 if launch.factor is None else launch.factor.typical),
                one * added_share(launch, *demand.stated)[1],
            )
            for launch in forecast.launches
        ),
    )


def between(known: Estimates | None, level: Floats, otherwise: float) -> Floats:
    """Return a figure at levels of the triangular distribution over its low, typical and high; `otherwise` for one not stated."""
    if known is None:
        return np.full(len(level), otherwise)
    low, typical, high = (getattr(known, key) for key in ("low", "typical", "high"))
    return _triangular(level, typical if low is None else low, typical, typical if high is None else high)


def years_from(start: date, moment: Moment) -> float:
    """Convert a day, or a time from the start of the horizon in seconds, to years from its start; days before it count as the start."""
    seconds = (moment - start).days * DAY_S if isinstance(moment, date) else float(moment)
    return max(seconds, 0.0) / YEAR_S


def _drawn_launch(launch: Launch, demand: Demand, start: date, uniform: Callable[[str], Floats]) -> LaunchDraws:
    """Draw whether a launch happens, when, and its size, each from a stream of its own."""
    happens, when, size = (uniform(f"{launch.name} {figure}") for figure in ("happens", "date", "size"))
    moments = (launch.earliest, launch.date, launch.latest)
    years = _triangular(when, *(years_from(start, launch.date if each is None else each) for each in moments))
    return LaunchDraws(
        name=launch.name,
        years=np.where(happens < launch.probability, years, NEVER),
        factor=between(launch.factor, size, 1.0),
        addition=_triangular(size, *added_share(launch, *demand.stated)),
    )


def _triangular(level: Floats, low: float, typical: float, high: float) -> Floats:
    return np.asarray(triangular(level, low, typical, high), dtype=float)
