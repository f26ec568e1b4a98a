"""One base: what a study starts from is what a cold solve of the spec as a study varies it gives, and its first sentence says how that differs from the plan."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.exit_codes import LIMIT
from planner.plan import Plan
from planner.report.words import whole
from planner.spec.document import edited
from planner.studies.base.planned import OBJECTIVE, REPLICAS, SCENARIOS, Base, planned
from planner.studies.base.varied import price_edits, times, work_path
from planner.studies.compare import compare
from planner.studies.frontier import frontier
from planner.studies.ladder import ladder
from planner.studies.measure import measure
from planner.studies.roi import MONTHS, planned_fleet
from planner.studies.sharing import sharing
from planner.studies.urgent import urgent
from planner.studies.whatif import WhatIf

JOB = {"name": "rush", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "1B", "batch_tokens": "4194304",
       "sequence_tokens": 4096, "deadline": "30 d", "precision": ["bf16"]}  # fmt: skip
LEVER = "cheaper: offers[0].price=-30%"


def _session(spec: dict[str, Any]) -> None:
    spec["workloads"][0] |= {"session": {"calls": 4, "growth": 100, "wait": "2 s"}, "demand": {"tasks_per_s": 5}}


def _classes(spec: dict[str, Any]) -> None:
    spec["workloads"][0]["classes"] = [{"name": "a", "share": 0.5, "priority": 1}, {"name": "b", "share": 0.5, "priority": 2}]  # fmt: skip


def _phases(spec: dict[str, Any]) -> None:
    spec["horizon"] = {"years": 2}
    spec["phases"] = [{"name": "first", "start": "0 d"}, {"name": "then", "start": "365 d"}]


def _api(spec: dict[str, Any]) -> None:
    latency = {"ttft": {"p95": "0.5 s"}, "tpot": {"p95": "20 ms"}}
    region = spec["sites"][0]["region"]
    spec["apis"] = [{"name": "x", "region": region, "input": "5 USD/1M tokens", "output": "20 USD/1M tokens", "latency": latency}]  # fmt: skip


FEATURES: dict[str, Any] = {
    "whole": lambda spec: spec.update(solver={"replicas": "whole"}),
    "robust": lambda spec: spec.update(robust={"confidence": 0.9, "scenarios": 50}),
    "sessions": _session,
    "classes": _classes,
    "phases": _phases,
    "apis": _api,
    "throughput": lambda spec: spec.update(objective={"maximise": "throughput", "workload": "chat"}, limits={"budget": "2M USD"}),
    "owned": lambda spec: spec.update(owned=[{"system": "DGX H100", "region": spec["sites"][0]["region"], "count": 1, "age": "1 years"}]),
    "infeasible": lambda spec: spec.update(limits={"budget": "1 USD"}),
}  # fmt: skip
STUDIES: dict[str, Any] = {
    "alternatives": lambda spec: planner.alternatives(spec, within=0.0),
    "sensitivity": lambda spec: planner.sensitivity(spec, vary=["offers[0].price=-30%:-10%"]),
    "ladder": lambda spec: ladder(spec, [LEVER]),
    "sharing": sharing,
    "frontier": lambda spec: frontier(spec, "throughput", 2, span=(0.7, 1.0)),
    "frontier of latency": lambda spec: frontier(spec, "latency", 2, span=(1.0, 1.5)),
    "frontier of carbon": lambda spec: frontier(spec, "carbon", 2),
    "urgent": lambda spec: urgent(spec, JOB),
}


def base_of(found: Any) -> Base:
    """Return the base of a study, which each keeps beside its findings."""
    return found.start if hasattr(found, "start") else found.base


@pytest.fixture(scope="module")
def asked(tiny):
    """Specs with one feature each, and what is varied in each of them, once."""
    known = {}

    def spec_and_start(feature: str) -> tuple[dict[str, Any], Any]:
        if feature not in known:
            spec = tiny()
            FEATURES[feature](spec)
            known[feature] = spec, planned(spec)
        return copy.deepcopy(known[feature][0]), known[feature][1]

    return spec_and_start


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("study", STUDIES)
def test_a_study_starts_from_the_plan_or_says_what_differs(asked, study, feature):
    """Against two cold solves: of the spec as it stands, and of the spec as studies vary it."""
    spec, start = asked(feature)
    if study == "urgent" and feature in ("phases", "infeasible"):
        with pytest.raises(planner.SpecError):
            STUDIES[study](spec)
        return
    found = STUDIES[study](spec)
    base, sentence = base_of(found), found.words[0]
    assert base.message.text() == sentence
    if feature == "infeasible":
        assert "no plan" in sentence and base.plan is None
        return
    cold = planner.solve(copy.deepcopy(spec))
    of_cost = study.startswith("frontier") and OBJECTIVE in base.relaxed
    plan = cold["totals"]["cost"] if of_cost else cold.objective["value"]
    gap = max(cold.gap or 0.0, 1e-9)
    assert base.plan == pytest.approx(plan, rel=2 * gap)
    if base.start is None:
        return
    if base.start != pytest.approx(base.plan, rel=1e-6):
        assert "starts from" in sentence and (base.relaxed or "the search of this study" in sentence)
    if not of_cost and SCENARIOS not in base.relaxed:
        varied = planner.solve(edited(start.document, (("simplicity", {"within": 0}),)))
        assert base.start == pytest.approx(
            varied.objective["value"], rel=2 * max(varied.gap or 0.0, cold.gap or 0.0, 1e-3)
        )


CHEAPER = 0.7
RATE = 0.08  # discount rate: monthly payments are not discounted, the cost of a plan is


def within_gaps(value: float, *plans: Plan) -> Any:
    """What equals a value as far as the gaps of these plans tell."""
    return pytest.approx(value, rel=2 * max(1e-3, *(plan.gap or 0.0 for plan in plans)))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_point_is_what_plan_says_of_the_spec_with_that_change(asked, feature):
    """The lower price of `sensitivity` and the lower demand of `frontier`, each against a cold solve of the spec as studies vary it."""
    spec, start = asked(feature)
    if feature == "infeasible":
        assert planner.sensitivity(spec, vary=[f"offers[0].price=-{1 - CHEAPER:.0%}:-10%"]).value is None
        return
    varied = edited(start.document, (("simplicity", {"within": 0}), ("robust", None)))
    (bar,) = planner.sensitivity(spec, vary=[f"offers[0].price=-{1 - CHEAPER:.0%}:-10%"]).bars
    cold = planner.solve(edited(varied, price_edits(varied, "offers[0]", CHEAPER)))
    assert bar.low.value == within_gaps(cold.objective["value"], cold)
    point = next(p for p in frontier(spec, "throughput", 2, span=(CHEAPER, 1.0)).points if p.measure == CHEAPER)
    path = work_path(varied, 0)
    less = edited(varied, ((path, times(varied, path, CHEAPER)), ("objective", {"minimise": "cost"})))
    cold = planner.solve(less)
    assert point.cost == within_gaps(cold["totals"]["cost"], cold)


@pytest.mark.parametrize("feature", FEATURES)
def test_what_if_and_compare_say_what_two_plans_say(asked, feature):
    """The base and a lower price of `WhatIf`, and the difference of both of `compare`, against two cold solves."""
    spec, _ = asked(feature)
    cheaper = price_edits(spec, "offers[0]", CHEAPER)
    if feature == "robust":
        with pytest.raises(planner.SpecError, match="robust"):
            WhatIf(spec)
        return
    kept = WhatIf(spec)
    if feature == "infeasible":
        assert not kept.base.has_answer
        return
    plans = [planner.solve(copy.deepcopy(each)) for each in (spec, edited(spec, cheaper))]
    found = [kept.base, kept.plan(dict(cheaper))]
    for mine, cold in zip(found, plans, strict=True):
        assert mine.objective["value"] == within_gaps(cold.objective["value"], mine, cold)
    difference = plans[1].objective["value"] - plans[0].objective["value"]
    assert compare(*plans).document["difference"] == pytest.approx(difference)


@pytest.mark.parametrize("feature", FEATURES)
def test_studies_of_a_plan_start_from_what_it_costs(asked, feature):
    """`measure` names the plan's cost first; `roi` takes its fixed costs, no more than all; both refuse what they cannot tell."""
    spec, start = asked(feature)
    plan = start.plan
    if feature == "infeasible":
        for study in (measure, planned_fleet):
            with pytest.raises(planner.SpecError):
                study(plan)
        return
    years = spec.get("horizon", {}).get("years", 1)
    assert 0 < planned_fleet(plan).cost * MONTHS * years <= plan["totals"]["cost"] * (1 + RATE) ** years
    if feature in ("phases", "throughput", "apis"):
        with pytest.raises(planner.SpecError, match="not covered"):
            measure(plan)
        return
    found = measure(plan, scenarios=40)
    assert found.planned.cost == plan["totals"]["cost"]
    assert f"The plan comes to {whole(plan['totals']['cost'])}" in found.words[0]


