"""Fit the serving constants in few linearisations, since each of them is costly; refit.py writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.statistics.fitting import Linearised, Prior, group_weights, refit, sensitivity
from planner.calibration.measurements import MeasuredCase
from planner.calibration.targets import target_of

ROUNDS, STEPS = 8, 1  # re-linearisations, and Gauss-Newton steps at each
SHORTEST = 0.05  # part of a step below which no better point is sought


def loss(fit: Linearised, values: Mapping[str, float]) -> float:
    """Compute what `calibration.fit` minimises: robust loss of the rows and squares of the priors."""
    ratio = (fit.predict(values) - fit.log_measured) / fit.scale
    priors = sum(((p.to_free(values[n]) - p.to_free(p.centre)) / p.spread) ** 2 for n, p in fit.priors.items())
    return float(np.sum(fit.weights**2 * 2.0 * (np.sqrt(1.0 + ratio**2) - 1.0)) + priors)


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


def fitted_by_halved_steps(cases: Sequence[MeasuredCase], start: Mapping[str, float]) -> Linearised:
    """Find the constants of least loss from physical priors, by Gauss-Newton steps that are halved until the loss falls."""
    target = target_of(cases)
    chosen = [o for o in target.observations(cases) if o.fits]
    predict = target.predict(cases, chosen)
    weights = group_weights([f"{cases[o.case].row.kind}|{o.metric}" for o in chosen]) ** target.source_evenness
    weights *= np.sqrt(target.data_weight / np.mean(weights**2))
    scale, log_values = np.array([target.outlier_scale[o.metric] for o in chosen]), np.log([o.value for o in chosen])
    inside = {n: min(start[n], p.upper * 0.999) for n, p in target.priors.items()}
    whole = Linearised(predict, log_values, weights, target.priors, {**start, **inside}, np.zeros((0, 0)), scale)
    for _ in range(ROUNDS):
        whole = replace(whole, slope=sensitivity(predict, target.priors, whole.values, predict(whole.values)))
        found, part = refit(whole, np.ones(len(chosen), bool), STEPS), 1.0
        while (
            loss(whole, trial := between(target.priors, whole.values, found, part)) > loss(whole, whole.values)
            and part > SHORTEST
        ):
            part *= 0.5
        whole = replace(whole, values=trial)
    return replace(whole, slope=sensitivity(predict, target.priors, whole.values, predict(whole.values)))
