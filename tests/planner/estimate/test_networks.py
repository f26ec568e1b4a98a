"""Networks of 2026 through `estimate`: questions with known answers, each with where the answer comes from."""

import json

import pytest

from planner.cli.main import main

SLO = {"ttft": {"p95": "3600 s"}, "tpot": {"p95": "500 ms"}}


def estimated(capsys, tmp_path, architecture, system, chips, lengths, precision, **case):
    """Return the document of `estimate` for one question."""
    workload = {"kind": "serving", "architecture": architecture, "lengths": lengths, "slo": SLO, "disaggregation": "never",
                "precision": [precision], **case.pop("workload", {})}  # fmt: skip
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"workload": workload, "system": system, "chips": chips, "load": "max", **case}))
    assert main(["estimate", str(path), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_recurrent_state_limits_the_sequences_of_a_hybrid_network(capsys, tmp_path):
    """Qwen3.5-27B in 16 bit on one H200: states of 156.9 MB beside the cache leave 230 to 350 places, where 1,448 were printed before."""
    found = estimated(capsys, tmp_path, "Qwen3.5-27B", "DGX H200", 1, {"input": 1024, "output": 1024}, "bf16")
    assert 200 <= found["batch"] <= 350


def test_a_sparse_indexer_makes_long_prompts_cheaper(capsys, tmp_path):
    """DeepSeek-V3.2 beside V3 at 120,000 tokens: top-2,048 of the context, so 4 to 5 times less attention in prefill."""
    rates = {}
    for name in ("DeepSeek-V3", "DeepSeek-V3.2"):
        found = estimated(capsys, tmp_path, name, "DGX B200", 8, {"input": 120_000, "output": 1000}, "fp8")
        rates[name] = found["requests_per_s"]
    assert rates["DeepSeek-V3.2"] > 2.5 * rates["DeepSeek-V3"]


@pytest.mark.parametrize(("architecture", "system", "chips", "precision"), [
    ("Kimi-K3", "DGX B300", 8, "fp4"),  # 2.8T parameters; the published checkpoint is 1.42 to 1.56 TB
    ("DeepSeek-V4-Flash", "DGX B200", 4, "fp8"),
    ("NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "DGX H200", 8, "fp8"),  # the published checkpoint is 120 GB
])  # fmt: skip
def test_networks_that_were_refused_fit_where_they_run(
    capsys, tmp_path, architecture, system, chips, precision, weights_gb
):
    found = estimated(capsys, tmp_path, architecture, system, chips, {"input": 1024, "output": 1024}, precision)
    assert found["points"]["fitting"] > 0 and found["batch"] > 1
    assert found["pools"][0]["system"] == system


def test_a_network_without_a_shape_is_refused_in_one_sentence(capsys, tmp_path):
    workload = {"kind": "serving", "architecture": "Step-3", "lengths": {"input": 100, "output": 10}, "slo": SLO}
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"workload": workload, "system": "DGX H200", "chips": 8, "load": "max"}))
    assert main(["estimate", str(path)]) == 3
    told = capsys.readouterr().err
    assert "cannot be planned for" in told and "overrides" not in told and told.count("architecture:") == 1
