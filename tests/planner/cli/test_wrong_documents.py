"""A document of the wrong kind, or none at all, is refused in words by every command that reads one, never by a trace."""

from __future__ import annotations

import json

import pytest

from planner.plan import KEYS
from planner.plan.embedded import as_data

USAGE, INVALID = 2, 3
OF_SPECS = ("plan", "check", "alternatives", "sensitivity", "sharing", "ladder")
OF_PLANS = ("show", "verify", "robust", "measure", "roi")
OF_CASES = ("estimate", "layouts", "characterise", "codesign", "kv-tiers", "edge")
AGAINST = ("carbon", "latency", "throughput", "quality", "horizon", "utilisation")
COMMANDS = (
    *((name,) for name in (*OF_SPECS, *OF_PLANS, *OF_CASES)),
    *(("frontier", "--against", what) for what in AGAINST),
)
TEXTS = {
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "an empty object": "{}",
    "a number": "1e999",
    "workloads that are none": '{"workloads": "x", "sites": 3}',
    "a workload that is none": '{"workloads": [1], "sites": [null]}',
    "a case without a workload": '{"workload": null, "system": 1, "chips": "x"}',
    "a case of a kind alone": '{"workload": {"kind": "reinforcement"}}',
    "fleets that are none": '{"fleets": 3, "tasks": [{}], "tiers": null}',
    "a depth that no spec has": "[" * 100_000,
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_no_document_of_a_command_is_refused_in_words(flopwatt, tmp_path, command):
    path = tmp_path / "document.json"
    for what, text in TEXTS.items():
        path.write_text(text, encoding="utf-8")
        run = flopwatt(command[0], path, *command[1:])
        assert run.code == INVALID and not run.out and run.err.strip(), (what, run)
        assert "Traceback" not in run.err
    assert flopwatt(command[0], tmp_path, *command[1:]).code == USAGE
    assert flopwatt(command[0], tmp_path / "none.json", *command[1:]).code == USAGE


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_plan_is_no_spec_and_a_spec_is_no_plan(flopwatt, files, command):
    wrong = files / ("tiny.json" if command[0] in OF_PLANS else "plan.json")
    run = flopwatt(command[0], wrong, *command[1:])
    assert run.code == INVALID and not run.out and run.err.strip()


GIVEN = {
    "spec": ("this is a spec", OF_SPECS),
    "plan": ("this is a plan", OF_PLANS),
    "report": ("this is a report", OF_PLANS),
    "case": ("this is a case:", OF_CASES),
    "codesign": ("this is a case of codesign", ("codesign",)),
    "tiers": ("this is a case of cache tiers", ("kv-tiers",)),
    "edge": ("this is a case of devices and tasks", ("edge",)),
    "answer": ("this is an answer of `batch`", ()),
    "answers": ("this is an answer of `batch`", ()),
}
ALSO_READ = {("characterise", "spec"), *((name, "case") for name in OF_CASES if name != "edge")}


@pytest.fixture(scope="module")
def given(files, tmp_path_factory):
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("given")
    plan = json.loads((files / "plan.json").read_text())
    case = {"workload": {"kind": "serving"}, "system": "DGX H100", "chips": 8}
    answer = json.dumps({"id": 1, "status": "optimal", "digest": "0", "plan": plan, "seconds": 0.1})
    for kind, text in {
        "spec": (files / "tiny.json").read_text(),
        "plan": json.dumps(plan),
        "report": f"<!DOCTYPE html>\n<title>x</title>{as_data(json.dumps(plan))}",
        "case": json.dumps(case),
        "codesign": json.dumps({**case, "codesign": {}}),
        "tiers": json.dumps({**case, "kv_tiers": {}}),
        "edge": json.dumps({"fleets": [], "tasks": []}),
        "answer": answer,
        "answers": f"{answer}\n{answer}\n",
    }.items():
        (folder / kind).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_of_another_kind_is_recognised_and_its_command_named(flopwatt, given, command):
    for kind, (words, own) in GIVEN.items():
        specs = kind == "spec" and command[0] == "frontier"
        if specs or command[0] in own or (command[0], kind) in ALSO_READ:
            continue
        run = flopwatt(command[0], given / kind, *command[1:])
        assert run.code == INVALID and not run.out and len(run.err.splitlines()) == 1, (kind, run)
        assert words in run.err and "`" in run.err, (kind, run)


def test_a_plan_without_one_of_its_parts_is_still_a_plan(flopwatt, given, tmp_path):
    plan = json.loads((given / "plan").read_text())
    for key in KEYS:
        (tmp_path / "part.json").write_text(json.dumps({name: value for name, value in plan.items() if name != key}))
        run = flopwatt("verify", tmp_path / "part.json")
        assert run.code == INVALID and f"not a whole plan; missing: {key}" in run.err


@pytest.mark.parametrize("text", ["null", "{}", json.dumps({"kind": "training"}), "[1]"])
def test_a_job_that_is_none_is_refused(flopwatt, files, tmp_path, text):
    path = tmp_path / "job.json"
    path.write_text(text)
    run = flopwatt("urgent", files / "tiny.json", "--job", path, "-q")
    assert run.code == INVALID and not run.out and run.err.strip()
