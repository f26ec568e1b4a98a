"""Experts over many ranks: halves of a batch that take turns, exchange inside and outside a domain, second copies of experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.formats import element_bytes
from models.serving import examples
from models.serving.decode import ServingLayouts, decode_attention_s, expert_exchange_s, expert_times_s, held_experts
from models.serving.kv_cache import weight_bytes_per_chip
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import parameter_counts

MOE, CHIP, SERVING = examples.MOE, examples.CHIP, examples.SERVING
BF16 = Precisions("bf16", "bf16")
ranks_beyond_a_node = st.sampled_from([16, 18, 24, 32, 36, 48, 64, 72, 128])


def spread(ranks: int) -> ServingLayouts:
    return ServingLayouts(1, 1, ranks, ranks)


def step(layout, load, constants=SERVING, chip=CHIP):
    return step_time(MOE, chip, layout, load, precisions=BF16, constants=constants)


@given(
    ranks=ranks_beyond_a_node,
    each=st.floats(0.1, 2000.0),
    context=st.floats(1.0, 30_000.0),
    prefill=st.floats(0.0, 8192.0),
)
def test_halves_take_turns_only_where_that_is_faster(ranks, each, context, prefill):
    load = StepLoad(each * ranks, context, prefill_tokens=prefill * ranks, prompt_tokens=4000.0)
    found = step(spread(ranks), load)
    assert found.total_s == pytest.approx(sum(found.breakdown.values()), rel=1e-12)
    without_network = step(spread(ranks), load, chip=replace(CHIP, scaleup_chips=ranks, scaleup_bytes_per_s=1e18))
    exchange = float(
        expert_exchange_s(MOE, CHIP, spread(ranks), "bf16", SERVING, load.decode_sequences + prefill * ranks)
    )
    # no faster than without links that take time (but for two starts in each layer), no slower than one after the other
    starts = 2.0 * MOE.moe_layers * SERVING.all_to_all_start_s
    assert without_network.total_s - starts <= found.total_s * (1 + 1e-9)
    assert found.total_s <= without_network.total_s + exchange


def test_a_long_exchange_hides_behind_computing_and_the_rest_of_it_shows():
    load = StepLoad(16 * 400.0, 4000.0)
    slow, fast = (step(spread(16), load, chip=replace(CHIP, scaleout_bytes_per_s=rate)) for rate in (1e9, 50e9))
    assert fast.breakdown["communication"] == 0.0 < slow.breakdown["communication"]
    exchange = float(
        expert_exchange_s(MOE, replace(CHIP, scaleout_bytes_per_s=1e9), spread(16), "bf16", SERVING, 16 * 400.0)
    )
    starts = 2.0 * 2.0 * MOE.moe_layers * SERVING.all_to_all_start_s  # starts of a second half
    assert slow.total_s == pytest.approx(exchange + starts + slow.breakdown["host"], rel=1e-9)


def test_within_a_node_nothing_takes_turns():
    found = step(ServingLayouts(1, 1, 8, 8), StepLoad(8 * 400.0, 4000.0))
    assert found.breakdown["communication"] == pytest.approx(
        float(expert_exchange_s(MOE, CHIP, ServingLayouts(1, 1, 8, 8), "bf16", SERVING, 3200.0))
    )


def test_bytes_of_an_exchange_go_over_the_link_that_leads_there():
    # 16 ranks in domains of 8: of k = 8 copies 7/16 k go to chips of the domain and 8/16 k to the other one
    tokens, start = 100.0, 2.0 * SERVING.all_to_all_start_s
    moved = 2.0 * tokens * MOE.hidden * MOE.topk / 16
    outside = 8 * moved / (50e9 * SERVING.all_to_all_network_efficiency)
    found = float(expert_exchange_s(MOE, CHIP, spread(16), "bf16", SERVING, 16 * tokens))
    assert found == pytest.approx(2.0 * MOE.moe_layers * (start + outside), rel=1e-12)
    inside = 15 * moved / (450e9 * SERVING.all_to_all_efficiency)
    found = float(expert_exchange_s(MOE, replace(CHIP, scaleup_chips=72), spread(16), "bf16", SERVING, 16 * tokens))
    assert found == pytest.approx(2.0 * MOE.moe_layers * (0.5 * start + inside), rel=1e-12)
    assert np.isinf(
        expert_exchange_s(MOE, replace(CHIP, scaleout_bytes_per_s=0.0), spread(16), "bf16", SERVING, 16 * tokens)
    )


@given(ranks=st.integers(1, 128))
def test_ranks_hold_whole_experts(ranks):
    held = float(held_experts(MOE, spread(ranks)))
    assert held % ranks == 0 and MOE.experts <= held < MOE.experts + ranks


def test_second_copies_take_memory_and_are_read():
    arch = replace(MOE, experts=256)
    whole, copies = (weight_bytes_per_chip(arch, spread(ranks), "bf16") for ranks in (64, 72))
    count = parameter_counts(arch)
    one = element_bytes("bf16") * count.per_expert * count.moe_layers  # an expert in all layers
    assert whole == pytest.approx(copies, rel=1e-12)  # four experts each: 256 / 64, and 288 / 72
    assert weight_bytes_per_chip(arch, spread(65), "bf16") == pytest.approx(whole, rel=1e-12)
    assert weight_bytes_per_chip(arch, spread(128), "bf16") == pytest.approx(whole - 2 * one, rel=1e-12)
    read = [float(expert_times_s(arch, CHIP, spread(ranks), "bf16", SERVING, 1e7)[1]) for ranks in (64, 72)]
    assert read[1] == pytest.approx(read[0], rel=1e-6)


def test_the_fullest_rank_is_no_fuller_beyond_a_node():
    # so many tokens that chance adds nothing
    compute = [
        float(expert_times_s(MOE, CHIP, spread(ranks), "bf16", SERVING, 1e10)[0]) * ranks for ranks in (4, 8, 64)
    ]
    assert compute[0] < compute[1] == pytest.approx(compute[2], rel=1e-6)


def test_attention_over_a_narrow_cache_is_computed_in_8_bit_where_the_chip_can():
    latent = replace(
        MOE, mla=True, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128, heads=128, q_lora_rank=1536
    )
    able = replace(CHIP, attention8_flop_per_s=2 * CHIP.flop16_per_s, hbm_bytes_per_s=1e15)
    unable = replace(able, attention8_flop_per_s=0.0)
    seconds = [
        float(decode_attention_s(latent, chip, spread(16), 1600.0, 4000.0, kv, SERVING))
        for chip in (able, unable)
        for kv in ("fp8", "bf16")
    ]
    assert seconds[0] * 2 == pytest.approx(seconds[1], rel=1e-12)
    assert seconds[1:] == pytest.approx([seconds[1]] * 3, rel=1e-12)
