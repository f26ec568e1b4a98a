"""Requests: drawn at the stated load, read from traces, and the steps of speculation."""

import json
from dataclasses import replace

import numpy as np
import pytest

from models.serving.speculation import Speculation
from models.serving.workload import Lengths
from planner.errors import SpecError
from planner.replay.requests import Stream, decode_steps, drawn, traced

STREAM = Stream(10.0, Lengths(500, 100, 0.25, 1.0), arrival_scv=4.0)


def test_draws_have_the_stated_means_and_scatter():
    found = drawn(STREAM, 20_000, 3, inside=100.0)
    gaps = np.diff(found.arrivals_s)
    # one draw from each slice of equal chance: means are those stated but for the last slices
    assert gaps.mean() == pytest.approx(0.1, rel=0.01) and gaps.var() / gaps.mean() ** 2 == pytest.approx(4.0, rel=0.05)
    assert found.prompts.mean() == pytest.approx(500, rel=0.01) and found.prompts.std() == pytest.approx(250, rel=0.02)
    assert found.outputs.min() >= 2 and found.counted.sum() == 20_000
    assert len(found) == 20_000 + 2_000 + 600  # a tenth before, more than five stays of 100; 3 in a hundred after


def test_prompts_begin_with_a_whole_prefix_and_vary_by_as_much_as_stated():
    found = drawn(replace(STREAM, prefix_tokens=300.0), 20_000, 3)
    assert found.prompts.min() >= 300
    assert found.prompts.mean() == pytest.approx(500, rel=0.01) and found.prompts.std() == pytest.approx(250, rel=0.05)


def test_a_long_stay_draws_more_requests_before_and_after():
    found = drawn(STREAM, 100, 3, inside=200.0)
    assert np.flatnonzero(found.counted)[0] == 1000 and len(found) == 1000 + 100 + 600


def test_steps_of_speculation_by_hand():
    found = drawn(STREAM, 2000, 1)
    later = found.outputs - 1
    assert np.array_equal(decode_steps(found, 0.0, 3, 1), later)
    assert np.array_equal(decode_steps(found, 0.5, 0, 1), later)
    assert np.array_equal(decode_steps(found, 1.0, 3, 1), -(-later // 4))


def test_steps_of_speculation_yield_the_tokens_of_the_closed_form():
    found, draft = drawn(Stream(1.0, Lengths(10, 400)), 2000, 1), Speculation(3, 0.7)
    steps = decode_steps(found, 0.7, 3, 1)
    per_step = 399 / steps
    error = per_step.std() / np.sqrt(len(steps))
    assert abs(1 / (1 / per_step).mean() - float(draft.in_answer(399.0))) < 4 * error


def test_a_trace_is_read_in_order_of_its_times_without_rows_that_ask_nothing(tmp_path):
    path = tmp_path / "trace.jsonl"
    rows = [(3000, 30, 3), (1000, 10, 1), (2000, 20, 0), (4000, 40, 4)]
    path.write_text(
        "\n".join(
            json.dumps({"timestamp": t, "input_length": i, "output_length": o, "hash_ids": [i]}) for t, i, o in rows
        )
    )
    found = traced(path, STREAM, 100, 1)
    assert found.arrivals_s.tolist() == [0.0, 2.0, 3.0] and found.prompts.tolist() == [10, 30, 40]
    assert found.left_out == 1 and list(found.blocks) == [[10], [30], [40]] and found.counted.all()
    assert traced(path, STREAM, 2, 1).outputs.tolist() == [1, 3]
    half = found.take(np.array([True, False, True]))
    assert half.prompts.tolist() == [10, 40] and list(half.blocks) == [[10], [40]]


def test_a_trace_without_times_comes_at_the_rate_of_the_plan(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps([[100, 10]] * 3000))
    found = traced(path, STREAM, 2000, 1)
    assert len(found) == 2000 and found.arrivals_s[-1] == pytest.approx(200, rel=0.02)


def test_a_trace_of_which_no_request_asks_anything_is_refused(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text("[[0, 10], [5, 0]]")
    with pytest.raises(SpecError, match="both a prompt and an answer"):
        traced(path, STREAM, 10, 1)
