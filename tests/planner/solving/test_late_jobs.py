"""What a lead reads of a job: its step, checkpoints and slack, why its deadline is kept in few scenarios, and the price of more slack."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import planner
from models.training.reliability import checkpoint_interval_s
from planner.plan import Plan
from planner.problem.scenarios import CONFIDENCE_SCENARIOS, CONFIDENCE_SEED, draw, with_robust
from planner.report.jobs import runs
from planner.report.page import one_page
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

LATE = {
    "name": "late",
    "workloads": [{"name": "pretrain", "kind": "training", "architecture": "Qwen3-32B", "tokens": "300B", "deadline": "20 d", "preemption": None}],
    "sites": [{"region": "us-texas", "power": "2 MW"}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def late() -> Plan:
    return planner.solve(LATE, threads=1)


def test_the_slack_of_a_job_is_the_time_until_its_deadline_beyond_its_run(late):
    [row] = late.document["workloads"]
    [point] = row["points"]
    assert row["deadline_s"] == 20 * 86400.0
    assert row["slack_s"] == pytest.approx(20 * 86400.0 - point["time_s"]["run"], rel=1e-9)


def test_checkpoints_are_those_of_the_best_interval(late):
    [point] = late.document["workloads"][0]["points"]
    found = point["checkpoints"]
    # mean time between interruptions of 80 chips, from the interval that Daly's formula was solved for
    between = resolve_document(LATE).constants.reliability.chip_interruption_s / 80
    assert found["stall_s"] == found["write_s"] > 0
    assert found["interval_s"] == pytest.approx(float(checkpoint_interval_s(found["write_s"], between)), rel=1e-9)
    # to first order a run loses d of every d + tau
    lost = found["write_s"] / (found["interval_s"] + found["write_s"])
    assert point["losses"]["checkpoints"] == pytest.approx(lost, rel=0.02)


def test_further_systems_follow_from_the_errors_of_the_step(late):
    [row] = late.document["confidence"]["late_jobs"]
    scenarios = draw(with_robust(resolve_document(LATE)), CONFIDENCE_SCENARIOS, CONFIDENCE_SEED)
    slower = sorted(scenarios.training["H100 SXM5 80GB", "dense"].tolist())
    run_s, there_s = late.document["workloads"][0]["points"][0]["time_s"]["run"], 20 * 86400.0
    in_time = [each for each in slower if each * run_s <= there_s]
    assert row["kept"] == len(in_time) / len(slower) < 0.8
    assert row["slack"] == pytest.approx(in_time[-1] - 1)
    needed = slower[math.ceil(0.8 * len(slower)) - 1]
    assert row["slower"] == pytest.approx(needed - 1)
    assert row["count"] == math.ceil(10 * (needed - in_time[-1]) * run_s / there_s) == 1
    # so many more do end it in time in 80 % of the scenarios: 10 systems as in the plan, one more at work throughout
    widened = np.array(slower) * run_s <= in_time[-1] * run_s + there_s * row["count"] / 10
    assert widened.mean() >= 0.8
    [held] = late.document["fleet"]
    assert held["count"] == 10 and row["cost"] == pytest.approx(late.totals["cost"] / 10, rel=0.05)


def test_the_page_says_why_and_what_more_slack_costs(late):
    told = list(runs(late))
    assert "step " in told[0] and "MFU " in told[0] and "slack 1.7 days" in told[0] and "checkpoint every" in told[0]
    assert told[1].startswith("pretrain ends in time in 77% of scenarios") and "1 more DGX H100 at us-texas" in told[1]
    page = one_page(late)
    assert "How jobs run" in page and len(page.splitlines()) <= 58


def test_a_fleet_without_slack_is_called_so(late):
    document = copy.deepcopy(late.document)
    document["confidence"]["late_jobs"][0]["slack"] = 0.0
    assert "has no slack" in list(runs(Plan(document)))[1]


def test_more_time_needs_no_price():
    spec = copy.deepcopy(LATE)
    spec["workloads"][0]["deadline"] = "30 d"
    plan = planner.solve(spec | {"offers": [{**LATE["offers"][0], "least": 10}]}, threads=1)
    assert plan.document["confidence"]["late_jobs"] == []


@pytest.mark.parametrize(
    ("place", "value"), [("slack", 0.2), ("slower", 0.3), ("count", 5), ("kept", 0.7)],
)  # fmt: skip
def test_another_figure_is_found(late, place, value):
    document = copy.deepcopy(late.document)
    document["confidence"]["late_jobs"][0][place] = value
    assert any("late_jobs" in str(finding) for finding in verify_plan(Plan(document)))


@pytest.mark.parametrize(("table", "key"), [("points", "checkpoints"), ("", "slack_s"), ("", "deadline_s")])
def test_another_slack_or_checkpoint_is_found(late, table, key):
    document = copy.deepcopy(late.document)
    row = document["workloads"][0]
    if table:
        row["points"][0][key]["interval_s"] *= 1.01
    else:
        row[key] += 3600.0
    assert any(
        "slack_s" in str(f) or "deadline_s" in str(f) or "checkpoints" in str(f) for f in verify_plan(Plan(document))
    )
