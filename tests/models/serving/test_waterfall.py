"""The waterfall of the decode rate adds up, and a cause that is not there costs nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving import examples
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.speculation import Speculation
from models.serving.waterfall import decode_waterfall, roofline_s
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from tests.conftest import few_of

MLA = Architecture(
    layers=27, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=10944, vocab=102400, experts=64, topk=6, shared_experts=2,
    expert_ffn=1408, dense_layers=1, mla=True, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128,
)  # fmt: skip
PROMPT = 2000.0
FP8 = Precisions("fp8", "fp8")
LENGTHS = Lengths(PROMPT, 300.0, 0.5, 1.0)
DRAFTS = "drafts, less the tokens they gain"


def fall_of(arch, layout, batch, speculation=None, constants=examples.SERVING, chip=examples.CHIP):
    run = {"precisions": FP8, "constants": constants, "speculation": speculation}
    point = aggregated(arch, chip, layout, batch, lengths=LENGTHS, **run)
    return point, decode_waterfall(arch, chip, layout, point, input_tokens=PROMPT, **run)


@settings(max_examples=few_of(60), deadline=None)
@given(
    st.sampled_from([examples.DENSE, examples.MOE, MLA]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]),
    st.floats(1.0, 300.0), st.sampled_from([None, Speculation(1, 0.85), Speculation(4, 0.6, 0.03)]),
)  # fmt: skip
def test_it_adds_up_and_nothing_but_drafts_saves_time(arch, tp, dp, pp, batch, speculation):
    point, fall = fall_of(arch, ServingLayouts(tp, pp, dp, 1), batch, speculation)
    assert fall.roofline_s + sum(fall.causes.values()) == pytest.approx(fall.predicted_s, rel=1e-12)
    waits = (point.prefill_wait_s + point.slot_wait_s) / 299.0
    assert fall.predicted_s == pytest.approx(point.tpot_s + waits)
    assert all(added >= -1e-15 for name, added in fall.causes.items() if name != DRAFTS), fall.causes
    assert list(fall.rates().values())[-1] == pytest.approx(1 / fall.predicted_s)


def test_the_roofline_is_bandwidth_over_the_bytes_of_a_token():
    # 8.03 G parameters, of which the embedding table (128,256 x 4,096) is not read, at one byte; 2,149.5 tokens x 32 layers x 2,048.
    read = 8.03e9 - 128256 * 4096 + 2149.5 * 32 * 2048
    assert roofline_s(examples.DENSE, examples.CHIP, 1, 2149.5, FP8) == pytest.approx(read / 3.3e12, rel=2e-3)


def test_what_is_not_there_costs_nothing():
    one = fall_of(examples.DENSE, ServingLayouts(1, 1, 1, 1), 1.0)[1].causes
    for name in (
        "copies on ranks, stages in turn",
        "experts touched by the batch",
        "KV caches of the batch",
        "fullest rank of experts",
        "communication",
        DRAFTS,
    ):
        assert one[name] == pytest.approx(0.0, abs=1e-12), name
    perfect = replace(examples.SERVING, memory_efficiency=1.0, kv_efficiency=1.0)
    assert fall_of(examples.DENSE, ServingLayouts(1, 1, 1, 1), 8.0, constants=perfect)[1].causes[
        "memory below its peak"
    ] == pytest.approx(0.0, abs=1e-12)


def test_one_cause_grows_with_its_constant_alone():
    slow = replace(examples.SERVING, layer_launch_s=2 * examples.SERVING.layer_launch_s)
    before, after = (fall_of(MLA, ServingLayouts(4, 1, 2, 8), 64.0, constants=c)[1] for c in (examples.SERVING, slow))
    for name in before.causes:
        same = after.causes[name] == pytest.approx(before.causes[name], abs=1e-12)
        assert same or name in ("launch", "prompts between the steps", "waits for prefill and for a slot"), name
    assert after.causes["launch"] - before.causes["launch"] == pytest.approx(27 * examples.SERVING.layer_launch_s)


def test_a_decode_pool_has_no_prompts_between_its_steps():
    prefill = WorkerPool(examples.CHIP, ServingLayouts(1, 1, 1, 1), 2, examples.SERVING)
    decode = WorkerPool(examples.CHIP, ServingLayouts(2, 1, 1, 1), 1, examples.SERVING)
    both = disaggregated(
        examples.DENSE, prefill, decode, 32.0, link=TransferLink(25e9), lengths=LENGTHS, precisions=FP8
    ).point
    fall = decode_waterfall(
        examples.DENSE, examples.CHIP, decode.layouts, both, input_tokens=PROMPT, precisions=FP8, constants=examples.SERVING
    )  # fmt: skip
    assert fall.causes["prompts between the steps"] == pytest.approx(0.0, abs=1e-12)
    assert fall.roofline_s + sum(fall.causes.values()) == pytest.approx(fall.predicted_s)


def test_arrays_take_the_same_path():
    columns = np.array([[1, 1, 1, 1], [2, 1, 2, 4], [4, 2, 1, 1]]).T
    batch = np.array([1.0, 30.0, 200.0])
    whole = fall_of(examples.MOE, ServingLayouts(*columns).take((slice(None), None)), batch)[1]
    for i in range(3):
        single = fall_of(examples.MOE, ServingLayouts(*(int(c[i]) for c in columns)), float(batch[2]))[1]
        for name, added in single.causes.items():
            assert np.broadcast_to(whole.causes[name], (3, 3))[i, 2] == pytest.approx(added, abs=1e-15), name
