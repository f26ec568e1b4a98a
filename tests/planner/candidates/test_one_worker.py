"""Separate pools are not searched where one worker does all: what is left out never takes fewer systems; equal networks share evaluations."""

from __future__ import annotations

import pytest

from planner.candidates import one_worker
from planner.candidates.search import find_candidates
from planner.resolve.resolver import resolve_document

LITTLE, MUCH = 0.05, 40.0
TOLD = "one worker with a single pool serves the busiest hour"


def spec(demands, **changes):
    """Qwen3-8B once for each demand, on a bought system, with a network and without."""
    workloads = [
        {
            "name": f"chat {i}", "kind": "serving", "architecture": "Qwen3-8B", "demand": {"requests_per_s": rate},
            "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1.0}],
            "slo": {"ttft": {"p95": "3 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], **changes,
        }
        for i, rate in enumerate(demands)
    ]  # fmt: skip
    offers = [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}]
    sites = [{"region": "us-virginia", "topologies": ["rail-only"]}]
    return {"name": "many", "workloads": workloads, "sites": sites, "offers": offers, "solver": {"replicas": "whole"}}


def found(demands, **changes):
    return find_candidates(resolve_document(spec(demands, **changes), ()))


def systems(point):
    return sum(use.systems for use in point.uses)


def left_out(candidates, workload):
    return sum(count for reason, count in candidates.dropped[workload].items() if reason.startswith(TOLD))


@pytest.mark.parametrize("rate", [LITTLE, MUCH])
def test_what_is_left_out_takes_no_fewer_systems_than_one_worker_that_does_all(rate, monkeypatch):
    with_rule = found([rate])
    monkeypatch.setattr(one_worker, "may_suffice", lambda *_: False)
    without = found([rate])
    kept, all_points = ([p for pool in each.pools for p in pool.points] for each in (with_rule, without))
    enough = [systems(p) for p in kept if len(p.uses) == 1 and p.capacity >= rate]
    figures = {(p.capacity, systems(p)) for p in kept}
    lost = [p for p in all_points if (p.capacity, systems(p)) not in figures]
    assert all(len(p.uses) > 1 and systems(p) >= min(enough) for p in lost)
    assert figures <= {(p.capacity, systems(p)) for p in all_points}
    assert with_rule.evaluated <= without.evaluated


def test_little_demand_is_not_searched_and_much_is():
    both = found([LITTLE, MUCH])
    assert left_out(both, "chat 0") > 0 and left_out(both, "chat 1") == 0


@pytest.mark.parametrize(
    "changes", [{"disaggregation": "always"}, {"redundancy": "N+1"}, {"demand": {"requests_per_s": LITTLE, "deferral": "4 h"}}]
)  # fmt: skip
def test_nothing_is_left_out_where_one_worker_may_not_be_enough(changes):
    assert left_out(found([LITTLE], **changes), "chat 0") == 0


def test_networks_that_differ_in_name_alone_share_evaluations():
    one, three = found([LITTLE]), found([LITTLE] * 3)
    assert three.evaluated == one.evaluated
    mine = [[(p.capacity, systems(p)) for p in pool.points] for pool in three.pools]
    assert mine == 3 * [[(p.capacity, systems(p)) for p in one.pools[0].points]]
    assert [point.workload.name for pool in three.pools for point in pool.points[:1]] == ["chat 0", "chat 1", "chat 2"]
