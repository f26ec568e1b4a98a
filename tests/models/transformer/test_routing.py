"""Routing of experts: popularity, placement of copies, capacity, and what they do to a decode step."""

from __future__ import annotations

from dataclasses import replace
from math import exp, floor, inf, lgamma, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving import examples
from models.serving.decode import ServingLayouts, held_experts
from models.serving.kv_cache import weight_bytes_per_chip
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from models.transformer.routing import Routing, dropped_share, fullest_rank, popularity
from tests.conftest import few_of

EXPONENT = st.floats(0.0, 2.0)


@given(experts=st.integers(1, 300), exponent=EXPONENT)
def test_popularity_falls_and_adds_up(experts, exponent):
    chances = popularity(experts, exponent)
    assert chances.sum() == pytest.approx(1.0) and (np.diff(chances) <= 0).all()


@given(ranks=st.integers(1, 32), slots=st.integers(1, 6), exponent=EXPONENT, spare=st.integers(0, 40))
def test_the_fullest_rank_lies_between_its_bounds(ranks, slots, exponent, spare):
    held = ranks * slots
    experts = max(held - spare, 1)
    found = fullest_rank(experts, exponent, held, ranks)
    first = popularity(experts, exponent)[0]
    assert max(1.0, first * ranks / (held - experts + 1)) <= found * (1 + 1e-9) <= ranks * (1 + 1e-6)
    if ranks == 1 or (exponent == 0.0 and held == experts):
        assert found == pytest.approx(1.0)


def test_the_fullest_rank_by_hand():
    """Chances 12, 6, 4, 3 of 25: pairs 12 + 3 and 6 + 4 on two ranks; one more copy of the first on each of two ranks of three slots."""
    assert fullest_rank(4, 1.0, 4, 2) == pytest.approx(2 * 15 / 25)
    assert fullest_rank(4, 1.0, 6, 2) == pytest.approx(
        2 * (6 + 3 + 4) / 25
    )  # 6, 6 | 4, 3, 3, 3: copies of the first two


@settings(max_examples=few_of(25))
@given(
    experts=st.integers(2, 40),
    topk=st.integers(1, 4),
    tokens=st.integers(1, 200),
    factor=st.floats(0.1, 4.0),
    exponent=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_dropped_tokens_equal_the_sum_over_all_counts(experts, topk, tokens, factor, exponent):
    def over(mean: float, room: int) -> float:
        return sum((x - room) * exp(x * log(mean) - mean - lgamma(x + 1)) for x in range(room + 1, 1200))

    room = max(floor(factor * tokens * topk / experts), 1)
    want = sum(over(tokens * topk * p, room) for p in popularity(experts, exponent)) / (tokens * topk)
    found = float(dropped_share(experts, topk, tokens, factor, exponent))
    assert found == pytest.approx(want, abs=1e-9 if exponent == 0.0 else 0.01)


@given(factor=st.floats(0.1, 3.0), tokens=st.floats(1.0, 1e5), exponent=EXPONENT)
def test_more_room_never_drops_more(factor, tokens, exponent):
    some, fewer = (float(dropped_share(64, 8, tokens, f, exponent)) for f in (factor, factor * 1.5))
    assert 0.0 <= fewer <= some + 1e-12 <= 1.0 + 1e-9
    assert float(dropped_share(64, 8, tokens, 1e4, exponent)) == pytest.approx(0.0, abs=1e-9)


def step(routing: Routing | None, tokens: float = 4096.0, ranks: int = 32) -> float:
    arch = replace(examples.MOE, routing=routing)
    layout = ServingLayouts(1, 1, ranks, ranks)
    found = step_time(
        arch,
        examples.CHIP,
        layout,
        StepLoad(tokens, context_tokens=1000),
        precisions=Precisions("bf16", "bf16"),
        constants=examples.SERVING,
    )
    assert sum(found.breakdown.values()) == pytest.approx(found.total_s)
    return float(found.total_s)


@given(tokens=st.floats(1.0, 1e5), ranks=st.sampled_from([1, 8, 16, 64]))
def test_what_is_stated_moves_a_step_the_right_way(tokens, ranks):
    usual = step(None, tokens, ranks)
    assert step(Routing(), tokens, ranks) == usual
    assert step(Routing(two_batches=False), tokens, ranks) >= usual
    assert step(Routing(most_domains=2), tokens, ranks) <= usual * (1 + 1e-12)
    assert step(Routing(capacity_factor=1.0), tokens, ranks) <= usual * (1 + 1e-12)
    even, skewed = (step(Routing(imbalance=excess), tokens, ranks) for excess in (1.0, 2.0))
    assert even <= skewed and (ranks > 1 or even == skewed)
    # even popularity leaves chance, which is in a measured imbalance already
    alike = step(Routing(popularity=0.0), tokens, ranks)
    assert even <= alike and (ranks > 1 or even == alike)


def test_copies_level_the_ranks_and_take_memory():
    arch, layout = examples.MOE, ServingLayouts(1, 1, 32, 32)
    plain, copied = (replace(arch, routing=Routing(popularity=0.8, redundant=n)) for n in (0, 64))
    assert float(held_experts(copied, layout)) == 192.0 and float(held_experts(plain, layout)) == 128.0
    assert float(held_experts(copied, ServingLayouts(8, 1, 1, 1))) == 128.0  # one rank needs no copies
    bytes_ = [float(weight_bytes_per_chip(a, layout, "bf16")) for a in (plain, copied)]
    assert bytes_[0] < bytes_[1] < bytes_[0] * 192 / 128
    excess = [float(np.asarray(a.routing.excess(128, held_experts(a, layout), 32))) for a in (plain, copied)]
    assert excess[1] < excess[0]
    assert step(copied.routing, 1e5) < step(plain.routing, 1e5)


def test_capacity_caps_the_fullest_rank():
    assert float(np.asarray(Routing(popularity=1.0, capacity_factor=1.5).excess(128, 128, 32))) == 1.5
    assert Routing(capacity_factor=inf).kept(128, 8, 1.0) == 1.0
