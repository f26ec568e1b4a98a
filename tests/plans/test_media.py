"""Media in prompts and sequences: encoders beside the engine or apart, in plans, cases and training."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from models.serving import examples
from models.serving.continuous_batching import aggregated
from models.serving.encoder_pool import BUSIEST, apart_point, encoder_workers
from models.serving.media import encoding_s
from models.serving.percentiles import first_token_cumulants, latency_s, share_within
from models.serving.prompt_terms import first_token_parts
from models.serving.workload import Lengths, Media
from models.transformer.encoder import Encoder, encoder_flops
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.estimate.case import best_layouts
from planner.spec.document import edited
from tests.plans.serving_enumeration import CASES, assert_fewest, said

ENCODER = {"parameters": 6e8, "layers": 32, "hidden": 1280, "input_tokens": 4096, "output_tokens": 1024}
SHOWN = {
    "name": "shown", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"requests_per_s": 40},
    "lengths": {"input": 500, "output": 200, "input_cv": 0.5, "output_cv": 1.0}, "origins": [{"region": "us-texas", "share": 1}],
    "media": [{"kind": "image", "items": 3, "encoder": ENCODER}], "slo": {"ttft": {"p95": "3 s"}, "tpot": {"p95": "40 ms"}},
    "disaggregation": "never",
}  # fmt: skip
SPEC: dict[str, Any] = {
    "name": "media",
    "workloads": [SHOWN],
    "sites": [{"region": "us-texas", "electricity_price": "0 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 1000}],
    "solver": {"replicas": "divisible"},
    "simplicity": {"within": 0},
}
W = "workloads[0]"


def test_flops_of_an_encoder_layer_by_layer():
    """A block of width h: 4 h^2 of attention and 8 h^2 of its feed-forward, on each patch; scores and values over all pairs."""
    layers, h, x = 24, 1024, 576
    each = 2 * x * (4 * h * h + 8 * h * h) + 2 * (2 * x * x * h)
    found = encoder_flops(Encoder(12.0 * h * h * layers, layers, h, x, x))
    assert found == pytest.approx(layers * each)
    windows = encoder_flops(Encoder(12.0 * h * h * layers, layers, h, x, x, 64))
    assert windows == pytest.approx(layers * (2 * x * 12 * h * h + 4 * x * 64 * h))


def points(media: tuple[Media, ...], text: float = 500.0) -> Any:
    lengths = Lengths(text, 200, media=media)
    return aggregated(examples.DENSE, examples.CHIP, examples.ONE, 16.0, lengths=lengths, precisions=examples.BF16, constants=examples.SERVING)  # fmt: skip


def test_an_encoder_of_nothing_adds_its_tokens_only():
    small = Encoder(1e-9, 1e-9, 1, 1, 700)
    shown, text = points((Media(small, 1.0),)), points((), 1200.0)
    assert shown.requests_per_s == pytest.approx(text.requests_per_s, rel=1e-9)
    assert shown.ttft_s == pytest.approx(text.ttft_s, rel=1e-9)


def test_an_encoder_takes_time_from_the_engine_or_chips_of_its_own():
    beside = Media(examples.MEDIA.encoder, 2.0)
    apart = Media(examples.MEDIA.encoder, 2.0, apart=True)
    engine, free = points((beside,)), points((apart,))
    each = encoding_s(examples.CHIP, beside, examples.SERVING)
    assert engine.prefill_s - free.prefill_s == pytest.approx(
        2 * each, rel=0.05
    )  # chunks are a little fuller beside it
    assert free.requests_per_s > engine.requests_per_s
    lengths = Lengths(500, 200, media=(apart,))
    found, chips = apart_point(free, examples.CHIP, 4096, lengths, 25e9, examples.SERVING)
    assert found.ttft_s > free.ttft_s + 2 * each and found.encoding_s > 2 * each
    assert free.requests_per_s * 2 * each <= BUSIEST * chips
    many = encoder_workers(1000.0, examples.CHIP, lengths, examples.SERVING)
    assert (many - 1) * BUSIEST < 1000.0 * 2 * each <= many * BUSIEST


@given(
    st.floats(0.01, 300.0), st.floats(0.0, 9.0), st.floats(0.1, 20.0), st.sampled_from([1.0, 20.0, 120.0]), st.floats(0.0, 4.0)
)  # fmt: skip
def test_an_added_stage_never_lowers_a_quantile(scale, items_scv, items, batch, length_scv):
    """A request is encoded before its first token: no share of them has it sooner for that, whatever the spread and the load of the encoders."""
    apart = Media(examples.MEDIA.encoder, items, items_scv, apart=True)
    lengths = Lengths(500, 200, length_scv, length_scv, media=(apart,))
    chip = replace(
        examples.CHIP, flop_per_s=examples.CHIP.flop_per_s / scale, flop16_per_s=examples.CHIP.flop16_per_s / scale
    )
    free = aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, batch, lengths=lengths, precisions=examples.BF16, constants=examples.SERVING
    )  # fmt: skip
    found, _ = apart_point(free, chip, 4096, lengths, 25e9, examples.SERVING)
    for metric in ("ttft", "e2e"):
        for quantile in ("mean", 0.5, 0.9, 0.95, 0.99):
            with_stage, without = latency_s(found, metric, quantile), latency_s(free, metric, quantile)
            assert with_stage >= without * (1 - 1e-12), f"{metric} {quantile}"
        assert share_within(found, metric, 2 * float(free.ttft_s)) <= share_within(free, metric, 2 * float(free.ttft_s))
    parts = first_token_parts(found)
    assert sum(parts.values()) == pytest.approx(float(found.ttft_s)) and min(parts.values()) >= 0.0
    # Variances of independent stages add up: service, and a wait that some have.
    base = first_token_cumulants(free).variance
    more = first_token_cumulants(found).variance - base
    service = found.encoding_scv * found.encoding_s**2
    waits = found.encoder_wait_s**2 * ((1 + found.encoder_wait_scv) / max(found.encoder_wait_probability, 1e-12) - 1)
    assert more == pytest.approx(service + waits, rel=1e-6, abs=1e-12 * (1 + base))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    plan = planner.solve(edited(SPEC, ((f"{W}.encoding", ["apart"]), ("solver.replicas", "whole"))))
    assert plan.has_answer
    return plan.document


def test_a_plan_with_encoders_apart_holds(document):
    assert said(document) == []
    for point in document["workloads"][0]["points"]:
        assert [pool["role"] for pool in point["pools"]] == ["serve", "encode"]
    roles = [pool["role"] for row in document["deployments"] for pool in row["pools"]]
    assert roles.count("encode") == roles.count("serve")


@pytest.mark.parametrize(
    ("pool", "key", "value"),
    [(0, "encoding", "beside"), (1, "workers", 3), (1, "encoding", "beside"), (1, "extra_power_w", 1.0), (1, "memory_bytes", 5.0), (1, "batch", 2)],
)  # fmt: skip
def test_a_bent_pool_of_encoders_is_found(document, pool, key, value):
    bent = copy.deepcopy(document)
    bent["workloads"][0]["points"][0]["pools"][pool][key] = value
    assert any("points[0]" in str(finding) for finding in said(bent))


def test_more_images_never_cost_less():
    costs = [planner.solve(edited(SPEC, ((f"{W}.media[0].items", items),))).objective["value"] for items in (0.1, 2, 8)]
    bare = planner.solve(edited(SPEC, ((f"{W}.media", None),))).objective["value"]
    assert bare <= costs[0] * (1 + 1e-3) and costs[0] <= costs[1] * (1 + 1e-3) and costs[1] <= costs[2] * (1 + 1e-3)


def test_a_case_with_media():
    workload = {key: value for key, value in SHOWN.items() if key not in ("name", "demand", "origins")}
    case = {"workload": workload, "system": "DGX H100", "chips": 8}
    shown, bare = (
        estimate({**case, "workload": {**workload, "media": media}}).answer for media in (SHOWN["media"], None)
    )
    assert shown is not None and bare is not None and shown["requests_per_s"] < bare["requests_per_s"]
    with pytest.raises(SpecError, match=r"workload\.encoding: a case has its encoders beside the engine"):
        estimate({**case, "workload": {**workload, "encoding": ["apart"]}})


def test_encoders_of_training_compute_beside():
    job = {
        "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "100B tokens", "deadline": "90 d", "sequence_tokens": 8192,
        "batch_tokens": "1048576 tokens",
    }  # fmt: skip
    case = {"workload": {"name": "job", **job}, "system": "DGX H100", "chips": 64}
    image = {"kind": "image", "items": 4, "encoder": ENCODER}

    def step_s(media: Any) -> float:
        rows, _ = best_layouts({**case, "workload": {**case["workload"], "media": media}}, (), 1)  # type: ignore[dict-item]
        return float(rows[0]["step_s"])

    bare, frozen, trained = step_s(None), step_s([image]), step_s([{**image, "trained": True}])
    assert (trained - bare) == pytest.approx(3 * (frozen - bare), rel=1e-6) and frozen > bare
    # 4 images of 6.3 TFLOP each beside 8,192 tokens of 6 x 8 GFLOP and attention.
    assert 1.03 < frozen / bare < 1.08
    with pytest.raises(SpecError, match="more than the 8,192 of a sequence"):
        step_s([{**image, "items": 9}])


def drawn(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    encoder = {
        "parameters": float(rng.uniform(1e8, 2e9)), "layers": int(rng.integers(12, 48)), "hidden": int(rng.integers(512, 2048)),
        "input_tokens": int(rng.integers(200, 6000)), "output_tokens": int(rng.integers(50, 1500)),
    }  # fmt: skip
    changes = {
        "media": [{"kind": "image", "items": round(float(rng.uniform(0.2, 6)), 2), "items_cv": float(rng.choice([0, 1])), "encoder": encoder}],
        "encoding": [["beside"], ["apart"], ["beside", "apart"]][rng.integers(3)], "kv_precision": [["bf16"], ["bf16", "fp8"]][rng.integers(2)],
        "lengths.input": int(rng.integers(50, 4000)), "lengths.output": int(rng.integers(20, 600)),
        "demand": {"requests_per_s": round(float(rng.uniform(2, 80)), 3)},
        "slo": {"ttft": {"p95": f"{rng.uniform(0.4, 4):.3g} s"}, "tpot": {"p95": f"{rng.uniform(12, 60):.3g} ms"}},
    }  # fmt: skip
    return edited(SPEC, tuple((f"{W}.{key}", value) for key, value in changes.items()))


@pytest.mark.parametrize("seed", range(CASES))
def test_plans_take_the_fewest_systems_of_all_ways_to_encode(seed):
    assert_fewest(drawn(seed))


def test_the_example_encodes_photographs_apart_and_voice_beside_the_engine(root):
    spec = json.loads((root / "examples/media.json").read_text(encoding="utf-8"))
    plan = planner.solve(edited(spec, (("solver.replicas", "divisible"), ("simplicity", {"within": 0}))))
    ways = {w["name"]: {point["pools"][0]["encoding"] for point in w["points"]} for w in plan["workloads"]}
    assert ways == {"photographs": {"apart"}, "voice": {"beside"}}
    assert all(row["slack_s"] >= 0 for w in plan["workloads"] for row in w["slo"])
