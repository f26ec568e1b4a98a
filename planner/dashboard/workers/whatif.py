"""Keep at most two specs solved, each in a process of its own, and queue the changes that visitors ask about. No Streamlit here.

Visitors of one base spec share its process: a question is the base with some changes, whatever was asked before. The process:
`whatif_worker`; what a server allows: `bounds`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from planner.dashboard.state.digest import digest
from planner.dashboard.workers import bounds
from planner.dashboard.workers.wire import heard
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan

MOST_ANSWERS = 24  # kept by a process, so that a slider moved back answers at once


@dataclass(slots=True)
class Question:
    """A change that a visitor asks about, and its answer once there is one."""

    owner: str
    changes: Mapping[str, Any]
    plan: Plan | None = None
    problems: tuple[Issue, ...] = ()
    seconds: float = 0.0
    how: str = ""
    asked_s: float = field(default_factory=time.monotonic)

    @property
    def is_answered(self) -> bool:
        """Tell whether there is a plan, or problems in place of one."""
        return self.plan is not None or bool(self.problems)


class Kept:
    """A spec that stays solved in a process of its own."""

    def __init__(self, document: dict[str, Any]):
        """Start to solve the spec. Raises SpecError if the server is busy."""
        self.base: Plan | None = None
        self.lines: list[str] = []
        self.problems: tuple[Issue, ...] = ()
        self._queue: list[Question] = []
        self._running: Question | None = None
        self._number = 0
        self._answers: dict[str, Question] = {}
        self._lock = threading.RLock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process runs)
        self._worker = bounds.started(
            [sys.executable, "-P", "-m", "planner.dashboard.workers.whatif_worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
            start_new_session=True,
        )
        self._worker.heartbeat_s, self._worker.is_idle = bounds.KEPT_HEARTBEAT_S, self._is_idle
        self._send({"spec": document})
        threading.Thread(target=self._read, args=(self._worker.process.stdout,), daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Tell whether the process runs."""
        return self._worker.process.poll() is None

    @property
    def may_restart(self) -> bool:
        """Tell whether the process has ended for a reason that says nothing of its spec, so that another answers as it would."""
        return not self.is_alive and all(problem.message in bounds.MAY_RESTART for problem in self.problems)

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._worker.process.pid

    @property
    def seconds(self) -> float:
        """Return the time since the start [s]."""
        return time.monotonic() - self._worker.begun

    def ask(self, owner: str, changes: Mapping[str, Any]) -> Question:
        """Queue a question; one of the same owner that waits still is dropped. A question of before is answered at once."""
        with self._lock:
            self.touch()
            known = self._answers.get(digest(dict(changes)))
            if known is not None:
                return known
            self._queue = [question for question in self._queue if question.owner != owner]
            question = Question(owner, dict(changes))
            if not self.is_alive:
                question.problems = self.problems or (Issue("server", bounds.FORGOTTEN),)
                return question
            self._queue.append(question)
            self._next()
            return question

    def position(self, question: Question) -> int:
        """Return how many questions come before one, the one under way included."""
        with self._lock:
            waits = question in self._queue
            return (self._queue.index(question) + (self._running is not None)) if waits else 0

    def awaits(self, question: Question) -> bool:
        """Tell whether a question will be answered: it waits, or is under way."""
        with self._lock:
            return question is self._running or any(question is each for each in self._queue)

    def touch(self) -> None:
        """Say that a page looks at this spec still."""
        self._worker.asked = time.monotonic()

    def end(self) -> None:
        """End the process at once."""
        self._worker.end()

    def _is_idle(self) -> bool:
        """Tell whether the process may make room for another: it has answered all."""
        return self.base is not None and self._running is None and not self._queue

    def _next(self) -> None:
        if self._running is None and self._queue and self.base is not None:
            self._running = self._queue.pop(0)
            self._number += 1
            self._worker.busy_since = time.monotonic()
            self._send({"ask": self._number, "changes": self._running.changes})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._worker.process.stdin is not None
        try:
            self._worker.process.stdin.write(json.dumps(message).encode() + b"\n")
            self._worker.process.stdin.flush()
        except OSError:  # the process has ended; `_read` tells why
            pass

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                with self._lock:
                    self._take(heard(line))
        self._worker.process.wait()
        with self._lock:
            self._ended()

    def _take(self, message: dict[str, Any]) -> None:
        if "say" in message:
            self.lines.append(message["say"])
            return
        if "base" in message:
            self.base = Plan(message["base"])
            self._answers[digest({})] = Question("", {}, self.base)
            self._worker.busy_since = None
        elif "answer" in message and self._running is not None:
            question, self._running = self._running, None
            self._worker.busy_since = None
            question.problems = tuple(Issue(*pair) for pair in message.get("problems", ()))
            if "plan" in message:
                question.seconds, question.how = message["seconds"], message["how"]
                question.plan = Plan(message["plan"])
                self._answers[digest(dict(question.changes))] = question
                while len(self._answers) > MOST_ANSWERS:
                    self._answers.pop(list(self._answers)[1])  # the first is the base
        else:
            self.problems = tuple(Issue(*pair) for pair in message["problems"])
        self._next()

    def _ended(self) -> None:
        """Answer all that wait with the reason for which the process ended."""
        if not self.problems:
            out_of_memory = self._worker.process.returncode == bounds.OUT_OF_MEMORY
            reason = bounds.NO_KEPT_MEMORY if out_of_memory else self._worker.reason or self._trace()
            self.problems = (Issue("server", reason),)
        for question in (self._running, *self._queue):
            if question is not None:
                question.problems = self.problems
        self._running, self._queue = None, []

    def _trace(self) -> str:
        self._errors.seek(0)
        trace = self._errors.read().decode(errors="replace")
        if any(words in trace for words in NATIVE_OUT_OF_MEMORY):
            return bounds.NO_KEPT_MEMORY
        print(trace, file=sys.stderr, flush=True)
        return Message.of("dashboard.whatif_process_ended").text()


NATIVE_OUT_OF_MEMORY = (
    "Memory allocation still failed",
    "bad_alloc",
)  # last words of libraries that end the process themselves
_KEPT: dict[str, Kept] = {}
_LOCK = threading.Lock()


def kept(document: dict[str, Any]) -> Kept:
    """Return the process that keeps a spec, started if there is none or if it was ended for no fault of the spec.

    Raises SpecError if the server is busy.
    """
    if (document.get("robust") or None) is not None:
        words = Message.of("dashboard.robust_plan_not_kept").text()
        raise SpecError([Issue("robust", words)])
    key = digest(document)
    with _LOCK:
        for old in [old for old, each in _KEPT.items() if not each.is_alive and old != key]:
            del _KEPT[old]
        found = _KEPT.get(key)
        if found is None or found.may_restart:
            found = _KEPT[key] = Kept(document)
        found.touch()
        return found


def forget_kept(old: Kept) -> None:
    """Drop a process, such as one that has ended, so that `kept` starts another."""
    with _LOCK:
        for key in [key for key, each in _KEPT.items() if each is old]:
            del _KEPT[key]
    old.end()
