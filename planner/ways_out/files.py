"""Write the files of an export into a folder, and refuse to overwrite other files unless asked to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.errors import Issue, SpecError
from planner.files import check_folder, write_file
from planner.messages import Message


@dataclass(frozen=True, slots=True)
class File:
    """A file: its path inside the folder, its text, and whether it is a script to run."""

    path: str
    text: str
    runs: bool = False


def write_files(folder: Path, files: Sequence[File], overwrite: bool = False) -> None:
    """Write every file beside its place and rename it.

    Raises SpecError, before anything is written, naming each file in the folders of these files that has another text or another name;
    with `overwrite` a file of another text is replaced and one of another name stays. Raises OSError.
    """
    check_folder(folder)
    if not overwrite and (standing := _others(folder, files)):
        words = Message.of("ways_out.stands_there", folder=str(folder)).text()
        raise SpecError([Issue(path, words) for path in standing])
    for file in files:
        path = folder / file.path
        write_file(path, file.text)
        if file.runs:
            os.chmod(path, path.stat().st_mode | 0o111)


def _others(folder: Path, files: Sequence[File]) -> list[str]:
    """List the paths in the top folders of the files at which something else lies than the files' own text."""
    texts = {file.path: file.text.encode("utf-8", errors="backslashreplace") for file in files}
    tops = sorted({path.partition("/")[0] for path in texts})
    found = [path for top in tops for path in [folder / top, *(folder / top).rglob("*")] if os.path.lexists(path)]
    return [
        name for path in found if (name := path.relative_to(folder).as_posix()) and not _is_ours(path, texts.get(name))
    ]


def _is_ours(path: Path, text: bytes | None) -> bool:
    """Tell whether a path is a folder, or a file with this text."""
    if text is None:
        return path.is_dir()
    return path.is_file() and path.read_bytes() == text
