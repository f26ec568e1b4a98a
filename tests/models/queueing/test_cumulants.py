"""Curves of sums and mixtures against the exact distributions, and queues in closed form against exact ones and a plain recursion."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from scipy import stats

from models.queueing import queues
from models.queueing.cumulants import (
    Cumulants,
    delayed_cumulants,
    either,
    gamma_cumulants,
    length_nodes,
    mixture_quantile_s,
    mixture_share,
    quantile_s,
    share_below,
)

LEVELS = np.array([0.5, 0.75, 0.9, 0.95, 0.99, 0.999])


@pytest.mark.parametrize("scv", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_gamma_quantiles(scv):
    found = quantile_s(LEVELS, gamma_cumulants(3.0, scv))
    exact = stats.gamma.ppf(LEVELS, 1 / scv, scale=3.0 * scv) if scv else np.full(len(LEVELS), 3.0)
    assert found == pytest.approx(exact, rel=0.04)
    if scv:
        assert share_below(exact, gamma_cumulants(3.0, scv)) == pytest.approx(LEVELS, abs=0.01)


def test_a_sum_of_unlike_parts():
    """1 + uniform + gamma + a wait that three in five have, against a million draws."""
    rng = np.random.default_rng(2)
    draws = (
        1.0
        + rng.random(10**6)
        + rng.gamma(2.0, 0.5, 10**6)
        + np.where(rng.random(10**6) < 0.6, rng.exponential(2.0, 10**6), 0.0)
    )
    parts = Cumulants(1.5, 1 / 12, 0.0) + gamma_cumulants(1.0, 0.5) + delayed_cumulants(1.2, 0.6, 1.0)
    assert (parts.mean, parts.variance) == pytest.approx((draws.mean(), draws.var()), rel=0.01)
    assert parts.third == pytest.approx(stats.moment(draws, 3), rel=0.03)
    assert quantile_s(LEVELS[:-1], parts) == pytest.approx(np.quantile(draws, LEVELS[:-1]), rel=0.05)


def test_mixtures_agree_with_draws_and_with_themselves():
    weights, both = either(np.array([0.02, 0.3]), gamma_cumulants(1.0, 0.05), gamma_cumulants(5.0, 1.0))
    rng = np.random.default_rng(3)
    base, more = rng.gamma(20, 0.05, 10**6), rng.exponential(5.0, 10**6)
    for level in (0.5, 0.9, 0.95, 0.99):
        found = mixture_quantile_s(level, weights, both)
        assert mixture_share(found, weights, both) == pytest.approx(level, abs=1e-8)
        for i, chance in enumerate((0.02, 0.3)):
            draws = base + np.where(rng.random(10**6) < chance, more, 0.0)
            assert found[i] == pytest.approx(np.quantile(draws, level), rel=0.04)


def test_nodes_of_length_keep_the_short_ones():
    weights, lengths = length_nodes(1.0)
    assert weights.sum() == pytest.approx(1.0) and np.all(np.diff(lengths) > 0)
    assert lengths[0] < 0.01 and (weights * lengths).sum() == pytest.approx(1.0, abs=0.15)


def test_a_shared_engine_is_exact_where_theory_is():
    """Steps a + c b and no prompts: the number is negative binomial of mean (u + v)/(1 - v), u = n a rate, v = n c rate."""
    n, a, c = 50.0, 0.01, 0.0004
    for rate in (2.0, 20.0, 45.0):
        u, v = n * a * rate, n * c * rate
        mean = (u + v) / (1 - v)
        found, variance = queues.shared_rate(mean, n, a + c * mean, c, 0.0, 0.0, 1.0, 1.0, 1.0)
        assert found == pytest.approx(rate, rel=1e-6)
        assert variance == pytest.approx(mean / (1 - v), rel=0.15)


def test_rates_of_a_shared_engine_are_solved_at_any_batch():
    """Prompts of 4 s before 20 steps of 10 ms and 1 ms for each request more, from a batch of a thousandth to a million: all at once, and by bisection."""
    n, a, c, service, scv = 20.0, 0.01, 0.001, 4.0, 0.5
    batches = np.geomspace(1e-3, 1e6, 28).reshape(4, 7)
    found, _ = queues.shared_rate(batches, n, a + c * batches, c, service, scv, 8.0, 1.0, 1.0)

    def batch_at(rate):
        u = rate * service
        clumps = float(queues.dispersion(u, scv)) - 1.0
        wide = 1.0 + clumps * n / (n + 8.0 * clumps) / 2.0
        left = max(1.0 - u - n * c * rate, 1e-9)
        return rate * (n * (max(a, 0.05 * (a + c * batch)) + c * wide) / left + float(queues.left_behind_s(u, service, scv, 1.0, 8.0)))  # fmt: skip

    for batch, rate in zip(batches.ravel(), found.ravel(), strict=True):
        low, high = 0.0, 1.0 / service
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if batch_at(middle) < batch else (low, middle)
        assert rate == pytest.approx(low, rel=2e-9), batch


@pytest.mark.parametrize("arrival_scv", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("service_scv", [0.0, 1.0])
@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
def test_waits_of_arrivals_in_clumps(arrival_scv, service_scv, load):
    rng, count = np.random.default_rng(4), 400_000
    gaps = rng.gamma(1 / arrival_scv, arrival_scv / load, count)
    service = rng.gamma(1 / service_scv, service_scv, count) if service_scv else np.ones(count)
    walk = np.cumsum(service - gaps)
    waits = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
    assert queues.wait_mean_s(load, 1.0, service_scv, 1, None, arrival_scv) == pytest.approx(waits.mean(), rel=0.12)
    assert queues.clumped_wait_probability(load, arrival_scv) == pytest.approx((waits > 0).mean(), abs=0.05)
    if arrival_scv == 1.0:
        late = waits[waits > 0]
        assert queues.delayed_scv(load, service_scv) == pytest.approx(late.var() / late.mean() ** 2, abs=0.12)


@pytest.mark.parametrize(("places", "offered"), [(20, 14.0), (100, 85.0), (400, 370.0)])
def test_places_tend_to_erlangs_formula(places, offered):
    chance, wait = queues.place_wait(offered, offered, float(places), offered, float(places), 1.0, 1.0)
    assert chance == pytest.approx(queues.erlang_c(places, offered), abs=0.03)
    assert wait == pytest.approx(1 / (places - offered))
    assert queues.place_wait(offered, offered, float(places), places + 1.0, float(places), 1.0, 1.0) == (1.0, np.inf)


@pytest.mark.parametrize(("places", "load", "stay_scv"), [(20, 0.8, 0.0), (58, 0.843, 0.0), (58, 0.843, 0.3), (58, 0.92, 0.0), (58, 0.843, 4.0)])  # fmt: skip
def test_waits_for_a_place_by_the_spread_of_stays(places, load, stay_scv):
    """M/G/n drawn request by request: the chance to wait hardly knows the spread of stays, the wait does."""
    rng, count = np.random.default_rng(1), 150_000
    arrivals = np.cumsum(rng.exponential(1.0, count))
    stays = places * load * (rng.gamma(1 / stay_scv, stay_scv, count) if stay_scv else np.ones(count))
    free, waits = [0.0] * places, np.empty(count)
    for i, (at, stay) in enumerate(zip(arrivals.tolist(), stays.tolist(), strict=True)):
        begins = max(at, free[0])
        heapq.heapreplace(free, begins + stay)
        waits[i] = begins - at
    late = waits[count // 10 :][waits[count // 10 :] > 0.0]
    offered = places * load
    chance, wait = queues.place_wait(offered, offered, float(places), 1.0, 1.0 / load, 1.0, stay_scv)
    assert chance == pytest.approx(len(late) / (0.9 * count), abs=0.07)
    assert wait == pytest.approx(late.mean(), rel=0.25)
