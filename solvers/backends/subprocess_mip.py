"""Small MIPs in a child process that is given up where HiGHS overruns its time limit.

The presolve of HiGHS does not check the clock, and was seen not to end (docs/lab/search/0084-subprocess-for-small-mips.md).
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
from typing import IO, Any

from scipy import sparse

from solvers.arrays import Bools, Floats
from solvers.backends import highs
from solvers.backends.highs import SMALL_MIP_OPTIONS, MipResult
from solvers.interface import SolverError

GRACE_S = 5.0  # time beyond its limit after which a program is given up
GIVEN_UP = 1  # exit code of a process that gave up


class _Process:
    """Another Python with the same packages. It ends with this one, or when a program overruns its limit."""

    def __init__(self) -> None:
        start = f"import sys; sys.path[:] = {sys.path!r}; from solvers.backends.subprocess_mip import serve; serve()"
        self._process = subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ready = False

    def ask(self, arguments: tuple[Any, ...], threads: int, end_s: float) -> Any:
        """Return what `highs.solve_mip` returns or raises there; None where the process gave up."""
        try:
            if not self._ready:
                self._ready = pickle.load(_pipe(self._process.stdout))
            pickle.dump((arguments, threads, end_s), _pipe(self._process.stdin), pickle.HIGHEST_PROTOCOL)
            _pipe(self._process.stdin).flush()
            return pickle.load(_pipe(self._process.stdout))
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self._process.wait()
            if self._ready and code == GIVEN_UP:
                return None
            raise SolverError(
                f"the process that solves small programs ended with {code}: is there too little memory, or was it killed?"
            ) from None

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise SolverError("a process without pipes")
    return pipe


_idle: list[_Process] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a process answers only the one that started it


def start_process() -> None:
    """Start a process unless one is idle, so that it is ready when a program comes."""
    if not _idle:
        _idle.append(_Process())


def stop_processes() -> None:
    """Stop all idle processes."""
    while _idle:
        _idle.pop().stop()


atexit.register(stop_processes)


def solve_mip(
    cost: Floats,
    matrix: sparse.csc_array,
    rows: tuple[Floats, Floats],
    columns: tuple[Floats, Floats],
    integer: Bools,
    gap: float,
    seconds: float,
    settings: tuple[tuple[str, Any], ...] = SMALL_MIP_OPTIONS,
) -> MipResult:
    """Run `highs.solve_mip` in another process.

    Return no solution and no bound where it has not ended GRACE_S after its time limit. Raises what that function raises, and
    SolverError where the process ends otherwise.
    """
    try:
        process = _idle.pop()
    except IndexError:
        process = _Process()
    arguments = (cost, matrix, rows, columns, integer, gap, seconds, settings)
    try:
        found = process.ask(arguments, highs.set_threads(), max(seconds, 0.0) + GRACE_S)
    except BaseException:
        process.stop()
        raise
    if found is None:
        process.stop()
        return MipResult(None, float("-inf"))
    _idle.append(process)
    if isinstance(found, Exception):
        raise found
    if not isinstance(found, MipResult):
        raise SolverError(f"the process that solves small programs answered with {type(found).__name__}")
    return found


def serve() -> None:
    """Solve one program after another from standard input, until it closes. Runs in the child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep prints out of the answers
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        found: Any = True
        while True:
            try:
                pickle.dump(found, answers, pickle.HIGHEST_PROTOCOL)
                answers.flush()
                arguments, threads, end_s = pickle.load(sys.stdin.buffer)
            except (EOFError, BrokenPipeError):
                os._exit(0)  # the parent has ended
            # calls _exit(GIVEN_UP) after end_s, whatever the process is doing
            faulthandler.dump_traceback_later(end_s, exit=True, file=nowhere)
            try:
                highs.set_threads(threads)
                found = highs.solve_mip(*arguments)
            except Exception as error:
                found = error
            faulthandler.cancel_dump_traceback_later()
