"""What tensor ranks hold of attention: heads once, what has no heads on each of them, KV heads again where there are fewer of them."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.lookup import shipped_catalog
from models.formats import stored
from models.serving import examples
from models.serving.decode import ServingLayouts, dense_times_s
from models.serving.kv_cache import weight_bytes_per_chip
from models.transformer.architecture import Architecture, attention_on_ranks, parameter_counts
from planner.calibration.architectures import shape_of_record

# The attention of DeepSeek-V3: 61 layers of 128 heads on a latent.
LATENT = Architecture(
    61, 7168, 128, 128, 128, 18432, 129280, mla=True, q_lora_rank=1536, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64,
    v_head_dim=128,
)  # fmt: skip


def test_a_tensor_rank_holds_the_projections_down_to_a_latent_whole():
    """Of h r_q + h (r_kv + d_rope) nothing is divided: 15.1 million weights a layer; of all else, 16 of 128 heads."""
    down = 7168 * (1536 + 512 + 64)
    heads = 1536 * 128 * (128 + 64) + 512 * 128 * (128 + 128) + 128 * 128 * 7168
    assert parameter_counts(LATENT).attention == 61 * (down + heads)
    assert attention_on_ranks(LATENT, 8) / 8 == 61 * (down + heads / 8)


def test_the_copies_are_held_read_and_multiplied():
    """At tp 8 a chip has 7/8 of the projections down more than an eighth of the network, in memory, in traffic and in products."""
    eight, one = ServingLayouts(8, 1, 1, 1), ServingLayouts(1, 1, 1, 1)
    more = 61 * 7168 * (1536 + 512 + 64) * 7 / 8
    held = [float(weight_bytes_per_chip(LATENT, layout, "bf16")) for layout in (one, eight)]
    assert held[1] - held[0] / 8 == pytest.approx(2 * more)
    times = [dense_times_s(LATENT, examples.CHIP, layout, "bf16", examples.SERVING, 1, 0) for layout in (one, eight)]
    read = 2 * more / (examples.CHIP.hbm_bytes_per_s * examples.SERVING.memory_efficiency)
    assert times[1][1] - times[0][1] / 8 == pytest.approx(read)
    passed = 2 * (times[0][0] / 8) / (2 * parameter_counts(LATENT).active / 8)  # seconds of a weight
    assert times[1][0] - times[0][0] / 8 == pytest.approx(more * passed, rel=0.02)
    assert stored(LATENT.checkpoints, "bf16").attention == 2.0


def test_ranks_beyond_the_kv_heads_hold_their_projections_again():
    """4 KV heads on 16 ranks: each rank holds one of them, so that the projections of keys and values are held four times."""
    arch = Architecture(2, 1024, 16, 4, 64, 4096, 1000)
    once, keys_values = parameter_counts(arch).attention, 2 * 1024 * 4 * 64 * 2
    assert [float(attention_on_ranks(arch, tp)) for tp in (1, 4, 16)] == [once, once, once + 3 * keys_values]


def test_an_indexer_and_compressed_entries_have_no_heads_to_divide():
    indexed = Architecture(2, 1024, 16, 4, 64, 4096, 1000, sparse_topk=64, index_heads=8, index_dim=32)
    extra = attention_on_ranks(indexed, 4) - parameter_counts(indexed).attention
    assert extra == 3 * 2 * (1024 * 8 * 32 + 1024 * 32 + 1024 * 8)
    entries = Architecture(2, 1024, 16, 1, 64, 4096, 1000, window_tokens=8, hca_layers=2, hca_ratio=128)
    extra = attention_on_ranks(entries, 4) - parameter_counts(entries).attention
    assert extra == 3 * 2 * (1024 * 64 + 2 * 1024 * 64)  # the entry, and its series of values and gates


def test_a_rank_never_holds_more_than_all_nor_less_than_its_part():
    tp = np.array([1, 2, 4, 8, 16, 64])
    for record in shipped_catalog().records("architectures"):
        if record.words("shape") == "incomplete" or not record.get("layers"):
            continue
        arch = shape_of_record(record)
        whole = parameter_counts(arch).attention
        each = np.asarray(attention_on_ranks(arch, tp)) / tp
        assert each[0] == pytest.approx(whole), record.name
        assert np.all(np.diff(each) <= 0) and np.all(each >= whole / tp * (1 - 1e-12)), record.name
