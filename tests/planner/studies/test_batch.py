"""`flopwatt batch`: every line answered once, whatever becomes of the process, of a worker, or of another line."""

from __future__ import annotations

import copy
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.errors import SpecError
from planner.pipeline import solve_document
from planner.solving.deadline import options_of
from planner.spec.model import parse_spec
from planner.studies import batch, batch_lines
from planner.studies.batch_output import Found, open_output
from planner.studies.engines.local import LocalEngine
from tests.conftest import long_run

ROOT = Path(__file__).resolve().parents[3]
TINY = {
    "name": "tiny",
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-8B",
            "demand": {"requests_per_s": 10},
            "lengths": {"input": 500, "output": 100},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}},
            "precision": ["bf16"],
            "disaggregation": "never",
        }
    ],
    "sites": [{"region": "us-virginia", "topologies": ["scale-up"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 100}],
}


def tiny(requests_per_s: float = 10, **changes) -> dict:
    document = copy.deepcopy(TINY)
    document["workloads"][0]["demand"]["requests_per_s"] = requests_per_s
    return document | changes


def as_bytes(documents) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def records_of(path: Path) -> list[dict]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def started(*arguments: str) -> subprocess.Popen:
    """The command in a session of its own; a test run in the background ignores SIGINT and would hand that down."""
    command = [sys.executable, "-m", "planner.cli", "batch", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def wait_for_lines(path: Path, count: int, process: subprocess.Popen) -> None:
    """Until the output has that many lines."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None and time.monotonic() < deadline, "the batch ended or stands still"
        time.sleep(0.005)


# -- lines and ids -----------------------------------------------------------------------------------------------------


def test_ids_are_line_numbers_unless_stated_and_blank_lines_are_skipped():
    lines = batch_lines.read_lines(b'{"id": "a"}\n\n{}\r\n   \n{"id": 9}\n{"id": null}')
    assert [(line.number, line.id, line.status) for line in lines] == [(1, "a", ""), (3, 3, ""), (5, 9, ""), (6, 6, "")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "expected a JSON object"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b'{"id": [1]}', "id: expected a text or a whole number"),
        (b'{"id": true}', "id: expected a text or a whole number"),
        (b'{"id": 1.5}', "id: expected a text or a whole number"),
        (b'{"id": NaN}', "NaN is not a number"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error_of_that_line_alone(text, words):
    bad, good = batch_lines.read_lines(text + b'\n{"id": "good"}\n')
    assert (bad.id, bad.status) == (1, batch_lines.INVALID_LINE)
    assert words in bad.error
    assert (good.id, good.status) == ("good", "")


def test_an_id_that_stands_twice_is_an_error_of_the_later_line():
    lines = batch_lines.read_lines(b'{"id": "a"}\n{"id": 1}\n{"id": "a"}\n{"id": "1"}\n{"id": 1}\n')
    assert [line.status for line in lines] == ["", "", batch_lines.DUPLICATE, "", batch_lines.DUPLICATE]
    assert "line 1 already" in lines[2].error and "line 3" in lines[2].error


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((), 0),
        (("optimal", "within_gap"), 0),
        (("optimal", "limit"), 5),
        (("limit", "infeasible"), 4),
        (("infeasible", "invalid", "limit"), 3),
        (("duplicate", "optimal"), 3),
        (("bug", "invalid", "infeasible", "limit", "optimal"), 1),
    ],
)
def test_the_exit_code_is_the_worst_of_the_lines(statuses, code):
    assert batch.exit_code(statuses) == code


# -- answers -----------------------------------------------------------------------------------------------------------


def test_each_line_is_answered_in_its_own_way(tmp_path, capsys):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    impossible = tiny(id="impossible", limits={"budget": "1 USD"})
    specs.write_bytes(
        as_bytes([tiny(id="good"), tiny(id="typo", sitse=[])])
        + b"not JSON\n"
        + as_bytes([impossible, tiny(id="good"), tiny(20)])
    )
    assert cli.main(["batch", str(specs), "--output", str(output)]) == 3
    found = {(record["id"], record["status"]): record for record in records_of(output)}
    assert list(found) == [
        ("good", "optimal"), ("typo", "invalid"), (3, "invalid"), ("impossible", "infeasible"), ("good", "duplicate"), (6, "optimal"),
    ]  # fmt: skip
    for (_, status), record in found.items():
        assert set(record) == {
            "id",
            "status",
            "digest",
            "seconds",
            "plan" if status in ("optimal", "infeasible") else "error",
        }
        assert record["seconds"] >= 0
    assert found["good", "optimal"]["plan"] == json.loads(solve_document(tiny(id="good"), threads=1).to_json())
    assert "sitse: unknown key" in found["typo", "invalid"]["error"] and '"sites"' in found["typo", "invalid"]["error"]
    progress = capsys.readouterr()
    assert progress.out == ""
    assert [line.split("]")[0] for line in progress.err.splitlines()] == [f"[{i}/6" for i in range(1, 7)]


def test_standard_input_and_output(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_bytes([tiny()]))))
    assert cli.main(["batch", "-", "-q"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["plan"]["status"] == "optimal"
    assert printed.err == ""


def test_options_of_the_command_line_go_into_every_line(tmp_path, capsys):
    specs = tmp_path / "specs.jsonl"
    specs.write_bytes(as_bytes([tiny(), tiny(20)]))
    assert cli.main(["batch", str(specs), "-q", "--gap", "0.25", "--seed", "7", "--set", "name=changed"]) == 0
    for line in capsys.readouterr().out.splitlines():
        plan = json.loads(line)["plan"]
        assert (plan["name"], plan["solver"]["asked_gap"], plan["solver"]["seed"]) == ("changed", 0.25, 7)


def test_a_bug_in_one_line_stops_no_other(tmp_path, monkeypatch):
    def broken(document, **options):
        assert options["threads"] == 1
        if document["name"] == "odd":
            raise ZeroDivisionError("by nothing")
        return solve_document(document, **options)

    monkeypatch.setattr(batch, "solve_document", broken)
    lines, written = batch_lines.read_lines(as_bytes([tiny(name="odd"), tiny()])), []
    statuses = batch.run(
        lines, written.append, engine=LocalEngine(), settings=batch_lines.Settings(), follow=lambda done, answer: None
    )
    assert batch.exit_code(statuses) == 1
    first, second = map(json.loads, written)
    assert first["status"] == "bug" and first["error"].startswith("ZeroDivisionError: by nothing (line ")
    assert second["status"] == "optimal"


def test_the_number_of_threads_reaches_the_solver():
    assert [options_of(parse_spec(tiny()), threads).threads for threads in (1, 3)] == [1, 3]


# -- going on ----------------------------------------------------------------------------------------------------------


def test_an_existing_output_is_refused_unless_it_is_to_be_gone_on_with(tmp_path, capsys):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    specs.write_bytes(as_bytes([tiny()]))
    output.write_text("precious\n")
    assert cli.main(["batch", str(specs), "--output", str(output)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert cli.main(["batch", str(specs), "--output", str(output), "--resume"]) == 3
    assert "is not a line of a batch's output" in capsys.readouterr().err
    assert output.read_text() == "precious\n"
    assert cli.main(["batch", str(specs), "--resume"]) == 2
    assert cli.main(["batch", str(tmp_path / "nowhere.jsonl"), "--output", str(tmp_path / "new.jsonl")]) == 2
    assert not (tmp_path / "new.jsonl").exists()


def matched(output: Path, lines: list[batch_lines.Line]) -> Found:
    with open_output(output, resume=True) as file:
        return file.match(lines)


def record_of(line: batch_lines.Line, **changes) -> bytes:
    """The record of a line that was answered."""
    record = {"id": line.id, "status": line.status or "optimal", "digest": line.digest, "plan": {}, "seconds": 0.1}
    return json.dumps(record | changes).encode() + b"\n"


def test_files_that_a_killed_process_left_half_written_are_removed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    output = tmp_path / "out.jsonl"
    stale, held = (tmp_path / f".out.jsonl.{gone.pid}-{end}" for end in ("0123abcd", "89abcdef"))
    others = [
        tmp_path / name
        for name in (
            f".out.jsonl.{os.getpid()}-0123abcd",
            f".other.jsonl.{gone.pid}-0123abcd",
            f".out.jsonl.{gone.pid}-mine",
        )
    ]
    for path in (stale, held, *others):
        path.write_bytes(b"")
    with held.open("rb") as elsewhere:  # held, as by a process of another machine
        fcntl.flock(elsewhere, fcntl.LOCK_EX)
        open_output(output, resume=False).__exit__(None, None, None)
        assert held.exists() and not stale.exists() and all(path.exists() for path in others)
    open_output(output, resume=True).__exit__(None, None, None)
    assert not held.exists() and all(path.exists() for path in others)


@pytest.mark.parametrize(
    "text",
    [
        b'{"name": "a spec in one line without an end of line"}',
        b'{"id": "a", "name": "a spec with an id"}\n',
        b'{"id": "a", "name": "a spec with an id"}',
        b"[1]\n",
        b"precious\n",
        b'{"id": [], "status": "optimal"}\n',
    ],
)
def test_a_foreign_line_is_not_taken_for_a_damaged_one(tmp_path, text):
    output = tmp_path / "a.json"
    output.write_bytes(text)
    with pytest.raises(SpecError, match="line 1: is not a line of a batch's output"):
        matched(output, [])
    assert output.read_bytes() == text


def test_wherever_an_output_is_cut_what_it_holds_and_what_is_left_make_the_whole(tmp_path):
    """Cut after every byte, and padded as a crash pads: done and left lines together are all lines, none twice."""
    lines = batch_lines.read_lines(b'{"id": "a"}\n{"id": 2}\n{"id": "a"}\nnonsense\n{"id": "a"}\n')
    whole = b"".join(map(record_of, lines))
    output = tmp_path / "answers.jsonl"
    for cut in range(len(whole) + 1):
        for tail in (b"", b"\0" * 20, b"\0" * 20 + b"\n"):
            output.write_bytes(whole[:cut] + tail)
            found = matched(output, lines)
            kept = output.read_bytes()
            assert kept == whole[: whole.rfind(b"\n", 0, cut) + 1]
            assert [line.number for line in found.left] == [line.number for line in lines[kept.count(b"\n") :]]
            assert not found.stale


def test_a_damaged_line_in_the_middle_is_dropped_and_answered_again(tmp_path):
    lines = batch_lines.read_lines(b'{"id": "a"}\n{"id": "b"}\n{"id": "c"}\n')
    first, second, third = map(record_of, lines)
    output = tmp_path / "answers.jsonl"
    output.write_bytes(first + second[:20] + b"\0\0\0" + second + third)
    found = matched(output, lines)
    assert ([line.id for line in found.left], found.damaged) == (["b"], 1)
    assert output.read_bytes() == first + third


def test_what_changed_is_answered_again_and_what_moved_is_not(tmp_path):
    before = batch_lines.read_lines(as_bytes([tiny(5), tiny(6), tiny(7, id="x"), tiny(8, id="y")]))
    output = tmp_path / "answers.jsonl"
    output.write_bytes(b"".join(map(record_of, before)) + record_of(before[3]))
    after = batch_lines.read_lines(as_bytes([tiny(4), tiny(5), tiny(60), tiny(7, id="x"), tiny(80, id="y")]))
    found = matched(output, after)
    assert [line.number for line in found.left] == [1, 3, 5]
    assert found.stale == 2 + 1  # one without an id and y, which stood twice
    assert [json.loads(line)["id"] for line in output.read_bytes().splitlines()] == [2, "x"]


def test_answers_of_another_input_stay(tmp_path):
    before = batch_lines.read_lines(as_bytes([tiny(5, id="x")]))
    output = tmp_path / "answers.jsonl"
    output.write_bytes(record_of(before[0]))
    found = matched(output, batch_lines.read_lines(as_bytes([tiny(5, id="y")])))
    assert len(found.left) == 1 and not found.statuses and output.read_bytes() == record_of(before[0])


def test_answers_of_releases_without_a_digest_are_made_again(tmp_path):
    lines = batch_lines.read_lines(as_bytes([tiny()]))
    output = tmp_path / "answers.jsonl"
    record = json.loads(record_of(lines[0]))
    del record["digest"]
    output.write_text(json.dumps(record) + "\n")
    assert matched(output, lines).left == lines and output.read_bytes() == b""


def test_options_overlays_and_hourly_files_are_part_of_the_question(tmp_path):
    document = tiny()
    document["sites"][0]["hourly"] = "prices.csv"
    (tmp_path / "overlay").mkdir()

    def digest(**settings) -> str:
        return batch_lines.read_lines(as_bytes([document]), batch_lines.Settings(**settings))[0].digest

    there, over = {"hourly": (tmp_path,)}, {"overlays": (tmp_path / "overlay",)}
    seen = [digest(), digest(assignments=("name=a",)), digest(solver={"gap": 0.1})]
    for text in ("a", "b"):
        (tmp_path / "prices.csv").write_text(text)
        seen.append(digest(**there))
    for text in ("{}", "[]"):
        (tmp_path / "overlay" / "a.json").write_text(text)
        seen.append(digest(**over))
    assert len(set(seen)) == len(seen)
    assert digest(**over) == seen[-1]


def test_an_output_belongs_to_one_batch_at_a_time(tmp_path, capsys):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    specs.write_bytes(as_bytes([tiny()]))
    lines = batch_lines.read_lines(as_bytes([tiny(9)]))
    output.write_bytes(record_of(lines[0]))
    with open_output(output, resume=True) as held:
        for _ in range(2):
            assert cli.main(["batch", str(specs), "--output", str(output), "--resume"]) == 2
            assert "is being written by another run" in capsys.readouterr().err
            held.match(batch_lines.read_lines(as_bytes([tiny()])))  # rewrites the file: it stays held
    assert cli.main(["batch", str(specs), "--output", str(output), "--resume"]) == 0


def test_a_link_to_an_output_stays_a_link(tmp_path):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "link.jsonl"
    specs.write_bytes(as_bytes([tiny(id="a")]))
    output.symlink_to("real.jsonl")
    assert cli.main(["batch", str(specs), "--output", str(output), "-q"]) == 0
    specs.write_bytes(as_bytes([tiny(11, id="a")]))
    assert cli.main(["batch", str(specs), "--output", str(output), "-q", "--resume"]) == 0
    assert output.is_symlink() and len(records_of(tmp_path / "real.jsonl")) == 1


def test_a_full_disk_is_told_and_the_batch_goes_on_later(tmp_path):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    specs.write_bytes(as_bytes([tiny(5 + i, id=i) for i in range(3)]))
    command = [sys.executable, "-m", "planner.cli", "batch", str(specs), "--output", str(output), "-q"]
    run = subprocess.run(["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *command], cwd=ROOT, capture_output=True)
    assert run.returncode == 2 and run.stderr.startswith(str(output).encode() + b": ") and run.stderr.count(b"\n") == 1
    assert cli.main(["batch", str(specs), "--output", str(output), "-q", "--resume"]) == 0
    assert sorted(record["id"] for record in records_of(output)) == [0, 1, 2]


def test_the_exit_code_counts_lines_that_were_done_before(tmp_path):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    specs.write_bytes(as_bytes([tiny(id="good"), tiny(id="bad", name="")]))
    assert cli.main(["batch", str(specs), "--output", str(output), "-q"]) == 3
    before = output.read_bytes()
    assert cli.main(["batch", str(specs), "--output", str(output), "-q", "--resume"]) == 3
    assert output.read_bytes() == before


# -- real processes ----------------------------------------------------------------------------------------------------

MANY = 12


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    specs = tmp_path_factory.mktemp("batch") / "specs.jsonl"
    specs.write_bytes(as_bytes(tiny(5 + i, id=f"q{i}") for i in range(MANY)))
    return specs


def assert_complete(output: Path) -> None:
    found = records_of(output)
    assert sorted(record["id"] for record in found) == sorted(f"q{i}" for i in range(MANY))
    assert {record["status"] for record in found} == {"optimal"}
    one = next(record for record in found if record["id"] == "q7")
    assert one["plan"] == json.loads(solve_document(tiny(12, id="q7"), threads=1).to_json())


def test_killed_and_resumed_nothing_is_lost_or_doubled(many, tmp_path):
    output = tmp_path / "answers.jsonl"
    process = started(str(many), "--output", str(output), "--jobs", "2", "-q")
    wait_for_lines(output, 3, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = output.read_bytes().count(b"\n")
    assert 3 <= before < MANY
    with output.open("ab") as file:
        file.write(b'{"id": "q11", "status": "opti')  # what a kill in the middle of a write leaves
    resumed = started(str(many), "--output", str(output), "--jobs", "2", "--resume")
    _, progress = resumed.communicate(timeout=120)
    assert resumed.returncode == 0
    assert progress.splitlines()[0] == f"{before} of {MANY} lines are done already"
    assert_complete(output)


def test_an_interrupt_ends_the_batch_with_130_and_its_workers_with_it(many, tmp_path):
    output = tmp_path / "answers.jsonl"
    process = started(str(many), "--output", str(output), "--jobs", "2", "-q")
    wait_for_lines(output, 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)  # the pipes close only when the workers are gone
    assert process.returncode == 130
    assert "interrupted" in errors and "Traceback" not in errors
    assert len({record["id"] for record in records_of(output)}) == len(records_of(output)) < MANY


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the worker in /proc")
def test_a_worker_that_dies_takes_no_line_with_it(many, tmp_path):
    output = tmp_path / "answers.jsonl"
    process = started(str(many), "--output", str(output), "--jobs", "2", "-q")
    wait_for_lines(output, 2, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [int(child) for child in children if b"LokyProcess" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert_complete(output)


@pytest.mark.parametrize(
    "name", ["planner", *(pytest.param(name, marks=long_run) for name in ("joblib", "numpy", "runpy"))]
)
def test_workers_import_nothing_from_the_current_folder(name, many, tmp_path):
    trap = tmp_path / "trap"
    (tmp_path / f"{name}.py").write_text(f"open({str(trap)!r}, 'w').close()\nraise SystemExit('trapped')\n")
    specs = tmp_path / "specs.jsonl"
    specs.write_bytes(b"".join(many.read_bytes().splitlines(keepends=True)[:3]))
    # -P as for the installed command, whose own path holds no current folder; workers do not inherit it
    command = [sys.executable, "-P", "-m", "planner.cli", "batch", str(specs), "--jobs", "2", "-q"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    run = subprocess.run(
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert not trap.exists(), run.stderr
    assert run.returncode == 0 and len(run.stdout.splitlines()) == 3, run.stderr
