"""Prefix caches, drafts and engines in a plan: they change points as the models say, hold when verified, and cost nothing left out."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.evaluate.serving_state import drafting, prefix_cache
from planner.plan import parse_plan
from planner.resolve.resolver import resolve, resolve_document
from planner.spec.model import parse_spec
from planner.spec.serving import CacheTier, Drafting, PrefixSharing, Reuse
from planner.verify.plan import verify_plan

SPEC = {
    "name": "chat with a cache",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Qwen3-30B-A3B", "demand": {"requests_per_s": 30},
            "lengths": {"input": 8000, "output": 300, "input_cv": 0.5, "output_cv": 0.5}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "4 s"}, "tpot": {"p95": "50 ms"}}, "precision": ["bf16"],
        }
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["rail-optimised"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "300000 USD"}],
}  # fmt: skip
CACHE = {
    "prefix_tokens": 7000,
    "reuse": {"prefixes": 100000, "zipf": 0.9},
    "tiers": [
        {"name": "hbm", "capacity": "40 GB"},
        {"name": "dram", "capacity": "1 TB", "bandwidth": "200 GB/s", "latency": "20 us"},
    ],
}
DRAFTS = {"draft_tokens": 1, "acceptance": 0.85}


def spec(**workload) -> dict:
    found = copy.deepcopy(SPEC)
    found["workloads"][0] |= workload
    return found


def points(document: dict) -> list:
    return [point for pool in find_candidates(resolve_document(document)).pools for point in pool.points]


def most(document: dict) -> float:
    return max(point.capacity / point.chips for point in points(document))


def test_nothing_found_and_nothing_drafted_is_as_if_they_were_left_out():
    """Given hit rate 0 takes the path of caches, and must end where plain serving does."""
    plain, zero = points(spec()), points(spec(cache={"prefix_tokens": 2500, "hit_rate": 0}))
    assert [p.uses[0].layout for p in plain] == [p.uses[0].layout for p in zero]
    assert [p.capacity for p in zero] == pytest.approx([p.capacity for p in plain], rel=1e-9)


@pytest.mark.parametrize("mode", ["never", "always"])
def test_they_raise_the_capacity_under_the_limits(mode):
    plain = most(spec(disaggregation=mode))
    assert most(spec(disaggregation=mode, cache=CACHE)) > 1.05 * plain
    assert most(spec(disaggregation=mode, speculation=DRAFTS)) > 1.05 * plain
    # Groups are tried at few ratios and batches, so that a loss may hide behind a lucky one.
    assert most(spec(disaggregation=mode, speculation={**DRAFTS, "acceptance": 0})) < 1.02 * plain


def test_a_plan_with_them_costs_less_and_holds():
    plain, better = (
        planner.solve(document) for document in (spec(), spec(cache=CACHE, speculation=DRAFTS, engine="vllm"))
    )
    assert better["objective"]["value"] < plain["objective"]["value"]
    for plan in (plain, better):
        assert plan.status in ("optimal", "within_gap") and not verify_plan(plan)
    document = json.loads(better.to_json())
    document["spec"]["workloads"][0]["cache"]["tiers"][1]["bandwidth"] = "1 MB/s"
    assert verify_plan(parse_plan(json.dumps(document).encode(), "plan")), (
        "the same points on a tier that cannot carry them must not pass"
    )


def test_model_flops_leave_out_what_is_found():
    plain, cached = (
        points(spec(disaggregation="never", cache={"prefix_tokens": 7999, "hit_rate": rate})) for rate in (0, 1)
    )
    per_request = [max(p.mfu / p.capacity * p.chips for p in found) for found in (plain, cached)]
    assert per_request[1] == pytest.approx(per_request[0] * (1 + 300) / 8300, rel=0.05)


def test_a_tier_with_a_price_belongs_to_an_estimate():
    priced = copy.deepcopy(CACHE)
    priced["tiers"][1]["price"] = "8000 USD"
    with pytest.raises(SpecError) as error:
        resolve(parse_spec(spec(cache=priced)))
    assert [problem.path for problem in error.value.problems] == ["workloads[0].cache.tiers[1].price"]


def test_blocks_become_what_the_models_take():
    cache = prefix_cache(PrefixSharing.model_validate(CACHE), 8)
    assert (
        cache.hbm_bytes_per_chip == 5e9
        and cache.tiers[1].bytes_per_chip == 125e9
        and cache.tiers[1].bytes_per_s == 25e9
    )
    assert (cache.reuse.prefixes, cache.reuse.exponent, cache.domain_chips) == (100000, 0.9, 8)
    sessions = prefix_cache(
        PrefixSharing(
            prefix_tokens=10, reuse=Reuse(requests=4, gap="30 s"), tiers=[CacheTier(name="hbm", capacity="8 GB")]
        ),
        8,
    )
    assert (sessions.reuse.requests, sessions.reuse.gap_s) == (4, 30)
    given = prefix_cache(PrefixSharing(prefix_tokens=10, hit_rate=0.5), 8)
    assert given.reuse.hit_rate == 0.5 and given.hbm_bytes_per_chip == 0
    assert prefix_cache(None, 8) is None and drafting(None) is None
    assert drafting(Drafting(draft_tokens=2, acceptance=0.5, draft_share=0.1)).draft_share == 0.1
