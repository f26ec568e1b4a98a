"""Fit the constants of a model in few linearisations, since each of them is costly; refit.py writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.statistics.fitting import Linearised, Prior, refit
from planner.calibration.fit import fit_problem, with_slopes
from planner.calibration.measurements import MeasuredCase

LEAST_GAIN = 0.5  # gain as a share of the loss, below which the search ends
ROUNDS, STEPS = 12, 1  # re-linearisations, and Gauss-Newton steps at each
SHORTEST = 0.05  # part of a step below which no better point is sought


def loss(fit: Linearised, values: Mapping[str, float]) -> float:
    """Compute what `models.statistics.fitting.refit` minimises: robust loss of the rows and squares of the priors."""
    ratio = (fit.predict(values) - fit.log_measured) / fit.scale
    priors = sum(((p.to_free(values[n]) - p.to_free(p.centre)) / p.spread) ** 2 for n, p in fit.priors.items())
    return float(np.sum(fit.weights**2 * np.log1p(ratio**2)) + priors)


def between(
    priors: Mapping[str, Prior], old: Mapping[str, float], new: Mapping[str, float], part: float
) -> dict[str, float]:
    """Interpolate from one set of constants to another, along their transformed values."""
    return {
        **new,
        **{
            n: p.from_free(p.to_free(old[n]) + part * (p.to_free(min(new[n], p.upper * 0.999999)) - p.to_free(old[n])))
            for n, p in priors.items()
        },
    }


def fitted_by_halved_steps(
    cases: Sequence[MeasuredCase], start: Mapping[str, float], strengths: Mapping[str, float]
) -> Linearised:
    """Find the constants of least loss from physical priors, by Gauss-Newton steps that are halved until the loss falls."""
    whole = fit_problem(cases, start, strengths)
    best = loss(whole, whole.values)
    for _ in range(ROUNDS):
        whole = with_slopes(whole)
        found, part = refit(whole, np.ones(len(whole.log_measured), bool), STEPS), 1.0
        while (
            here := loss(whole, trial := between(whole.priors, whole.values, found, part))
        ) > best and part > SHORTEST:
            part *= 0.5
        if here >= best:
            return whole
        whole, gain, best = replace(whole, values=trial), best - here, here
        if gain < LEAST_GAIN:
            break
    return with_slopes(whole)
