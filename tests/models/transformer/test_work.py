"""Work by operator adds up to the FLOPs of the network, and to the bytes of its weights and caches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.serving.examples import BF16, DENSE, MOE
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import forward_flops_per_token, kv_bytes
from models.transformer.encoder import Encoder, encoder_flops
from models.transformer.variants import with_latent
from models.transformer.work import (
    critical_tokens,
    decode_work,
    encoding_work,
    prefill_work,
    products,
    touched_experts,
    training_work,
)

NETWORKS = [DENSE, MOE, with_latent(DENSE), with_latent(MOE)]


def total(work, what: str) -> float:
    return float(sum(np.asarray(getattr(part, what)) for part in work.values()))


@pytest.mark.parametrize("arch", NETWORKS)
def test_a_prompt_takes_the_flops_of_a_forward_pass(arch: Architecture):
    s = 4096
    head = 2.0 * arch.hidden * arch.vocab * (s - 1)  # only the last token of a prompt goes through it
    assert total(prefill_work(arch, s, BF16), "flop") == pytest.approx(s * forward_flops_per_token(arch, s) - head)


@pytest.mark.parametrize("arch", NETWORKS)
def test_a_training_step_takes_three_forward_passes(arch: Architecture):
    assert total(training_work(arch, 16384, 4096), "flop") == pytest.approx(
        3 * 16384 * forward_flops_per_token(arch, 4096)
    )


def test_one_request_reads_the_active_weights_and_its_cache():
    for arch in (DENSE, MOE):
        work, counts = decode_work(arch, 1, 2000, BF16), parameter_counts(arch)
        assert total(work, "weight_bytes") == pytest.approx(2 * counts.active)
        assert float(work["attention"].other_bytes) == float(kv_bytes(arch, 2000, 2))
        assert total(work, "flop") == pytest.approx(2 * counts.active + float(work["attention"].flop))


@given(batch=st.integers(1, 4096))
def test_intensity_of_decode_grows_with_the_batch_and_attention_does_not(batch):
    small, large = (decode_work(MOE, b, 1000, BF16) for b in (batch, 2 * batch))
    assert large["attention projections"].intensity > small["attention projections"].intensity
    assert large["experts"].intensity >= small["experts"].intensity
    assert large["attention"].intensity == pytest.approx(small["attention"].intensity)


def test_experts_touched_equal_a_simulation():
    rng = np.random.default_rng(3)
    drawn = [len({int(e) for _ in range(24) for e in rng.choice(128, 8, replace=False)}) for _ in range(300)]
    assert float(touched_experts(MOE, 24)) == pytest.approx(np.mean(drawn), rel=0.02)


def test_at_the_critical_batch_arithmetic_and_memory_take_as_long():
    peak, bandwidth = 990e12, 3.35e12
    for precision, width in (("bf16", 2.0), ("fp8", 1.0)):
        m = critical_tokens(peak, bandwidth, precision)
        work = products(DENSE, m, m, precision)["feed-forward"]
        assert float(work.flop) / peak == pytest.approx(float(work.weight_bytes) / bandwidth)
        assert float(work.weight_bytes) == pytest.approx(width * parameter_counts(DENSE).dense_ffn)


def test_narrow_weights_move_fewer_bytes():
    wide, narrow = (decode_work(DENSE, 4, 1000, Precisions(p, "bf16")) for p in ("bf16", "fp8"))
    assert total(narrow, "weight_bytes") == pytest.approx(total(wide, "weight_bytes") / 2)


def test_a_prompt_in_two_parts_computes_as_much_as_in_one():
    for arch in (DENSE, MOE):
        bf16 = Precisions("bf16", "bf16")
        whole, first, rest = (prefill_work(arch, s, bf16, c) for s, c in ((5000, 0), (3000, 0), (5000, 3000)))
        for name in set(whole) - {"head"}:  # the head passes once for each part
            assert float(first[name].flop + rest[name].flop) == pytest.approx(float(whole[name].flop))
        assert float(rest["attention"].other_bytes) > 2000 / 5000 * float(whole["attention"].other_bytes)


def test_encoding_is_done_item_by_item():
    encoder = Encoder(6.75e8, 32, 1280, 4096, 1024)
    one, four = (encoding_work(encoder, n)["encoder"] for n in (1, 4))
    assert float(four.flop) == pytest.approx(4 * float(one.flop)) and float(one.flop) == float(encoder_flops(encoder))
    assert float(one.weight_bytes) == 2 * 6.75e8 and float(four.intensity) == pytest.approx(float(one.intensity))
