"""Requests divided over workers by prefix or at random: hit rates and the fullest worker against a simulation of their caches."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.queueing.caches import zipf_groups
from models.queueing.placement import fullest_worker
from models.serving.prefix_cache import PrefixCache, Routed, Sessions, Tier, Zipf, tier_hits

TIERS = (Tier(1e9, np.inf, 0.0, True),)


class Lru:
    """A least-recently-used cache of so many places."""

    def __init__(self, places: int):
        self.places, self.held = places, OrderedDict()

    def find(self, key: object) -> bool:
        found = self.held.pop(key, None) is not None
        self.held[key] = True
        if len(self.held) > self.places:
            self.held.popitem(last=False)
        return found


def hits(cache: PrefixCache, places: float, requests_per_s: float = 1.0) -> float:
    return float(tier_hits(cache, (places,), requests_per_s)[0])


@pytest.mark.parametrize("by_prefix", [True, False])
@pytest.mark.parametrize(("workers", "prefixes", "exponent", "places"), [(4, 2000, 0.9, 100), (16, 4000, 0.6, 60)])
def test_hit_rates_of_popular_prefixes_are_those_of_simulated_caches(workers, prefixes, exponent, places, by_prefix):
    rng = np.random.default_rng(7)
    chance = np.arange(1, prefixes + 1.0) ** -exponent
    asked = rng.choice(prefixes, 80_000, p=chance / chance.sum())
    home = rng.integers(0, workers, prefixes)
    where = home[asked] if by_prefix else rng.integers(0, workers, len(asked))
    caches = [Lru(places) for _ in range(workers)]
    found = [caches[w].find(k) for w, k in zip(where.tolist(), asked.tolist(), strict=True)][len(asked) // 2 :]
    cache = PrefixCache(1000, Zipf(prefixes, exponent), TIERS, 8, Routed(workers, by_prefix))
    assert np.mean(found) == pytest.approx(hits(cache, places), abs=0.02)


@pytest.mark.parametrize("by_prefix", [True, False])
@pytest.mark.parametrize(("workers", "places"), [(3, 40), (8, 400)])
def test_hit_rates_of_sessions_are_those_of_simulated_caches(workers, places, by_prefix):
    """Sessions of 6 requests 10 s apart; each request leaves a longer context, which the next finds where this one went."""
    rng = np.random.default_rng(3)
    rate, requests, gap = 5.0, 6.0, 10.0  # per worker
    caches, found, serial = [Lru(places) for _ in range(workers)], [], 0
    events: list[tuple[float, int, int, int]] = []  # time, session, number of the request, worker of the one before
    now = 0.0
    while now < 3000.0:
        now += rng.exponential(requests / (rate * workers))
        serial += 1
        heapq.heappush(events, (now, serial, 0, int(rng.integers(workers))))
    while events:
        when, session, number, last = heapq.heappop(events)
        here = last if by_prefix else int(rng.integers(workers))
        hit = here == last and caches[here].held.pop((session, number - 1), False)
        caches[here].find(
            (session, number)
        )  # what a hit extends is one entry, what another worker holds is not asked for again
        if when > 1000.0:
            found.append(hit)
        if rng.random() < 1.0 - 1.0 / requests:
            heapq.heappush(events, (when + rng.exponential(gap), session, number + 1, here))
    cache = PrefixCache(1000, Sessions(requests, gap), TIERS, 8, Routed(workers, by_prefix))
    assert np.mean(found) == pytest.approx(hits(cache, places, rate), abs=0.02)


@pytest.mark.parametrize("workers", [2, 8, 32])
@pytest.mark.parametrize(("prefixes", "exponent"), [(50, 0.0), (400, 0.9), (5000, 1.2)])
def test_the_fullest_worker_is_that_of_drawn_homes(workers, prefixes, exponent):
    rng = np.random.default_rng(1)
    chance = np.arange(1, prefixes + 1.0) ** -exponent
    chance /= chance.sum()
    drawn = [np.bincount(rng.integers(0, workers, prefixes), chance, workers).max() * workers for _ in range(600)]
    assert fullest_worker(*zipf_groups(prefixes, exponent), workers) == pytest.approx(np.mean(drawn), rel=0.04)


@given(st.integers(1, 64), st.integers(1, 3000), st.floats(0, 1.5), st.floats(1, 500))
def test_routing_by_prefix_finds_no_less_and_balances_no_better(workers, prefixes, exponent, places):
    cache = PrefixCache(1000, Zipf(prefixes, exponent), TIERS, 8, Routed(workers, True))
    random = replace(cache, routed=Routed(workers, False))
    alone = replace(cache, routed=None)
    assert hits(cache, places) >= hits(random, places) - 1e-9
    assert hits(random, places) == hits(alone, places)  # each worker needs all prefixes
    assert 1.0 <= cache.imbalance <= workers and random.imbalance == alone.imbalance == 1.0
    assert cache.imbalance >= (workers * zipf_groups(prefixes, exponent)[1][0]) * (1 - 1e-3)
    if workers == 1:
        assert hits(cache, places) == hits(random, places) and cache.imbalance == 1.0


@given(st.integers(1, 64), st.floats(1, 50), st.floats(1, 500), st.floats(0.1, 50))
def test_sessions_that_wander_find_at_most_one_in_so_many_of_theirs(workers, requests, places, rate):
    stay = PrefixCache(1000, Sessions(requests, 20.0), TIERS, 8, Routed(workers, True))
    wander = replace(stay, routed=Routed(workers, False))
    assert hits(stay, places, rate) == hits(replace(stay, routed=None), places, rate)
    assert hits(wander, places, rate) <= wander.most_hits + 1e-9
    assert wander.most_hits == pytest.approx(stay.most_hits / workers, abs=1e-12)
