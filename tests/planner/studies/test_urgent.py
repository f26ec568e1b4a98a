"""An urgent job in a plan: what it costs and displaces equals plans solved alone, and a full fleet says what is in the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.spec.document import edited
from planner.studies.urgent import AS_SEARCHED, urgent
from tests.plans.serving_enumeration import DAY

SPEC: dict[str, Any] = {
    "name": "busy",
    "horizon": {"years": 1},
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "demand": {"requests_per_s": 150, "profile": DAY},
            "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "40 ms"}},
            "disaggregation": "never",
        },
        {
            "name": "base", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "4T tokens", "deadline": "365 d", "preemption": {},
        },
    ],
    "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
}  # fmt: skip
JOB = {
    "name": "tune",
    "kind": "training",
    "architecture": "Llama-3.1-8B",
    "tokens": "80B tokens",
    "start": "30 d",
    "deadline": "40 d",
    "tuning": "sft",
}


@pytest.fixture(scope="module")
def found():
    return urgent(SPEC, JOB)


def test_the_costs_are_those_of_plans_solved_alone(found):
    held, free = found.insertions
    plain = edited(SPEC, (*AS_SEARCHED, ("solver.replicas", "whole")))  # as the plan has them, proven to be dearer
    before = planner.solve(plain)
    more = planner.solve(edited(plain, (("workloads", [*SPEC["workloads"], JOB]),)))
    assert found.before == pytest.approx(before.objective["value"])
    assert free.cost == pytest.approx(more.objective["value"] - before.objective["value"], abs=1e-3 * found.before)
    assert held.added_chips == 0
    if held.cost is not None:
        assert held.cost >= free.cost - 2e-3 * found.before


def test_what_is_displaced_belongs_to_others(found):
    for insertion in found.insertions:
        assert "tune" not in insertion.moved and all(hours > 0 for hours in insertion.moved.values())
    assert all(
        "tune" in line or "displaces" in line or "interrupted" in line or "search" in line for line in found.words[1:]
    )


def test_a_job_too_large_for_the_fleet_says_so():
    large = urgent(edited(SPEC, (("solver", {"time_limit": "120 s"}),)), {**JOB, "tokens": "300B tokens"})
    held, free = large.insertions
    assert held.status == "infeasible" and held.cost is None and held.conflict
    assert free.cost is not None and free.added_chips > 0 and large.status == free.status
    assert "there is no plan with tune" in large.words[1]


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(SpecError, match="offers: an urgent job"):
        urgent({key: value for key, value in SPEC.items() if key != "offers"}, JOB)
    with pytest.raises(SpecError, match="occurs twice"):
        urgent(SPEC, {**JOB, "name": "base"})


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_the_command(tmp_path, capsys, form):
    spec, job = tmp_path / "spec.json", tmp_path / "job.json"
    spec.write_text(json.dumps(SPEC))
    job.write_text(json.dumps(JOB))
    assert main(["urgent", str(spec), "--job", str(job), "-q", "--format", form]) == 0
    assert "on the fleet of the plan" in capsys.readouterr().out


def test_a_job_of_a_lower_class_makes_room_and_the_answer_says_how_late_it_is():
    small = edited(
        SPEC,
        (
            ("workloads", [{**SPEC["workloads"][1], "tokens": "2.1T tokens", "deadline": "300 d", "priority": 2}]),
            ("offers[0].supply", 1),
            ("solver", {"time_limit": "20 s"}),
        ),
    )
    found = urgent(small, {**JOB, "deadline": "90 d", "tokens": "400B tokens", "priority": 1})
    held = found.insertions[0]
    assert held.cost is not None and held.added_chips == 0
    assert held.late["base"] > 0 and any("base is done" in line and "days late" in line for line in found.words)


def test_under_throughput_what_the_job_costs_is_throughput_lost(tiny):
    """The loss on the fleet that is held equals the difference of two plans, and is stated with its sign."""
    spec = tiny(objective={"maximise": "throughput", "workload": "chat"}, limits={"budget": "2M USD"})
    found = urgent(spec, JOB | {"tokens": "20B tokens", "start": "0 d", "deadline": "60 d"})
    held, _ = found.insertions
    before = planner.solve(edited(spec, AS_SEARCHED))
    assert found.sense == "max" and found.before == pytest.approx(before.objective["value"], rel=1e-3)
    assert held.cost is not None and 0 < held.cost < found.before
    assert f"of {found.before:,.4g} x demand" in found.words[1] and "-0" not in " ".join(found.words)
    assert "x demand less" in found.sections[0][1][0]
