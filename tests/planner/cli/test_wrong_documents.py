"""A document of the wrong kind, or none at all, is refused in words by every command that reads one, never by a trace."""

from __future__ import annotations

import json

import pytest

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


@pytest.mark.parametrize("text", ["null", "{}", json.dumps({"kind": "training"}), "[1]"])
def test_a_job_that_is_none_is_refused(flopwatt, files, tmp_path, text):
    path = tmp_path / "job.json"
    path.write_text(text)
    run = flopwatt("urgent", files / "tiny.json", "--job", path, "-q")
    assert run.code == INVALID and not run.out and run.err.strip()