@pytest.fixture(scope="module")
def several(tiny):
    """Three networks with hardly any demand: divisible replicas share one system, whole ones need more."""
    spec = tiny()
    first = spec["workloads"][0] | {"architecture": "Llama-3.3-70B-Instruct", "demand": {"requests_per_s": 0.1}, "precision": ["fp8"]}  # fmt: skip
    first["slo"] = {"ttft": {"p95": "2 s"}, "tpot": {"p95": "40 ms"}}
    spec["workloads"] = [first | {"name": f"m{i}"} for i in range(9)]
    spec["sites"][0]["power"] = "2 MW"
    return spec


def test_replicas_stay_whole_where_the_plan_is_proven_to_need_them(several):
    start = planned(several)
    divisible = planner.solve(edited(several, (("solver.replicas", "divisible"),)))
    assert start.plan["bound"] > divisible.objective["value"] * 1.1, "the case tells the two apart"
    assert start.document["solver"]["replicas"] == "whole" and REPLICAS not in start.relaxed
    found = planner.alternatives(several, within=0.0)
    assert found.best.objective["value"] == pytest.approx(start.plan.objective["value"], rel=0.01)


@pytest.mark.parametrize(
    ("plan", "start", "relaxed", "said"),
    [
        (100.0, 100.0, (), "The plan comes to 100 USD."),
        (4.914, 4.914 - 5e-9, (REPLICAS,), "and so does the start of this study"),  # rounding of a solver
        (100.0, 100.0, (REPLICAS,), "so does the start of this study, which leaves out whole replicas"),
        (100.0, 80.0, (REPLICAS, SCENARIOS), "whole replicas and the scenarios of `robust` and starts from 80 USD, 20 USD (20.00%) less"),
        (100.0, 101.0, (), "the search of this study starts from 101 USD, 1 USD (1.00%) more"),
        (None, None, (), "There is no plan (within gap)"),
    ],
)  # fmt: skip
def test_the_first_sentence_says_by_how_much_the_base_moves(plan, start, relaxed, said):
    assert said in Base("within_gap", plan, start, "USD", relaxed).message.text()


