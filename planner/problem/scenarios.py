"""Sample scenarios of demand, prices and errors of predicted times, and evaluate each distribution at a given level.

Errors are shared: one draw per model (serving, training) and chip holds for all points on that chip. How a fleet fares in a scenario:
`planner.scenarios.redispatch`; what a robust plan counts on instead of predictions: `planner.problem.derating`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from catalog.figures import Figure
from catalog.units import YEAR_S, is_money
from models.arrays import Floats
from models.statistics.intervals import tier_of
from models.statistics.sampling import correlated_uniforms, tabulated, triangular
from planner.messages import Message
from planner.plan.rows.robust import StatedRange
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.forecasts.demand import demand_factor, draw_demand, stream, typical_demand
from planner.problem.intervals import DENSE, EXPERTS, LABELS, Calibration
from planner.problem.price_levels import stated_ranges
from planner.spec.robust import Robust

SERVING = LABELS["serving"]
CONFIDENCE_SCENARIOS, CONFIDENCE_SEED = 200, 1  # scenarios in which every plan states how sure it is
DATES_PER_WINDOW = 13  # at which a path of demand is read in each window: monthly in one of a year
END_OF_WINDOW = 1e-6  # share of a window before its end at which a path is read last
FORECAST_DRAWS = 2000  # draws of a forecast for the level of its distribution


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Factors on the figures of the problem, one entry per scenario."""

    demand: Mapping[str, Floats]  # by serving workload
    serving: Mapping[str, Mapping[str, Floats]]  # chip -> tpot, ttft (on times), throughput (on the rate)
    training: Mapping[tuple[str, str], Floats]  # (chip, dense or moe) -> on step times
    prices: Mapping[str, Floats]  # by path of the figure
    count: int


def draw(problem: ResolvedSpec, count: int, seed: int) -> Scenarios:
    """Draw scenarios of a problem with a `robust` block; each figure has a random stream of its own, so that none depends on the others."""

    def uniform(name: str) -> Floats:
        return stream(seed, name).random(count)

    def times(chip: str) -> dict[str, Floats]:
        correlation = problem.constants.measured_serving.rank_correlation
        if correlation is None:
            raise ValueError(Message.of("problem.no_rank_correlation").text())
        normals = stream(seed, f"serving {chip}").standard_normal((count, len(SERVING)))
        return dict(zip(SERVING, correlated_uniforms(normals, correlation).T, strict=True))

    chips = chips_of(problem) if problem.robust.times else ()
    return Scenarios(
        demand={w.name: _demand(problem, w, count, seed) for w in problem.serving},
        serving={
            chip: {
                label: error_at(problem.constants.measured_serving, chip, label, u) for label, u in times(chip).items()
            }
            for chip in chips
        },
        training={
            (chip, label): error_at(problem.constants.measured_training, chip, label, uniform(f"training {chip}"))
            for chip in chips
            for label in (DENSE, EXPERTS)
        },
        prices={path: price_at(figure, uniform(f"price {path}")) for path, figure in uncertain_prices(problem)},
        count=count,
    )


def with_robust(problem: ResolvedSpec) -> ResolvedSpec:
    """Return the problem with a block `robust` of the defaults and typical prices, by whose scenarios every plan states how sure it is."""
    return replace(problem, spec=problem.spec.model_copy(update={"robust": Robust(prices=False)}))


def chips_of(problem: ResolvedSpec) -> list[str]:
    """List the chips of all systems on offer, in order."""
    return sorted({system.chip for system in problem.systems.values()})


def _demand(problem: ResolvedSpec, workload: ServingFacts, count: int, seed: int) -> Floats:
    """Draw the demand of a workload over the planned one, [scenario]."""
    if workload.spec.demand.forecast is not None:
        return demand_over_plan(problem, workload, count, seed)
    return demand_at(problem, workload, stream(seed, f"demand {workload.asked}").random(count))


def demand_over_plan(problem: ResolvedSpec, workload: ServingFacts, count: int, seed: int) -> Floats:
    """Draw paths of a forecast; return the largest ratio of each to the planned path over the horizon, [scenario].

    A fleet that is held for a planned path fails where a path exceeds it most; one with room to spare then keeps more than this says.
    """
    return np.asarray(demand_by_window(problem, workload, count, seed).max(axis=1))


