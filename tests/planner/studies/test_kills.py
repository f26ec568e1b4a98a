"""`batch` and `sweep` killed at many moments, and on a disk of 64 KiB that fills: nothing is lost, nothing stands twice, nothing is left beside.

All at night; by day `test_batch.py` kills a batch once and fills its disk.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from planner.exit_codes import USAGE
from planner.studies import batch_output
from planner.studies.batch_output import open_output
from tests.conftest import TINY, long_run

ROOT = Path(__file__).resolve().parents[3]
TIMES = 20  # kills of one run
SPECS = 2 * TIMES
LONGEST_S = 600.0
RATE = "workloads[0].demand.requests_per_s"
Rows = dict[str, str]
"""What stands for each spec, by its id or value."""


def flopwatt(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "planner.cli", *arguments, "-q"]


def batch_of(folder: Path, jobs: str, count: int = SPECS) -> tuple[list[str], Path]:
    """Return the command of a batch of so many specs, and its output."""
    specs, output = folder / "specs.jsonl", folder / "out" / "answers.jsonl"
    output.parent.mkdir(exist_ok=True)
    lines = []
    for number in range(count):
        spec = json.loads(json.dumps(TINY)) | {"id": f"q{number}"}
        spec["workloads"][0]["demand"]["requests_per_s"] = 10 + number
        lines.append(json.dumps(spec) + "\n")
    specs.write_text("".join(lines))
    return flopwatt("batch", str(specs), "--jobs", jobs, "--output", str(output)), output


def sweep_of(folder: Path, jobs: str, count: int = SPECS) -> tuple[list[str], Path]:
    """Return the command of a sweep of so many values, and its rows."""
    spec, rows = folder / "spec.json", folder / "out" / "rows.csv"
    rows.parent.mkdir(exist_ok=True)
    spec.write_text(json.dumps(TINY))
    vary = f"{RATE}={','.join(str(10 + number) for number in range(count))}"
    return flopwatt("sweep", str(spec), "--vary", vary, "--jobs", jobs, "--rows", str(rows)), rows


def records(data: bytes) -> Rows:
    """Read the whole lines of a batch, without the time that each took. No id stands twice."""
    found: Rows = {}
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        if not line.startswith(b'{"id": ') or not line.endswith(b"}"):
            continue  # a torn record, to which a later run gave an end
        record = json.loads(line)
        assert record["id"] not in found
        record.pop("seconds")
        found[record["id"]] = json.dumps(record)
    return found


def rows_of(data: bytes) -> Rows:
    """Read the whole rows of a sweep, without heads. No value stands twice."""
    lines = list(csv.reader(io.StringIO(data[: data.rfind(b"\n") + 1].decode())))
    whole = [line for line in lines[1:] if len(line) == len(lines[0])]
    found = {line[0]: "|".join(line) for line in whole}
    assert len(found) == len(whole)
    return found


KINDS: dict[str, tuple[Callable[..., tuple[list[str], Path]], Callable[[bytes], Rows]]] = {
    "batch": (batch_of, records),
    "sweep": (sweep_of, rows_of),
}


def held(path: Path, read: Callable[[bytes], Rows]) -> Rows:
    return read(path.read_bytes()) if path.exists() else {}


def _at_once() -> bool:
    return True


def _has(path: Path, read: Callable[[bytes], Rows], least: int) -> bool:
    return len(held(path, read)) >= least


def killed(command: list[str], ready: Callable[[], bool], wait_s: float, whole_group: bool) -> bool:
    """Start a command, and kill it so long after it is ready, alone or with its workers; False where it ended before."""
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + LONGEST_S
    while process.poll() is None and not ready():
        assert time.monotonic() < deadline, "stands still"
        time.sleep(0.002)
    time.sleep(wait_s)
    if process.poll() is not None:
        return False
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    process.wait()
    return True


@long_run
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_many_moments_nothing_is_lost_or_doubled(kind, jobs, tmp_path):
    """Half of the kills come some time after the next answer, half at any time from the start on, while records are read and repaired."""
    begin, read = KINDS[kind]
    command, output = begin(tmp_path, jobs)
    command.append("--resume")
    draw, kills, before = random.Random(f"{kind} {jobs}"), 0, Rows()
    for number in range(3 * TIMES):
        if kills == TIMES:
            break
        ready: Callable[[], bool]
        if number % 2:
            ready, wait_s = _at_once, draw.uniform(0.3, 3.0)
        else:
            least = min(len(before) + draw.choice((1, 1, 2)), SPECS - 1)
            ready, wait_s = partial(_has, output, read, least), draw.uniform(0, 0.1)
        kills += killed(command, ready, wait_s, whole_group=draw.random() < 0.5)
        after = held(output, read)
        assert before.items() <= after.items(), "an answer was lost or changed"
        before = after
    assert kills >= TIMES / 2
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
    last = held(output, read)
    assert before.items() <= last.items() and len(last) == SPECS
    assert output.read_bytes().count(b"\n") == SPECS + (kind == "sweep")
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    command, other = begin(undisturbed, "1")
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
    assert held(other, read) == last


# -- a disk of 64 KiB --------------------------------------------------------------------------------------------------

DISK = """
mount -t tmpfs -o size=64k tmpfs "$1" && head -c "$2" /dev/zero > "$1/filler" || exit 99
shift 2; target=$1; shift
"$@"; code=$?
cp -a "$(dirname "$target")" "$KEPT"
exit $code
"""


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True).returncode
        == 0
    )


@long_run
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(("kind", "filled"), [("batch", 0), ("sweep", 57_344)])
def test_a_disk_of_64_kib_is_told_and_the_run_goes_on_elsewhere(kind, jobs, filled, tmp_path):
    """Of the 64 KiB a filler takes `filled`, the digest of a sweep 4 KiB; then the disk is full, once more with --resume, and the run goes on where there is room."""
    begin, read = KINDS[kind]
    count = 6 if kind == "batch" else 40
    command, output = begin(tmp_path, jobs, count)
    if not can_mount(output.parent):
        pytest.skip("file systems cannot be mounted here")
    for turn, resume in enumerate(([], ["--resume"])):
        kept = tmp_path / f"kept{turn}"
        inside = ["unshare", "-rm", "sh", "-c", DISK, "sh", str(output.parent), str(filled), str(output)]
        run = subprocess.run(
            [*inside, *command, *resume], cwd=ROOT, env=os.environ | {"KEPT": str(kept)}, capture_output=True, text=True, timeout=LONGEST_S
        )  # fmt: skip
        assert run.returncode == USAGE, run.stderr
        assert "No space left on device" in run.stderr and run.stderr.count("\n") == 1
        beside = {f"{output.name}.digest"} if kind == "sweep" else set()
        assert {file.name for file in kept.iterdir()} <= {"filler", output.name, *beside}
        assert len(held(kept / output.name, read)) < count
    for file in (tmp_path / "kept0").glob(f"{output.name}*"):
        shutil.copy(file, output.parent / file.name)
    before = held(output, read)
    assert before or kind == "batch"
    subprocess.run([*command, "--resume"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_S)
    last = held(output, read)
    assert before.items() <= last.items() and len(last) == count


class FullDisk(io.BufferedRandom):
    """A file that finds no room, also when closing writes what is left."""

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_no_file_stands_beside_where_rewriting_finds_no_room(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    with open_output(path, resume=False) as output:
        output.write("old\n")
        monkeypatch.setattr(batch_output, "open", lambda name, mode: FullDisk(io.FileIO(name, "x+")), raising=False)
        with pytest.raises(OSError, match="No space left"):
            output.replace("new\n")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"] and path.read_text() == "old\n"
