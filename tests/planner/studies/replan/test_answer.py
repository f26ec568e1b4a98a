"""Planning again from a day on: nothing changes where all is as planned, what was observed counts, and files say all their faults at once."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK
from planner.plan import load_plan
from planner.studies.replan.answer import KEEP, OBTAIN, SELL, replan
from planner.verify.plan import verify_plan

HORIZON = {"start": "2027-01-01", "years": 4}


@pytest.fixture(scope="module")
def plan(tiny):
    spec = tiny(horizon=HORIZON, offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "on_demand", "price": "98 USD/h"}])  # fmt: skip
    spec["workloads"][0]["demand"]["requests_per_s"] = 9000
    return planner.solve(spec)


def written(folder: Path, text: str, name: str = "observed.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def held(plan, how="buy"):
    return sum(row["count"] for row in plan.fleet if row["how"] == how)


def test_as_planned_the_two_plans_are_one(plan, tmp_path):
    file = written(tmp_path, "date,workload,requests_per_s\n2027-06-30,chat,9000\n")
    found = replan(plan, [file], tmp_path / "own")
    assert found.day == date(2027, 6, 30)
    assert found.after is found.as_planned and found.difference == 0.0
    assert sum(row["count"] for row in found.rows if row["do"] == KEEP) == held(plan)
    assert verify_plan(found.after) == []


def test_more_demand_obtains_more_and_less_sells(plan, tmp_path):
    more = replan(plan, [written(tmp_path, "date,requests_per_s\n2027-07-01,18000\n")], tmp_path / "own")
    assert more.difference > 0
    assert any(row["do"] == OBTAIN for row in more.rows)
    assert sum(row["count"] for row in more.rows if row["do"] == KEEP) == held(plan)
    less = replan(plan, [written(tmp_path, "date,requests_per_s\n2027-07-01,900\n")], tmp_path / "own")
    assert less.difference < 0
    assert any(row["do"] == SELL for row in less.rows)


def test_late_systems_are_open_orders(plan, tmp_path):
    """Three systems of the order have come: the others are offered from the stated day at the price of the order, on top of what anybody may buy."""
    text = "date,site,system,how,delivered,expected\n2027-03-01,us-virginia,DGX H100,buy,0,\n2027-07-01,us-virginia,DGX H100,buy,3,2027-09-01\n"
    found = replan(plan, [written(tmp_path, text)], tmp_path / "own")
    spec = found.after.document["spec"]
    assert spec["owned"][0]["count"] == 3
    assert spec["offers"][-1] == {
        "system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": held(plan) - 3, "regions": ["us-virginia"], "available_from": "2027-09-01",
    }  # fmt: skip
    assert found.document["held"][0]["late"] == held(plan) - 3


def test_slower_systems_need_more_of_them(plan, tmp_path):
    (workload,) = plan.workloads
    capacity = sum(p["peak_replicas"] * p["capacity"] for p in workload["points"]) * 200
    systems = sum(
        p["peak_replicas"] * sum(pool["systems_per_replica"] for pool in p["pools"]) for p in workload["points"]
    )
    text = f"date,workload,system,throughput,systems\n2027-07-01,chat,DGX H100,{0.7 * capacity:.6g},{systems:.6g}\n"
    found = replan(plan, [written(tmp_path, text)], tmp_path / "own")
    assert found.assumptions[0].factor == pytest.approx(0.7, rel=1e-3)
    assert found.difference > 0


def test_old_rows_and_later_rows_do_not_count(plan, tmp_path):
    text = "date,requests_per_s\n2027-02-01,19000\n2027-06-28,9300\n2027-06-30,8700\n2027-08-01,19000\n"
    found = replan(plan, [written(tmp_path, text)], tmp_path / "own", day=date(2027, 6, 30))
    assert found.assumptions[0].actual == pytest.approx(9000.0)


def test_json_says_the_same_as_csv(plan, tmp_path):
    rows = [{"date": "2027-07-01", "workload": "chat", "requests_per_s": 9100}, {"date": "2027-07-01", "site": "us-virginia", "system": "DGX H100", "how": "buy", "delivered": 1}]  # fmt: skip
    file = written(tmp_path, json.dumps(rows), "observed.json")
    found = replan(plan, [file], tmp_path / "own", assignments=["solver.gap=0.01"])
    assert found.assumptions[0].actual == pytest.approx(9100.0)
    assert found.after.document["spec"]["owned"][0]["count"] == 1


def test_faults_are_told_at_once(plan, tmp_path):
    text = (
        "date,workload,requests_per_s,delivered,expected\n2027-07-01,chatty,3,,\nJuly,chat,3,,soon\n2027-07-01,,,2.5,\n"
    )
    with pytest.raises(SpecError) as caught:
        replan(plan, [written(tmp_path, text)], tmp_path / "own")
    words = str(caught.value)
    for part in ("line 2, column 2", "line 3, column 1", "line 3, column 5", "line 4, column 4"):
        assert part in words
    with pytest.raises(SpecError, match="--date"):
        replan(plan, [written(tmp_path, "workload,requests_per_s\nchat,3\n")], tmp_path / "own")


@pytest.mark.parametrize("format", ["table", "json"])
def test_the_command_prints_and_keeps_both_plans(plan, tmp_path, capsys, format):
    source = tmp_path / "plan.json"
    plan.save(source)
    file = written(tmp_path, "date,workload,requests_per_s\n2027-07-01,chat,12000\n")
    assert (
        main(
            ["replan", str(source), "--observed", str(file), "--plans", str(tmp_path / "new"), "--format", format, "-q"]
        )
        == OK
    )
    printed = capsys.readouterr().out
    assert "DGX H100" in printed
    kept = load_plan(tmp_path / "new/replanned.json")
    assert kept.document["spec"]["horizon"]["start"] == "2027-07-01"
    assert main(["replan", str(source), "--observed", str(file), "--date", "soon"]) == INVALID
