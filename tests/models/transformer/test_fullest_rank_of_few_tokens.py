"""The fullest expert rank of few tokens, against tokens whose experts are drawn one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from models.serving import examples
from models.serving.decode import ServingLayouts, expert_times_s
from models.transformer.routing import EVEN, Routing, largest_excess

CASES = [
    (256, 8, 8, 1),
    (256, 8, 8, 6),
    (256, 8, 64, 1),
    (256, 8, 64, 40),
    (128, 8, 4, 3),
    (8, 2, 8, 1),
    (64, 6, 16, 20),
]


def drawn(experts: int, topk: int, ranks: int, tokens: int) -> tuple[float, float]:
    """Draw the choices of tokens: (mean load of the fullest rank over the mean rank, mean of the most experts that a rank has to read)."""
    rng = np.random.default_rng(experts + ranks + tokens)
    loads, read = [], []
    for _ in range(400):
        chosen = rng.random((tokens, experts)).argpartition(topk, axis=1)[:, :topk]
        by_rank = np.bincount(chosen.ravel(), minlength=experts).reshape(ranks, -1)
        loads.append(by_rank.sum(axis=1).max())
        read.append((by_rank > 0).sum(axis=1).max())
    return float(np.mean(loads)) * ranks / (tokens * topk), float(np.mean(read))


@pytest.mark.parametrize("mean", [0.01, 0.3, 1.0, 7.3, 140.0])
@pytest.mark.parametrize("ranks", [1, 2, 6, 8, 72, 320])
def test_the_largest_of_many_numbers_is_that_of_their_distribution(mean, ranks):
    """E[max] of R independent Poisson numbers is the sum of the chances that not all are at most j."""
    largest = float(np.sum(1.0 - poisson.cdf(np.arange(2000), mean) ** ranks))
    assert (1.0 + largest_excess(mean, ranks)) * mean == pytest.approx(
        largest, rel=1e-9, abs=0.02 * max(mean, 1.0) ** 0.5
    )


@pytest.mark.parametrize("experts,topk,ranks,tokens", CASES)
def test_the_step_waits_for_the_rank_with_most_choices(experts, topk, ranks, tokens):
    load, _ = drawn(experts, topk, ranks, tokens)
    assert EVEN.with_chance(1.0, experts, topk, experts, ranks, tokens) == pytest.approx(load, rel=0.08)


@pytest.mark.parametrize("experts,topk,ranks,tokens", CASES)
def test_the_step_waits_for_the_rank_that_reads_most_experts(experts, topk, ranks, tokens):
    """Memory time of one token on 8 ranks is that of about 2.5 experts on one of them, not of one on each."""
    arch = replace(examples.MOE, experts=experts, topk=topk)
    constants = replace(examples.SERVING, rank_imbalance=1.0, expert_skew=1e9)
    layout = ServingLayouts(1, 1, ranks, ranks)
    _, read_s = expert_times_s(arch, examples.CHIP, layout, "bf16", constants, tokens)
    weights = 3.0 * arch.hidden * arch.expert_ffn * arch.moe_layers
    one_s = 2.0 * weights / (examples.CHIP.hbm_bytes_per_s * constants.memory_efficiency)
    _, most = drawn(experts, topk, ranks, tokens)
    assert float(read_s) / one_s == pytest.approx(most, rel=0.08)


def test_chance_fades_with_tokens_and_what_lasts_stays():
    """Spreads of independent causes add as squares: alone 1 + e at many tokens, chance alone at few."""
    many = float(EVEN.with_chance(1.2, 256, 8, 256, 8, 1e7))
    assert many == pytest.approx(1.2, abs=1e-3)
    even, uneven = (float(EVEN.with_chance(fitted, 256, 8, 256, 8, 64)) for fitted in (1.0, 1.2))
    assert (uneven - 1.0) ** 2 == pytest.approx((even - 1.0) ** 2 + 0.2**2)


def test_a_measured_imbalance_has_chance_in_it():
    assert Routing(imbalance=1.3).with_chance(1.0, 256, 8, 256, 8, 1.0) == pytest.approx(1.3)


def test_whole_layers_on_one_rank_wait_for_none():
    """Without expert ranks each chip has a slice of every expert, and no rank is fuller than another."""
    layout = ServingLayouts(8, 1, 1, 1)
    found = expert_times_s(examples.MOE, examples.CHIP, layout, "bf16", examples.SERVING, 1.0)
    even = expert_times_s(examples.MOE, examples.CHIP, layout, "bf16", examples.SERVING, 1.0, even=True)
    assert found == pytest.approx(even)


@given(
    experts=st.sampled_from([8, 64, 256]),
    doublings=st.integers(0, 3),
    tokens=st.floats(0.2, 1e6),
    fitted=st.floats(1.0, 1.5),
)
def test_the_fullest_rank_has_no_more_than_all(experts, doublings, tokens, fitted):
    ranks, topk = 2**doublings, 2
    found = float(EVEN.with_chance(fitted, experts, topk, experts, ranks, tokens))
    assert 1.0 <= found <= max(ranks, fitted) * (1 + 1e-12)
    assert EVEN.with_chance(fitted, experts, topk, experts, ranks, 2.0 * tokens) <= found * (1 + 5e-3)
    if tokens >= 1.0:  # more tokens never take less time
        twice = float(EVEN.with_chance(fitted, experts, topk, experts, ranks, 2.0 * tokens))
        assert found <= 2.0 * twice
