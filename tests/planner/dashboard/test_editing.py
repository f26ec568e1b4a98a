"""Fields of a spec, and what becomes of the spec when they change."""

import copy
import json
from pathlib import Path

from planner.dashboard import sources
from planner.dashboard.editing import main_figures, new_values
from planner.dashboard.state.scenario import Scenario
from planner.spec.document import read_document
from planner.spec.model import parse_spec

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
REQUESTS, TPOT, BUDGET = "workloads[0].demand.requests_per_s", "workloads[0].slo.tpot.p95", "limits.budget"


def with_changes(document: dict, texts: dict, fields: list) -> tuple[dict, list[dict]]:
    """The spec with new texts in its fields, and rows of what changed."""
    scenario = Scenario.of_upload(document).with_edits(new_values(document, texts, fields))
    return scenario.document(), scenario.changes()


def test_fields_hold_the_texts_of_the_spec():
    document = read_document(sources.examples()[sources.MAIN].read_bytes())
    problem = sources.resolved(document)
    fields = {field.key: field for field in main_figures(document, problem.offers, problem.spec.currency)}
    assert fields["workloads[0].demand.output_tokens"].text == "400B tokens/day"
    assert fields["workloads[2].deadline"].text == "30 d"
    assert fields["sites[3].power"].text == "3 MW"
    assert fields[BUDGET].text == ""
    assert fields["solver.gap"].text == ""  # the default holds
    for i, offer in enumerate(problem.offers):
        assert fields[f"offers[{i}].price"].text == "" and fields[f"offers[{i}].price"].fallback.endswith(
            "USD" if offer.how == "buy" else "USD/h"
        )


def test_unchanged_texts_give_the_very_spec():
    fields = main_figures(TINY)
    document, rows = with_changes(TINY, {field.key: field.text for field in fields}, fields)
    assert document == TINY and not rows


def test_changed_texts_go_where_they_belong_and_the_question_stays_as_it_was():
    before, fields = copy.deepcopy(TINY), main_figures(TINY)
    texts = {
        REQUESTS: " 60 ",
        TPOT: "",
        BUDGET: "3M USD",
        "solver.gap": "0.01",
        "solver.time_limit": "5 s",
        "offers[0].price": "250k USD",
    }
    document, rows = with_changes(TINY, texts, fields)
    assert before == TINY
    assert document["workloads"][0]["demand"]["requests_per_s"] == 60
    assert document["workloads"][0]["slo"] == {"ttft": {"p95": "2 s"}, "tpot": {}}
    assert document["limits"] == {"budget": "3M USD"} and document["offers"][0]["price"] == "250k USD"
    assert document["solver"] == {"gap": 0.01, "time_limit": "5 s"}
    assert {row["path"]: (row["from"], row["to"]) for row in rows}[REQUESTS] == (20, 60)
    assert {row["path"] for row in rows} == set(texts)
    parse_spec(document)


def test_a_text_that_is_no_number_reaches_the_parser_as_it_is():
    document, _ = with_changes(TINY, {REQUESTS: "many", "solver.gap": "small"}, main_figures(TINY))
    assert document["workloads"][0]["demand"]["requests_per_s"] == "many" and document["solver"]["gap"] == "small"


def test_every_example_has_fields_for_its_demand_and_power():
    for path in sources.examples().values():
        document = read_document(path.read_bytes())
        problem = sources.resolved(document)
        fields = main_figures(document, problem.offers, problem.spec.currency)
        keys = [field.key for field in fields]
        assert len(set(keys)) == len(keys)
        for i in range(len(document["workloads"])):
            assert any(key.startswith(f"workloads[{i}].") for key in keys)
        parse_spec(with_changes(document, {field.key: field.text for field in fields}, fields)[0])


def test_iterations_of_reinforcement_learning_can_be_changed(root):
    document = json.loads((root / "examples/reinforcement.json").read_text())
    fields = main_figures(document)
    key = "workloads[1].iterations_per_hour"
    assert {field.key: field.text for field in fields}[key] == "12"
    changed, rows = with_changes(document, {key: "15"}, fields)
    assert changed["workloads"][1]["iterations_per_hour"] == 15 and rows == [{"path": key, "from": 12, "to": 15}]
    parse_spec(changed)


def test_the_number_of_users_can_be_changed():
    demand = {"users": {"count": 3600, "requests_per_hour": 10}}
    document = {**TINY, "workloads": [{**TINY["workloads"][0], "demand": demand}, *TINY["workloads"][1:]]}
    key = "workloads[0].demand.users.count"
    fields = main_figures(document)
    assert {field.key: field.text for field in fields}[key] == "3600"
    changed, rows = with_changes(document, {key: "7200"}, fields)
    assert rows == [{"path": key, "from": 3600, "to": 7200}]
    parse_spec(changed)
