"""Which groups of prefill and decode workers, and which layouts, go on to the program."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from models.transformer.architecture import Architecture
from planner.candidates.disaggregated import without_replaceable
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.group_selection import THROUGHPUT_TIE_TOL, RankedGroups
from planner.candidates.pairs import connected_pairs
from planner.candidates.serving import serving_layouts, within_demand
from planner.evaluate.serving import systems_per_replica
from planner.resolve.resolver import resolve_document

MOE = Architecture(
    layers=4, hidden=1024, heads=16, kv_heads=4, head_dim=64, ffn=2048, vocab=1000, experts=64, topk=4, expert_ffn=512
)


def random_groups(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first, second, rate = rng.uniform(0.5, 8, (3, 200))
    return first, second, np.where(rng.uniform(size=200) < 0.3, 0.0, rate)


@pytest.mark.parametrize("seed", range(20))
def test_first_group_kept_is_as_good_as_the_best_and_as_small_as_can_be(seed):
    first, second, rate = random_groups(seed)
    worth = (1.0, 3.0)
    kept = RankedGroups.of(first, second, rate).hull().fewest_systems(worth, most=3)
    able = np.flatnonzero(rate)
    cost = (worth[0] * first[able] + worth[1] * second[able]) / rate[able]
    as_good = able[cost <= (1 + THROUGHPUT_TIE_TOL) * cost.min()]
    assert kept[0] == as_good[np.argmin(rate[as_good])]
    assert len(kept) <= 3 and (rate[kept] > 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_best_at_some_other_worth(seed):
    first, second, rate = random_groups(seed)
    kept = RankedGroups.of(first, second, rate).hull().fewest_systems((1.0, 1.0), most=3)
    able = np.flatnonzero(rate)
    winners = {
        int(able[np.argmin((first[able] + w * second[able]) / rate[able])]) for w in np.geomspace(1e-4, 1e4, 4001)
    }
    assert set(kept[1:]) <= winners


@pytest.mark.parametrize("seed", range(20))
def test_groups_ranked_once_give_the_hull_of_any_of_them(seed):
    """Figures of few values, so that many groups tie: the first of them by position is taken either way."""
    rng = np.random.default_rng(seed)
    first, second, rate = rng.integers(1, 4, (3, 300)) * 1.0
    ranked = RankedGroups.of(first, second, rate)
    kept = rng.random(300) < 0.4
    some, alone = ranked.hull(kept[ranked.positions]), RankedGroups.of(first, second, np.where(kept, rate, 0.0)).hull()
    assert some.fewest_systems((1.0, 2.0), 3) == alone.fewest_systems((1.0, 2.0), 3)
    able = np.flatnonzero(kept)
    cost = (first + 2.0 * second)[able] / rate[able]
    as_good = able[cost <= (1 + THROUGHPUT_TIE_TOL) * cost.min()]
    assert some.fewest_systems((1.0, 2.0), 1) == [as_good[np.argmin(rate[as_good])]]


def test_no_group_where_none_meets_the_limits():
    assert RankedGroups.of(np.ones(3), np.ones(3), np.zeros(3)).hull().fewest_systems((1.0, 1.0), most=3) == []


def test_replicas_beyond_the_first_of_a_layout_that_serves_the_whole_demand_are_dropped():
    workload = SimpleNamespace(peak_requests_per_s=4.0)
    least_cost = SimpleNamespace(spec=SimpleNamespace(objective=SimpleNamespace(maximise=None)))
    most_throughput = SimpleNamespace(spec=SimpleNamespace(objective=SimpleNamespace(maximise="throughput")))
    rate = np.array([[0.0, 3.0, 4.0, 5.0], [0.0, 3.0, 5.0, 6.0], [9.0, 8.0, 7.0, 0.0], [1.0, 2.0, 3.0, 0.0]])
    expected = [[0.0, 3.0, 4.0, 0.0], [0.0, 3.0, 5.0, 0.0], [0.0, 0.0, 7.0, 0.0], [1.0, 2.0, 3.0, 0.0]]
    assert within_demand(rate, workload, least_cost).tolist() == expected
    assert within_demand(rate, workload, most_throughput).tolist() == rate.tolist()


def test_experts_are_spread_over_whole_systems_only_across_a_network():
    system = SimpleNamespace(chips=8, scaleup_chips=8, host_chips=1)
    alone, networked = serving_layouts(MOE, system, False), serving_layouts(MOE, system, True)
    assert max(alone.chips) == 8
    wide = np.flatnonzero((networked.pp == 1) & (networked.chips > 8) & (networked.tp <= 8))
    assert sorted(networked.dp[wide].tolist()) == [16, 24, 32, 48, 64]
    assert (networked.ep[wide] == networked.dp[wide]).all() and (networked.tp[wide] == 1).all()
    assert (
        systems_per_replica(system, networked.chips[wide], networked.pp[wide]).tolist()
        == (networked.dp[wide] / 8).tolist()
    )


def test_a_pair_of_kinds_must_beat_separate_pools_on_each_kind():
    one, two = SimpleNamespace(name="one"), SimpleNamespace(name="two")

    def pair(first, second, capacity):
        return SimpleNamespace(fleet_options=(first, second), systems=(1.0, 1.0), capacity=capacity, exchange=None)

    same_one, same_two = pair(one, one, 4.0), pair(two, two, 2.0)  # 2 and 1 per system
    weak, strong = pair(one, two, 3.0), pair(two, one, 3.2)
    assert without_replaceable([weak, same_one, strong, same_two], []) == [same_one, same_two, strong]


def test_no_pair_of_pools_stands_at_two_sites(tiny):
    """All owned options on one design, at two sites and of two systems, and a rented kind at both."""
    document = tiny()
    document["sites"] = [{"region": region} for region in ("us-virginia", "us-texas")]
    document["offers"] = [{"system": name, "how": "buy"} for name in ("DGX H100", "DGX H200")]
    document["offers"].append({"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"})
    options, _ = build_fleet_options(resolve_document(document))
    pairs = list(connected_pairs(options))
    assert all(first.site is second.site for first, second in pairs)
    assert {first.site.region for first, _ in pairs} == {"us-virginia", "us-texas"}
    assert any(first.system is not second.system for first, second in pairs)
