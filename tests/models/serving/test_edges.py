"""Laws of serving where no published run looks: what is held is at least what is read, what is sent passes its links, a lone request is one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.serving.examples import BF16, CHIP, DENSE, ONE, SERVING
from models.serving.kv_cache import held_context_tokens, slots
from models.serving.workload import Lengths


def test_memory_holds_what_steps_read():
    """Answers of cv 2 that run hold (O - 1)(1 + 2^2)/2 on average, long ones being met most: 500 + 2,497.5 tokens, not 500 + 900."""
    even, spread = Lengths(500, 1000), Lengths(500, 1000, output_scv=4.0)
    assert held_context_tokens(even, SERVING) == 500 + 0.9 * 1000
    assert held_context_tokens(spread, SERVING) == 500 + 999 * 2.5
    unlimited = {"precisions": BF16, "constants": replace(SERVING, batch_cap=1e9)}
    few, many = (slots(DENSE, CHIP, ONE, lengths=lengths, **unlimited) for lengths in (spread, even))
    assert many / few == pytest.approx(2997.5 / 1400)


def test_requests_that_run_hold_as_drawn_answers_do():
    """Drawn by hand: the tokens that a stationary stream of gamma answers holds, one place each, over the places that are taken."""
    rng, mean, scv = np.random.default_rng(7), 400.0, 4.0
    answers = np.maximum(np.rint(rng.gamma(1 / scv, mean * scv, 400_000)), 1.0)
    held = (answers * (500.0 + (answers - 1.0) / 2.0)).sum() / answers.sum()
    predicted = held_context_tokens(
        Lengths(500, answers.mean(), output_scv=answers.var() / answers.mean() ** 2), SERVING
    )
    assert predicted == pytest.approx(held, rel=0.01)


@given(st.floats(1.0, 1e6), st.floats(2.0, 1e6), st.floats(0.0, 9.0), st.floats(0.0, 9.0))
def test_no_step_reads_more_than_is_held(prompt, output, input_scv, output_scv):
    lengths = Lengths(prompt, output, input_scv, output_scv)
    assert held_context_tokens(lengths, SERVING) >= lengths.running_context_tokens
