"""Answer many specs, one per line, in parallel: one line of JSON for each, appended as soon as it is finished.

Not here: how lines are read (`batch_lines`), what an output holds already (`batch_output`), how one spec is answered
(`planner.pipeline`).
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import BrokenPlanError, SpecError
from planner.exit_codes import INTERRUPTED, OK, WORST_FIRST
from planner.messages import Message
from planner.pipeline import solve_document
from planner.solving.standing import Progress
from planner.spec.document import changed
from planner.spec.series import with_series
from planner.studies.batch_lines import EXIT_BY_LINE, FAILED, INVALID_LINE, Line, Settings
from planner.ways_in.named import with_hub_models

SAFE_PATH = "PYTHONSAFEPATH"  # the variable of Python's option -P, inherited by processes
ORPHANED_S = 1  # how soon a worker notices that its parent was killed

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a line; `record` is the line of the output."""

    line: Line
    status: str
    error: str
    seconds: float
    record: str


def exit_code(statuses: Iterable[str]) -> int:
    """Return the worst exit code among the lines."""
    met = {EXIT_BY_LINE[status] for status in statuses}
    return next((code for code in WORST_FIRST if code in met), OK)


def run(lines: Sequence[Line], write: Write, *, jobs: int, settings: Settings, progress: Progress) -> set[str]:
    """Answer the lines in `jobs` processes, `write` each record when it is finished, and return the statuses."""
    statuses: set[str] = set()
    with closing(answers(lines, jobs, settings)) as finished:  # stops the workers too, when interrupted
        for done, found in enumerate(finished, start=1):
            write(found.record)
            statuses.add(found.status)
            reason = f"  {found.error.splitlines()[0]}" if found.error else ""
            progress(f"[{done}/{len(lines)}] {found.line.id}: {found.status} in {found.seconds:.2f} s{reason}")
    return statuses


def answer(line: Line, settings: Settings) -> Answer:
    """Answer one line. Never raises, whatever the line holds."""
    began = time.perf_counter()
    if line.status:
        return _without_plan(line, line.status, line.error, began)
    try:
        return _solved(line, settings, began)
    except SpecError as error:
        return _without_plan(line, INVALID_LINE, str(error), began)
    except BrokenPlanError as error:
        return _without_plan(line, FAILED, str(error), began)
    except Exception as error:  # a bug in one line must not stop the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _without_plan(
            line, FAILED, f"{type(error).__name__}: {error} (line {place.lineno} of {Path(place.filename).name})", began
        )


def _solved(line: Line, settings: Settings, began: float) -> Answer:
    document = with_hub_models(changed(line.document, settings.assignments, settings.solver), settings.overlays)
    document = with_series(document, settings.hourly)
    plan = solve_document(document, overlays=settings.overlays, threads=1)  # the lines share the processors
    return _answer(line, plan.status, "", {"plan": plan.document}, began)


def _without_plan(line: Line, status: str, error: str, began: float) -> Answer:
    return _answer(line, status, error, {"error": error}, began)


def _answer(line: Line, status: str, error: str, content: Mapping[str, Any], began: float) -> Answer:
    seconds = round(time.perf_counter() - began, 4)
    record = json.dumps(
        {"id": line.id, "status": status, "digest": line.digest, **content, "seconds": seconds}, allow_nan=False
    )
    return Answer(line, status, error, seconds, record + "\n")


def _answer_in_worker(line: Line, settings: Settings, parent: int) -> Answer:
    """Answer one line in a worker process."""
    _prepare_worker(parent)
    return answer(line, settings)


@cache
def _prepare_worker(parent: int) -> None:
    """Prepare a worker, once: ignore interrupts, which the parent handles, and exit when the parent has died."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHANED_S)
        os._exit(INTERRUPTED)

    threading.Thread(target=watch, daemon=True).start()


def answers(lines: Sequence[Line], jobs: int, settings: Settings) -> Generator[Answer, None, None]:
    """Yield answers as they finish. If a worker dies, the lines in flight are tried again, one at a time."""
    if jobs == 1:
        yield from (answer(line, settings) for line in lines)
        return
    with _safe_path():
        yield from _answers_of_workers(lines, jobs, settings)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start processes without the current folder on their path: loky's begin with `python -m joblib...`, its helper with `-c`."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def _answers_of_workers(lines: Sequence[Line], jobs: int, settings: Settings) -> Generator[Answer, None, None]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    flying: dict[int, Line] = {}

    def calls(some: Iterable[Line]) -> Iterator[Any]:
        for line in some:
            flying[line.number] = line
            yield delayed(_answer_in_worker)(line, settings, os.getpid())

    def answered(some: Iterable[Line]) -> Iterator[Answer]:
        # one line per task, or an answer would wait for its neighbours
        for found in Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(calls(some)):
            del flying[found.line.number]
            yield found

    waiting = iter(lines)
    while True:
        try:
            yield from answered(waiting)
            return
        except TerminatedWorkerError:
            for line in list(flying.values()):
                began = time.perf_counter()
                try:
                    yield from answered([line])
                except TerminatedWorkerError:
                    del flying[line.number]
                    yield _without_plan(line, FAILED, Message.of("studies.process_died").text(), began)
