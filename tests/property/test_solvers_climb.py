"""Prices that are climbed prove at least what the first ones did, and never more than the best of all plans costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.certificate import Prices
from solvers.climb import climbed
from solvers.decomposition import Decomposition
from solvers.joint import build, unfinished, unserved
from tests.property.reference import best
from tests.property.test_solvers_bruteforce import problem


def test_climbed_prices_prove_more_and_stay_below_the_best_plan():
    asked = more = 0
    for seed in range(80):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or unserved(data) or unfinished(data) or (least := best(data)) is None:
            continue
        dec = Decomposition(data, "cost", build, 1, lambda line: None)
        none = lambda count, dec=dec: np.zeros((count, dec.view.slots))
        start = dec.fitted(Prices(dec.each, none(data.sites), none(data.pools), none(len(dec.view.demand)), np.zeros(len(dec.whole.keys))))
        prices, proven = climbed(dec, start)
        assert proven.value >= dec.certify(start).value
        assert proven.value <= least + 1e-9 * max(abs(least), 1.0)
        assert np.isclose(dec.certify(prices).value, proven.value)
        windows = dec.view.window[:, None] == np.arange(data.windows)
        assert np.allclose(prices.alpha @ windows, start.alpha @ windows)  # what a system earns in a window
        asked, more = asked + 1, more + (proven.value > dec.certify(start).value * (1 + 1e-6))
    assert asked > 15 and more > 3
