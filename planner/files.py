"""Write files: whole or not at all where that is possible, and through links, pipes and devices as the user named them.

Not here: the contents, and standard output (`planner.cli.output`).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from planner.messages import Message

MAX_LINKS = 40  # as Linux follows
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


def write_file(path: str | Path, text: str | bytes) -> None:
    """Write a text as UTF-8, or bytes as they are; folders on the way are made.

    A regular file, at the end of links if `path` is one, is written under another name, synced and renamed, with the mode that it had
    or, if it is new, that the umask leaves. In a folder that refuses new names it is written in place. Whatever is no regular file (a
    device, a pipe, `/dev/stdout`) is written through. Raises OSError.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", errors="backslashreplace")
    if (number := descriptor(path)) is not None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        with os.fdopen(os.dup(number), "wb") as through:
            through.write(data)
        return
    check_writable(path)
    target = Path(os.path.realpath(path))
    found = _found(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with open(path, "wb") as through:
            through.write(data)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _replace(target, data, found)
    except OSError as error:
        if found is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV, errno.EROFS):
            raise OSError(error.errno, error.strerror, str(path)) from None
        with open(target, "wb") as stream:
            stream.write(data)
            _sync(stream)


def check_writable(path: str | Path) -> None:
    """Test, without writing anything, that a file can be written there. Raises OSError naming `path`."""
    if descriptor(path) is not None:
        return
    found = _found(path)
    if found is None:
        check_folder(Path(os.path.realpath(path)).parent, path)
    elif stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, Message.of("files.is_folder").text(), str(path))
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, Message.of("files.denied").text(), str(path))


def check_folder(folder: str | Path, named: str | Path = "") -> None:
    """Raise OSError, naming `named`, if `folder`, or its nearest existing parent, is not writable. Creates nothing."""
    place = Path(os.path.realpath(folder))
    while not os.path.lexists(place):
        place = place.parent
    shown = str(named or folder)
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, Message.of("files.parent_is_file", name=place.name).text(), shown)
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, Message.of("files.folder_denied").text(), shown)


def _found(path: str | Path) -> os.stat_result | None:
    """Return the properties of the file that `path` leads to; None if there is nothing."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a NUL in the name
        raise OSError(errno.EINVAL, Message.of("files.no_name").text(), str(path)) from None


def descriptor(path: str | Path) -> int | None:
    """Return the number of the open file that a path such as `/dev/stdout` leads to; None for other paths."""
    place = os.path.abspath(path)
    for _ in range(MAX_LINKS):
        if found := _DESCRIPTOR.fullmatch(place):
            return int(found[1])
        try:
            step = os.readlink(place)
        except (OSError, ValueError):
            return None
        place = os.path.normpath(os.path.join(os.path.dirname(place), step))
    return None


def _replace(target: Path, data: bytes, old: os.stat_result | None) -> None:
    """Write a regular file under another name, with mode and owner of the old one, sync it, and rename it."""
    beside = target.parent / f".{target.name[:40]}.{os.getpid()}-{os.urandom(4).hex()}"
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
            _sync(stream)
        if old is not None:
            if hasattr(os, "chown"):
                with suppress(OSError):  # only root gives files away
                    os.chown(beside, old.st_uid, old.st_gid)
            os.chmod(beside, stat.S_IMODE(old.st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # the file is whole; a folder that cannot be synced may only forget its new name
            folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _sync(stream: BinaryIO) -> None:
    """Have what was written on the disk before the name shows it."""
    stream.flush()
    os.fsync(stream.fileno())
