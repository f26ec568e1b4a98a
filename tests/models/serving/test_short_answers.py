"""Speculation over answers of few tokens: a step at least, and no gain from drafts beyond the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.serving import examples
from models.serving.continuous_batching import aggregated
from models.serving.speculation import Speculation, tokens_per_step, tokens_per_step_of
from models.serving.workload import Lengths


def steps_of(acceptance: float, drafts: int, tokens: int) -> float:
    """Count the mean steps of an answer of so many tokens, step by step: N(n) = 1 + sum over Y < n of P(Y) N(n - Y)."""
    chance = [acceptance**y * (1.0 - acceptance) for y in range(drafts)] + [
        acceptance**drafts
    ]  # chance of y + 1 tokens
    found = [0.0]
    for n in range(1, tokens + 1):
        found.append(1.0 + sum(p * found[n - 1 - y] for y, p in enumerate(chance) if y + 1 < n))
    return found[tokens]


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("drafts", [1, 3, 7])
def test_steps_of_an_answer_are_those_counted_one_by_one(acceptance, drafts):
    for tokens in (1, 2, 3, 5, 10, 30, 200):
        found = tokens / float(tokens_per_step_of(acceptance, drafts, tokens))
        assert found == pytest.approx(steps_of(acceptance, drafts, tokens), rel=0.02, abs=0.5)
    # the mean over answers of all lengths, where what is whole and what is not evens out
    lengths = np.arange(1, 101)
    counted = sum(steps_of(acceptance, drafts, int(n)) for n in lengths)
    assert np.sum(lengths / tokens_per_step_of(acceptance, drafts, lengths)) == pytest.approx(counted, rel=0.02)


@given(st.floats(0.0, 1.0), st.integers(1, 12), st.floats(1.0, 1e5))
def test_no_answer_takes_less_than_a_step_nor_fewer_than_its_tokens_need(acceptance, drafts, tokens):
    each = float(tokens_per_step_of(acceptance, drafts, tokens))
    assert 1.0 - 1e-9 <= each <= min(tokens, float(tokens_per_step(acceptance, drafts))) * (1 + 1e-9)


def test_one_token_after_the_first_takes_one_whole_step():
    """Its time per token is at least that of a step with its drafts, not a part of one."""
    point = aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, 8.0, lengths=Lengths(1000, 2), precisions=examples.BF16,
        constants=examples.SERVING, speculation=Speculation(4, 0.9),
    )  # fmt: skip
    assert point.steps == pytest.approx(1.0)
    assert point.tpot_s >= point.step_s
