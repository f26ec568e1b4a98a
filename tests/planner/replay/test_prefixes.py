"""Prefix stores: found where a cache that drops the least recently used holds it, tier by tier."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.replay.prefixes import PrefixStore, Tiers
from tests.planner.replay.servers import requests_of


def store_of(prefixes, tiers):
    count = len(prefixes)
    requests = replace(requests_of(range(count), [2000] * count, [2] * count), prefixes=np.array(prefixes))
    return PrefixStore(tiers, requests, 1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 5), st.integers(0, 5))
def test_a_prefix_lies_as_deep_as_the_others_asked_for_since(prefixes, first, second):
    tiers = Tiers(1000.0, (float(first), float(second)), (1.0, 1.0), (0.0, 0.5), (0.0, 0.0), True)
    store = store_of(prefixes, tiers)
    for place, prefix in enumerate(prefixes):
        before = prefixes[:place][::-1]
        depth = len({*before[: before.index(prefix)]}) if prefix in before else 99
        wanted = (1000.0, 0.0) if depth < first else (1000.0, 0.5) if depth < first + second else (0.0, 0.0)
        assert store.find(place) == wanted


def test_a_stated_share_finds_its_prefix():
    tiers = Tiers(1000.0, (1.0,), (1.0,), (0.0,), (0.3,), False)
    store = store_of([-1] * 5000, tiers)
    found = sum(store.find(i)[0] > 0 for i in range(5000))
    assert abs(found - 1500) < 4 * np.sqrt(5000 * 0.3 * 0.7) and store.hits == found


def test_blocks_of_a_trace_are_found_from_the_first_on():
    requests = replace(requests_of(range(3), [2000, 1100, 2000], [2] * 3), blocks=[[1, 2, 3], [1, 2, 9], [4, 2, 3]])
    tiers = Tiers(512.0, (4.0,), (1.0,), (0.0,), (0.0,), True)
    store = PrefixStore(tiers, requests, 1)
    assert [store.find(i)[0] for i in range(3)] == [0.0, 1024.0, 0.0]


def test_without_a_cache_nothing_is_found():
    assert store_of([1, 1], None).find(1) == (0.0, 0.0)
