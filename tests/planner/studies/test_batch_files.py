"""`flopwatt batch` of folders, patterns and files of one spec each, and the bar that follows it."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from planner.cli.main import main
from planner.cli.progress.bar import following, standing
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK, USAGE
from planner.studies.batch import Answer
from planner.studies.batch_lines import Line, Settings, files_named, is_one_spec, read_files

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def specs(tiny, tmp_path) -> Path:
    """Four files: one with an id, one that is wrong, one that is no JSON, one in a folder below; and two that are no input."""
    folder = tmp_path / "specs"
    (folder / "below").mkdir(parents=True)
    (folder / "b.json").write_text(json.dumps(tiny(), indent=1))
    (folder / "a.json").write_text(json.dumps(tiny() | {"id": "named", "sitse": []}))
    (folder / "c.json").write_text("{")
    (folder / "below" / "d.json").write_text(json.dumps(tiny() | {"id": "own"}, indent=1))
    (folder / ".hidden.json").write_text("{")
    (folder / "notes.txt").write_text("{")
    return folder


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_folder_is_answered_in_the_order_of_names_and_errors_name_the_file(specs, capsys):
    assert main(["batch", str(specs)]) == INVALID
    printed = capsys.readouterr()
    found = records(printed.out)
    assert [(one["id"], one["status"]) for one in found] == [
        ("named", "invalid"), ("b.json", "optimal"), ("own", "optimal"), ("c.json", "invalid"),
    ]  # fmt: skip
    assert found[0]["error"].startswith("a.json: sitse: unknown key")
    assert found[3]["error"].startswith("c.json: ")
    assert printed.err.splitlines()[0].startswith("[1/4] named: invalid in ")


def test_patterns_and_several_files_stand_for_the_same_specs(specs, monkeypatch, capsys):
    monkeypatch.chdir(specs.parent)
    expected = ["a.json", "b.json", "c.json"]
    assert [name for name, _ in files_named(["specs/*.json"])] == expected
    assert [name for name, _ in files_named([f"specs/{name}" for name in reversed(expected)])] == expected
    assert [name for name, _ in files_named(["specs/**/d.json"])] == ["below/d.json"]
    assert [name for name, _ in files_named(["specs/below", "specs/b.json", "specs"])] == [
        "a.json", "b.json", "below/d.json", "c.json",
    ]  # fmt: skip
    for operands in (["specs/b.json"], ["specs/[b].json"]):
        assert main(["batch", *operands, "-q"]) == OK
        assert [one["id"] for one in records(capsys.readouterr().out)] == ["b.json"]


def test_what_stands_for_no_file_is_told_at_once(tmp_path, capsys):
    assert main(["batch", str(tmp_path), str(tmp_path / "*.json"), str(tmp_path / "gone.json")]) == INVALID
    told = capsys.readouterr().err
    assert told.count("stands for no file") == 3 and "gone.json" in told
    assert main(["batch", str(tmp_path / "gone.jsonl")]) == USAGE
    assert main(["batch", "-", str(tmp_path)]) == INVALID and "joined" in capsys.readouterr().err


def test_an_output_in_the_folder_is_no_input(specs):
    assert "a.json" not in dict(files_named([str(specs)], besides=specs / "a.json"))


def test_an_id_stated_by_two_files_is_an_error_of_the_later(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"id": "x"}')
    first, second = read_files(files_named([str(tmp_path)]))
    assert (first.status, second.status) == ("", "duplicate") and "id of a.json already" in second.error


def test_a_file_that_cannot_be_read_stops_no_other(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    gone, there = read_files([("gone.json", tmp_path / "gone.json"), ("a.json", tmp_path / "a.json")])
    assert (gone.status, gone.error, there.status) == ("invalid", "No such file or directory", "")


def test_hourly_files_are_found_beside_each_file(tiny, tmp_path):
    digests = []
    for name, price in (("a", 20), ("b", 30)):
        (tmp_path / name).mkdir()
        document = tiny()
        document["sites"][0]["hourly"] = "prices.csv"
        (tmp_path / name / "spec.json").write_text(json.dumps(document))
        rows = [
            f"2025-{1 + day // 28:02}-{1 + day % 28:02}T{hour:02}:00Z,{price}" for day in (0,) for hour in range(24)
        ]
        (tmp_path / name / "prices.csv").write_text("\n".join(["timestamp_utc,price_usd_per_mwh", *rows]))
        digests.append(read_files(files_named([str(tmp_path / name)]))[0].digest)
    both = read_files(files_named([str(tmp_path)]))
    assert [line.digest for line in both] == digests and len(set(digests)) == 2
    from planner.studies.batch import _asked

    held = [_asked(line, Settings())["series"]["prices.csv"] for line in both]
    assert held[0] != held[1]


def test_a_part_of_a_folder_is_resumed_and_only_changed_files_are_answered_again(specs, tiny, capsys):
    output = specs.parent / "answers.jsonl"
    asked = ["batch", str(specs), "--output", str(output), "--resume", "--shard", "2/2"]
    (specs / "c.json").write_text(json.dumps(tiny()))
    assert main(asked) == OK
    before = records(output.read_text())
    assert [one["id"] for one in before] == ["b.json", "c.json"]
    changed = tiny()
    changed["workloads"][0]["demand"]["requests_per_s"] = 31
    (specs / "c.json").write_text(json.dumps(changed))
    (specs / "b.json").write_text(json.dumps(tiny()))  # the same spec, written otherwise
    capsys.readouterr()
    assert main(asked) == OK
    after = records(output.read_text())
    assert after[0] == before[0] and after[1]["digest"] != before[1]["digest"]
    assert "1 of 2 lines are done already" in capsys.readouterr().err


def test_renamed_files_keep_their_answers(specs, tiny):
    output = specs.parent / "answers.jsonl"
    for name in ("a.json", "c.json"):
        (specs / name).unlink()
    assert main(["batch", str(specs), "--output", str(output), "-q"]) == OK
    shutil.move(specs / "b.json", specs / "z.json")
    before = records(output.read_text())
    assert main(["batch", str(specs), "--output", str(output), "-q", "--resume"]) == OK
    after = records(output.read_text())
    assert [one["id"] for one in after] == ["z.json", "own"]
    assert [one["plan"] for one in after] == [one["plan"] for one in before]


@pytest.mark.parametrize(
    ("name", "data", "one"),
    [
        ("a.json", b"{}", True), ("a.json", b'{\n "a": 1\n}\n', True), ("a.json", b'{"a": 1}\n{"a": 2}\n', False),
        ("a.json", b'{\n "a": oops\n}', True), ("a.jsonl", b"{}", False), ("a", b'{\n}', False),
    ],
)  # fmt: skip
def test_one_file_is_one_spec_or_lines_of_them(name, data, one):
    assert is_one_spec(Path(name), data) is one


# -- the bar -----------------------------------------------------------------------------------------------------------


def answer(status: str, error: str = "") -> Answer:
    return Answer(Line(1, "first"), status, error, 0.5, "{}\n")


def test_a_bar_counts_lines_without_a_plan_and_prints_them():
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100)
    with following(4, lambda line: pytest.fail("no line is said beside a bar"), bar=True, console=console) as follow:
        for done, status in enumerate(("optimal", "limit", "infeasible", "invalid"), start=1):
            follow(done, answer(status, "sites: [bold]wrong\x1b[2J" if status == "invalid" else ""))
    told = written.getvalue()
    assert "4/4" in told and "2 without a plan" in told
    assert "first: invalid in 0.50 s  sites: [bold]wrong\\x1b[2J" in told and "first: optimal" not in told


def test_without_a_bar_each_answer_is_a_line():
    said = []
    with following(2, said.append, bar=False) as follow:
        follow(1, answer("optimal"))
        follow(2, answer("invalid", "a: b"))
    assert said == ["[1/2] first: optimal in 0.50 s", "[2/2] first: invalid in 0.50 s  a: b"]


@given(st.integers(1, 500), st.integers(0, 500), st.floats(0.01, 1e5))
def test_rate_and_time_left_agree(done, left, elapsed):
    rate, time = standing(done, done + left, 0, elapsed).split(", ")[:2]
    amount, _, unit = rate.partition("/")
    seconds = sum(int(part) * 60**power for power, part in enumerate(reversed(time.split()[0].split(":"))))
    assert seconds == pytest.approx(left * elapsed / done, abs=0.51)
    assert float(amount) == pytest.approx(done / elapsed * (1 if unit == "s" else 60), rel=0.06)


@pytest.mark.parametrize(("quiet", "to_file"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_terminal_gets_a_bar_unless_it_shows_the_answers_or_quiet_is_asked(quiet, to_file, specs, tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "planner.cli", "batch", str(specs / "c.json"), *(["-q"] if quiet else [])]
    command += ["--output", str(tmp_path / "answers.jsonl")] if to_file else []
    done = subprocess.run(command, cwd=ROOT, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    shown = os.read(ours, 65536).decode() if not (quiet and to_file) else ""
    os.close(ours)
    assert done.returncode == INVALID
    assert ("1 without a plan" in shown) is (to_file and not quiet)
    assert ("[1/1] c.json: invalid" in shown) is (not to_file and not quiet)


def test_all_operands_without_files_are_named(tmp_path):
    with pytest.raises(SpecError) as refused:
        files_named([str(tmp_path / "x*"), str(tmp_path / "y")])
    assert len(refused.value.problems) == 2
