"""What a server lets its visitors' solves take: how many at once, memory, time, and for how long nobody asks for one. No Streamlit here."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

from catalog.units import UnitError, parse, show
from planner.errors import Problem, SpecError

MOST_SOLVES = 2
MOST_BYTES = 2 * 2**30
"""Memory of a solve: what its process may write (RLIMIT_DATA)."""
MOST_LIMIT_S = 300.0
"""Largest time limit of a spec."""
MOST_WALL_S = MOST_LIMIT_S + 60
"""After which a solve is ended, whatever it does."""
HEARTBEAT_S = 30.0
"""After which a solve is ended that no page has asked for: its tab was closed."""
WATCH_S = 0.5

OUT_OF_MEMORY = 12  # exit code of a worker whose memory was not enough

BUSY = f"the server has {MOST_SOLVES} solves under way already; wait for one to end, then solve again"
FORGOTTEN = f"the solve was ended: the page did not ask for it for {HEARTBEAT_S:.0f} s; solve again"
OVERDUE = f"the solve was ended after {MOST_WALL_S:.0f} s; ask of less, or use the command line"
NO_MEMORY = (
    f"out of memory: a solve of this server has {MOST_BYTES / 2**30:.0f} GiB; ask of less, or use the command line"
)


class Worker:
    """A process under way, with when it was begun and last asked for, and why it was ended."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process
        self.begun = self.asked = time.monotonic()
        self.reason = ""

    def end(self, reason: str = "") -> None:
        """End the process with its whole group."""
        if self.process.poll() is None:
            self.reason = reason
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()
        with _LOCK:
            _UNDER_WAY.discard(self)


_LOCK = threading.RLock()  # a job may be collected, and so ended, while its own thread holds it
_UNDER_WAY: set[Worker] = set()
_WATCHING: list[threading.Thread] = []


def check_time_limit(document: Mapping[str, Any]) -> None:
    """Raise SpecError for a time limit beyond what the server allows; one that cannot be read is a problem of the spec."""
    options = document.get("solver") if isinstance(document, Mapping) else None
    stated = options.get("time_limit") if isinstance(options, Mapping) else None
    try:
        seconds = parse(stated, "s") if isinstance(stated, str) else 0.0
    except UnitError:
        return
    if seconds > MOST_LIMIT_S:
        words = f"at most {show(MOST_LIMIT_S, 's')} on this server; the command line takes more"
        raise SpecError([Problem("solver.time_limit", words)])


def started(*arguments: Any, **options: Any) -> Worker:
    """Start a process (as `subprocess.Popen` does) and watch it. Raises SpecError if as many are under way as the server allows."""
    with _LOCK:
        for worker in [worker for worker in _UNDER_WAY if worker.process.poll() is not None]:
            _UNDER_WAY.discard(worker)
        if len(_UNDER_WAY) >= MOST_SOLVES:
            raise SpecError([Problem("server", BUSY)])
        worker = Worker(subprocess.Popen(*arguments, **options))
        _UNDER_WAY.add(worker)
        if not _WATCHING or not _WATCHING[0].is_alive():
            _WATCHING[:] = [threading.Thread(target=_watch, name="watch of solves", daemon=True)]
            _WATCHING[0].start()
    return worker


def _watch() -> None:
    """End processes that nobody asks for, or that take too long."""
    while True:
        time.sleep(WATCH_S)
        now = time.monotonic()
        with _LOCK:
            every = list(_UNDER_WAY)
        for worker in every:
            if now - worker.asked > HEARTBEAT_S:
                worker.end(FORGOTTEN)
            elif now - worker.begun > MOST_WALL_S:
                worker.end(OVERDUE)
