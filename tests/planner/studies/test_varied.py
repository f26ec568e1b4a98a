"""What studies move: every demand key and latency limit of a spec, and whole numbers that become fractions where the spec takes them."""

from __future__ import annotations

import pytest

from planner.spec.workloads import DEMANDS, Demand, DemandInTime
from planner.studies.sensitivity_factors import latency_paths, times, work_path


def test_the_demand_keys_are_those_that_a_spec_may_state():
    """Everything else in a demand is how it is spread over time."""
    shape = {"profile", "week", "months", "deferral", *DemandInTime.model_fields}
    assert set(Demand.model_fields) - shape == set(DEMANDS)


@pytest.mark.parametrize("key", DEMANDS)
def test_the_amount_of_work_is_found_under_whichever_key_states_it(tiny, key):
    spec = tiny()
    spec["workloads"][0]["demand"] = {key: 3}
    assert work_path(spec, 0) == f"workloads[0].demand.{key}"


def test_thirty_per_cent_less_of_three_requests_is_not_three(tiny):
    spec = tiny()
    spec["workloads"][0]["demand"] = {"requests_per_s": 3}
    assert times(spec, "workloads[0].demand.requests_per_s", 0.7) == pytest.approx(2.1)


def test_a_count_is_rounded_up(tiny):
    spec = tiny()
    spec["offers"][0]["supply"] = 7
    assert times(spec, "offers[0].supply", 0.9) == 7 and times(spec, "offers[0].supply", 0.5) == 4


def test_limits_of_classes_are_latency_limits_too(tiny):
    spec = tiny()
    spec["workloads"][0]["classes"] = [
        {"name": "a", "share": 0.5, "ttft": {"p95": "1 s", "p99": "2 s"}},
        {"name": "b", "share": 0.5},
    ]
    assert list(latency_paths(spec, 0)) == [
        "workloads[0].slo.ttft.p95",
        "workloads[0].slo.tpot.p95",
        "workloads[0].classes[0].ttft.p95",
        "workloads[0].classes[0].ttft.p99",
    ]
