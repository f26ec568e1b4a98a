"""Answer many specs, one per line, in parallel: one line of JSON for each, appended as soon as it is finished.

A batch that was interrupted can be resumed: lines that the output already holds are not done again.
Not here: how one spec is answered (`planner.pipeline`).
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import Problem, SpecError
from planner.exit_codes import BUG, EXIT_BY_STATUS, INTERRUPTED, INVALID, OK, WORST_FIRST
from planner.pipeline import solve_document
from planner.solving.answer import Progress
from planner.spec.document import changed, read_document
from planner.spec.series import with_series

INVALID_LINE, DUPLICATE, FAILED = "invalid", "duplicate", "bug"  # statuses of lines without a plan
EXIT_BY_LINE = {**EXIT_BY_STATUS, INVALID_LINE: INVALID, DUPLICATE: INVALID, FAILED: BUG}
RECORD_START = b'{"id": '
SAFE_PATH = "PYTHONSAFEPATH"  # the variable of Python's option -P, inherited by processes
ORPHANED_S = 1  # how soon a worker notices that its parent was killed

Write = Callable[[str], None]
Key = tuple[str, bool]  # an id, and whether the line only repeats it


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: a document to answer or, with a `status`, an error."""

    number: int
    id: str | int
    document: dict[str, Any] = field(default_factory=dict)
    status: str = ""
    error: str = ""

    @property
    def key(self) -> Key:
        """Return the id as JSON, and whether the line repeats it."""
        return json.dumps(self.id), self.status == DUPLICATE


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the command line that apply to every spec."""

    assignments: tuple[str, ...] = ()
    solver: Mapping[str, Any] = field(default_factory=dict)
    overlays: tuple[Path, ...] = ()
    hourly: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a line; `record` is the line of the output."""

    line: Line
    status: str
    error: str
    seconds: float
    record: str


# -- input and output --------------------------------------------------------------------------------------------------


def read_lines(data: bytes) -> list[Line]:
    """Read every line that is not blank. Line numbers start at 1 and are the ids of lines without one."""
    lines: list[Line] = []
    first: dict[Key, int] = {}
    for number, text in enumerate(data.split(b"\n"), start=1):
        if not text.strip():
            continue
        line = _read_line(number, text)
        taken = first.setdefault(line.key, number)
        if taken != number:
            error = f"id: {json.dumps(line.id)} is the id of line {taken} already; give line {number} one of its own"
            line = Line(number, line.id, status=DUPLICATE, error=error)
        lines.append(line)
    return lines


def _read_line(number: int, text: bytes) -> Line:
    try:
        document = read_document(text)
        name = document.get("id")
        if isinstance(name, bool) or not isinstance(name, str | int | None):
            raise SpecError([Problem("id", f"expected a text or a whole number, got {json.dumps(name)}")])
    except SpecError as error:
        return Line(number, number, status=INVALID_LINE, error=str(error))
    return Line(number, number if name is None else name, document)


def resume(output: Path) -> tuple[Counter[Key], set[str]]:
    """Read an output after dropping its torn last line: count each id, and collect the statuses.

    Raises SpecError, and leaves the file unchanged, if it is not the output of a batch.
    """
    complete, newline, torn = output.read_bytes().rpartition(b"\n")
    done: Counter[Key] = Counter()
    statuses: set[str] = set()
    for number, text in enumerate(complete.split(b"\n") if newline else (), start=1):
        try:
            record = json.loads(text)
            name, status = record["id"], record["status"]
            known = isinstance(name, str | int) and status in EXIT_BY_LINE
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise SpecError(
                [
                    Problem(
                        f"{output} line {number}", "is not a line of a batch's output; name another file under --output"
                    )
                ]
            )
        done[json.dumps(name), status == DUPLICATE] += 1
        statuses.add(status)
    if not (torn.startswith(RECORD_START) or RECORD_START.startswith(torn)):
        raise SpecError([Problem(str(output), "does not end like a batch's output; name another file under --output")])
    if torn:
        with output.open("r+b") as file:
            file.truncate(len(complete) + len(newline))
    return done, statuses


def left_over(lines: Iterable[Line], done: Counter[Key]) -> list[Line]:
    """List the lines that are not done. Lines that repeat an id count as done as often as the output holds it."""
    done = Counter(done)
    left = []
    for line in lines:
        if done[line.key]:
            done[line.key] -= 1
        else:
            left.append(line)
    return left


def exit_code(statuses: Iterable[str]) -> int:
    """Return the worst exit code among the lines."""
    met = {EXIT_BY_LINE[status] for status in statuses}
    return next((code for code in WORST_FIRST if code in met), OK)


# -- answers -----------------------------------------------------------------------------------------------------------


def run(lines: Sequence[Line], write: Write, *, jobs: int, settings: Settings, progress: Progress) -> set[str]:
    """Answer the lines in `jobs` processes, `write` each record when it is finished, and return the statuses."""
    statuses: set[str] = set()
    with closing(_answers(lines, jobs, settings)) as answers:  # stops the workers too, when interrupted
        for done, found in enumerate(answers, start=1):
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
    except Exception as error:  # a bug in one line must not stop the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _without_plan(
            line, FAILED, f"{type(error).__name__}: {error} (line {place.lineno} of {Path(place.filename).name})", began
        )


def _solved(line: Line, settings: Settings, began: float) -> Answer:
    from planner.verify.plan import verify_plan

    document = with_series(changed(line.document, settings.assignments, settings.solver), settings.hourly)
    plan = solve_document(document, overlays=settings.overlays, threads=1)  # the lines share the processors
    if broken := verify_plan(plan, overlays=settings.overlays):
        return _without_plan(line, FAILED, "the plan fails its own verification: " + "; ".join(map(str, broken)), began)
    return _answer(line, plan.status, "", {"plan": plan.document}, began)


def _without_plan(line: Line, status: str, error: str, began: float) -> Answer:
    return _answer(line, status, error, {"error": error}, began)


def _answer(line: Line, status: str, error: str, content: Mapping[str, Any], began: float) -> Answer:
    seconds = round(time.perf_counter() - began, 4)
    record = json.dumps({"id": line.id, "status": status, **content, "seconds": seconds}, allow_nan=False) + "\n"
    return Answer(line, status, error, seconds, record)


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


def _answers(lines: Sequence[Line], jobs: int, settings: Settings) -> Generator[Answer, None, None]:
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

    def answers(some: Iterable[Line]) -> Iterator[Answer]:
        # one line per task, or an answer would wait for its neighbours
        for found in Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(calls(some)):
            del flying[found.line.number]
            yield found

    waiting = iter(lines)
    while True:
        try:
            yield from answers(waiting)
            return
        except TerminatedWorkerError:
            for line in list(flying.values()):
                began = time.perf_counter()
                try:
                    yield from answers([line])
                except TerminatedWorkerError:
                    del flying[line.number]
                    yield _without_plan(line, FAILED, "its process died twice, perhaps for lack of memory", began)
