"""Run studies of specs in processes of their own, one after the other, and keep what they found. No Streamlit here; the process: `study_worker`.

A study is known by its kind, its spec and its options: visitors who ask the same share it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Mapping
from typing import IO, Any

from planner.dashboard.state.digest import digest
from planner.dashboard.workers import bounds
from planner.dashboard.workers.wire import heard
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan

MOST_KEPT = 24  # studies whose findings are kept
FRONTIER, SENSITIVITY, ALTERNATIVES, LADDER, SHARING, MEASURE, CALIBRATE = (
    "frontier",
    "sensitivity",
    "alternatives",
    "ladder",
    "sharing",
    "measure",
    "calibrate",
)


class Study:
    """A question that takes many solves: it waits, runs, and has ended; findings come while it runs."""

    def __init__(self, owner: str, kind: str, asked: Mapping[str, Any]):
        self.owner, self.kind = owner, kind
        self.found: dict[str, Any] | None = None
        self._plans: dict[str, bytes] = {}
        self.problems: tuple[Issue, ...] = ()
        self.trace = ""
        self.has_ended = False
        self.version = 0
        """Grows with every finding, so that a page knows when to draw."""
        self.asked_s = self.begun_s = time.monotonic()
        self._asked: Mapping[str, Any] | None = asked
        self._worker: bounds.Worker | None = None
        self._errors: IO[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether its process is at work."""
        return self._worker is not None and not self.has_ended

    @property
    def pid(self) -> int | None:
        """Return the number of its process, if there is one."""
        return self._worker.process.pid if self._worker is not None else None

    @property
    def seconds(self) -> float:
        """Return the time since it was started, or began to wait [s]."""
        return time.monotonic() - self.begun_s

    @property
    def keys(self) -> list[str]:
        """List the keys of the plans that were found."""
        return list(self._plans)

    def plan(self, key: str | None) -> Plan | None:
        """Return a plan that was found; None if there is none of that key."""
        packed = self._plans.get(key) if key is not None else None  # packed, for a plan takes megabytes
        return Plan(json.loads(zlib.decompress(packed))) if packed is not None else None

    def touch(self) -> None:
        """Say that a page looks at it still, and start the first that waits if there is room."""
        self.asked_s = time.monotonic()
        if self._worker is not None:
            self._worker.asked = self.asked_s
        _advance()

    def before(self) -> int:
        """Count the studies that come before it, the one at work included; 0 for one that has no other before it."""
        with _LOCK:
            return _QUEUE.index(self) + sum(each.is_running for each in _STUDIES.values()) if self in _QUEUE else 0

    def cancel(self) -> None:
        """End it; what was found stays."""
        with _LOCK:
            if self in _QUEUE:
                _QUEUE.remove(self)
            if self._worker is None:
                self._end()
        if self._worker is not None:
            self._worker.end()

    def start(self) -> None:
        """Start its process. Raises SpecError if the server is busy."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process runs)
        with tempfile.TemporaryFile() as question:
            question.write(json.dumps(self._asked).encode())
            question.seek(0)
            self._worker = bounds.started(
                [sys.executable, "-P", "-m", "planner.dashboard.workers.study_worker", str(os.getpid())],
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                start_new_session=True,
            )
        self._errors, self._asked = errors, None
        self._worker.heartbeat_s, self._worker.most_s = bounds.KEPT_HEARTBEAT_S, bounds.MOST_STUDY_S
        self._worker.asked, self.begun_s = self.asked_s, time.monotonic()
        threading.Thread(target=self._read, args=(self._worker.process.stdout,), daemon=True).start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                with _LOCK:
                    self._take(heard(line))
        assert self._worker is not None
        self._worker.process.wait()
        with _LOCK:
            self._end()
        _advance()

    def _take(self, message: dict[str, Any]) -> None:
        if "plan" in message:
            self._plans[message["key"]] = zlib.compress(json.dumps(message["plan"]).encode(), 1)
            return
        if "found" in message:
            self.found = message["found"]
        elif "problems" in message:
            self.problems = tuple(Issue(*pair) for pair in message["problems"])
        self.version += 1

    def _end(self) -> None:
        """Note the end, and its reason where the process did not come to its own end."""
        self.has_ended = True
        self.version += 1
        if self._worker is None or self._errors is None or self._worker.process.returncode == 0:
            return
        self._errors.seek(0)
        trace = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        if self._worker.process.returncode == bounds.OUT_OF_MEMORY:
            self.problems = (Issue("server", bounds.NO_MEMORY),)
        elif self._worker.reason:
            self.problems = (Issue("server", self._worker.reason),)
        elif self._worker.process.returncode > 0:  # not ended by us
            self.trace = trace or f"exit code {self._worker.process.returncode}"
            print(self.trace, file=sys.stderr, flush=True)


_STUDIES: dict[str, Study] = {}
_QUEUE: list[Study] = []
_LOCK = threading.RLock()


def known(kind: str, document: Mapping[str, Any], options: Mapping[str, Any], plan: Plan | None = None) -> Study | None:
    """Return the study that was asked before, waiting, running or ended; None if there is none."""
    return _STUDIES.get(_key(kind, document, options, plan))


def begin(
    owner: str, kind: str, document: Mapping[str, Any], options: Mapping[str, Any], plan: Plan | None = None
) -> Study:
    """Queue a study, in place of one that has ended; one of the same owner and kind that waits still is dropped.

    Raises SpecError for a robust spec, for a time limit beyond what the server allows, and where too many wait.
    """
    bounds.check_time_limit(document)
    if document.get("robust") and kind not in (MEASURE, CALIBRATE):
        words = Message.of("dashboard.no_study_of_robust").text()
        raise SpecError([Issue("robust", words)])
    key = _key(kind, document, options, plan)
    asked = {"kind": kind, "spec": document, "options": options}
    if plan is not None:
        asked["plan"] = plan.document
    with _LOCK:
        found = _STUDIES.get(key)
        if found is not None and not found.has_ended:
            return found
        for old in [old for old in _QUEUE if (old.owner, old.kind) == (owner, kind)]:
            old.cancel()
        if len(_QUEUE) >= bounds.MOST_WAITING:
            raise SpecError([Issue("server", bounds.WAITING)])
        _STUDIES.pop(key, None)
        study = _STUDIES[key] = Study(owner, kind, asked)
        _QUEUE.append(study)
        for old_key in [name for name, each in _STUDIES.items() if each.has_ended][: max(len(_STUDIES) - MOST_KEPT, 0)]:
            del _STUDIES[old_key]
    study.touch()
    return study


def under_way(owner: str) -> list[Study]:
    """List the studies of a visitor that wait or run."""
    return [study for study in list(_STUDIES.values()) if study.owner == owner and not study.has_ended]


def _key(kind: str, document: Mapping[str, Any], options: Mapping[str, Any], plan: Plan | None) -> str:
    return digest([kind, document, options, digest(plan.document) if plan is not None else None])


def _advance() -> None:
    """Start what waits, as far as the server allows; what nobody looks at any more is dropped."""
    with _LOCK:
        now = time.monotonic()
        for study in [study for study in _QUEUE if now - study.asked_s > bounds.KEPT_HEARTBEAT_S]:
            study.cancel()
            study.problems = (Issue("server", bounds.FORGOTTEN),)
        while _QUEUE and sum(study.is_running for study in _STUDIES.values()) < bounds.MOST_STUDIES:
            try:
                _QUEUE[0].start()
            except SpecError:  # two processes are at work: the next look tries again
                return
            _QUEUE.pop(0)
