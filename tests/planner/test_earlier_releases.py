"""Files that earlier releases wrote still load, verify and print; release 0.1 called the project tokenwatt."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.plan import Plan, load_plan
from planner.report.outputs.sections import csv_tables
from planner.report.report import render
from planner.studies.compare import compare
from planner.verify.plan import verify_plan


@pytest.fixture(scope="module")
def path(root: Path) -> Path:
    """The plan of `tests/golden/small_spec.json`, as release 0.1 wrote it."""
    return root / "tests/golden/plan_of_release_0_1.json"


@pytest.fixture(scope="module")
def old(path: Path) -> Plan:
    return load_plan(path)


def test_it_names_its_own_release(old: Plan) -> None:
    assert old["versions"]["tokenwatt"] == "0.1.0" and "flopwatt" not in old["versions"]


def test_it_holds(old: Plan, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert old.has_answer and verify_plan(old) == []
    assert main(["verify", str(path)]) == 0
    assert "the plan holds" in capsys.readouterr().out


def test_a_wrong_figure_in_it_is_found(old: Plan) -> None:
    totals = {**old["totals"], "cost": old["totals"]["cost"] * 1.001}
    assert any("totals.cost" in str(finding) for finding in verify_plan(Plan({**old.document, "totals": totals})))


def test_a_prediction_far_from_those_of_today_is_found(old: Plan) -> None:
    """Laws of the models change from release to release, by less than 5 % here."""
    document = copy.deepcopy(dict(old.document))
    document["workloads"][0]["points"][0]["latency_s"]["ttft.p95"] *= 1.06
    assert any("latency_s.ttft.p95" in str(finding) for finding in verify_plan(Plan(document)))


def test_a_recorded_figure_of_a_law_that_is_no_more_is_left_out(old: Plan) -> None:
    """The controller of reinforcement learning once took its time in series."""
    document = copy.deepcopy(dict(old.document))
    row = {"path": "constants/reinforcement.host_response_s/value", "value": 0.005431, "unit": "s"}
    document["provenance"].append({**document["provenance"][0], **row})
    assert verify_plan(Plan(document)) == []


def test_it_prints_in_every_format(old: Plan) -> None:
    assert render(old, "json") == old.to_json()
    for form in ("table", "md", "csv"):
        assert "DGX H100" in render(old, form)
    assert "fleet" in csv_tables(old)


def test_it_compares_with_a_plan_of_today(old: Plan, small_spec: dict[str, Any]) -> None:
    """Release 0.1 had divisible replicas only."""
    document = copy.deepcopy(small_spec)
    document["solver"] = {**document["solver"], "replicas": "divisible"}
    today = planner.solve({**document, "simplicity": {"within": 0}})
    found = compare(old, today)
    moved = today.objective["value"] - old.objective["value"]
    assert found.document["difference"] == pytest.approx(moved, abs=1e-6 * old.objective["value"])
    # Release 0.1 charged the annuities of the year; a system sold after it loses more, and is maintained.
    assert moved > 0.5 * old["costs"]["systems"]
    assert not found.document["fleet"]
    paths = {row["path"] for row in found.document["spec"]}
    assert {path for path in paths if path.partition(".")[0] not in ("solver", "simplicity")} == {
        "workloads[0].kv_precision"
    }
