"""Questions with a published answer that the program once missed by factors: weight formats, states, sparse attention, true memory.

Others of the kind stand where their rule does: `tests/models/test_formats.py` (sizes of checkpoints), `tests/models/transformer`
(states, index keys), `tests/planner/evaluate/test_engine_memory.py` (logged tokens of cache) and `test_slow_links.py` (wide groups).
"""

from __future__ import annotations

import pytest

import planner
from catalog.lookup import shipped_catalog
from models.transformer.attention import attention_flops, read_bytes_per_rank
from planner.calibration.architectures import shape_of_record
from planner.design.codesign.answer import codesign
from planner.estimate.answer import Estimate, estimate


def ask(
    architecture: str, system: str, chips: int, precision: str, tokens: tuple[int, int], clients: int, **more
) -> Estimate:
    lengths = {"input": tokens[0], "output": tokens[1], "input_cv": 0, "output_cv": 0}
    return estimate({
        "workload": {
            "kind": "serving", "architecture": architecture, "lengths": lengths, "precision": [precision], "disaggregation": "never",
            **more.pop("workload", {}),
        },
        "system": system, "chips": chips, "load": {"concurrency": clients}, **more,
    })  # fmt: skip


def memory(*args, **more) -> dict:
    found = ask(*args, **more)
    assert found.answer is not None, found.reason
    (row,) = found.answer["memory"]
    return row


