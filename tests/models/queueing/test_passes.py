"""Workers that serve in passes, against a simulation of their queue and against the queues that they become at the ends."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.queueing.passes import Passes, PassTimes
from models.queueing.queues import wait_mean_s


def simulated(fixed, each, most, workers, rate, scv, arrival_scv=1.0, count=200_000, seed=1):
    """Simulate one queue before workers whose passes take a fixed time and one by the sizes of all in them; (waits, times in a pass, customers of a pass)."""
    rng = np.random.default_rng(seed)
    gaps = rng.gamma(1 / arrival_scv, arrival_scv / rate, count) if arrival_scv else np.full(count, 1 / rate)
    arrivals, sizes = np.cumsum(gaps), rng.gamma(1 / scv, scv, count) if scv else np.ones(count)
    waits, inside, free, first, passes = np.empty(count), np.empty(count), [0.0] * workers, 0, 0
    while first < count:
        begins = max(heapq.heappop(free), arrivals[first])
        last = min(int(np.searchsorted(arrivals, begins, side="right")), first + most)
        seconds = fixed + each * sizes[first:last].sum()
        waits[first:last], inside[first:last] = begins - arrivals[first:last], seconds
        heapq.heappush(free, begins + seconds)
        first, passes = last, passes + 1
    return waits, inside, count / passes


def passes_of(fixed, each, most, workers, rate, scv, arrival_scv=1.0):
    """One rank a worker: alone a customer takes fixed + each; a full pass of `most` takes fixed/most + each for each of them."""
    times = PassTimes(fixed + each, fixed / most + each, 1.0 / most, 1.0)
    alone_scv = scv * (each / (fixed + each)) ** 2
    return Passes(times, rate, workers, alone_scv, arrival_scv)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("most, fixed", [(1, 0.0), (4, 1.0), (16, 3.0), (64, 10.0), (256, 1.0)])
@pytest.mark.parametrize("workers, scv", [(1, 0.0), (1, 1.0), (3, 0.5)])
def test_waits_follow_a_simulation(load, most, fixed, workers, scv):
    """At a share of the rate of full passes; times in units of what a customer adds to a pass."""
    rate = load * workers * most / (fixed + most)
    found = passes_of(fixed, 1.0, most, workers, rate, scv)
    waits, inside, together = simulated(fixed, 1.0, most, workers, rate, scv)
    mean, chance, delayed, _ = found.wait()
    assert found.load == pytest.approx(load) and found.inside == pytest.approx(together, rel=0.12)
    assert chance == pytest.approx((waits > 0).mean(), abs=0.05)
    # Several workers whose passes take little more than their customers idle between them, and so gather fewer.
    off = 0.2 if workers == 1 or fixed >= 3.0 else 0.45
    assert mean == pytest.approx(waits.mean(), rel=off, abs=0.01)
    assert fixed + 1.0 + found.longer_s == pytest.approx(inside.mean(), rel=0.5 * off + 0.05)
    late = waits[waits > 0]
    assert delayed == pytest.approx(late.var() / late.mean() ** 2, rel=0.4)


@given(st.integers(1, 40), st.floats(0.05, 0.95), st.floats(0.0, 3.0), st.floats(0.0, 4.0))
def test_one_customer_to_a_pass_waits_as_for_single_servers(workers, load, scv, arrival_scv):
    """Nothing is shared where a customer fills its pass: G/G/w, whatever the time is called."""
    found = Passes(PassTimes(2.0, 2.0, 1.0, 1.0), load * workers / 2.0, float(workers), scv, arrival_scv)
    assert found.wait()[0] == pytest.approx(
        wait_mean_s(load * workers / 2.0, 2.0, scv, workers, None, arrival_scv), rel=1e-9
    )
    assert found.utilisation == pytest.approx(load) and found.longer_s == 0.0 and found.pass_s == pytest.approx(2.0)


@given(st.integers(2, 100), st.floats(0.01, 0.9), st.floats(0.1, 100.0), st.floats(0.0, 2.0))
def test_a_busy_worker_of_many_ranks_keeps_an_arrival_for_half_a_pass(ranks, load, pass_s, scv):
    """All ranks step together: who finds a pass under way waits for its end, half of it on average, however many ranks are idle."""
    times = PassTimes(pass_s / ranks, pass_s / ranks, 1.0 / ranks, float(ranks))
    found = Passes(times, load * ranks / pass_s, 1.0, scv)
    assert found.wait()[0] >= 0.5 * pass_s * found.utilisation * (1 - 1e-9)
    if load * ranks > 5.0:
        assert found.utilisation == pytest.approx(1.0, abs=0.02)


@given(st.floats(1.0, 500.0), st.floats(0.0, 50.0), st.integers(1, 8), st.floats(0.01, 0.99), st.floats(0.0, 2.0))
def test_fixed_time_is_shared_up_to_full_passes(most, fixed, workers, load, scv):
    """No rate below that of full passes, w K/P(K), has a wait without end; any from it on has."""
    full = workers * most / (fixed + most)
    below, beyond = (passes_of(fixed, 1.0, most, float(workers), full * part, scv) for part in (load, 1.01))
    assert np.isfinite(below.wait()[0]) and below.utilisation <= 1.0 and below.inside <= most * (1 + 1e-9)
    assert np.isinf(beyond.wait()[0]) and beyond.inside == pytest.approx(most, rel=0.02)
