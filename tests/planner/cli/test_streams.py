"""Where answers go: files, links, devices, pipes and closed streams, in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from planner.report.paper import LINES

ROOT = Path(__file__).resolve().parents[3]
CHECK = ("check", "examples/mixed_fleet.json")
LINE = b"valid: "
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and permissions of POSIX")


def flopwatt(*arguments: object, shell: str = '"$@"', env: dict[str, str] | None = None, **options):
    """The command in a process of its own; `shell` redirects its streams."""
    command = [sys.executable, "-m", "planner.cli", *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        ["sh", "-c", shell, "sh", *command], cwd=ROOT, env=environment, capture_output=True, **options
    )


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    assert flopwatt(*CHECK, "--output", tmp_path / "link").returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes().startswith(LINE)
    (tmp_path / "dangling").symlink_to("made")
    assert flopwatt(*CHECK, "--output", tmp_path / "dangling").returncode == 0
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "made").read_bytes().startswith(LINE)


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run = flopwatt(*CHECK, "--output", pipe, shell=f'cat "{pipe}" & "$@"; wait', timeout=60)
    assert run.returncode == 0 and run.stdout.startswith(LINE)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
def test_devices_are_written_through(tmp_path):
    for name in ("/dev/stdout", "/dev/fd/1"):
        run = flopwatt(*CHECK, "--output", name)
        assert run.returncode == 0 and run.stdout.startswith(LINE)
    appended = tmp_path / "appended"
    run = flopwatt(*CHECK, "--output", "/dev/stdout", shell=f'(echo first; "$@") >> "{appended}"')
    assert run.returncode == 0 and appended.read_bytes().startswith(b"first\n" + LINE)
    assert flopwatt(*CHECK, "--output", "/dev/null").returncode == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(tmp_path):
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("old")
    old.chmod(0o640)
    for path in (new, old):
        assert flopwatt(*CHECK, "--output", path, shell='umask 077; "$@"').returncode == 0
        assert path.read_bytes().startswith(LINE)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--output", "file/answer.json"),
        ("--output", "."),
        ("--output", "folder/"),
        ("--chart", "file/a.svg"),
        ("--plans", "file"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_solve(tmp_path, option, place):
    (tmp_path / "file").write_text("a file")
    command = ("frontier", "examples/mixed_fleet.json", "--against", "carbon")
    run = flopwatt(*command, option, f"{tmp_path}/{place}", timeout=60)
    assert run.returncode == 2, run.stderr.decode()
    words = run.stderr.decode()
    assert words.count("\n") == 1 and str(tmp_path) in words, "one line, and no progress of a solve"


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_file_that_is_protected_is_not_replaced(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "mine").chmod(0o444)
    assert flopwatt(*CHECK, "--output", tmp_path / "mine").returncode == 2
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told(tmp_path):
    run = flopwatt(*CHECK, shell='"$@" > /dev/full')
    assert run.returncode == 2 and run.stderr.decode() == "standard output: No space left on device\n"
    run = flopwatt(*CHECK, "--output", "/dev/full")
    assert run.returncode == 2 and b"No space left" in run.stderr


def test_closed_streams_are_told_or_done_without(tmp_path):
    run = flopwatt("check", "-", shell='"$@" <&-')
    assert (run.returncode, run.stderr) == (2, b"standard input: is closed\n")
    run = flopwatt("plan", "examples/mixed_fleet.json", shell='"$@" >&-', timeout=60)
    assert (run.returncode, run.stderr) == (2, b"standard output: is closed\n")
    there = tmp_path / "there"
    run = flopwatt(*CHECK, "--output", there, shell='"$@" <&- >&- 2>&-')
    assert run.returncode == 0 and there.read_bytes().startswith(LINE)
    run = flopwatt("check", "nowhere.json", shell='"$@" 2>&-')
    assert (run.returncode, run.stdout) == (2, b"")


@pytest.mark.parametrize("command", [("catalog", "list", "chips"), ("schema",), ("batch", "{specs}")])
def test_a_reader_that_has_read_enough_is_no_error(tmp_path, tiny, command):
    specs = tmp_path / "specs.jsonl"
    specs.write_text("".join(json.dumps(tiny(sitse=i)) + "\n" for i in range(3000)))
    arguments = [part.format(specs=specs) for part in command]
    run = flopwatt(*arguments, "-q", shell='{ "$@"; echo "code $?" >&2; } | head -c 1')
    assert run.stdout and run.stderr in (b"code 141\n", b"code 0\n")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_an_encoding_without_the_sign_loses_the_sign_alone(encoding, tmp_path, tiny):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny(name="Größe 規模")), encoding="utf-8")
    run = flopwatt("plan", spec, "-q", env={"PYTHONIOENCODING": encoding})
    assert run.returncode == 0, run.stderr.decode()
    first = run.stdout.decode(encoding).splitlines()[0]
    assert first == {"cp1252": "Größe ??", "ascii": "Gr??e ??"}[encoding]


@pytest.mark.parametrize(("term", "columns", "bold"), [("xterm", 84, True), ("dumb", 84, False), ("xterm", 250, True)])
def test_on_a_terminal_the_page_takes_its_width(term, columns, bold, tmp_path, tiny):
    import fcntl
    import termios

    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()), encoding="utf-8")
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": term}
    command = [sys.executable, "-m", "planner.cli", "plan", str(spec), "-q"]
    run = subprocess.Popen(command, stdout=writer, cwd=ROOT, env=environment)
    os.close(writer)
    printed = b""
    with contextlib.suppress(OSError):  # how the end of a terminal reads on Linux
        while part := os.read(reader, 65536):
            printed += part
    os.close(reader)
    assert run.wait() == 0
    text = printed.decode().replace("\r\n", "\n")
    assert ("\x1b[1mtiny\x1b[0m\n" in text) == bold and ("\x1b" in text) == bold
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip("\n").split("\n")
    assert lines[0] == "tiny" and len(lines) <= LINES
    assert max(len(line.rstrip()) for line in lines) <= min(columns, 100)


def test_progress_without_a_reader_loses_no_answer(tmp_path, tiny):
    spec, there = tmp_path / "spec.json", tmp_path / "plan.json"
    spec.write_text(json.dumps(tiny()))
    run = flopwatt(
        "plan",
        spec,
        "--output",
        there,
        "--format",
        "json",
        shell='{ "$@" 3>&1; echo $? > "%s"; } 2>&1 | true' % (tmp_path / "code"),
    )
    assert run.returncode == 0
    assert (tmp_path / "code").read_text() == "0\n" and json.loads(there.read_text())["status"] == "optimal"


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_other(tmp_path):
    """A limit of 512 bytes a file ends the write midway, as a full disk does."""
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("old")
    for path in (old, new):
        run = flopwatt("schema", "--output", path, shell='ulimit -f 1; "$@"')
        assert run.returncode == 2 and run.stderr.decode().startswith(f"{path}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"] and old.read_text() == "old"
