"""Attention of prompts of which a cache holds a part: against sums over single prompts, and against both forms of latent attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving import examples
from models.serving.decode import ServingLayouts, prefill_attention_s
from models.serving.prefill import Prompts, prefill_time
from models.serving.sessions import Session, Task, call_cost, call_lengths
from models.serving.workload import Lengths
from models.transformer.architecture import Architecture
from models.transformer.attention import query_flops
from tests.conftest import few_of

DENSE, CHIP, SERVING, ONE = examples.DENSE, examples.CHIP, examples.SERVING, examples.ONE
WINDOWED = replace(DENSE, window_tokens=512, window_layers=24)
LATENT = Architecture(
    layers=4, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=8192, vocab=32000, mla=True, q_lora_rank=512,
    kv_lora_rank=256, qk_nope_dim=64, qk_rope_dim=32, v_head_dim=64,
)  # fmt: skip
RATE = CHIP.flop16_per_s * SERVING.attention_efficiency


def attention(arch, tokens, prompt, cached, scv=0.0, constants=SERVING, layout=ONE):
    return float(prefill_attention_s(arch, CHIP, layout, tokens, prompt, constants, cached, scv, "bf16"))


@settings(max_examples=few_of(60), deadline=None)
@given(
    short=st.integers(1, 4000), more=st.integers(0, 60_000), often=st.floats(0.05, 0.95), cached=st.integers(0, 50_000)
)
def test_spread_prompts_attend_as_the_sum_of_them(short, more, often, cached):
    """Two lengths beyond the cached part: the mean over both prompts, each counted by itself, is E[s^2 - c^2]/2 pairs."""
    beyond, chance = np.array([short, short + more], float), np.array([often, 1.0 - often])
    mean = beyond @ chance
    variance = (beyond - mean) ** 2 @ chance
    each = np.array([attention(DENSE, n, cached + n, cached) for n in beyond])
    pairs = ((cached + beyond) ** 2 - cached**2) @ chance / 2.0
    found = attention(DENSE, mean, cached + mean, cached, variance / (cached + mean) ** 2)
    assert found == pytest.approx(each @ chance, rel=1e-9)
    assert found == pytest.approx(pairs * DENSE.layers * DENSE.heads * 4.0 * DENSE.head_dim / RATE, rel=1e-9)


def test_a_window_bounds_what_spread_prompts_attend_to():
    """Behind a cached part longer than the window each query of a windowed layer meets a full window, however lengths spread."""
    cached, mean = 8000.0, 500.0
    alone = replace(WINDOWED, window_layers=WINDOWED.layers)
    for scv in (0.0, 0.1, 1.0):
        pairs = mean * alone.window_tokens * alone.layers
        assert attention(alone, mean, cached + mean, cached, scv) == pytest.approx(
            pairs * alone.heads * 4.0 * alone.head_dim / RATE
        )


def test_prompts_are_charged_the_second_moment_of_their_lengths():
    """Occupancy of prompts of 8,500 tokens, 8,000 cached, differs with the spread by attention alone: v s^2/2 more pairs of each layer and head."""
    kinds = {"precisions": examples.BF16, "constants": SERVING, "cached_tokens": 8000.0}
    same, spread = (prefill_time(DENSE, CHIP, ONE, Prompts(8500.0, scv), None, **kinds) for scv in (0.0, 0.3))
    more = 0.3 * 8500.0**2 / 2.0 * DENSE.layers * DENSE.heads * 4.0 * DENSE.head_dim / RATE
    assert spread.occupancy_s - same.occupancy_s == pytest.approx(more, rel=1e-6)


def test_contexts_that_spread_in_the_cache_add_no_pairs():
    """The n new tokens of a later call meet E[c] cached ones each on average: n (c + n/2) pairs, whatever the variance of c."""
    times = []
    for scv in (0.0, 2.0):
        first = Lengths(2000.0, 300.0, input_scv=scv)
        session = Session(Task(1e6), 400.0)
        lengths = call_lengths(session, first)
        found, _ = call_cost(
            DENSE, CHIP, ONE, session, lambda s: 1.0, Prompts(lengths.prompt), None, first,
            precisions=examples.BF16, constants=SERVING,
        )  # fmt: skip
        times.append(found.breakdown["prefill_attention"])
    assert times[0] == pytest.approx(times[1], rel=1e-4)


def test_one_token_after_a_cached_latent_attends_as_in_decode():
    """A single query never pays for expanding a long context: absorbed, it is the query of a decode step (and its own, expanded)."""
    context = 50_000.0
    absorbed = float(query_flops(LATENT, context)) / (RATE * SERVING.mla_attention_efficiency)
    assert attention(LATENT, 1.0, context + 1.0, context) == pytest.approx(absorbed, rel=1e-3)


def test_many_tokens_after_a_cached_latent_expand_it_once_for_each_chunk():
    """4,000 tokens in two chunks after 10,000: keys and values of 10,000 and of 12,000 tokens are made of latents, then plain attention."""
    constants = replace(SERVING, chunk_tokens=2000.0)
    new, cached = 4000.0, 10_000.0
    pairs = ((cached + new) ** 2 - cached**2) / 2.0
    core = LATENT.layers * LATENT.heads * 2.0 * (96 + 64) * pairs / (RATE * SERVING.mla_attention_efficiency)
    made = LATENT.layers * 2.0 * 256 * LATENT.heads * (64 + 64) * (cached + cached + 2000.0)
    expected = core + made / (CHIP.flop_per_s * SERVING.efficiency_at(16))
    assert attention(LATENT, new, cached + new, cached, constants=constants) == pytest.approx(expected, rel=1e-9)


def test_a_latent_that_no_earlier_pass_left_costs_nothing_more():
    for scv in (0.0, 1.0):
        pairs = 1500.0**2 * (1.0 + scv) / 2.0
        core = LATENT.layers * LATENT.heads * 2.0 * (96 + 64) * pairs / (RATE * SERVING.mla_attention_efficiency)
        assert attention(LATENT, 1500.0, 1500.0, 0.0, scv) == pytest.approx(core, rel=1e-9)


@settings(max_examples=few_of(60), deadline=None)
@given(new=st.floats(1.0, 30_000.0), cached=st.floats(0.0, 100_000.0), scv=st.floats(0.0, 1.0), tp=st.integers(1, 8))
def test_finding_a_latent_in_the_cache_never_costs_time(new, cached, scv, tp):
    """What is found need not be computed, its expansion included: the rest takes no longer than the whole, and tensor ranks share its attention."""
    kinds = {"precisions": examples.BF16, "constants": SERVING}
    whole, rest = (
        prefill_time(LATENT, CHIP, ONE, Prompts(cached + new, scv), None, cached_tokens=found, **kinds)
        for found in (0.0, cached)
    )
    assert rest.occupancy_s <= whole.occupancy_s * (1 + 1e-9)
    alone = attention(LATENT, new, cached + new, cached, scv)
    divided = attention(LATENT, new, cached + new, cached, scv, layout=ServingLayouts(tp, 1, 1, 1))
    assert divided == pytest.approx(alone / tp)
