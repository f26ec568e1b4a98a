"""The lines of a batch: one spec each, of a line of JSON Lines or of a file, with its id and a digest of everything that its answer depends on."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.exit_codes import BUG, EXIT_BY_STATUS, INVALID
from planner.messages import Message
from planner.spec.document import read_document
from planner.spec.series import digest_of_files

INVALID_LINE, DUPLICATE, FAILED = "invalid", "duplicate", "bug"  # statuses of lines without a plan
EXIT_BY_LINE = {**EXIT_BY_STATUS, INVALID_LINE: INVALID, DUPLICATE: INVALID, FAILED: BUG}

Key = tuple[str, bool]  # an id as JSON, and whether the line only repeats it
SpecFile = tuple[str, Path]  # name below the folder that holds all files, and where the file stands


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: a document to answer or, with a `status`, an error. `named`: whether it states an id of its own."""

    number: int
    id: str | int
    document: dict[str, Any] = field(default_factory=dict)
    status: str = ""
    error: str = ""
    named: bool = False
    digest: str = ""
    file: str = ""
    """Name of the file that holds this spec alone; empty for a line of JSON Lines."""
    folders: tuple[Path, ...] = ()
    """Further folders of hourly files: that of the file."""

    @property
    def key(self) -> Key:
        """Return the id as JSON, and whether the line repeats it."""
        return json.dumps(self.id), self.status == DUPLICATE


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the command line that apply to every spec."""

    assignments: tuple[str, ...] = ()
    solver: Mapping[str, Any] = field(default_factory=dict)
    overlays: tuple[Path, ...] = ()
    hourly: tuple[Path, ...] = ()


def read_lines(data: bytes, settings: Settings = Settings()) -> list[Line]:
    """Read every line that is not blank. Line numbers start at 1 and are the ids of lines without one."""
    texts = enumerate(data.split(b"\n"), start=1)
    lines = [_read_line(number, number, text) for number, text in texts if text.strip()]
    return _asked_once(lines, settings)


def read_files(files: Sequence[SpecFile], settings: Settings = Settings()) -> list[Line]:
    """Read files of one spec each, in their order. The name of a file is the id of a spec without one; a file that cannot be read is an error of its line."""
    lines = []
    for number, (name, path) in enumerate(files, start=1):
        try:
            line = _read_line(number, name, path.read_bytes())
        except OSError as error:
            line = Line(number, name, status=INVALID_LINE, error=error.strerror or type(error).__name__)
        lines.append(replace(line, file=name, folders=(path.parent,)))
    return _asked_once(lines, settings)


def is_one_spec(path: Path, data: bytes) -> bool:
    """Tell whether a file is one spec and not lines of them: it is called `.json`, and its first line is no whole document before others."""
    if path.suffix.lower() != ".json":
        return False
    first, _, rest = data.strip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return True
    return not rest


def _asked_once(lines: Sequence[Line], settings: Settings) -> list[Line]:
    """Refuse ids that stand twice, and complete the digests by all else that answers depend on."""
    first: dict[Key, Line] = {}
    hashes: dict[tuple[Path, ...], dict[str, str]] = {}
    common = hash_of([settings.assignments, dict(settings.solver), digest_of_overlays(settings.overlays)])
    complete = []
    for line in lines:
        taken = first.setdefault(line.key, line)
        if taken is not line:
            line = replace(line, document={}, status=DUPLICATE, error=_taken(line, taken))
        files = digest_of_files(line.document, (*settings.hourly, *line.folders), hashes.setdefault(line.folders, {}))
        complete.append(replace(line, digest=hash_of([line.digest, common, files])))
    return complete


def _taken(line: Line, by: Line) -> str:
    name = json.dumps(line.id)
    if line.file:
        return Message.of("batch.id_taken", id=name, file=by.file).text()
    return f"id: {name} is the id of line {by.number} already; give line {line.number} one of its own"


def _read_line(number: int, unnamed: str | int, text: bytes) -> Line:
    try:
        document = read_document(text)
        name = document.get("id")
        if isinstance(name, bool) or not isinstance(name, str | int | None):
            raise SpecError([Issue("id", Message.of("option.text_or_whole_number", given=json.dumps(name)).text())])
    except SpecError as error:
        digest = hashlib.sha256(text.strip()).hexdigest()
        return Line(number, unnamed, status=INVALID_LINE, error=str(error), digest=digest)
    return Line(number, unnamed if name is None else name, document, named=name is not None, digest=hash_of(document))


def hash_of(value: Any) -> str:
    """Hash a value of JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_of_overlays(overlays: Sequence[Path]) -> str:
    """Hash the names and contents of the overlays' files; one that cannot be read is an error of each line."""
    whole = hashlib.sha256()
    for overlay in overlays:
        for file in sorted(overlay.glob("*.json")) if overlay.is_dir() else [overlay]:
            whole.update(file.name.encode(errors="surrogateescape") + b"\0")
            if file.is_file():
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


# -- files -------------------------------------------------------------------------------------------------------------


def files_named(operands: Sequence[str], besides: Path | None = None) -> list[SpecFile]:
    """Find the files of folders, globs and names, each once, ordered by name; names begin below the folder that holds them all.

    A folder stands for its files `*.json`, also in folders below, hidden ones left out; `besides` is the output, which is no input.
    Raises SpecError naming every operand that stands for no file.
    """
    found = [_files_of(operand) for operand in operands]
    problems = [
        Issue(operand, Message.of("batch.no_file").text())
        for operand, (_, files) in zip(operands, found, strict=True)
        if not files
    ]
    if problems:
        raise SpecError(problems)
    base = Path(os.path.commonpath([folder for folder, _ in found]))
    output = os.path.realpath(besides) if besides else None
    files = {path for _, some in found for path in some if os.path.realpath(path) != output}
    return sorted((path.relative_to(base).as_posix(), path) for path in files)


def _files_of(operand: str) -> tuple[Path, list[Path]]:
    """Return the folder below which names of an operand's files begin, and the files."""
    place = Path(os.path.abspath(operand))
    if place.is_dir():
        inside = (path for path in place.rglob("*.json") if path.is_file())
        return place, [path for path in inside if not any(part[0] == "." for part in path.relative_to(place).parts)]
    if not glob.has_magic(operand) or place.exists():
        return place.parent, [place] if place.exists() else []
    before = list(itertools.takewhile(lambda part: not glob.has_magic(part), place.parts))
    return Path(*before), [Path(path) for path in glob.glob(str(place), recursive=True) if os.path.isfile(path)]
