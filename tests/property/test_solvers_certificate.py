"""What the bound charges a job for the windows in which it runs: never more than any way to do it there, and no less than without them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.certificate import Estimate, _run
from solvers.decomposition import Decomposition
from solvers.joint import build, unfinished, unserved
from tests.property import test_solvers_phases as phases
from tests.property.reference import SMALL


def least(price, work, asked, window, there) -> float:
    """Over all sets of windows, done in the cheapest slots of each."""
    best = np.inf
    for count in range(len(there) + 1):
        for chosen in itertools.combinations(there, count):
            at = np.flatnonzero(np.isin(window, chosen) & (work > 0))
            at = at[np.argsort(price[at] / work[at], kind="stable")]
            share = np.clip((1 - (np.cumsum(work[at]) - work[at])) / work[at], 0.0, 1.0)
            if (share * work[at]).sum() >= 1 - 1e-9:
                best = min(best, float((share * price[at]).sum() + asked[list(chosen)].sum()))
    return best


@settings(max_examples=80, **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_a_job_is_charged_no_more_than_the_least_that_its_windows_and_slots_cost(seed):
    rng = np.random.default_rng(seed)
    data = replace(phases.phased(rng, ("cost",)), limits=())
    if unserved(data) or unfinished(data) or not build(data).column_count:
        return
    dec = Decomposition(data, "cost", build, 1, lambda line: None)
    run, y, view = dec.whole.columns["run"], dec.whole.columns["y"], dec.view
    alpha, sigma = rng.uniform(0.0, 2.0, (len(data.lot_site), view.slots)), rng.uniform(0.0, 1.0, (data.sites, view.slots))
    reduced = rng.uniform(-1.0, 4.0, dec.whole.size)
    points = view.training[(run[view.training] >= 0).any(axis=1)]
    alone = view.cheapest(points, alpha, sigma)
    reduced[y[points]] = alone
    asked = np.append(reduced, 0.0)
    estimate = Estimate(0.0, np.where(np.isin(np.arange(dec.whole.size), y[points]), reduced, 0.0), alpha)
    _run(view, dec.whole, estimate, sigma, reduced)
    for p, before in zip(points.tolist(), alone.tolist(), strict=True):
        job = data.point_job[p]
        price = view.running_price(np.array([p]), alpha, sigma)[0]
        work = view.job_seconds[job] * data.point_capacity[p] / data.job_work[job]
        exact = least(price, work, asked[run[p]], view.window, np.unique(view.window[work > 0]).tolist())
        found, there = reduced[y[p]], np.unique(view.window[work > 0]).tolist()
        for count in range(len(there) + 1):  # what the estimate charges for any windows is no more than what they cost
            for chosen in itertools.combinations(there, count):
                charged, cost = estimate.slope[y[p]] + estimate.slope[run[p][list(chosen)]].sum(), least(price, work, np.zeros(data.windows), view.window, list(chosen))
                assert charged <= cost + 1e-6 * max(abs(cost), 1.0)
        assert found <= exact + 1e-6 * max(abs(exact), 1.0)
        if (asked[run[p][run[p] >= 0]] >= 0).all():
            assert found >= before - 1e-6 * max(abs(before), 1.0)
    assert (reduced[run[run >= 0]] == 0).all()
