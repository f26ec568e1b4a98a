"""What is said of the points of a plan, in every place that shows them: memory by role and the power cap."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.dashboard import answers
from planner.plan import parse_plan
from planner.report.fleet import point_rows
from planner.report.load import first_token
from planner.report.load.first_token import PARTS
from planner.report.locale import Words
from planner.report.report import render
from planner.report.words import cap_words
from planner.studies.comparison_tables import replicas
from planner.verify.plan import verify_plan

SPEC = {
    "name": "capped", "horizon": {"years": 1}, "objective": {"minimise": "carbon"},
    "workloads": [{
        "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 60}, "precision": ["fp8"],
        "lengths": {"input": 2000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}], "disaggregation": "always",
    }],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["rail-optimised"], "power_caps": [0.7, 0.5]}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 20}],
}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    found = planner.solve(SPEC)
    assert found.status in ("optimal", "within_gap"), found.status
    return found


def points(plan):
    return [point for workload in plan["workloads"] for point in workload["points"]]


def test_memory_is_stated_by_role_and_checked(plan):
    assert verify_plan(plan) == []
    for point in points(plan):
        prefill, decode = point["pools"]
        assert 0 < prefill["memory_bytes"] != decode["memory_bytes"] > 0
        assert point["memory_bytes"] == max(prefill["memory_bytes"], decode["memory_bytes"])
    document = json.loads(plan.to_json())
    document["workloads"][0]["points"][0]["pools"][0]["memory_bytes"] *= 0.5
    assert any("memory_bytes" in str(finding) for finding in verify_plan(parse_plan(json.dumps(document))))


def test_the_time_to_first_token_is_stated_as_a_distribution_and_checked(plan):
    """Mean, median and far percentiles, under a power cap too; a limit on a percentile holds against that percentile."""
    for point in points(plan):
        times = point["first_token_s"]
        assert sum(times[name] for name in PARTS) == pytest.approx(times["mean"])
        assert times["p50"] < times["p95"] < times["p99"]
    limited = copy.deepcopy(SPEC)
    limited["workloads"][0] |= {"slo": {"ttft": {"p50": "5 s", "p99": "10 s"}}, "disaggregation": "never"}
    found = planner.solve(limited)
    assert verify_plan(found) == []
    for point in points(found):
        for name in ("p50", "p99"):
            assert point["latency_s"][f"ttft.{name}"] == pytest.approx(point["first_token_s"][name])
    rows = dict(first_token.sections(found))[first_token.HEADING]
    assert len(rows) == len(points(found)) and first_token.HEADING in render(found, "table")
    document = json.loads(plan.to_json())
    document["workloads"][0]["points"][0]["first_token_s"]["p99"] *= 0.5
    assert any("first_token_s" in str(finding) for finding in verify_plan(parse_plan(json.dumps(document))))


def test_the_power_cap_is_shown_wherever_a_point_is(plan):
    cap = next(point["power_cap"] for point in points(plan) if point.get("power_cap"))
    words = f"{cap:.0%} of nameplate".replace("%", " %")
    assert words in {row["power_cap"] for row in point_rows(plan)}
    assert words in render(plan, "table") and words in render(plan, "md")
    assert any(f"at {words}" in runs for _, _, runs in replicas(plan))
    for language in ("en", "zh"):
        t = Words(language)
        assert t.phrase(cap_words(cap)) in {row[t("column.power_cap")] for row in answers.point_table(plan, t)}
        assert all(row[t("column.memory")].count("GB") == 2 for row in answers.point_table(plan, t))
