"""A number of sessions as the demand: the rate that plans find is that of the closed loop, and checks find rows that are not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from planner.errors import SpecError
from planner.pipeline import check_document
from planner.plan import Plan
from planner.resolve.resolver import resolve
from planner.solving.closed_loop import solve_closed
from planner.spec.document import edited
from planner.spec.load.closed_loop import MOST_OFF, first_rate
from planner.spec.model import parse_spec
from planner.verify.plan import verify_plan
from tests.planner.serving_enumeration import DAY

SPEC: dict[str, Any] = {
    "name": "agents at once",
    "workloads": [
        {
            "name": "agents", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"sessions": 500, "profile": DAY},
            "lengths": {"input": 4000, "output": 300}, "session": {"calls": 10, "growth": 800, "wait": "6 s"},
            "origins": [{"region": "us-texas", "share": 1}], "slo": {"task": {"p95": "4 min"}}, "disaggregation": "never",
        },
    ],
    "sites": [{"region": "us-texas"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
    "solver": {"replicas": "divisible", "gap": 0.02, "time_limit": "60 s"},
    "simplicity": {"within": 0},
}  # fmt: skip
DEMAND = "workloads[0].demand"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(SPEC)


def test_so_many_sessions_send_calls_at_the_rate_of_the_plan(plan):
    """X = N / (R + (1 - 1/n) Z) for each point, in the busiest hour."""
    (row,) = plan["closed_loops"]
    busiest = max(plan["schedule"], key=lambda each: sum(each["active"].values()))
    points = plan["workloads"][0]["points"]
    at_work = sum(
        point["capacity"] * busiest["active"].get(point["id"], 0.0) * (point["call_s"] + 0.9 * 6.0) for point in points
    )
    assert row["reached"] == pytest.approx(at_work, rel=1e-6)
    assert at_work == pytest.approx(500, rel=MOST_OFF)
    calls = sum(point["capacity"] * busiest["active"].get(point["id"], 0.0) for point in points)
    assert calls == pytest.approx(10 * row["tasks_per_s"] * max(DAY) * 24 / sum(DAY), rel=1e-6)


def test_the_plan_is_that_of_its_rate(plan):
    rate = plan["closed_loops"][0]["tasks_per_s"]
    same = planner.solve(edited(SPEC, ((f"{DEMAND}.sessions", None), (f"{DEMAND}.tasks_per_s", rate))))
    assert same.objective["value"] == pytest.approx(plan.objective["value"], rel=0.02)
    assert plan["spec"] == SPEC


class FixedCalls:
    """Plans in which calls take a time that depends on the rate as given."""

    def __init__(self, call_s: Any):
        self.call_s, self.rates = call_s, []

    def __call__(self, document: dict[str, Any]) -> Plan:
        rate = document["workloads"][0]["demand"]["tasks_per_s"]
        self.rates.append(rate)
        sessions = 10 * rate * (self.call_s(rate) + 0.9 * 6.0)
        return Plan(
            {
                "status": "optimal", "objective": {"value": 1.0}, "totals": {},
                "workloads": [{"name": "agents", "session": {"sessions": sessions}}],
            }
        )  # fmt: skip


@pytest.mark.parametrize("call_s", [lambda rate: 2.0, lambda rate: 1.0 + 0.2 * rate, lambda rate: 30.0 / (1.0 + rate)])
def test_the_search_ends_where_the_sessions_are_those_asked_for(call_s):
    plans = FixedCalls(call_s)
    found = solve_closed(SPEC, plans, lambda line: None)
    assert found["closed_loops"][0]["reached"] == pytest.approx(500, rel=MOST_OFF)
    assert len(plans.rates) <= 8


def test_a_search_that_does_not_settle_gives_no_plan():
    swings = iter([2.0, 200.0] * 10)
    found = solve_closed(SPEC, FixedCalls(lambda rate: next(swings)), lambda line: None)
    assert found.status == "limit" and found.objective["value"] is None


@pytest.mark.parametrize(
    ("key", "value"), [("sessions", 501), ("tasks_per_s", 1.0), ("reached", 500.5), ("workload", "others")]
)
def test_rows_that_are_wrong_are_found(plan, key, value):
    bent = copy.deepcopy(plan.document)
    bent["closed_loops"][0][key] = value
    assert any("closed_loops" in found.path or "routes" in found.path for found in verify_plan(Plan(bent)))
    del bent["closed_loops"]
    assert verify_plan(Plan(bent))


def test_first_rates_keep_the_limits():
    workload = parse_spec(SPEC).workloads[0]
    assert first_rate(workload) == pytest.approx(500 / (10 * 10.0 + 9 * 6.0))
    assert first_rate(parse_spec(edited(SPEC, (("workloads[0].slo.task.p95", "100 s"),))).workloads[0]) == 5.0


def test_what_has_no_closed_loop_says_so():
    with pytest.raises(SpecError, match=r"demand\.sessions: only plans find the rate"):
        resolve(parse_spec(SPEC))
    with pytest.raises(SpecError, match=r"demand\.sessions: of tasks, which need a session"):
        parse_spec(edited(SPEC, (("workloads[0].session", None), ("workloads[0].slo", {}))))
    with pytest.raises(SpecError, match=r"demand\.sessions: is not known together with an objective of throughput"):
        planner.solve(edited(SPEC, (("objective", {"maximise": "throughput"}),)))
    assert check_document(SPEC)["workloads"] == 1
