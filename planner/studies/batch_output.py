"""The output of a batch or a sweep, held by one process at a time; the records of a batch are repaired and matched before it is continued."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from planner.errors import Issue, SpecError
from planner.files import descriptor
from planner.messages import Message
from planner.studies.batch_lines import DUPLICATE, EXIT_BY_LINE, Key, Line

RECORD_START = b'{"id": '
_BESIDE = re.compile(r"([1-9]\d{0,9})-[0-9a-f]{8}")  # the end of the name of a file that is being written


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an output: its bytes from `start` to `end`, and the line that it answers."""

    start: int
    end: int
    key: Key
    status: str
    digest: str  # empty in records of earlier releases


@dataclass(frozen=True, slots=True)
class Found:
    """What an output holds for the lines of an input."""

    left: list[Line]
    """Lines without an answer of their own."""
    statuses: set[str]
    """Statuses of the answers that stand."""
    stale: int = 0
    """Records of a line that has changed, or that stand twice."""
    damaged: int = 0
    """Lines that a kill or a full disk left behind."""


@dataclass(slots=True)
class Output:
    """The file of a batch's answers or a sweep's rows. Open it with `open_output`; it belongs to this process until it is closed."""

    path: Path
    _file: BinaryIO
    passing: bool = False
    """Whether what is written passes on, into a pipe, a device or an open file, and cannot be read or written again."""
    _held: list[BinaryIO] = field(default_factory=list)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self._file, *self._held):
            with suppress(OSError):  # what could not be written has raised already
                file.close()

    def write(self, record: str) -> None:
        """Append a record and have it on the disk. Raises OSError."""
        try:
            self._file.write(record.encode())
            self._file.flush()
            with suppress(OSError):  # a pipe or a device has nothing to sync
                os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def match(self, lines: Iterable[Line]) -> Found:
        """Find the lines that are answered; drop damaged lines and answers to specs that have changed.

        A line without an id of its own is known by the digest of its spec wherever it stands now, and its record gets its new number. The
        file is rewritten under another name, which is then given its own. Raises SpecError, and leaves the file unchanged, if it holds
        anything else than a batch's output.
        """
        records, damaged = _read(self._file, self.path)
        lines = list(lines)
        answered = _matched(lines, records)
        of_input = {line.key for line in lines}
        keep: list[tuple[Record, Line | None]] = [
            (record, answered.get(record)) for record in records if record in answered or record.key not in of_input
        ]
        if damaged or len(keep) < len(records) or any(line is not None and line.key != old.key for old, line in keep):
            self._rewrite(self._kept(keep))
        self._file.seek(0, os.SEEK_END)
        done = {line.number for line in answered.values()}
        return Found(
            [line for line in lines if line.number not in done],
            {record.status for record in answered},
            len(records) - len(keep),
            damaged,
        )

    def read(self) -> bytes:
        """Read all that the file holds. Raises OSError."""
        self._file.seek(0)
        return self._file.read()

    def replace(self, text: str) -> None:
        """Write the whole file anew, under another name, which is then given its own. A file that is `passing` stays. Raises OSError."""
        if not self.passing:
            self._rewrite([text.encode()])

    def _kept(self, keep: list[tuple[Record, Line | None]]) -> Iterator[bytes]:
        """Yield records to keep, each with the id that its line has now."""
        for record, line in keep:
            self._file.seek(record.start)
            text = self._file.read(record.end - record.start)
            if line is not None and line.key != record.key:
                text = json.dumps({**json.loads(text), "id": line.id}).encode() + b"\n"
            yield text

    def _rewrite(self, parts: Iterable[bytes]) -> None:
        beside = self.path.with_name(f".{self.path.name[:40]}.{os.getpid()}-{os.urandom(4).hex()}")
        file = open(beside, "x+b")  # noqa: SIM115  (becomes the output)
        try:
            _lock(file, self.path)
            os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(self._file.fileno()).st_mode))
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, self.path)
        except BaseException as error:
            with suppress(OSError):  # closing writes once more what a full disk had no room for
                file.close()
            beside.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from None
            raise
        self._held.append(self._file)  # still locked: whoever opened the old file must not take it for the output
        self._file = file


