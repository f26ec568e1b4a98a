"""Check the strengths of levels: what groups left out pay for, against fits made from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from models.serving.priors import CAUSES, SERVING_PRIORS, serving_level
from models.statistics.fitting import Linearised, Prior, along_slopes, refit
from models.statistics.shrinkage import LEAST, MOST, ROWS, Tangent, chosen_strengths, shrunk
from models.training.priors import CAUSES as TRAINING_CAUSES
from models.training.priors import TRAINING_PRIORS, training_level


def fit_of(truth, noise=0.02, groups=12, each=6, spread=0.1, seed=0):
    """A fit of one shared constant and of one factor per group; returns (fit, group of every row)."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    names = ["shared", *(f"own_{g}" for g in range(groups))]
    slope = np.concatenate([np.ones((len(group), 1)), np.eye(groups)[group]], axis=1)
    log_measured = truth[group] + rng.normal(0, noise, len(group))
    priors = {name: Prior(1.0, spread) for name in names}

    def predict(values):
        return slope @ np.log([values[name] for name in names])

    values = dict.fromkeys(names, 1.0)
    return Linearised(predict, log_measured, np.ones(len(group)), priors, values, slope), group


def level(name):
    return name.partition("_")[0]


def test_factors_are_freed_where_rows_left_out_pay_for_it():
    # Groups differ by ten times the spread of the prior, and rows of a group are left out in turn: its other rows know its factor.
    far, group = fit_of(np.random.default_rng(1).normal(0, 1.0, 12))
    ways = [[str(i % 3) for i in range(len(group))]]
    found = chosen_strengths(far, level, ways, [str(g) for g in group])
    assert found["own"] == MOST


def test_factors_are_held_where_rows_left_out_do_not():
    # Nothing but noise, three rows a group, and a wide prior: factors that follow the rows only lose.
    noise, group = fit_of(np.zeros(12), noise=0.1, each=3, spread=0.3)
    ways = [[str(i % 3) for i in range(len(group))]]
    found = chosen_strengths(noise, level, ways, [str(g) for g in group])
    assert found["own"] == LEAST


def test_a_strength_scales_its_level_alone():
    fit, _ = fit_of(np.zeros(12))
    found = shrunk(fit, {"own": 2.0, ROWS: 4.0}, level)
    assert found.priors["own_3"].spread == pytest.approx(0.2) and found.priors["shared"].spread == pytest.approx(0.1)
    assert found.weights == pytest.approx(2.0 * fit.weights)


def test_rows_left_out_by_normal_equations_are_those_of_a_fit_without_them():
    # Errors small beside the scale, so that the robust weights of both are 1 to within the tolerance.
    fit, group = fit_of(np.random.default_rng(2).normal(0, 1e-3, 12), noise=1e-3)
    folds = [str(g % 4) for g in group]
    tangent = Tangent.of(fit, folds)
    found = tangent.left_out(np.full(len(fit.priors), 0.1), 1.0)
    for fold in "0123":
        out = np.array(folds) == fold
        expected = (fit.predict(refit(fit, ~out)) - fit.log_measured)[out]
        assert found[out] == pytest.approx(expected, abs=1e-6)


def test_along_slopes_a_linear_model_stays_as_it_is():
    fit, _ = fit_of(np.zeros(12))
    moved = {**fit.values, "shared": 1.3, "own_5": 0.7}
    assert along_slopes(fit).predict(moved) == pytest.approx(fit.predict(moved))


def test_every_fitted_constant_belongs_to_a_level_of_several_constants_or_to_a_known_cause():
    for priors, level_of, causes in (
        (SERVING_PRIORS, serving_level, CAUSES),
        (TRAINING_PRIORS, training_level, TRAINING_CAUSES),
    ):
        known = {cause for cause, _ in causes}
        alone = {name for name in priors if level_of(name) == name}
        assert not alone and all(level_of(name) in known or " of " in level_of(name) for name in priors)
