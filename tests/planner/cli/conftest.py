"""Run the command in this process, on the files of a small question and its plan."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass

import pytest

from planner.cli.main import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def flopwatt(capsys, monkeypatch):
    """Runs the command in this process: `flopwatt("plan", path, stdin=b"...")`."""

    def run(*arguments: object, stdin: bytes = b"") -> Run:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:  # argparse
            code = leaving.code
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory, tiny, small_plan):
    """A folder with a valid spec, an infeasible one, one without any limit, an invalid one, and a plan."""
    folder = tmp_path_factory.mktemp("specs")
    broken = json.loads(small_plan.to_json())
    broken["totals"]["cost"] *= 1.001
    for name, document in {
        "tiny": tiny(),
        "poor": tiny(limits={"budget": "10 USD"}),
        "hasty": tiny(workloads=[{**tiny()["workloads"][0], "slo": {"tpot": {"p95": "1 us"}}}]),
        "endless": tiny(objective={"maximise": "throughput"}),
        "wrong": tiny(currency="dollars"),
        "plan": small_plan.document,
        "broken": broken,
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder
