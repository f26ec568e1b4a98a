"""Check that a fit can move the lasting excess of the fullest expert rank to its prior, chance alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.serving import examples
from models.serving.decode import ServingLayouts, expert_times_s
from models.serving.priors import SERVING_PRIORS
from models.statistics.fitting import Linearised, refit, sensitivity

NAME, TOKENS = "rank_imbalance", np.array([64.0, 512.0, 4096.0, 65536.0])
PRIOR = SERVING_PRIORS[NAME]


def seconds(values):
    compute, memory = expert_times_s(
        examples.MOE,
        examples.CHIP,
        ServingLayouts(1, 1, 8, 8),
        "fp8",
        replace(examples.SERVING, rank_imbalance=values[NAME]),
        TOKENS,
    )
    return np.log(np.asarray(compute) + np.asarray(memory))


def test_the_prior_is_chance_alone():
    assert PRIOR.centre == 1.0
    assert np.array_equal(seconds({NAME: 1.0}), seconds({NAME: 0.9})), (
        "no rank is fuller than the fullest less than chance makes it"
    )


@pytest.mark.parametrize("true", (1.0, 1.3))
def test_a_fit_finds_the_excess_from_what_was_fitted_without_chance(true):
    values, measured = {NAME: 1.184}, seconds({NAME: true})
    for _ in range(8):
        slope = sensitivity(seconds, {NAME: PRIOR}, values, seconds(values))
        at = Linearised(seconds, measured, 100.0 * np.ones(4), {NAME: PRIOR}, values, slope)
        values = refit(at, np.ones(4, bool), rounds=1)
    assert max(values[NAME], 1.0) == pytest.approx(true, abs=0.01)
