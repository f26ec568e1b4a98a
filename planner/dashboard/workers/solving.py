"""Solve in a process of its own: start, poll, cancel. No Streamlit here; the process: `worker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import IO, Any

from planner.dashboard.workers import bounds
from planner.dashboard.workers.wire import heard
from planner.errors import Issue
from planner.plan import Plan

STAGES = ("points", "program", "verify")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a solve: a plan, problems of the spec, or the trace of a bug."""

    plan: Plan | None = None
    findings: tuple[str, ...] = ()
    problems: tuple[Issue, ...] = ()
    trace: str = ""


class Job:
    """One solve under way. Its process ends with it: when cancelled, when garbage-collected, or when the server exits."""

    def __init__(self, document: dict[str, Any], plan: Plan | None = None):
        """Start to solve a spec, or to verify a plan of it that somebody brought.

        Raises SpecError if the server is busy, or the time limit beyond what it allows.
        """
        bounds.check_time_limit(document)
        self.document = document
        self.stage = STAGES[0]
        self.lines: list[str] = []
        self.outcome: Outcome | None = None
        self._began = time.monotonic()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process runs)
        with tempfile.TemporaryFile() as question:
            asked = {"spec": document} if plan is None else {"plan": plan.document}
            question.write(json.dumps(asked).encode())
            question.seek(0)
            self._worker = bounds.started(
                # -P: a folder of the user must not shadow our packages; the path of this process is the right one
                [sys.executable, "-P", "-m", "planner.dashboard.workers.worker", str(os.getpid())],
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                start_new_session=True,  # a solver may start a process of its own, which must end with it
            )
        self._process = self._worker.process
        self._end = weakref.finalize(self, self._worker.end)
        self._messages: deque[bytes] = deque()
        # The thread must not refer to the job, or the job would never be collected.
        self._reader = threading.Thread(target=_read, args=(self._process.stdout, self._messages), daemon=True)
        self._reader.start()

    @property
    def seconds(self) -> float:
        """Return the time since the start [s]."""
        return time.monotonic() - self._began

    def poll(self) -> Outcome | None:
        """Read the new messages of the process, and return the outcome once there is one.

        A job that is not polled for `bounds.HEARTBEAT_S` is ended: its page is gone.
        """
        self._worker.asked = time.monotonic()
        ended = not self._reader.is_alive()  # asked first, so that no message before the end is missed
        while self._messages:
            self._take(heard(self._messages.popleft()))
        if ended and self.outcome is None:
            code = self._process.wait()
            self._errors.seek(0)
            trace = self._errors.read().decode(errors="replace").strip()
            if self._worker.reason:
                self.outcome = Outcome(problems=(Issue("server", self._worker.reason),))
            elif code == bounds.OUT_OF_MEMORY:
                self.outcome = Outcome(problems=(Issue("server", bounds.NO_MEMORY),))
            else:
                self.outcome = Outcome(trace=trace or f"exit code {code}")
        return self.outcome

    def cancel(self) -> None:
        """End the process at once."""
        self._end()

    def _take(self, message: dict[str, Any]) -> None:
        if "say" in message:
            self.stage = STAGES[1]
            self.lines.append(message["say"])
        elif "stage" in message:
            self.stage = message["stage"]
        elif "problems" in message:
            self.outcome = Outcome(problems=tuple(Issue(*pair) for pair in message["problems"]))
        else:
            self.outcome = Outcome(plan=Plan(message["plan"]), findings=tuple(message["findings"]))


def _read(stream: IO[bytes], messages: deque[bytes]) -> None:
    with stream:
        messages.extend(stream)
