"""Networks of mixed kinds of layers: what a sequence holds and a query reads is the sum of the layers, and grows as it must."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving.examples import CHIP, ONE, SERVING
from models.serving.kv_cache import memory_bytes_per_chip
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import (
    STATE_BYTES,
    attention_flops,
    attention_kinds,
    kv_bytes,
    kv_bytes_per_rank,
    kv_bytes_per_token,
    query_flops,
    read_bytes_per_rank,
    state_bytes,
)
from tests.conftest import ALL_CASES

many = settings(max_examples=500 if ALL_CASES else 60, deadline=None)
PLAIN = Architecture(48, 4096, 32, 8, 128, 14336, 128256)


@st.composite
def networks(draw):
    """Draw a network of full, windowed, linear and compressed layers, with or without an indexer."""
    layers = draw(st.integers(2, 96))
    cuts = sorted(draw(st.lists(st.integers(0, layers), min_size=4, max_size=4)))
    window, linear, csa, hca = cuts[0], cuts[1] - cuts[0], cuts[2] - cuts[1], cuts[3] - cuts[2]
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    indexed = draw(st.booleans())
    apart = draw(st.booleans())
    return Architecture(
        layers, 4096, 32, kv_heads, draw(st.sampled_from([64, 128, 256])), 14336, 128256,
        window_layers=window, window_tokens=draw(st.integers(1, 8192)), linear_layers=linear,
        state_width=4096, state_inputs=4160, state_dim=draw(st.sampled_from([64, 128])), state_conv=draw(st.integers(0, 50_000)),
        window_kv_heads=16 if apart else 0, window_head_dim=96 if apart else 0,
        csa_layers=csa, csa_ratio=4, hca_layers=hca, hca_ratio=128,
        sparse_topk=draw(st.integers(1, 4096)) if indexed else 0, index_heads=64 if indexed else 0, index_dim=128 if indexed else 0,
    )  # fmt: skip


@many
@given(
    networks(),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([1, 2, 8]),
)
def test_memory_and_traffic_grow_with_length_and_layers(arch, context, more, width, tp):
    for of in (kv_bytes_per_rank, read_bytes_per_rank):
        assert of(arch, context, width, tp) <= of(arch, context + more, width, tp) * (1 + 1e-12)
        assert of(arch, context, width, tp) <= of(replace(arch, layers=arch.layers + 1), context, width, tp)
        assert of(arch, context, width, tp) <= of(arch, context, width, 1) * (1 + 1e-12)
    assert query_flops(arch, context) <= query_flops(arch, context + more) * (1 + 1e-12)
    read, held = (float(of(arch, context, width, tp)) for of in (read_bytes_per_rank, kv_bytes_per_rank))
    assert (
        read <= held + float(state_bytes(arch)) / tp + 1e-6
    )  # a step reads no more than is held, and writes the state


@st.composite
def mixtures(draw):
    """Draw a network of mixed layers that may have routed and shared experts in all but its first blocks."""
    arch, experts = draw(networks()), draw(st.sampled_from([0, 8, 64, 256]))
    if not experts:
        return arch
    return replace(
        arch, experts=experts, topk=draw(st.integers(1, 8)), expert_ffn=draw(st.sampled_from([768, 2048])),
        shared_experts=draw(st.integers(0, 2)), dense_layers=draw(st.integers(0, arch.layers - 1)),
    )  # fmt: skip


@many
@given(
    mixtures(), st.integers(1, 512), st.integers(0, 512), st.integers(1, 10**5), st.integers(0, 10**5),
    st.sampled_from(["bf16", "fp8", "mxfp4"]),
)  # fmt: skip
def test_a_step_holds_and_moves_no_less_for_more_sequences_longer_ones_and_more_layers(
    arch, batch, more, context, longer, weights
):
    """Batch, length and layers through the closed forms of serving: memory of the chip, and the times of weights, experts and caches."""
    formats = Precisions(weights, "bf16")
    taller = replace(arch, layers=arch.layers + 1)

    def held(network, sequences, tokens):
        lengths = Lengths(tokens, 1)
        return float(
            memory_bytes_per_chip(network, ONE, sequences, lengths=lengths, precisions=formats, constants=SERVING)
        )

    def moved(network, sequences, tokens):
        load = StepLoad(sequences, context_tokens=tokens)
        parts = step_time(network, CHIP, ONE, load, precisions=formats, constants=SERVING).breakdown
        return sum(float(part) for name, part in parts.items() if name.endswith("_memory"))

    for of in (held, moved):
        least = of(arch, batch, context) * (1.0 - 1e-12)
        assert least <= min(
            of(arch, batch + more, context), of(arch, batch, context + longer), of(taller, batch, context)
        )
    empty = held(arch, 0, context)
    assert held(arch, batch, context) - empty == pytest.approx(batch * (held(arch, 1, context) - empty), rel=1e-6)


@many
@given(networks(), st.integers(1, 10**6), st.sampled_from([1.0, 2.0]))
def test_memory_is_the_sum_of_the_layers(arch, context, width):
    alone = replace(arch, layers=1, window_layers=0, linear_layers=0, csa_layers=0, hca_layers=0)
    ratio = {"csa_layers": arch.csa_ratio, "hca_layers": arch.hca_ratio}
    entry = arch.head_dim if arch.compressed else 2 * arch.kv_heads * arch.head_dim
    index = arch.index_dim * 132 / 128
    windows = (
        entry
        if arch.compressed
        else 2 * (arch.window_kv_heads or arch.kv_heads) * (arch.window_head_dim or arch.head_dim)
    )
    total = arch.full_layers * context * (entry * width + index)
    for kind, tokens in ratio.items():
        total += getattr(arch, kind) * context / tokens * (entry * width + (index if kind == "csa_layers" else 0))
    total += arch.windowed_layers * min(context, arch.window_tokens) * windows * width
    total += arch.linear_layers * STATE_BYTES * (arch.state_width * arch.state_dim + arch.state_conv)
    assert kv_bytes(arch, context, width) == pytest.approx(total, rel=1e-12)
    if not arch.compressed:
        assert kv_bytes(alone, context, width) == pytest.approx(context * (entry * width + index), rel=1e-12)


@many
@given(networks(), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_state_does_not_depend_on_the_length(arch, context, other):
    states = replace(
        arch,
        layers=max(arch.linear_layers, 1),
        linear_layers=max(arch.linear_layers, 1),
        window_layers=0,
        csa_layers=0,
        hca_layers=0,
    )
    assert kv_bytes(states, context, 2) == kv_bytes(states, other, 2) == state_bytes(states)
    assert kv_bytes_per_token(states, 2) == 0.0
    assert read_bytes_per_rank(states, context, 2, 1) == 2 * state_bytes(states)


@many
@given(networks(), st.integers(2, 10**5), st.integers(1, 10**5))
def test_prefill_in_two_parts_is_prefill_in_one(arch, first, second):
    whole = attention_flops(arch, first + second, first + second)
    assert attention_flops(arch, first, first) + attention_flops(arch, second, first + second) == pytest.approx(
        whole, rel=1e-9
    )


@many
@given(networks())
def test_parameters_are_those_of_the_blocks(arch):
    counts = parameter_counts(arch)
    assert counts.total == pytest.approx(
        counts.attention + counts.dense_ffn + counts.embedding + counts.head, rel=1e-12
    )
    assert counts.attention >= parameter_counts(replace(arch, index_heads=0, index_dim=0, sparse_topk=0)).attention


def test_a_sparse_layer_reads_what_it_keeps_and_all_index_keys():
    sparse = replace(PLAIN, sparse_topk=2048, index_heads=64, index_dim=128)
    entry, index = 2 * 8 * 128 * 2, 132
    assert kv_bytes(sparse, 100_000, 2) == 48 * 100_000 * (entry + index)
    assert read_bytes_per_rank(sparse, 100_000, 2, 1) == 48 * (2048 * entry + 100_000 * index)


def test_state_of_qwen3_6_27b_is_that_of_a_public_log():
    """48 layers of 48 value heads with states of 128 x 128, and three steps of convolution over 10,240 channels: 149.6 MiB in 32 bit
    (LM Studio's bug tracker, issue 1862)."""
    arch = replace(
        PLAIN, layers=64, linear_layers=48, state_width=6144, state_inputs=4192, state_dim=128, state_conv=30_720
    )
    assert float(state_bytes(arch)) / 2**20 == pytest.approx(149.6, abs=0.1)


def test_compressed_layers_are_kinds_beside_their_window():
    arch = replace(
        PLAIN, kv_heads=1, window_tokens=128, csa_layers=20, csa_ratio=4, hca_layers=28, hca_ratio=128, sparse_topk=512
    )
    assert [(k.layers, k.ratio, float(k.reach)) for k in attention_kinds(arch)] == [
        (20, 4, 512.0),
        (28, 128, float("inf")),
        (48, 1.0, 128.0),
    ]


def test_layers_without_an_indexer_hold_no_index_keys_and_attend_as_those_before():
    """Of 48 layers 40 are sparse and 10 have an indexer: the sum of three networks of one kind each."""
    sparse = replace(PLAIN, sparse_topk=1024, index_heads=4, index_dim=128)
    mixed = replace(sparse, sparse_layers=40, index_layers=10)
    keys = replace(sparse, layers=10)
    without = replace(keys, layers=30, index_heads=0, index_dim=0)
    plain = replace(PLAIN, layers=8)
    for of in (
        lambda arch: float(kv_bytes(arch, 100_000, 2)),
        lambda arch: float(read_bytes_per_rank(arch, 100_000, 2, 4)),
        lambda arch: float(query_flops(arch, 100_000)),
        lambda arch: float(attention_flops(arch, 1000, 100_000)),
    ):
        assert of(mixed) == pytest.approx(of(keys) + of(without) + of(plain))
    indexers = parameter_counts(mixed).total - parameter_counts(PLAIN).total
    assert indexers == 10 * (4096 * 4 * 128 + 4096 * (128 + 4))
    with pytest.raises(ValueError, match="index_layers"):
        replace(mixed, index_layers=41)
