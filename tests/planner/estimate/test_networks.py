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
def test_networks_that_were_refused_fit_where_they_run(capsys, tmp_path, architecture, system, chips, precision):
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


@pytest.mark.parametrize(("architecture", "precision", "system", "places"), [
    ("Qwen3.5-27B", "bf16", "DGX H200", 28), ("Qwen3.5-27B", "fp8", "DGX H200", 38), ("Qwen3.5-27B", "bf16", "DGX B200", 43),
    ("Qwen3.5-27B", "fp8", "DGX B200", 53), ("Qwen3.5-35B-A3B", "bf16", "DGX H200", 58), ("Qwen3.5-35B-A3B", "fp8", "DGX H200", 95),
    ("Qwen3.5-35B-A3B", "bf16", "DGX B200", 96), ("Qwen3.5-35B-A3B", "fp8", "DGX B200", 129),
])  # fmt: skip
def test_a_pool_of_states_limits_running_requests_as_measured(
    capsys, tmp_path, architecture, precision, system, places
):
    """Places of saturated runs of Qwen3.6 with the same shapes (output rate x TPOT; SGLang 0.5.15 documentation, 8,192 tokens in, 1,024 out)."""
    workload = {"engine": "sglang", "kv_precision": ["bf16"]}
    lengths = {"input": 8192, "output": 1024, "input_cv": 0, "output_cv": 0}
    found = estimated(
        capsys, tmp_path, architecture, system, 1, lengths, precision, workload=workload, load={"concurrency": 1024}
    )
    assert found["batch"] == pytest.approx(places, rel=0.25)


def test_tensor_ranks_hold_whole_kv_heads(capsys, tmp_path):
    """Phi-4 has 10 KV heads: 2 and 5 tensor ranks take whole heads, 4 and 8 would hold parts of one, which no engine runs."""
    workload = {
        "kind": "serving",
        "architecture": "Phi-4",
        "lengths": {"input": 1000, "output": 200},
        "slo": SLO,
        "precision": ["bf16"],
    }
    for tp, code in ((2, 0), (4, 3)):
        path = tmp_path / "case.json"
        path.write_text(
            json.dumps({"workload": workload, "system": "DGX H100", "chips": 8, "layout": {"tp": tp}, "load": "max"})
        )
        assert main(["estimate", str(path)]) == code
    assert "KV heads" in capsys.readouterr().err
