"""The case of a scale-up domain: a larger domain and a faster link never slow it down, and latency of hops hardly does."""

from __future__ import annotations

import copy
import json

import pytest

from planner.estimate.answer import estimate

HOP = "fabrics/RoCE v2 400G (Tomahawk 4 / SN5400)/hop_latency_s"
COLLECTIVES = {
    "workload": {
        "kind": "serving",
        "architecture": "DeepSeek-V3",
        "lengths": {"input": 2000, "output": 500},
        "precision": ["int8"],
        "disaggregation": "never",
    },
    "system": "Atlas 800T A2",
    "chips": 64,
    "topology": "rail-optimised",
    "fabric": "RoCE v2 400G",
    "layout": {"tp": 1, "pp": 1, "dp": 64, "ep": 64},
    "load": {"concurrency": 2048},
}


@pytest.fixture(scope="module")
def case(root):
    return json.loads((root / "examples/cases/supernode.json").read_text(encoding="utf-8"))


def rate(case: dict, domain: int, link: str) -> float:
    case = copy.deepcopy(case)
    figures = case["catalog"]["systems"][0]["figures"]
    for name in ("chips", "scaleup_chips"):
        figures[name]["value"] = f"{domain} chips"
    figures["scaleup_bytes_per_s"]["value"] = link
    found = estimate(case).answer
    assert found is not None
    return found["tokens_per_s"]


def test_a_larger_domain_and_a_faster_link_train_faster(case):
    small, slow, large = rate(case, 8, "392 GB/s"), rate(case, 512, "98 GB/s"), rate(case, 512, "392 GB/s")
    assert max(small, slow) < large < 1.25 * small


def test_hops_of_a_shared_cloud_cost_less_than_a_thousandth_and_lost_bandwidth_a_few_per_cent():
    def tokens(hop: str, nic: str) -> float:
        figures = {HOP: hop, "systems/Atlas 800T A2/nic_bytes_per_s": nic}
        overrides = {path: {"value": value, "note": "what if"} for path, value in figures.items()}
        found = estimate({**COLLECTIVES, "overrides": overrides}).answer
        assert found is not None
        return found["tokens_per_s"]

    rack, cloud, stalled = tokens("50 ns", "25 GB/s"), tokens("700 ns", "25 GB/s"), tokens("700 ns", "15.625 GB/s")
    assert 0.999 * rack < cloud < rack
    assert 0.9 * rack < stalled < cloud
