"""What a server lets its visitors' solves take: how many at once, memory, time, and for how long nobody asks for one. No Streamlit here."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from catalog.units import UnitError, parse, show
from planner.errors import Issue, SpecError
from planner.messages import Message

MINUTE_S = 60.0
MOST_SOLVES = 2
MOST_BYTES = 2 * 2**30
"""Memory of a solve: what its process may write (RLIMIT_DATA)."""
MOST_LIMIT_S = 300.0
"""Largest time limit of a spec."""
MOST_WALL_S = MOST_LIMIT_S + 60
"""After which a solve is ended, whatever it does."""
HEARTBEAT_S = 30.0
"""After which a solve is ended that no page has asked for: its tab was closed."""
MOST_KEPT_BYTES = 3 * 2**29
"""Memory of a spec that is kept for what-if questions."""
KEPT_HEARTBEAT_S = 90.0
"""The same for a kept spec: a browser lets a page in the background look once a minute."""
MOST_ANSWER_S = 120.0
"""After which a what-if question is ended; the first solve has as long as any."""
MOST_STUDIES = 1
"""Processes of studies at once, so that one is left for solves and questions."""
MOST_WAITING = 8
"""Studies that may wait."""
MOST_STUDY_S = 600.0
"""After which a study is ended; what it found until then stays."""
MOST_KEPT_S = 3600.0
"""After which a kept spec is ended; who still looks at it starts another."""
WATCH_S = 0.5

OUT_OF_MEMORY = 12  # exit code of a worker whose memory was not enough

BUSY = Message.of("dashboard.too_many_solves", count=MOST_SOLVES).text()
FORGOTTEN = Message.of("dashboard.solve_without_page").text()
OVERDUE = Message.of("dashboard.solve_out_of_time", seconds=f"{MOST_WALL_S:.0f}").text()
STUDY_OVERDUE = Message.of("dashboard.study_out_of_time", seconds=f"{MOST_STUDY_S:.0f}").text()
WAITING = Message.of("dashboard.too_many_studies", count=MOST_WAITING).text()
NO_MEMORY = Message.of("dashboard.solve_out_of_memory", size=f"{MOST_BYTES / 2**30:.0f}").text()
NO_KEPT_MEMORY = Message.of("dashboard.kept_spec_out_of_memory", size=f"{MOST_KEPT_BYTES / 2**30:g}").text()
ROOM = Message.of("dashboard.ended_for_another").text()
AGED = Message.of("dashboard.kept_aged", minutes=round(MOST_KEPT_S / MINUTE_S)).text()
MAY_RESTART = frozenset({FORGOTTEN, ROOM, AGED})
"""Reasons for which a process was ended that say nothing of its spec: whoever asks again gets another process."""


class Worker:
    """A process under way, with when it was begun and last asked for, and why it was ended."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process
        self.begun = self.asked = time.monotonic()
        self.reason = ""
        self.heartbeat_s = HEARTBEAT_S
        self.is_idle: Callable[[], bool] | None = None
        """Tells whether a kept process may make room; None for a solve."""
        self.busy_since: float | None = self.begun
        self.most_s: float | None = None
        """Of a study, which has longer than a solve."""

    def overdue(self, now: float) -> str:
        """Say why the process has to end; empty if it may go on."""
        if now - self.asked > self.heartbeat_s:
            return FORGOTTEN
        if self.most_s is not None:
            return STUDY_OVERDUE if now - self.begun > self.most_s else ""
        longest = MOST_WALL_S if self.is_idle is None or self.busy_since == self.begun else MOST_ANSWER_S
        if self.busy_since is not None and now - self.busy_since > longest:
            return OVERDUE
        return AGED if now - self.begun > MOST_KEPT_S else ""

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
        words = Message.of("dashboard.time_limit_of_server", time=show(MOST_LIMIT_S, "s")).text()
        raise SpecError([Issue("solver.time_limit", words)])


def started(*arguments: Any, **options: Any) -> Worker:
    """Start a process (as `subprocess.Popen` does) and watch it. Raises SpecError if as many are under way as the server allows."""
    with _LOCK:
        for worker in [worker for worker in _UNDER_WAY if worker.process.poll() is not None]:
            _UNDER_WAY.discard(worker)
        if len(_UNDER_WAY) >= MOST_SOLVES:
            _make_room()
        if len(_UNDER_WAY) >= MOST_SOLVES:
            raise SpecError([Issue("server", BUSY)])
        worker = Worker(subprocess.Popen(*arguments, **options))
        _UNDER_WAY.add(worker)
        if not _WATCHING or not _WATCHING[0].is_alive():
            _WATCHING[:] = [threading.Thread(target=_watch, name="watch of solves", daemon=True)]
            _WATCHING[0].start()
    return worker


def _make_room() -> None:
    """End the kept process that has answered all and was looked at longest ago, if there is one."""
    idle = [worker for worker in _UNDER_WAY if worker.is_idle is not None and worker.is_idle()]
    if idle:
        min(idle, key=lambda worker: worker.asked).end(ROOM)


def _watch() -> None:
    """End processes that nobody asks for, or that take too long."""
    while True:
        time.sleep(WATCH_S)
        now = time.monotonic()
        with _LOCK:
            every = list(_UNDER_WAY)
        for worker in every:
            if reason := worker.overdue(now):
                worker.end(reason)
