"""The sampler of the replay against the one of a plan: the same distributions, written twice, at given levels and for certain forecasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.statistics.sampling import triangular
from planner.problem.scenarios import LABELS, demand_by_window, error_at
from planner.solving.variants import resolved
from planner.spec.requirements.adapt import Adapt
from planner.verify.adapt.worlds import draw_worlds, error, triangle

LEVELS = np.linspace(0.001, 0.999, 21)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(sorted))
def test_the_triangle(points):
    low, middle, high = points
    assert triangle(LEVELS, low, middle, high) == pytest.approx(triangular(LEVELS, low, middle, high), abs=1e-9)


def test_errors_at_given_levels(tiny):
    problem = resolved(tiny())
    chips = {system.chip for system in problem.systems.values()} | {"a chip that nobody measured"}
    for known, model in (
        (problem.constants.measured_serving, "serving"),
        (problem.constants.measured_training, "training"),
    ):
        own = replace(known, spreads={("H100 SXM5 80GB", "fp8", LABELS[model][0]): 0.1})
        for chip in chips:
            for label in LABELS[model]:
                for each in (known, own):
                    assert error(each, chip, label, LEVELS) == pytest.approx(error_at(each, chip, label, LEVELS))


def test_levels_of_one_chip_go_together(tiny):
    """Rank correlations of the draws are those of the table, within sampling error of 4,000 draws (0.016 each)."""
    problem = resolved(tiny())
    drawn = draw_worlds(problem, Adapt(), 4000, 1)
    (errors,) = (each for chip, each in drawn.errors.items() if chip)
    ranks = np.array([np.argsort(np.argsort(errors[name])) for name in LABELS["serving"]])
    assert np.corrcoef(ranks) == pytest.approx(problem.constants.measured_serving.rank_correlation, abs=0.065)
    (growth,) = drawn.growth.values()
    assert 0.85 <= growth.min() < 0.86 and 1.14 < growth.max() <= 1.15
    assert not draw_worlds(problem, Adapt(times=False), 10, 1).errors


def test_a_forecast_is_drawn_as_for_a_plan(tiny):
    """Means and squares of 4,000 draws of each sampler agree in every window within four standard errors; launches come within windows and between them."""
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 3},
        phases=[{"name": "a", "start": "2027-01-01"}, {"name": "b", "start": "2028-06-01"}],
    )
    spec["workloads"][0]["demand"]["forecast"] = {
        "growth": {"low": -0.2, "typical": 0.5, "high": 1.0}, "level": {"low": 0.8, "typical": 1.0, "high": 1.2},
        "launches": [
            {"name": "one", "probability": 0.7, "factor": {"low": 1.1, "typical": 1.3, "high": 1.8}, "date": "9 months", "latest": "20 months"},
            {"name": "two", "probability": 0.3, "addition": {"typical": 20}, "date": "2028-01-01"},
        ],
    }  # fmt: skip
    problem = resolved(spec)
    (workload,) = problem.serving
    count = 4000
    ours, plans = (
        draw_worlds(problem, Adapt(), count, 7).growth[workload.name],
        demand_by_window(problem, workload, count, 0),
    )
    assert ours.shape == plans.shape and ours.std(axis=0).min() > 0.05
    for power in (1, 2):
        one, other = ours**power, plans**power
        assert (
            np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * np.sqrt((one.var(axis=0) + other.var(axis=0)) / count)
        ).all()