def bought(architecture: str, system: str, price: str, precision: str) -> list[tuple[str, int]]:
    """The systems that a plan of 500 output tokens/s takes."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": architecture, "demand": {"output_tokens": "500 tokens/s"},
        "lengths": {"input": 1000, "output": 500}, "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"tpot": {"p95": "60 ms"}, "ttft": {"p95": "3 s"}}, "precision": [precision],
    }  # fmt: skip
    plan = planner.solve({
        "name": "one system", "currency": "USD", "horizon": {"start": "2027-01-01", "years": 1}, "workloads": [chat],
        "sites": [{"region": "us-virginia", "systems": [system]}], "offers": [{"system": system, "how": "on_demand", "price": price}],
    }, threads=1)  # fmt: skip
    return [(row["system"], row["count"]) for row in plan["fleet"]]


def test_one_system_holds_the_published_checkpoint_and_a_plan_buys_no_second():
    """Kimi-K2.5 in INT4: 595 GB on 8 H200 (vLLM recipe); Kimi-K3 in four bits: 1.42 to 1.56 TB of the 2.3 TB of 8 B300."""
    assert bought("Kimi-K2.5", "DGX H200", "28 USD/h", "int4") == [("DGX H200", 1)]
    assert bought("Kimi-K3", "DGX B300", "50 USD/h", "fp4") == [("DGX B300", 1)]
    weights = memory("Kimi-K3", "DGX B300", 8, "fp4", (8000, 1000), 8, layout={"tp": 8})["weights_bytes"]
    assert 1.42e12 < 8 * weights < 1.56e12


def test_the_width_of_experts_may_be_overridden():
    figure = {"architectures/Kimi-K3/expert_hidden": {"value": "3584", "note": "its published config"}}
    plain, stated = (
        memory("Kimi-K3", "DGX B300", 8, "fp4", (1024, 1024), 8, layout={"tp": 8}, **more)
        for more in ({}, {"overrides": figure})
    )
    assert stated == plain
    figure["architectures/Kimi-K3/expert_hidden"]["value"] = "1792"
    halved = memory("Kimi-K3", "DGX B300", 8, "fp4", (1024, 1024), 8, layout={"tp": 8}, overrides=figure)
    assert halved["weights_bytes"] == pytest.approx(0.5 * plain["weights_bytes"], rel=0.05)


def test_one_client_of_r1_in_int4_is_as_fast_as_measured():
    """16.1 ms a token on 8 H100 (tenstorrent/tt-inference-server issue 356, vLLM).

    Predicted 12.7 ms, 21 % too short, by the constants of November 2026; the fit before was within 15 %.
    """
    found = ask("DeepSeek-R1", "DGX H100", 8, "int4", (1024, 128), 1, workload={"engine": "vllm"}).answer
    assert found is not None and found["latency_s"]["tpot"]["mean"] == pytest.approx(0.0161, rel=0.22)


def test_states_leave_so_many_places():
    """Qwen3.5-27B in 16 bit on one H200: 156.9 MB of state and 72 MB of cache a sequence of 1,200 tokens leave 310 to 350 places."""
    row = memory("Qwen3.5-27B", "DGX H200", 1, "bf16", (1000, 200), 512)
    assert 310 <= row["places"] <= 350
    assert row["state_bytes"] / row["places"] == pytest.approx(156.9e6, rel=0.01)


def test_a_sparse_indexer_saves_attention_and_reads_of_the_cache():
    """DeepSeek-V3.2 beside V3 at 120,000 tokens: attention over 2,048 of them and the indexer over all; a quarter of the work, an eighth of the reads."""
    dense, sparse = (
        shape_of_record(shipped_catalog().get("architectures", name)) for name in ("DeepSeek-V3", "DeepSeek-V3.2")
    )
    work = attention_flops(dense, 120_000, 120_000) / attention_flops(sparse, 120_000, 120_000)
    reads = read_bytes_per_rank(dense, 120_000, 2, 1) / read_bytes_per_rank(sparse, 120_000, 2, 1)
    assert 3.5 < work < 5.5 and 6.0 < reads < 9.0


def test_a_network_of_sixty_gigabytes_is_not_served_from_two_cards_of_thirty_two():
    """gemma-4-31b: 30.70B parameters, a checkpoint of 62.5 GB (its config); 2 RTX 5090 have 64 GB before any reserve."""
    config = {
        "model_type": "gemma4_text", "attention_k_eq_v": True, "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 5376, "intermediate_size": 21504, "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
        "num_attention_heads": 32, "num_global_key_value_heads": 4, "num_hidden_layers": 60, "num_key_value_heads": 16,
        "sliding_window": 1024, "tie_word_embeddings": True, "vocab_size": 262144, "max_position_embeddings": 262144,
    }  # fmt: skip
    box = {
        "name": "two cards", "text": {"chip": "RTX 5090"},
        "figures": {key: {"value": value, "unit": unit, "note": "trial"} for key, value, unit in (("chips", 2, "chip"), ("power_w", 1500, "W"))},
    }  # fmt: skip
    own = {"architectures": [{"name": "house", "config": config}], "systems": [box]}
    found = ask("house", "two cards", 2, "bf16", (1000, 200), 1, catalog=own)
    assert found.answer is None and found.lack is not None and found.lack["lacks_bytes"] > 0
    assert 2 * found.lack["weights_bytes"] == pytest.approx(61.4e9, rel=0.03)


def test_tensor_ranks_of_a_node_are_in_the_measured_order():
    """QwQ-32B on A100, 1 and 16 clients (vllm-project/vllm issue 16300): 36, 50, 63 and 528, 660, 760 tokens/s with 2, 4 and 8 chips."""
    for clients in (1, 16):
        rates = []
        for tp in (2, 4, 8):
            found = ask(
                "QwQ-32B",
                "DGX A100 80GB",
                tp,
                "bf16",
                (2, 200),
                clients,
                layout={"tp": tp},
                workload={"engine": "vllm"},
            )
            assert found.answer is not None, found.reason
            rates.append(found.answer["tokens_per_s"])
        assert rates == sorted(rates)


@pytest.mark.parametrize(("architecture", "system", "chips", "precision"), [
    ("Qwen3.5-27B", "DGX H200", 1, "bf16"), ("DeepSeek-V3.2", "DGX B200", 8, "fp8"), ("gpt-oss-120b", "DGX H100", 1, "fp4"),
    ("NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "DGX H200", 8, "fp8"),
])  # fmt: skip
def test_co_design_describes_networks_as_estimates_do(architecture, system, chips, precision):
    case = {
        "workload": {
            "kind": "serving", "architecture": architecture, "lengths": {"input": 4096, "output": 512}, "precision": [precision],
            "slo": {"ttft": {"p95": "3600 s"}, "tpot": {"p95": "500 ms"}}, "disaggregation": "never",
        },
        "system": system, "chips": chips, "load": "max",
    }  # fmt: skip
    found, row = estimate(case).answer, codesign({**case, "codesign": {"precision": [precision]}}).rows[0]
    assert found is not None
    for key in ("tokens_per_s_per_chip", "batch", "memory_bytes"):
        assert row[key] == pytest.approx(found[key], rel=1e-9)
