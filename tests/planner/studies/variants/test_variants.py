"""Variants of a case: features taken out one by one, values of keys, and what their answers are compared by."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INVALID, OK
from planner.studies.variants.answer import answer_variants
from planner.studies.variants.features import FEATURES, without
from planner.studies.variants.values import swept

CACHE = {
    "prefix_tokens": 7500,
    "reuse": {"requests": 8, "gap": "90 s"},
    "tiers": [{"name": "hbm", "capacity": "40 GB"}, {"name": "dram", "capacity": "500 GB", "bandwidth": "100 GB/s"}],
}
SERVING = {
    "workload": {
        "kind": "serving",
        "architecture": "Llama-3.1-8B",
        "lengths": {"input": 8000, "output": 50},
        "slo": {"ttft": {"p95": "2 s"}},
        "precision": ["fp8"],
        "engine": "persistent kernels",
        "cache": CACHE,
    },
    "system": "DGX H100",
    "chips": 8,
    "load": "max",
    "pools": {"prefill": {"layout": {"tp": 1}}, "decode": {"layout": {"tp": 1}}},
}
TRAINING = {
    "workload": {
        "kind": "training",
        "architecture": "Llama-3.1-8B",
        "tokens": "10B",
        "deadline": "30 d",
        "sequence_tokens": 4096,
        "batch_tokens": "1048576",
        "precision": ["bf16"],
    },
    "system": "DGX H100",
    "chips": 32,
}


def test_each_feature_is_taken_out_alone_and_then_all_of_them():
    found = without(SERVING, ["kv_tiers", "pools", "persistent_kernels", "pools"])
    assert [next(iter(each.changes.values())) for each in found] == [
        "nothing: the case as stated",
        "kv_tiers",
        "pools",
        "persistent_kernels",
        "kv_tiers, pools, persistent_kernels",
    ]
    tiers, pools, kernels = (each.document for each in found[1:4])
    assert tiers["workload"]["cache"]["tiers"] == CACHE["tiers"][:1] and "pools" in tiers
    assert "pools" not in pools and pools["workload"]["disaggregation"] == "never"
    assert "engine" not in kernels["workload"] and kernels["workload"]["cache"] == CACHE
    assert found[0].document == SERVING and SERVING["workload"]["engine"] == "persistent kernels"


@given(st.lists(st.sampled_from(["kv_tiers", "prefix_cache", "pools", "persistent_kernels"]), min_size=1, unique=True))
def test_what_is_taken_out_is_no_longer_stated(names):
    last = without(SERVING, names)[-1].document
    assert not any(FEATURES[name](deepcopy(dict(last))) for name in names)


def test_rows_are_the_answers_of_the_changed_cases_themselves():
    found = answer_variants(without(SERVING, ["kv_tiers", "pools"]))
    alone = {**SERVING, "workload": {**SERVING["workload"], "disaggregation": "never"}}
    del alone["pools"]
    by_hand = [estimate(each).answer for each in (SERVING, alone)]
    assert [found.rows[place]["tokens_per_s"] for place in (0, 2)] == [each["tokens_per_s"] for each in by_hand]
    assert found.rows[2]["relative"] == by_hand[1]["tokens_per_s"] / by_hand[0]["tokens_per_s"]
    assert found.rows[1]["tokens_per_s"] < found.rows[0]["tokens_per_s"]  # fewer prefixes are found


def test_features_that_are_unknown_or_not_stated_are_refused_together():
    with pytest.raises(SpecError) as caught:
        without(SERVING, ["speculation", "kv_teirs"])
    texts = [problem.message for problem in caught.value.problems]
    assert "it states: kv_tiers, prefix_cache, pools, persistent_kernels" in texts[0] and "kv_tiers" in texts[1]
    with pytest.raises(SpecError, match="states: none"):
        without(TRAINING, [])


def test_a_share_of_the_network_and_its_latency_are_swept_in_every_combination():
    found = answer_variants(swept(TRAINING, ["network_share=0.25,1", "fabric.latency=50 ns,50 us"]))
    steps = [row["step_s"] for row in found.rows]
    assert [tuple(row["changes"].values()) for row in found.rows] == [
        (0.25, "50 ns"),
        (0.25, "50 us"),
        (1, "50 ns"),
        (1, "50 us"),
    ]
    assert steps[0] > steps[2] and steps[1] > steps[0] and steps[3] > steps[2]


def test_a_share_of_the_network_is_a_slower_port():
    """Half of the rate of each port and ports of half the rate are the same network."""
    half = estimate({**TRAINING, "network_share": 0.5}).answer
    figure = "systems/DGX H100/nic_bytes_per_s"
    slow = estimate({**TRAINING, "overrides": {figure: {"value": "25 GB/s", "note": "half of 50 GB/s"}}}).answer
    assert half["step_s"] == pytest.approx(slow["step_s"], rel=1e-9)


def test_values_that_lead_nowhere_are_refused_together():
    with pytest.raises(SpecError) as caught:
        swept(TRAINING, ["nonsense", "fabric.latency=1 us:1 us:3", "system[0]=1"])
    assert len(caught.value.problems) == 3


def test_commands_and_library_answer_alike(capsys, tmp_path):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(TRAINING))
    assert main(["layouts", str(path), "--sweep", "chips=16,32", "--format", "json"]) == OK
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(planner.estimate(path, sweep=["chips=16,32"]).document))
    assert main(["estimate", str(path), "--sweep", "chips=16,32"]) == OK
    assert "Of the first row" in capsys.readouterr().out
    assert main(["estimate", str(path), "--sweep", "chips=16", "--without", "pools"]) == INVALID
