"""What is used at prices: all of the work, and how fast the bound rises with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from solvers.decomposition import slots as hourwise
from solvers.decomposition.lagrangian_bound import Prices
from solvers.decomposition.reformulation import Decomposition
from solvers.decomposition.smoothed_response import _jobs, _serving, used
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.solvers.test_bruteforce import problem


def asked():
    """(decomposition, prices without ties below what systems cost, bound there)"""
    for seed in range(60):
        data, rng = replace(problem(np.random.default_rng(seed), ("cost",)), limits=()), np.random.default_rng(seed)
        if data.slots < 2 or unserved(data) or unfinished(data):
            continue
        dec = Decomposition(data, "cost", build, 1, ProgressReporter())
        none = lambda count, dec=dec: np.zeros((count, dec.view.slots))
        alpha = (
            dec.each * rng.uniform(0.2, 0.8, dec.each.shape)
            + 1e-3 * rng.uniform(0.1, 1.0, dec.each.shape) * dec.each.max()
        )
        dear = none(len(dec.view.demand)) + 1e3  # of a pool without any points
        prices = dec.fitted(Prices(alpha, none(data.sites), none(data.pools), dear, np.zeros(len(dec.whole.keys))))
        yield dec, prices, dec.certify(prices)


def test_everything_asked_is_done():
    some = 0
    for dec, prices, bound in asked():
        data, view = dec.data, dec.view
        for alike in (3e-2, 1e-4):
            points, replicas = _serving(dec, prices, alike)
            carried = (replicas * data.point_capacity[points, None]).sum(axis=0)
            assert np.allclose(carried, view.demand.sum(axis=0))
            points, running, chosen = _jobs(dec, prices, bound.entering, alike)
            job = data.point_job[points]
            done = (
                (running * view.seconds).sum(axis=1) * data.point_capacity[points] / data.job_work[job]
                if len(points)
                else np.zeros(0)
            )
            assert np.allclose(np.bincount(job, weights=done), 1.0, rtol=1e-6) and np.allclose(
                np.bincount(job, weights=chosen[dec.whole.columns["y"][points]]), 1.0
            )
            some += len(points) > 0
    assert some > 8


def test_the_bound_rises_by_what_is_used():
    """d bound / d alpha_{k,t} = systems of k used in t, where no holding earns more than it costs."""
    some = 0
    for dec, prices, bound in asked():
        if (bound.reduced < 0).any():
            continue
        across, little = np.random.default_rng(1).uniform(0.0, 1.0, prices.alpha.shape) * prices.alpha, 1e-5
        values = [
            dec.certify(dec.fitted(replace(prices, alpha=prices.alpha + sign * little * across))).value
            for sign in (-1, 1)
        ]
        rise = (used(dec, prices, bound.entering, 1e-7).systems * across).sum()
        assert np.isclose((values[1] - values[0]) / (2 * little), rise, rtol=1e-4)
        some += 1
    assert some > 8


def test_pieces_of_slots_and_jobs_side_by_side_say_what_all_at_once_does(monkeypatch):
    said = lambda dec, prices: (
        *(getattr(dec.fitted(prices), name) for name in ("beta", "delta")),
        dec.certify(prices).reduced,
        *used(dec, prices, dec.certify(prices).entering, 1e-2),
    )
    some = 0
    for dec, prices, _ in asked():
        at_once = said(dec, prices)
        monkeypatch.setattr(hourwise, "PIECE", 1 + dec.view.slots // 3)
        with ThreadPoolExecutor(2) as pool:
            dec.across = pool.map
            for one, other in zip(at_once, said(dec, prices), strict=True):
                assert np.allclose(one, other, rtol=1e-9, atol=1e-12)
        monkeypatch.undo()
        some += dec.view.slots > 2 and len(dec.view.training) > 0
    assert some > 3
