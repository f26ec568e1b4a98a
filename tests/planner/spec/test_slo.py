"""Latency limits: their keys, and the round trip that counts in all of them but the time per output token."""

from __future__ import annotations

import pytest

from planner.spec.slo import METRICS, TASK, LatencyLimit, Slo

SLO = Slo.model_validate({"ttft": {"p95": "400 ms", "mean": "300 ms"}, "tpot": {"p99": "50 ms"}, "e2e": {"p50": "8 s"}})


def test_the_metrics_are_the_fields_of_the_block():
    assert [*METRICS, TASK] == list(Slo.model_fields)


def test_limits_have_the_keys_of_plans():
    assert [limit.key for limit in SLO.limits()] == ["ttft.mean", "ttft.p95", "tpot.p99", "e2e.p50"]


def test_the_round_trip_counts_in_all_but_the_time_per_output_token():
    assert {limit.key: limit.at_site(0.1).seconds for limit in SLO.limits()} == pytest.approx(
        {"ttft.mean": 0.2, "ttft.p95": 0.3, "tpot.p99": 0.05, "e2e.p50": 7.9}
    )


def test_a_latency_that_just_keeps_the_limit_at_the_site_keeps_it_at_the_origin():
    for limit in SLO.limits():
        assert limit.at_origin(limit.at_site(0.07).seconds, 0.07) == pytest.approx(limit.seconds)


def test_a_stretch_of_the_predictions_tightens_what_is_left_after_the_round_trip():
    assert LatencyLimit("ttft", "p95", 0.5).at_site(0.1, 2.0).seconds == pytest.approx(0.2)
    stretched = [limit.at_site(0.0, {"tpot": 1.25}.get(limit.metric, 1.0)).seconds for limit in SLO.limits()]
    assert stretched == pytest.approx([0.3, 0.4, 0.04, 8.0])


def test_a_task_has_a_round_trip_for_each_call():
    (limit,) = Slo.model_validate({"task": {"p95": "60 s"}}).limits(calls=12.0)
    assert limit.at_site(0.1).seconds == pytest.approx(58.8) and limit.at_origin(58.8, 0.1) == pytest.approx(60.0)