def demand_by_window(problem: ResolvedSpec, workload: ServingFacts, count: int, seed: int) -> Floats:
    """Draw paths of a forecast; return the largest ratio of each to the planned path in every window, [scenario, window]."""
    demand, start, edges = workload.spec.demand, problem.spec.horizon.start, problem.calendar.edges_s / YEAR_S
    part = np.linspace(0.0, 1.0 - END_OF_WINDOW, DATES_PER_WINDOW)
    dates = edges[:-1, None] + np.diff(edges)[:, None] * part  # [window, date]
    drawn = demand_factor(dates.ravel(), draw_demand(demand, workload.asked, start, count, seed))
    planned = demand_factor(edges[:-1], typical_demand(demand, start))[0]
    ratio: Floats = drawn.reshape(count, *dates.shape).max(axis=2) / planned
    return ratio


def demand_at(problem: ResolvedSpec, workload: ServingFacts, level: Floats | float) -> Floats:
    """Return the factor on a planned demand at a level of its distribution: uniform between its bounds, or of draws of its forecast."""
    if workload.spec.demand.forecast is not None:
        return np.asarray(np.quantile(demand_over_plan(problem, workload, FORECAST_DRAWS, 0), level))
    return 1.0 + problem.robust.demand * (2.0 * np.asarray(level) - 1.0)


def error_at(known: Calibration, chip: str, label: str, level: Floats | float) -> Floats:
    """Return measured over predicted at a level of the errors on held-out runs as dissimilar as those on this chip.

    On a chip that the user measured it is a log-normal of the spread of further runs, at the precision that is known least.
    """
    anchored = any((anchor[0], anchor[2]) == (chip, label) for anchor in known.anchors)
    own = [spread for key, spread in known.spreads.items() if (key[0], key[2]) == (chip, label)]
    if own and chip in known.chips:
        return np.asarray(np.exp(max(own) * ndtri(np.asarray(level))))
    residuals = known.residuals[tier_of(anchored, chip in known.chips, chip in known.relatives), label]
    return np.asarray(tabulated(level, known.levels, residuals) ** known.narrowed.get((chip, label), 1.0))


LEVELS_SHOWN = (0.1, 0.5, 0.9)


def uncertain(problem: ResolvedSpec) -> list[dict[str, Any]]:
    """List the factors at three levels on every uncertain figure but prices, for the report."""
    rows = [
        {
            "what": "demand",
            "of": w.name,
            "metric": "requests/s",
            "factors": [float(demand_at(problem, w, level)) for level in LEVELS_SHOWN],
        }
        for w in problem.serving
    ]
    models = (
        ("serving", problem.constants.measured_serving, bool(problem.serving)),
        ("training", problem.constants.measured_training, bool(problem.training)),
    )
    for chip in chips_of(problem) if problem.robust.times else ():
        for model, known, there in models:
            for label in LABELS[model] if there else ():
                factors = [float(error_at(known, chip, label, level)) for level in LEVELS_SHOWN]
                rows.append({"what": model, "of": chip, "metric": label, "factors": factors})
    return rows


def uncertain_prices(problem: ResolvedSpec) -> Iterator[tuple[str, Figure]]:
    """Yield (path, figure) of all prices that have a low or a high: prices that the spec states, then prices of the catalog that it uses."""
    if problem.robust.prices:
        yield from stated_ranges(problem.spec)
    for citation in problem.citations if problem.robust.prices else ():
        figure = citation.figure
        if (
            is_money(figure.unit)
            and not isinstance(figure.value, tuple)
            and figure.value > 0
            and (figure.low, figure.high) != (None, None)
        ):
            yield citation.path, figure


def price_ranges(problem: ResolvedSpec) -> list[StatedRange]:
    """List low, typical and high of all uncertain prices, for the report."""
    return [
        {
            "path": path, "low": figure.number if figure.low is None else figure.low, "typical": figure.number,
            "high": figure.number if figure.high is None else figure.high, "unit": figure.unit,
        }
        for path, figure in uncertain_prices(problem)
    ]  # fmt: skip


def price_at(figure: Figure, level: Floats | float) -> Floats:
    """Return the factor on a price at a level of the triangular distribution over its low, typical and high figures."""
    low, high = (figure.number if bound is None else bound for bound in (figure.low, figure.high))
    return np.asarray(triangular(level, low, figure.number, high) / figure.number)
