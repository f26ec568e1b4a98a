"""Parts of a latency over networks, layouts, lengths and loads: each at least 0, their sum the latency, TTFT at least its prefill."""

from __future__ import annotations

import math

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.estimate.answer import estimate
from tests.conftest import few_of

SAVES = "drafts, less the tokens they gain"  # the one cause that may take time away
ROUNDING = 1e-9  # share of the latency

lengths = st.fixed_dictionaries(
    {
        "input": st.integers(1, 60_000),
        "output": st.integers(2, 4_000),
        "input_cv": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        "output_cv": st.sampled_from([0.0, 1.0, 2.0]),
    }
)
loads = st.one_of(
    st.integers(1, 5_000).map(lambda clients: {"concurrency": clients}),
    st.floats(0.01, 200.0).map(lambda rate: {"requests_per_s": rate}),
    st.none(),
)
layouts = st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 8, 16, 64])).map(
    lambda sizes: dict(zip(("tp", "pp", "dp"), sizes, strict=True))
)
features = st.sampled_from(
    [
        {},
        {"speculation": {"tokens": 2, "acceptance": 0.7}},
        {"session": {"calls": 5, "wait": "3 s", "growth": 300}},
        {"cache": {"prefix_tokens": 400, "hit_rate": 0.6}},
    ]
)
networks = st.sampled_from(
    [
        ("Llama-3.1-8B", {}),
        ("Qwen3-30B-A3B", {}),
        ("DeepSeek-V3", {}),
        ("DeepSeek-V3", {"routing": {"popularity": 0.5, "redundant_experts": 64}}),
    ]
)


def assert_parts(found: dict) -> None:
    """Check the parts of the time to first token, and the causes of the time per output token."""
    parts = {row["part"]: row["mean_s"] for row in found["first_token"]}
    mean = found["latency_s"]["ttft"]["mean"]
    assert min(parts.values()) >= -ROUNDING * mean, parts
    assert math.isclose(sum(parts.values()), mean, rel_tol=1e-9)
    causes = {row["cause"]: row["added_s"] for row in found["waterfall"]}
    total = found["waterfall"][-1]["reached_s"]
    assert min(added for cause, added in causes.items() if cause != SAVES) >= -ROUNDING * total, causes


def answer_of(case: dict) -> dict | None:
    """Answer a case; None where nothing fits, or the layout is none that an engine runs."""
    try:
        return estimate(case).answer
    except SpecError:
        return None


@settings(max_examples=few_of(40), deadline=None)
@given(networks, lengths, st.sampled_from(["fp8", "bf16"]), layouts, loads, features)
def test_every_part_of_a_latency_adds_to_it(network, length, precision, layout, load, more):
    architecture, routing = network
    workload = {"kind": "serving", "architecture": architecture, "lengths": length, "precision": [precision]}
    case = {
        "workload": {**workload, "disaggregation": "never", **routing, **more},
        "system": "DGX H200",
        "chips": 64,
        "layout": layout,
    }
    found = answer_of(case | ({} if load is None else {"load": load}))
    assume(found is not None)
    assert_parts(found)


@settings(max_examples=6, deadline=None)
@given(networks, lengths, loads)
def test_so_does_every_part_with_separate_pools(network, length, load):
    architecture, routing = network
    workload = {"kind": "serving", "architecture": architecture, "lengths": length, "precision": ["fp8"]}
    case = {"workload": {**workload, "disaggregation": "always", **routing}, "system": "DGX H200", "chips": 64}
    found = answer_of(case | ({} if load is None else {"load": load}))
    assume(found is not None)
    assert_parts(found)


def test_prompts_of_many_lengths_take_the_same_prefill_whoever_sends_them():
    """Attention goes with the square of a prompt: clients in a closed loop wait for it as open arrivals do."""
    lengths = {"input": 20_000, "output": 500, "input_cv": 1.0, "output_cv": 1.0}
    workload = {
        "kind": "serving", "architecture": "DeepSeek-V3", "lengths": lengths, "precision": ["fp8"], "disaggregation": "never",
        "routing": {"popularity": 0.5, "redundant_experts": 64},
    }  # fmt: skip
    case = {"workload": workload, "system": "DGX H200", "chips": 64, "layout": {"tp": 1, "dp": 64, "ep": 64}}

    def prefill_s(load: dict) -> float:
        found = answer_of(case | {"load": load})
        assert found is not None
        assert_parts(found)
        return next(row["mean_s"] for row in found["first_token"] if row["part"] == "prefill of the prompt")

    closed = prefill_s({"concurrency": 4096})
    assert math.isclose(closed, prefill_s({"requests_per_s": 2.0}), rel_tol=0.1)
