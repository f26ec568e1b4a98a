"""The JSON Schema of a plan accepts plans, refuses changes of their shape, and its shipped copies are current."""

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from planner.cli import main as cli
from planner.plan import load_plan
from planner.plan.schema import plan_schema, plan_schema_text
from planner.plan.shape import MAX_PROBLEMS, shape_problems, unknown_keys

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = plan_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def document(small_plan) -> dict:
    return json.loads(small_plan.to_json())


def test_it_is_a_json_schema():
    Draft202012Validator.check_schema(SCHEMA)


def test_it_accepts_plans_of_this_release_and_of_the_first(document):
    stored = load_plan(ROOT / "tests/golden/plan_of_release_0_1.json")
    for plan in (document, json.loads(stored.to_json())):
        assert not list(VALIDATOR.iter_errors(plan))
        assert shape_problems(plan) == [] and unknown_keys(plan) == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("fleet", 0, "count"), 1.5, "fleet[0].count: expected a whole number, got 1.5"),
        (("fleet", 0, "count"), True, "fleet[0].count: expected a whole number, got true"),
        (("routes",), {}, "routes: expected a list, got an object"),
        (("schedule", 0, "power_w"), "5 MW", "schedule[0].power_w: expected a number, got '5 MW'"),
        (("assumptions", 0, "value"), None, "assumptions[0].value: expected a number or a text, got null"),
        (("solver", "seed"), [1], "solver.seed: expected a number or a text or true or false, got a list"),
        (("robustness",), {"reached": 0.5}, "robustness.confidence: is missing; add it"),
        (("totals",), None, "totals: expected an object, as the plan has an answer; got null"),
    ],
)
def test_another_shape_is_refused_at_its_place(document, path, value, words):
    changed = copy.deepcopy(document)
    row = changed
    for part in path[:-1]:
        row = row[part]
    row[path[-1]] = value
    assert words in [str(problem) for problem in shape_problems(changed)]
    if path != ("totals",):  # a rule across keys, which a schema does not state
        assert list(VALIDATOR.iter_errors(changed))


def test_all_places_are_named_up_to_a_limit(document):
    changed = {**document, "routes": [{"site": i} for i in range(100)]}
    assert len(shape_problems(changed)) == MAX_PROBLEMS


def test_keys_that_no_release_wrote_are_named(document):
    changed = copy.deepcopy(document)
    changed["fleet"][0]["colour"] = "red"
    changed["workloads"][0]["points"][0]["pools"][0]["shade"] = 1
    assert unknown_keys(changed) == ["fleet[].colour", "workloads[].points[].pools[].shade"]


def test_every_key_of_the_document_is_described():
    for key, field in SCHEMA["properties"].items():
        assert field.get("description"), key


@pytest.mark.parametrize(("format", "file"), [("json", "plan.schema.json"), ("md", "plan-keys.md")])
def test_the_shipped_copies_are_what_the_command_prints(capsys, format, file):
    assert cli.main(["schema", "plan", "--format", format]) == 0
    printed = capsys.readouterr().out
    assert printed == plan_schema_text(format)
    assert (ROOT / "docs" / file).read_text(encoding="utf-8") == printed, (
        f"write it anew: flopwatt schema plan --format {format} --output docs/{file}"
    )
