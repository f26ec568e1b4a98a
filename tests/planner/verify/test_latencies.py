"""What holds of latencies by whatever formula is checked even where the closed form says what the plan says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import planner
import planner.verify.points.check
from planner.plan import Plan
from planner.verify.plan import verify_plan


@pytest.fixture(scope="module")
def document(tiny):
    limits = {"mean": "60 s", "p50": "60 s", "p90": "60 s", "p95": "60 s", "p99": "60 s"}
    spec = tiny()
    spec["workloads"][0]["slo"] = {"ttft": limits, "tpot": limits, "e2e": limits}
    return json.loads(planner.solve(spec).to_json())


@pytest.fixture
def agreeing(monkeypatch):
    """A closed form that computes whatever latency the plan states."""
    evaluate = planner.verify.points.check.evaluate_point

    def agreed(problem, fleet_options, facts, row):
        found = evaluate(problem, fleet_options, facts, row)
        return replace(found, stated={**found.stated, "latency_s": row["latency_s"]})

    monkeypatch.setattr(planner.verify.points.check, "evaluate_point", agreed)


@pytest.mark.parametrize(
    ("key", "factor", "words"),
    [
        ("ttft.p50", -1.0, "positive"),
        ("tpot.p99", 0.0, "positive"),
        ("ttft.p95", 0.01, "below"),
        ("tpot.p99", 0.01, "below"),
        ("e2e.p50", 1e-6, "first token"),
        ("e2e.mean", 1e-6, "first token"),
        ("ttft.p99", 1e6, "first token"),
    ],
)
def test_latencies_out_of_order_are_found(document, agreeing, key, factor, words):
    changed = json.loads(json.dumps(document))
    latencies = changed["workloads"][0]["points"][0]["latency_s"]
    latencies[key] *= factor
    found = [str(finding) for finding in verify_plan(Plan(changed)) if ".latency_s." in finding.path]
    assert any(words in line for line in found), found


def test_latencies_in_order_are_accepted(document, agreeing):
    assert verify_plan(Plan(document)) == []


def test_widely_spread_answers_do_not_end_before_they_begin(tiny):
    """A median of 1 ms is refused, where a negative one was once found."""
    spec = tiny()
    spec["workloads"][0] |= {
        "lengths": {"input": 500, "output": 500, "output_cv": 3},
        "slo": {"e2e": {"p50": "1 ms"}},
    }
    assert planner.solve(spec).status == "infeasible"
    spec["workloads"][0]["slo"] = {"ttft": {"p50": "10 s"}, "e2e": {"p50": "60 s", "p99": "10 min"}}
    plan = planner.solve(spec)
    latencies = plan["workloads"][0]["points"][0]["latency_s"]
    assert 0 < latencies["ttft.p50"] < latencies["e2e.p50"] < latencies["e2e.p99"]
    assert verify_plan(plan) == []
