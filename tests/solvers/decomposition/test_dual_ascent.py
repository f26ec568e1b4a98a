"""Prices that are climbed prove at least what the first ones did, and never more than the best of all plans costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.decomposition.dual_ascent import DualAscent
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.reformulation import Reformulation
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.solvers.reference import best
from tests.solvers.test_bruteforce import problem


def beyond(dec, duals):
    """What each holding costs beyond what it earns."""
    data, place = dec.data, dec.first_stage.columns["n"]
    windows = dec.view.window[:, None] == np.arange(data.windows)
    power, earned = duals.sigma @ windows, duals.alpha @ windows
    option, covers = data.holding_option, data.covers()
    cost = dec.first_stage.cost - dec.first_stage.matrix.T @ duals.rows
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
    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    none = lambda count: np.zeros((count, dec.view.slots))
    start = dec.complete_duals(
        Duals(
            dec.system_slot_cost,
            none(data.sites),
            none(data.pools),
            none(len(dec.view.demand)),
            np.zeros(len(dec.first_stage.keys)),
        )
    )
    at_once, in_turn = DualAscent(dec, start), DualAscent(dec, start)
    at_once.run(lambda: False)
    for _ in range(200):
        compared = iter((False, True))
        in_turn.run(lambda compared=compared: next(compared))
    assert in_turn.bound.value == at_once.bound.value
    before = in_turn.bound.value
    in_turn.run(lambda: False)
    assert in_turn.bound.value == before
    none_yet = DualAscent(dec, start)
    none_yet.run(lambda: True)
    assert none_yet.bound.value == DualAscent(dec, start).bound.value <= at_once.bound.value


def test_climbed_prices_prove_more_and_stay_below_the_best_plan():
    compared = more = 0
    for seed in range(50):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if data.slots < 2 or unserved(data) or unfinished(data) or (lower := best(data)) is None:
            continue
        dec = Reformulation(data, "cost", build, 1, ProgressReporter())
        none = lambda count, dec=dec: np.zeros((count, dec.view.slots))
        start = dec.complete_duals(
            Duals(
                dec.system_slot_cost,
                none(data.sites),
                none(data.pools),
                none(len(dec.view.demand)),
                np.zeros(len(dec.first_stage.keys)),
            )
        )
        ascent = DualAscent(dec, start)
        at_first = ascent.bound.value
        ascent.run(lambda: False)
        duals, bound = ascent.duals, ascent.bound
        assert bound.value >= at_first
        assert bound.value >= dec.lagrangian_bound(start).value
        assert bound.value <= lower + 1e-9 * max(abs(lower), 1.0)
        assert np.isclose(dec.lagrangian_bound(duals).value, bound.value)
        assert (
            beyond(dec, duals) >= np.minimum(beyond(dec, start), 0.0) - 1e-9 * np.abs(dec.first_stage.cost).max()
        ).all()
        compared, more = compared + 1, more + (bound.value > dec.lagrangian_bound(start).value * (1 + 1e-6))
    assert compared > 8 and more > 2
