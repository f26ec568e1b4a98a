"""Frontiers: ends that are the plans of one objective, no point that another one beats, the same points each time."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.plan import load_plan
from planner.report.words import amount
from planner.spec.document import edited
from planner.studies.frontier import frontier
from planner.studies.frontier_chart import frontier_chart
from planner.verify.plan import verify_plan
from solvers.search.reoptimize import REBUILT

GAP = 1e-3
SPEC = {
    "name": "frontier",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": 90000},
            "lengths": {"input": 800, "output": 200}, "origins": [{"region": "us-california", "share": 0.4}, {"region": "us-virginia", "share": 0.6}],
            "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["bf16"], "disaggregation": "never",
            "alternatives": [
                {"architecture": "Llama-3.2-1B", "quality": 30.0, "source": "a made-up score"},
                {"architecture": "Llama-3.1-8B", "quality": 60.0, "source": "a made-up score"},
            ],
        }
    ],
    "sites": [{"region": "us-texas", "electricity_price": "30 USD/MWh"}, {"region": "us-oregon", "electricity_price": "120 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX B200", "how": "buy", "price": "480000 USD"}],
    "solver": {"gap": GAP, "replicas": "divisible"}, "simplicity": {"within": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def by_carbon():
    return frontier(SPEC, "carbon", 6)


def test_the_ends_are_the_plans_of_one_objective(by_carbon):
    cheapest = planner.solve(SPEC)
    cleanest = planner.solve(edited(SPEC, (("objective", {"minimise": "carbon"}),)))
    first, last = by_carbon.points[0], by_carbon.points[-1]
    assert first.measure == pytest.approx(cleanest["totals"]["carbon_kg"], rel=3 * GAP)
    assert first.cost == pytest.approx(cleanest["totals"]["cost"], rel=3 * GAP)  # the cheapest plan among the cleanest
    assert last.cost == pytest.approx(cheapest["totals"]["cost"], rel=3 * GAP)
    assert last.measure <= cheapest["totals"]["carbon_kg"] * (1 + 3 * GAP)  # the cleanest plan among the cheapest


def test_more_carbon_never_costs_more_and_each_point_holds(by_carbon):
    assert len(by_carbon.points) >= 4
    for one, other in zip(by_carbon.points, by_carbon.points[1:]):
        assert one.measure < other.measure and one.cost > other.cost
    for point in by_carbon.points:
        assert verify_plan(point.plan) == [] and point.gap <= 2 * GAP
        assert point.plan["totals"]["carbon_kg"] <= point.measure * (1 + 1e-6)


def test_points_lie_no_lower_than_plans_of_their_own(by_carbon):
    middle = by_carbon.points[len(by_carbon.points) // 2]
    alone = planner.solve(edited(SPEC, tuple(middle.changes.items())))
    assert middle.cost == pytest.approx(alone["totals"]["cost"], rel=3 * GAP)


def test_the_program_is_used_again_where_only_the_limit_moves(by_carbon):
    assert [point.how for point in by_carbon.points].count(REBUILT) <= 2  # the two ends


def test_the_same_points_each_time(by_carbon):
    assert frontier(SPEC, "carbon", 6).rows == by_carbon.rows


def test_more_demand_costs_more():
    found = frontier(SPEC, "throughput", 3, span=(0.5, 1.5))
    assert [point.measure for point in found.points] == [0.5, 1.0, 1.5]
    assert found.points[1].cost == pytest.approx(planner.solve(SPEC)["totals"]["cost"], rel=3 * GAP)
    assert found.points[0].cost < found.points[1].cost < found.points[2].cost


def test_tighter_latency_costs_more_and_what_cannot_be_met_is_told():
    found = frontier(SPEC, "latency", 3, span=(0.001, 2.0))
    assert found.points and all(one.cost > other.cost for one, other in zip(found.points, found.points[1:]))
    assert ("latency limits x 0.001", "no plan: infeasible") in found.left_out


def test_quality_has_its_price_and_one_source():
    found = frontier(SPEC, "quality")
    assert [(point.name, point.measure) for point in found.points] == [("at least 30", 30.0), ("at least 60", 60.0)]
    assert found.points[0].cost < found.points[1].cost and found.source == "a made-up score"
    mixed = edited(SPEC, (("workloads[0].alternatives[1].source", "another score"),))
    with pytest.raises(SpecError, match="do not compare"):
        frontier(mixed, "quality")
    with pytest.raises(SpecError, match="exactly one serving workload"):
        frontier(edited(SPEC, (("workloads[0].alternatives", None),)), "quality")


@pytest.mark.parametrize(
    "bad",
    [
        {"against": "beauty"},
        {"against": "carbon", "points": 1},
        {"against": "carbon", "span": (1, 2)},
        {"against": "latency", "span": (2, 1)},
    ],
)
def test_what_cannot_be_asked_is_refused(bad):
    with pytest.raises(SpecError, match="--"):
        frontier(SPEC, **bad)


def test_a_spec_without_a_plan_has_no_frontier(tmp_path, capsys):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(edited(SPEC, (("limits.budget", "1 USD"),))))
    assert main(["frontier", str(path), "--against", "carbon", "--quiet"]) == 4
    assert "no plan was found (infeasible)" in capsys.readouterr().out


def test_the_command_prints_all_forms_draws_and_keeps_the_plans(tmp_path, capsys):
    path, drawn = tmp_path / "spec.json", tmp_path / "chart.svg"
    path.write_text(json.dumps(SPEC))
    asked = ["frontier", str(path), "--against", "throughput", "--points", "2", "--quiet"]
    assert main([*asked, "--format", "json", "--chart", str(drawn), "--plans", str(tmp_path / "plans")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [point["demand_factor"] for point in document["points"]] == [0.5, 1.5]
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    assert load_plan(tmp_path / "plans" / "01.json")["totals"]["cost"] == document["points"][0]["cost"]
    for form in ("table", "md"):
        assert main([*asked, "--format", form]) == 0
        assert "demand x 1.5" in capsys.readouterr().out
    assert main([*asked, "--format", "csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == 2


def test_the_chart_tells_its_points_to_those_who_cannot_see_it(by_carbon):
    root = ElementTree.fromstring(frontier_chart(by_carbon))
    title = root.find("{http://www.w3.org/2000/svg}title").text
    assert all(amount(point.cost) in title for point in by_carbon.points)
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == len(by_carbon.points)


def test_the_demand_of_the_spec_is_a_point_and_stays(tiny):
    """Its plan is what the others are compared with, whether or not another point serves more for as little."""
    spec = tiny(solver={"gap": 1e-2, "replicas": "divisible"})
    found = frontier(spec, "throughput", 4, span=(0.98, 1.04))
    assert 1.0 in [point.measure for point in found.points]
    assert all(name != "demand x 1" for name, _ in found.left_out)


def test_a_plan_without_emissions_is_the_whole_frontier_of_carbon(tiny):
    """The tokens of an API carry no carbon here; no limit below what a spec may state is blamed."""
    api = {
        "name": "x", "region": "us-virginia", "output": "0.001 USD/1M tokens",
        "latency": {"ttft": {"p95": "0.5 s"}, "tpot": {"p95": "20 ms"}},
    }  # fmt: skip
    found = frontier(tiny(apis=[api], solver={"gap": 1e-3, "replicas": "divisible"}), "carbon", 4)
    assert [point.measure for point in found.points] == [0.0]
