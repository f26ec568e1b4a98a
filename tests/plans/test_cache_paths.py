"""Paths from tiers of KV cache to the chips: the rows against figures by hand, the page, and `verify`."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

import planner
from planner.plan import Plan
from planner.report.load.paths import path_lines
from planner.verify.points import cache_paths

LAYER_BYTES = 2 * 8 * 128 * 2  # keys and values of 8 heads of 128, in 16 bit
TOKEN_BYTES = 80 * LAYER_BYTES  # Llama-3.1-70B
PREFIX = 6000
SPEC: dict[str, Any] = {
    "schema_version": 1,
    "name": "cache paths",
    "horizon": {"start": "2027-01-01", "years": 1},
    "objective": {"minimise": "cost"},
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-70B",
            "demand": {"requests_per_s": 8},
            "lengths": {"input": 8000, "output": 300},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "10 s"}, "tpot": {"p95": "80 ms"}},
            "precision": ["bf16"],
            "kv_precision": ["bf16"],
            "disaggregation": "never",
            "cache": {
                "prefix_tokens": PREFIX,
                "hit_rate": 0.6,
                "tiers": [{"name": "dram", "capacity": "1 TB", "bandwidth": "200 GB/s"}],
            },
        }
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": 100}],
    "simplicity": {"within": 0, "most_kinds": 1},
    "solver": {"gap": 1e-6, "replicas": "divisible", "time_limit": "60 s"},
}
SESSION = {
    "calls": 5,
    "growth": 400,
    "wait": "60 s",
    "caches": ["offloaded"],
}


def solved(**changes: Any) -> Plan:
    spec = copy.deepcopy(SPEC)
    for key, value in changes.items():
        if value is None:
            spec["workloads"][0].pop(key)
        else:
            spec["workloads"][0][key] = value
    return planner.solve(spec)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solved()


def points_of(plan: Plan) -> list[Any]:
    return list(plan.document["workloads"][0]["points"])


def test_a_stated_share_of_requests_reads_its_prefix_over_the_host_link(plan: Plan) -> None:
    """A worker of n of 8 chips has n/8 of 200 GB/s, and 60 % of its requests read 6,000 tokens of 80 layers."""
    for point in points_of(plan):
        (path,) = point["cache_paths"]
        layout, workers = point["pools"][0]["layout"], point["pools"][0]["workers"]
        chips = layout["tp"] * layout["pp"] * layout["dp"]
        assert path["tier"] == "dram"
        assert path["bytes_per_s"] == pytest.approx(200e9 * chips * workers / 8)
        assert path["used_bytes_per_s"] == pytest.approx(point["capacity"] * 0.6 * PREFIX * TOKEN_BYTES)
        assert path["share"] == pytest.approx(path["used_bytes_per_s"] / path["bytes_per_s"])
    assert planner.verify_plan(plan) == []


def test_the_page_names_tier_bandwidth_and_use(plan: Plan) -> None:
    share = max(point["cache_paths"][0]["share"] for point in points_of(plan))
    (line,) = path_lines(plan)
    assert line.startswith(f"chat at us-virginia: KV caches over host memory, {share:.1%} of ")


def test_later_calls_of_a_session_read_what_it_left_over_the_link_of_the_host() -> None:
    """Of 5 calls 4 find their context: the first prompt, and 400 + 300 tokens of each of 2.5 calls before on average, less what the tool adds."""
    tokens = 8000 + 2.5 * 700 - 400
    plan = solved(cache=None, session=SESSION)
    for point in points_of(plan):
        (path,) = point["cache_paths"]
        assert path["tier"] == "dram"
        assert path["used_bytes_per_s"] == pytest.approx(point["capacity"] * 0.8 * tokens * TOKEN_BYTES)
    assert planner.verify_plan(plan) == []


def test_caches_in_the_memory_of_the_chips_need_no_path() -> None:
    plan = solved(cache={"prefix_tokens": PREFIX, "hit_rate": 0.6})
    assert all("cache_paths" not in point for point in points_of(plan))
    assert path_lines(plan) == []


@pytest.mark.parametrize("key", ["bytes_per_s", "used_bytes_per_s", "share"])
def test_verify_finds_another_figure_of_a_path(plan: Plan, key: str) -> None:
    changed = copy.deepcopy(plan.document)
    path = changed["workloads"][0]["points"][0]["cache_paths"][0]
    path[key] *= 1.01  # type: ignore[literal-required]
    assert any(f"cache_paths.0.{key}" in str(each) or key in str(each) for each in planner.verify_plan(Plan(changed)))


def test_verify_finds_a_missing_path(plan: Plan) -> None:
    changed = copy.deepcopy(plan.document)
    del changed["workloads"][0]["points"][0]["cache_paths"]
    assert planner.verify_plan(Plan(changed))


@pytest.mark.parametrize("tiers", [[], [("hbm", math.inf), ("dram", 2e11)]])
def test_verify_finds_more_or_fewer_tiers_than_requests_read_from(
    plan: Plan, tiers: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_paths, "_tiers", lambda workload, option: iter(tiers))
    found = planner.verify_plan(plan)
    assert any(f"from 1 tiers, while spec and system have {len(tiers)}" in str(each) for each in found)
