"""Prices that are climbed prove at least what the first ones did, and never more than the best of all plans costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.decomposition.dual_ascent import Climb
from solvers.decomposition.lagrangian_bound import Prices
from solvers.decomposition.reformulation import Decomposition
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.solvers.reference import best
from tests.solvers.test_bruteforce import problem


def beyond(dec, prices):
    """What each holding costs beyond what it earns."""
    data, place = dec.data, dec.whole.columns["n"]
    windows = dec.view.window[:, None] == np.arange(data.windows)
    power, earned = prices.sigma @ windows, prices.alpha @ windows
    option, covers = data.holding_option, data.covers()
    cost = dec.whole.cost - dec.whole.matrix.T @ prices.rows
    result = cost[place] + (
        covers * (data.holding_power_w[:, None] * power[data.option_site[option]] - earned[option])
    ).sum(axis=1)
    return result[place >= 0]


def test_a_climb_goes_on_where_it_stopped_and_stops_where_it_is_enough():
    data = next(
        d
        for d in (replace(problem(np.random.default_rng(seed), ("cost",)), limits=()) for seed in range(80))
        if d.slots > 1 and not unserved(d) and not unfinished(d)
    )
    dec = Decomposition(data, "cost", build, 1, ProgressReporter())
    none = lambda count: np.zeros((count, dec.view.slots))
    start = dec.fitted(
        Prices(dec.each, none(data.sites), none(data.pools), none(len(dec.view.demand)), np.zeros(len(dec.whole.keys)))
    )
    at_once, in_turn = Climb(dec, start), Climb(dec, start)
    at_once.climb(lambda: False)
    for _ in range(200):
        asked = iter((False, True))
        in_turn.climb(lambda asked=asked: next(asked))
    assert in_turn.proven.value == at_once.proven.value
    before = in_turn.proven.value
    in_turn.climb(lambda: False)
    assert in_turn.proven.value == before
    none_yet = Climb(dec, start)
    none_yet.climb(lambda: True)
    assert none_yet.proven.value == Climb(dec, start).proven.value <= at_once.proven.value


def test_climbed_prices_prove_more_and_stay_below_the_best_plan():
    asked = more = 0
    for seed in range(50):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or unserved(data) or unfinished(data) or (least := best(data)) is None:
            continue
        dec = Decomposition(data, "cost", build, 1, ProgressReporter())
        none = lambda count, dec=dec: np.zeros((count, dec.view.slots))
        start = dec.fitted(
            Prices(
                dec.each, none(data.sites), none(data.pools), none(len(dec.view.demand)), np.zeros(len(dec.whole.keys))
            )
        )
        climb = Climb(dec, start)
        at_first = climb.proven.value
        climb.climb(lambda: False)
        prices, proven = climb.prices, climb.proven
        assert proven.value >= at_first
        assert proven.value >= dec.certify(start).value
        assert proven.value <= least + 1e-9 * max(abs(least), 1.0)
        assert np.isclose(dec.certify(prices).value, proven.value)
        assert (beyond(dec, prices) >= np.minimum(beyond(dec, start), 0.0) - 1e-9 * np.abs(dec.whole.cost).max()).all()
        asked, more = asked + 1, more + (proven.value > dec.certify(start).value * (1 + 1e-6))
    assert asked > 8 and more > 2
