"""What is used at prices: all of the work, and how fast the bound rises with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from solvers.decomposition import slots as hourwise
from solvers.decomposition.lagrangian_bound import Duals
from solvers.decomposition.reformulation import Reformulation
from solvers.decomposition.smoothed_response import _job_response, _serving_response, smoothed_response
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.solvers.test_bruteforce import problem


def compared():
    """(decomposition, prices without ties below what systems cost, bound there)"""
    for seed in range(60):
        data, rng = replace(problem(np.random.default_rng(seed), ("cost",)), limits=()), np.random.default_rng(seed)
        if data.slots < 2 or unserved(data) or unfinished(data):
            continue
        dec = Reformulation(data, "cost", build, 1, ProgressReporter())
        none = lambda count, dec=dec: np.zeros((count, dec.view.slots))
        alpha = (
            dec.system_slot_cost * rng.uniform(0.2, 0.8, dec.system_slot_cost.shape)
            + 1e-3 * rng.uniform(0.1, 1.0, dec.system_slot_cost.shape) * dec.system_slot_cost.max()
        )
        dear = none(len(dec.view.demand)) + 1e3  # cost of a pool without any points
        duals = dec.complete_duals(
            Duals(alpha, none(data.sites), none(data.pools), dear, np.zeros(len(dec.first_stage.keys)))
        )
        yield dec, duals, dec.lagrangian_bound(duals)


def test_everything_asked_is_done():
    some = 0
    for dec, duals, bound in compared():
        data, view = dec.data, dec.view
        for smoothing in (3e-2, 1e-4):
            points, replicas = _serving_response(dec, duals, smoothing)
            served = (replicas * data.point_capacity[points, None]).sum(axis=0)
            assert np.allclose(served, view.demand.sum(axis=0))
            points, running, chosen = _job_response(dec, duals, bound.pricing_reduced_cost, smoothing)
            job = data.point_job[points]
            done = (
                (running * view.seconds).sum(axis=1) * data.point_capacity[points] / data.job_work[job]
                if len(points)
                else np.zeros(0)
            )
            assert np.allclose(np.bincount(job, weights=done), 1.0, rtol=1e-6) and np.allclose(
                np.bincount(job, weights=chosen[dec.first_stage.columns["y"][points]]), 1.0
            )
            some += len(points) > 0
    assert some > 8


def test_the_bound_rises_by_what_is_used():
    """d bound / d alpha_{k,t} = systems of k used in t, where no holding earns more than it costs."""
    some = 0
    for dec, duals, bound in compared():
        if (bound.reduced_cost < 0).any():
            continue
        parallel_map, little = np.random.default_rng(1).uniform(0.0, 1.0, duals.alpha.shape) * duals.alpha, 1e-5
        values = [
            dec.lagrangian_bound(
                dec.complete_duals(replace(duals, alpha=duals.alpha + sign * little * parallel_map))
            ).value
            for sign in (-1, 1)
        ]
        rise = (smoothed_response(dec, duals, bound.pricing_reduced_cost, 1e-7).systems * parallel_map).sum()
        assert np.isclose((values[1] - values[0]) / (2 * little), rise, rtol=1e-4)
        some += 1
    assert some > 8


def test_pieces_of_slots_and_jobs_side_by_side_say_what_all_at_once_does(monkeypatch):
    said = lambda dec, duals: (
        *(getattr(dec.complete_duals(duals), name) for name in ("beta", "delta")),
        dec.lagrangian_bound(duals).reduced_cost,
        *smoothed_response(dec, duals, dec.lagrangian_bound(duals).pricing_reduced_cost, 1e-2),
    )
    some = 0
    for dec, duals, _ in compared():
        at_once = said(dec, duals)
        monkeypatch.setattr(hourwise, "SLOT_CHUNK", 1 + dec.view.slots // 3)
        with ThreadPoolExecutor(2) as pool:
            dec.parallel_map = pool.map
            for one, other in zip(at_once, said(dec, duals), strict=True):
                assert np.allclose(one, other, rtol=1e-9, atol=1e-12)
        monkeypatch.undo()
        some += dec.view.slots > 2 and len(dec.view.training) > 0
    assert some > 3