ARGUMENTS = {
    "alternatives": [],
    "sensitivity": ["--vary", "offers[0].price=-30%:-10%"],
    "ladder": ["--lever", LEVER],
    "sharing": [],
    "frontier": ["--against", "throughput", "--points", "2"],
    "urgent": [],
}


@pytest.mark.parametrize(("option", "value"), [("--time-limit", "1 ms"), ("--memory", "200 MB")])
@pytest.mark.parametrize("study", ARGUMENTS)
def test_limits_of_time_and_memory_hold_for_every_study(tiny, tmp_path, capsys, monkeypatch, study, option, value):
    """Where they allow nothing there is an answer that says so, and no program is solved."""
    path, job = tmp_path / "spec.json", tmp_path / "job.json"
    path.write_text(json.dumps(tiny()))
    job.write_text(json.dumps(JOB))
    if option == "--memory":  # the process holds more than a step may take
        pages = tmp_path / "statm"
        pages.write_text("0 10000000")
        monkeypatch.setattr("solvers.memory.PAGES", pages)
        monkeypatch.setattr("solvers.memory.SHARE_OF_A_STEP", -0.5)
    more = ["--job", str(job)] if study == "urgent" else ARGUMENTS[study]
    assert main([study, str(path), *more, option, value, "-q"]) == (3 if study == "urgent" else LIMIT)
    said = capsys.readouterr()
    assert "no plan" in (said.err if study == "urgent" else said.out)
