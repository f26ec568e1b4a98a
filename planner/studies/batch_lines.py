"""The lines of a batch: one spec each, with its id and a digest of everything that its answer depends on."""

from __future__ import annotations

import hashlib
import json
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
    lines: list[Line] = []
    first: dict[Key, int] = {}
    hashes: dict[str, str] = {}
    common = _digest([settings.assignments, dict(settings.solver), _digest_of_overlays(settings.overlays)])
    for number, text in enumerate(data.split(b"\n"), start=1):
        if not text.strip():
            continue
        line = _read_line(number, text)
        taken = first.setdefault(line.key, number)
        if taken != number:
            error = f"id: {json.dumps(line.id)} is the id of line {taken} already; give line {number} one of its own"
            line = replace(line, document={}, status=DUPLICATE, error=error)
        files = digest_of_files(line.document, settings.hourly, hashes)
        lines.append(replace(line, digest=_digest([line.digest, common, files])))
    return lines


def _read_line(number: int, text: bytes) -> Line:
    try:
        document = read_document(text)
        name = document.get("id")
        if isinstance(name, bool) or not isinstance(name, str | int | None):
            raise SpecError([Issue("id", Message.of("option.text_or_whole_number", given=json.dumps(name)).text())])
    except SpecError as error:
        digest = hashlib.sha256(text.strip()).hexdigest()
        return Line(number, number, status=INVALID_LINE, error=str(error), digest=digest)
    return Line(number, number if name is None else name, document, named=name is not None, digest=_digest(document))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digest_of_overlays(overlays: Sequence[Path]) -> str:
    """Hash the names and contents of the overlays' files; one that cannot be read is an error of each line."""
    whole = hashlib.sha256()
    for overlay in overlays:
        for file in sorted(overlay.glob("*.json")) if overlay.is_dir() else [overlay]:
            whole.update(file.name.encode(errors="surrogateescape") + b"\0")
            if file.is_file():
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
