"""Laws of serving at the edges, through `estimate`: questions whose answer follows from what can be held, sent or computed."""

import pytest

from planner.estimate.answer import estimate


def found(architecture, system, chips, lengths, precision="fp8", workload=None, **case):
    """Return the answer to one question in plain values."""
    asked = {
        "kind": "serving",
        "architecture": architecture,
        "lengths": lengths,
        "precision": [precision],
        **(workload or {}),
    }
    answer = estimate({"workload": asked, "system": system, "chips": chips, "load": "max", **case}).answer
    assert answer is not None
    return answer


def test_answers_of_spread_lengths_take_the_memory_that_steps_read():
    """Llama-3.1-70B in 8 bit on two H100: 38 GB of caches hold 469,000 tokens. Answers of cv 2 hold 500 + 999 (1 + 4)/2 each, so 156 run."""
    at = {
        cv: found("Llama-3.1-70B", "DGX H100", 8, {"input": 500, "output": 1000, "output_cv": cv}, layout={"tp": 2},
                  workload={"disaggregation": "never", "kv_precision": ["fp8"]}) for cv in (0, 2, 3)
    }  # fmt: skip
    tokens = 80 * 2 * 8 * 128  # bytes of a token over 80 layers, keys and values, 8 heads of 128
    cache = at[2]["memory"][0]["cache_bytes"]
    assert at[2]["slots"] == pytest.approx(cache * 2 / tokens / 2997.5, rel=0.02) == pytest.approx(150, rel=0.1)
    assert at[2]["requests_per_s"] == pytest.approx(12.2, rel=0.1)
    assert at[0]["slots"] > 2 * at[2]["slots"] > 2.5 * at[3]["slots"]


def test_tensor_ranks_do_not_send_the_tokens_of_each_other():
    """DeepSeek-V3 on 64 GB200: 8-way tensor parallelism sends what data parallelism does; 197 against 59 requests/s were said, 3.3 times."""
    lengths = {"input": 4000, "output": 500, "input_cv": 0, "output_cv": 0}
    rates = {
        tp: found("DeepSeek-V3", "GB200 NVL72", 64, lengths, workload={"disaggregation": "never"},
                  layout={"tp": tp, "dp": 64 // tp, "ep": 64})["requests_per_s"] for tp in (1, 8)
    }  # fmt: skip
    # Memory for copied latents, the all-reduces of attention and the fullest of eight ranks, with 1.5 of the mean's prompts, are left.
    assert 1.0 < rates[1] / rates[8] < 2.8


def test_one_client_waits_for_its_whole_cache():
    """Llama-3.1-70B in 8 bit on two H100, 100,000 tokens of 327,680 bytes: 32.8 GB beside 70 GB of weights make 22.5 ms, not 18.1 of a quarter of them."""
    lengths = {"input": 100_000, "output": 200, "input_cv": 0, "output_cv": 0}
    for chips, layout in ((2, {"tp": 2}), (8, {"tp": 2, "pp": 4})):
        one = found("Llama-3.1-70B", "DGX H100", chips, lengths, layout=layout, load={"concurrency": 1},
                    workload={"disaggregation": "never", "kv_precision": ["bf16"]})  # fmt: skip
        assert one["latency_s"]["tpot"]["mean"] == pytest.approx(22.5e-3, rel=0.05)
        assert one["latency_s"]["tpot"]["p99"] == pytest.approx(one["latency_s"]["tpot"]["p50"], rel=1e-3)


def test_links_between_pools_bound_the_rate():
    """Prompts of 4,000 tokens of Llama-3.1-8B are 524 MB of cache; four decode chips with 6.25 GB/s each take 47.7 of them a second, not 116."""
    pools = {"prefill": {"layout": {"tp": 1}, "workers": 36}, "decode": {"layout": {"tp": 1}, "workers": 4}}
    for load in ("max", {"concurrency": 2000}):
        linked = found(
            "Llama-3.1-8B", "AWS p4d.24xlarge", 40, {"input": 4000, "output": 30}, "bf16", pools=pools, load=load
        )
        assert 35.0 < linked["requests_per_s"] <= 4 * 6.25e9 / (4000 * 131_072)


def test_requests_share_the_blocks_of_their_prefixes():
    """Llama-3.1-70B on two H100: 469,000 tokens of 8-bit cache less 20 prefixes of 8,000, over the 760 of a request's own: 400 run, not 42."""
    cache = {
        "prefix_tokens": 8000,
        "tiers": [{"name": "hbm", "capacity": "40 GB"}],
        "reuse": {"prefixes": 20, "zipf": 1.0},
    }
    one = found("Llama-3.1-70B", "DGX H100", 8, {"input": 8500, "output": 300}, layout={"tp": 2},
                workload={"disaggregation": "never", "kv_precision": ["fp8"], "cache": cache})  # fmt: skip
    assert one["slots"] == pytest.approx(363, rel=0.1)
    assert one["memory"][0]["memory_bytes"] > one["memory_bytes"]
