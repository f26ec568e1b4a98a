"""One base: what a study starts from is what a cold solve of the spec as a study varies it gives, and its first sentence says how that differs from the plan."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.exit_codes import LIMIT
from planner.spec.document import edited
from planner.studies.base.planned import OBJECTIVE, REPLICAS, SCENARIOS, Base, planned
from planner.studies.frontier import frontier
from planner.studies.ladder import ladder
from planner.studies.sharing import sharing
from planner.studies.urgent import urgent

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
    "robust": lambda spec: spec.update(robust={"confidence": 0.9, "worlds": 50}),
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
    of_cost = study == "frontier" and OBJECTIVE in base.relaxed
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
