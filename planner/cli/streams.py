"""Make the standard streams fit for answers: whatever their encoding, closed, or with a reader that has gone."""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO, TextIO

from planner.messages import Message


def prepare_streams() -> None:
    """Let no character of an answer be lost to an encoding, and no file take the number of a closed stream.

    A stream that is no terminal gets UTF-8, unless PYTHONIOENCODING says otherwise; a character that an encoding lacks becomes `?`.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a closed stream: its number must not go to the next file that is opened
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (open as long as the process runs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            asked = stream.isatty() or "PYTHONIOENCODING" in os.environ
            stream.reconfigure(encoding=None if asked else "utf-8", errors="replace")


def standard_input() -> BinaryIO:
    """Return standard input. Raises OSError when it is closed."""
    if sys.stdin is None:
        raise OSError(None, Message.of("cli.closed").text(), Message.of("cli.standard_input").text())
    return sys.stdin.buffer


def print_out(text: str) -> None:
    """Write a text to standard output at once. Raises OSError, BrokenPipeError when its reader has gone."""
    check_standard_output()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        abandon_output()
        raise OSError(error.errno, error.strerror, Message.of("cli.standard_output").text()) from None


def print_data(data: bytes) -> None:
    """Write bytes to standard output at once. Raises OSError, BrokenPipeError when its reader has gone."""
    check_standard_output()
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        abandon_output()
        raise OSError(error.errno, error.strerror, Message.of("cli.standard_output").text()) from None


def check_standard_output() -> None:
    """Raise OSError when standard output is closed."""
    if sys.stdout is None:
        raise OSError(None, Message.of("cli.closed").text(), Message.of("cli.standard_output").text())


def abandon_output() -> None:
    """Send the rest of standard output nowhere, so that Python does not fail on it again when it exits."""
    if sys.stdout is sys.__stdout__:
        _abandon(sys.stdout)


def abandon_progress() -> None:
    """Send the rest of standard error nowhere, so that Python does not fail on it again when it exits."""
    if sys.stderr is sys.__stderr__:
        _abandon(sys.stderr)


def _abandon(stream: TextIO | None) -> None:
    if isinstance(stream, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
