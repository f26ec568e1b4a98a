"""Who may share systems: shared fleets never cost more, and siloed ones keep to themselves."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import planner
from planner.cli import main
from planner.plan import Plan
from planner.sharing import ON, sharing
from planner.verify import verify_plan

SMALL = json.loads((Path(__file__).parents[1] / "golden" / "small_spec.json").read_text())


def spec(sharing: str | None) -> dict:
    document = copy.deepcopy(SMALL)
    chat = document["workloads"][0]
    chat["demand"] = {"requests_per_s": 60, "profile": [1, 1, 1, 1, 1, 1, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8, 8, 6, 4, 3, 2, 2, 1, 1]}
    document["workloads"].append(chat | {"name": "agent", "demand": {"requests_per_s": 60, "profile": [*chat["demand"]["profile"][12:], *chat["demand"]["profile"][:12]]}})
    document["sites"][0]["power"] = "200 kW"
    return document | ({"sharing": sharing} if sharing else {})


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {sharing: planner.solve(spec(sharing)) for sharing in ("all", "kind", "none")}


def test_all_share_where_nothing_is_said(plans):
    plain = planner.solve(spec(None))
    assert plain["fleet"] == plans["all"]["fleet"] and "tenant" not in plain["fleet"][0]


def test_sharing_less_never_costs_less_and_here_costs_more(plans):
    costs = [plans[sharing].objective["value"] for sharing in ("all", "kind", "none")]
    assert costs[0] < costs[1] < costs[2]
    assert verify_plan(plans["kind"]) == verify_plan(plans["none"]) == []


def test_tenants_are_kinds_or_workloads(plans):
    assert {row["tenant"] for row in plans["kind"]["fleet"]} == {"serving", "training"}
    assert {row["tenant"] for row in plans["none"]["fleet"]} == {"chat", "agent", "tune"}
    for workload in plans["none"]["workloads"]:
        assert {pool["tenant"] for point in workload["points"] for pool in point["pools"]} == {workload["name"]}


def test_supply_and_power_are_still_those_of_all(plans):
    document = spec("none")
    total = sum(row["count"] for row in plans["none"]["fleet"])
    document["offers"][0]["supply"] = total - 1
    assert planner.solve(document).status == "infeasible"


def test_verify_sees_a_workload_on_the_systems_of_another(plans):
    broken = copy.deepcopy(dict(plans["none"].document))
    broken["workloads"][0]["points"][0]["pools"][0]["tenant"] = "tune"
    assert any("sharing forbids" in str(finding) for finding in verify_plan(Plan(broken)))
    broken = copy.deepcopy(dict(plans["none"].document))
    row = next(row for row in broken["fleet"] if row["tenant"] == "chat")
    row["tenant"] = "agent"
    assert any("systems at work" in str(finding) for finding in verify_plan(Plan(broken)))


def test_each_capability_off_is_a_plan_of_its_own(plans, tmp_path, capsys):
    found = sharing(spec(None))
    rows = {row["capability"]: row for row in found.rows}
    assert rows[ON]["value"] == pytest.approx(plans["all"].objective["value"]) and rows[ON]["worse"] is None
    assert rows["one fleet for all workloads"]["value"] == pytest.approx(plans["none"].objective["value"])
    assert rows["one fleet for serving and training"]["value"] == pytest.approx(plans["kind"].objective["value"])
    assert rows[ON]["utilisation"] > rows["one fleet for all workloads"]["utilisation"]
    assert rows["resuming by itself"]["goodput"] < rows[ON]["goodput"] <= 1
    assert all(row["worse"] >= -1e-6 for name, row in rows.items() if name != ON)
    assert "at work" in found.words[0]

    (tmp_path / "spec.json").write_text(json.dumps(spec(None)))
    assert main(["sharing", str(tmp_path / "spec.json"), "-q", "--format", "csv"]) == 0
    assert "zero-copy network" in capsys.readouterr().out


def test_utilisation_is_chips_at_work_over_chips_held(plans):
    found, plan = sharing(spec("none")).base, plans["none"]
    year = sum(row["seconds"] for row in plan["schedule"])
    held = sum(row["count"] * 8 for row in plan["fleet"]) * year
    chips = {point["id"]: sum(pool["systems_per_replica"] * 8 for pool in point["pools"]) for w in plan["workloads"] for point in w["points"]}
    busy = sum(replicas * chips[name] * row["seconds"] for row in plan["schedule"] for name, replicas in row["active"].items())
    assert found.utilisation == pytest.approx(busy / held)
