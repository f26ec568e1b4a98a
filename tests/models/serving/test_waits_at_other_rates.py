"""Check the waits of a serving point at another rate than its own: figures by hand, a full evaluation at that rate, and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.queueing.queues import erlang_c, wait_mean_s
from models.serving import examples
from models.serving.closed_points import closed_sessions
from models.serving.continuous_batching import aggregated
from models.serving.encoder_pool import apart_point
from models.serving.percentiles import latency_s
from models.serving.sessions import Session, Task
from models.serving.workload import Lengths, Media

FIT = 0.02  # the curve fitted to the moments of a sum may dip by so much where few wait, without encoders too


def at(batch, prompt=1000, output=200):
    return aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, batch, lengths=Lengths(prompt, output), precisions=examples.BF16, constants=examples.SERVING,
    )  # fmt: skip


def test_the_wait_for_prefill_follows_pollaczek_and_khinchine_by_hand():
    point = at(16.0)
    arrivals = replace(point.arrivals, load=0.5)
    loaded = replace(point, arrivals=arrivals, prefill_wait_s=2.0, prefill_wait_probability=0.5)
    # r (1 - u)/(1 - r u) = 1.5 x 0.5 / 0.25 = 3
    assert loaded.with_waits_at(1.5).prefill_wait_s == pytest.approx(6.0)
    assert loaded.with_waits_at(1.5).prefill_wait_probability == pytest.approx(0.75)
    assert np.isinf(loaded.with_waits_at(2.0).ttft_s)
    exact = [float(wait_mean_s(rate, 1.0, 0.7)) for rate in (0.5, 0.75)]
    assert exact[1] / exact[0] == pytest.approx(3.0)


def test_a_point_at_its_own_rate_is_itself():
    for batch in (1.0, 16.0, 100.0):
        point = at(batch)
        same = point.with_waits_at(1.0)
        for metric in ("ttft", "e2e"):
            for quantile in ("mean", 0.5, 0.95, 0.99):
                assert latency_s(same, metric, quantile) == pytest.approx(latency_s(point, metric, quantile), rel=1e-9)


def test_waits_at_another_rate_are_near_those_of_the_point_that_has_it():
    """A batch of 40 to 60 has 1.2 to 1.3 times the rate; its steps are longer as well, which the scaled waits leave out."""
    few, more = at(40.0, 2000), at(60.0, 2000)
    times = float(more.requests_per_s / few.requests_per_s)
    assert times > 1.1
    assert float(few.with_waits_at(times).prefill_wait_s) == pytest.approx(float(more.prefill_wait_s), rel=0.35)


@given(st.floats(1.0, 300.0), st.integers(50, 8000), st.floats(1.0, 3.0), st.floats(1.0, 2.0))
def test_waits_grow_with_the_rate_and_more_so_under_load(batch, prompt, times, further):
    point = at(batch, prompt)
    waits = [
        p.prefill_wait_s + p.slot_wait_s
        for p in (point, point.with_waits_at(times), point.with_waits_at(times * further))
    ]
    assert not np.isnan(waits).any()
    assert waits[0] <= waits[1] * (1 + 1e-9) and waits[1] <= waits[2] * (1 + 1e-9)
    assert point.with_waits_at(1.0 / times).ttft_s <= point.ttft_s * (1 + 1e-9)


def test_a_closed_loop_has_no_rate_of_its_own():
    agents = Session(Task(5.0, wait_s=4.0), 300.0)

    def open_at(batch):
        return aggregated(
            examples.DENSE, examples.CHIP, examples.ONE, batch, lengths=Lengths(1000, 100), precisions=examples.BF16, constants=examples.SERVING, cache=agents
        )  # fmt: skip

    assert open_at(4.0).arrivals is not None
    with pytest.raises(ValueError, match="closed loop"):
        closed_sessions(open_at, 20.0).with_waits_at(1.1)


def with_encoders(batch, items=3.0, items_scv=0.5, arrival_scv=1.0):
    """Return a point behind a pool of encoders, and how many there are."""
    lengths = Lengths(1000, 200, media=(Media(examples.MEDIA.encoder, items, items_scv, apart=True),))
    point = aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, batch, lengths=lengths, precisions=examples.BF16, constants=examples.SERVING, arrival_scv=arrival_scv
    )  # fmt: skip
    return apart_point(point, examples.CHIP, 4096, lengths, 25e9, examples.SERVING, arrival_scv=arrival_scv)


def test_the_wait_for_an_encoder_follows_the_load_by_hand():
    """M/G/c at r times the rate: (1 + c)/2 C(c, r a) s/(c - r a), infinite where r a reaches c; all of it by the formula."""
    point, workers = with_encoders(16.0)
    c, s = float(workers), float(point.encoders.service_s)
    offered = float(point.requests_per_s) * s
    assert 0 < offered <= 0.7 * c
    for times in (0.5, 1.0, 1.3):
        chance = float(erlang_c(c, times * offered))
        moved = point.with_waits_at(times)
        wanted = 0.5 * (1 + 0.5) * chance * s / (c - times * offered)
        assert float(moved.encoder_wait_s) == pytest.approx(wanted)
        assert float(moved.encoder_wait_probability) == pytest.approx(chance)
    assert np.isinf(point.with_waits_at(1.001 * c / offered).encoder_wait_s)
    assert point.with_waits_at(1e-9).encoder_wait_s == pytest.approx(0.0, abs=1e-9)


@given(st.floats(1.0, 100.0), st.floats(0.1, 20.0), st.floats(0.0, 4.0), st.sampled_from([1.0, 3.0]), st.floats(0.05, 3.0), st.floats(1.0, 2.0))  # fmt: skip
def test_more_load_never_shortens_the_time_to_first_token_behind_encoders(
    batch, items, scv, arrival_scv, times, further
):
    point, _ = with_encoders(batch, items, scv, arrival_scv)
    few, more = point.with_waits_at(times), point.with_waits_at(times * further)
    assert more.encoder_wait_s >= few.encoder_wait_s * (1 - 1e-9)
    assert more.ttft_s >= few.ttft_s * (1 - 1e-9)
    for quantile in (0.5, 0.9, 0.95, 0.99):
        before, after = (float(latency_s(each, "ttft", quantile)) for each in (few, more))
        assert after >= before * (1 - FIT), quantile


def test_a_point_behind_encoders_at_its_own_rate_is_itself():
    point, _ = with_encoders(16.0)
    same = point.with_waits_at(1.0)
    assert [float(latency_s(same, "ttft", q)) for q in (0.5, 0.95)] == pytest.approx(
        [float(latency_s(point, "ttft", q)) for q in (0.5, 0.95)], rel=1e-12
    )
    assert float(point.pick(()).with_waits_at(1.2).ttft_s) == pytest.approx(float(point.with_waits_at(1.2).ttft_s))
