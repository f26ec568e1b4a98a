"""Small programs in a process of their own, which ends where HiGHS does not: its presolve does not look at the clock, and was seen not to end
(docs/decisions/0084-subprocess-for-small-mips.md)."""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
from typing import Any

from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.backends import highs
from solvers.backends.highs import SMALL_MIP_OPTIONS, MipResult
from solvers.interface import SolverError

LATE = 5.0  # seconds beyond its time, after which a program is given up
GIVEN_UP = 1  # how a process ends that waits no longer


class _Process:
    """Another Python with the same packages. It ends with this one, or when what it is asked takes too long."""

    def __init__(self) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from solvers.backends.subprocess_mip import serve; serve()"
        self._process, self._ready = (
            subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE),
            False,
        )

    def ask(self, arguments: tuple[Any, ...], threads: int, end_s: float) -> Any:
        """What `highs.solve_mip` answers or raises; None where the process ended itself."""
        try:
            if not self._ready:
                self._ready = pickle.load(self._process.stdout)
            pickle.dump((arguments, threads, end_s), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self._process.wait()
            if self._ready and code == GIVEN_UP:
                return None
            raise SolverError(
                f"the process in which small programs are solved ended with {code}: is the memory too small for it, or was it ended by hand?"
            ) from None

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


_idle: list[_Process] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a process has one to answer to


def start_process() -> None:
    """One is started, if none waits: what it takes to start goes on beside what is done here."""
    if not _idle:
        _idle.append(_Process())


def stop_processes() -> None:
    """All that wait are ended."""
    while _idle:
        _idle.pop().stop()


atexit.register(stop_processes)


def solve_mip(cost: Floats, matrix: sparse.csc_array, sides: tuple[Floats, Floats], bounds: tuple[Floats, Floats], whole: Bools, gap: float, seconds: float,
                settings: tuple[tuple[str, Any], ...] = SMALL_MIP_OPTIONS) -> MipResult:  # fmt: skip
    """As highs.solve_mip in another process; no point and no bound where it has not ended LATE seconds after its time. Raises what that one raises, and
    SolverError where the process ends otherwise."""
    try:
        process = _idle.pop()
    except IndexError:
        process = _Process()
    try:
        found = process.ask(
            (cost, matrix, sides, bounds, whole, gap, seconds, settings), highs.set_threads(), max(seconds, 0.0) + LATE
        )
    except BaseException:
        process.stop()
        raise
    if found is None:
        process.stop()
        return MipResult(None, float("-inf"))
    _idle.append(process)
    if isinstance(found, Exception):
        raise found
    return found


def serve() -> None:
    """Answers one program after the other, until none is asked any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is said goes elsewhere than what is answered
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        found: Any = True
        while True:
            try:
                pickle.dump(found, answers, pickle.HIGHEST_PROTOCOL)
                answers.flush()
                arguments, threads, end_s = pickle.load(sys.stdin.buffer)
            except (EOFError, BrokenPipeError):
                os._exit(0)  # nobody asks any more
            faulthandler.dump_traceback_later(
                end_s, exit=True, file=nowhere
            )  # ends the process by _exit(GIVEN_UP), whatever it does
            try:
                highs.set_threads(threads)
                found = highs.solve_mip(*arguments)
            except Exception as error:
                found = error
            faulthandler.cancel_dump_traceback_later()