def open_output(path: Path, resume: bool) -> Output:
    """Open the output of a batch or a sweep for this process alone; without `resume` it must not exist yet, unless it is a pipe or a device.

    Raises OSError: FileExistsError for a file that exists, BlockingIOError for one that another process writes.
    """
    place = Path(os.path.realpath(path))
    if (number := descriptor(path)) is not None and not resume:
        return Output(path, os.fdopen(os.dup(number), "wb"), passing=True)
    if path.exists() and not path.is_file():
        if resume:
            raise OSError(errno.ESPIPE, Message.of("studies.batch_not_a_file").text(), str(path))
        return Output(path, open(path, "wb"), passing=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(place)
    if not resume:
        try:
            output = Output(place, open(place, "x+b"))  # noqa: SIM115  (belongs to the output)
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, Message.of("studies.batch_exists").text(), str(path)) from None
        _lock(output._file, path)
        return output
    while True:
        with suppress(FileExistsError), open(place, "xb"):
            pass
        file = open(place, "r+b")  # noqa: SIM115  (belongs to the output)
        try:
            _lock(file, path)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(place)):
                return Output(place, file)
        except BaseException:
            file.close()
            raise
        file.close()  # it was replaced between opening and locking


def _remove_stale(place: Path) -> None:
    """Remove the files that processes which are gone left half written beside an output: their number is of no process, and nobody holds them."""
    start = f".{place.name[:40]}."
    for beside in list(place.parent.iterdir()):
        number = _BESIDE.fullmatch(beside.name.removeprefix(start)) if beside.name.startswith(start) else None
        if number is None or _is_alive(int(number[1])):
            continue
        with (
            suppress(OSError),
            open(beside, "r+b") as file,
        ):  # OSError: held by a process of another machine, or not ours
            _lock(file, beside)
            beside.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def _lock(file: BinaryIO, path: Path) -> None:
    import fcntl  # on POSIX only, as the command is

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, Message.of("studies.batch_busy").text(), str(path)) from None


def _read(file: BinaryIO, path: Path) -> tuple[list[Record], int]:
    """Read the places of all records, and count damaged lines. Raises SpecError for a line that no batch has written."""
    records, damaged, start = [], 0, 0
    file.seek(0)
    for number, text in enumerate(file, start=1):
        end = start + len(text)
        record = _record(text, start, end)
        if record is not None:
            records.append(record)
        elif b"\0" in text or (_is_torn(text) and not _is_json(text)):
            damaged += 1
        else:
            message = Message.of("studies.no_batch_output").text()
            raise SpecError([Issue(f"{path} line {number}", message)])
        start = end
    return records, damaged


def _record(text: bytes, start: int, end: int) -> Record | None:
    if not text.endswith(b"\n"):
        return None  # even if it is whole otherwise: the next record would stand on the same line
    try:
        record = json.loads(text)
        name, status = record["id"], record["status"]
        if not isinstance(name, str | int) or status not in EXIT_BY_LINE:
            return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    digest = record.get("digest")
    return Record(
        start, end, (json.dumps(name), status == DUPLICATE), status, digest if isinstance(digest, str) else ""
    )


def _is_torn(text: bytes) -> bool:
    """Tell whether a line begins as a record does."""
    return text.startswith(RECORD_START) or RECORD_START.startswith(text.rstrip())


def _is_json(text: bytes) -> bool:
    """Tell whether a line is a whole document, and so not a torn record; one that only lacks its end of line is torn."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    only_unended = isinstance(document, dict) and str(document.get("status")) in EXIT_BY_LINE
    return text.endswith(b"\n") or not only_unended


def _matched(lines: Iterable[Line], records: Iterable[Record]) -> dict[Record, Line]:
    """Find for each line a record of its own: of its id and digest or, without an id, of its digest alone."""
    by_place: defaultdict[tuple[str, Key], list[Record]] = defaultdict(list)
    for record in records:
        if record.digest:
            by_place[record.digest, record.key].append(record)
    matched: dict[Record, Line] = {}
    moved = []
    for line in lines:
        if same := by_place[line.digest, line.key]:
            matched[same.pop(0)] = line
        elif not line.named:
            moved.append(line)
    elsewhere: defaultdict[tuple[str, bool], list[Record]] = defaultdict(list)
    for (digest, key), unused in by_place.items():
        elsewhere[digest, key[1]] += unused
    for line in moved:
        if found := elsewhere[line.digest, line.key[1]]:
            matched[found.pop(0)] = line
    return matched
