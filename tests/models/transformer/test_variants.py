"""Variants of an architecture keep what they promise to keep: parameters, widths that a token passes, and the rest of the network."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import kv_bytes_per_token
from models.transformer.variants import (
    active_ffn,
    with_experts,
    with_heads,
    with_latent,
    with_linear,
    with_width,
    with_windows,
)

DENSE = Architecture(80, 8192, 64, 8, 128, 28672, 128256)
MOE = Architecture(48, 2048, 32, 4, 128, 6144, 151936, experts=128, topk=8, expert_ffn=768, shared_experts=1)


def test_heads_of_keys_and_values_scale_the_cache():
    elements = [kv_bytes_per_token(with_heads(DENSE, n), 1) / DENSE.layers for n in (64, 8, 1)]
    assert elements == [2 * 64 * 128, 2 * 8 * 128, 2 * 128]
    assert with_heads(DENSE, 8) == DENSE


def test_latent_attention_follows_deepseek_v2():
    v2 = with_latent(replace(DENSE, heads=128, kv_heads=128), q_lora_rank=1536)
    assert (v2.kv_lora_rank, v2.qk_rope_dim, v2.qk_nope_dim, v2.v_head_dim) == (512, 64, 128, 128)
    assert kv_bytes_per_token(v2, 1) / v2.layers == 576


def test_there_and_back():
    assert with_heads(with_latent(DENSE), 8) == DENSE


@given(split=st.sampled_from([1, 2, 4, 8]))
def test_finer_experts_keep_all_parameters(split):
    fine = with_experts(MOE, MOE.experts * split, MOE.topk * split)
    counts, before = parameter_counts(fine), parameter_counts(MOE)
    assert fine.experts * fine.expert_ffn == MOE.experts * MOE.expert_ffn or fine.expert_ffn % 64 == 0
    if MOE.expert_ffn % (64 * split) == 0:
        assert counts.total - counts.router == pytest.approx(before.total - before.router)
        assert counts.active - counts.router == pytest.approx(before.active - before.router)
    assert fine.shared_width == MOE.shared_width


@given(experts=st.integers(1, 256), data=st.data())
def test_a_token_passes_as_much_in_whole_tiles(experts, data):
    topk = data.draw(st.integers(1, experts))
    moe = with_experts(DENSE, experts, topk)
    assert abs(active_ffn(moe) - DENSE.ffn) <= max(32 * topk, 64 * topk if DENSE.ffn / topk < 64 else 0)
    assert with_experts(moe, 0, 0).ffn == active_ffn(moe)


@given(factor=st.floats(0.5, 2.0))
@pytest.mark.parametrize("named", [DENSE, MOE, with_latent(DENSE), with_linear(DENSE, 0.75), with_heads(DENSE, 64)])
def test_another_width_keeps_the_parameters_as_far_as_a_layer_allows(named, factor):
    wide = with_width(named, factor)
    body = [c.total - c.embedding - c.head for c in map(parameter_counts, (named, wide))]
    assert abs(body[1] - body[0]) <= 0.51 * body[1] / wide.layers + 1
    assert wide.hidden % 64 == 0 and wide.heads % wide.kv_heads == 0 and wide.head_dim == named.head_dim
    assert abs(wide.linear_layers / wide.layers - named.linear_layers / named.layers) <= 1 / wide.layers


def test_what_cannot_be_is_refused():
    for wrong in (
        lambda: with_heads(DENSE, 5),
        lambda: with_windows(DENSE, 0.001, 1024),
        lambda: with_windows(with_linear(DENSE, 0.75), 0.5, 1024),
        lambda: with_linear(DENSE, 0.001),
        lambda: with_experts(DENSE, 4, 5),
    ):
        with pytest.raises(ValueError):
            wrong()
