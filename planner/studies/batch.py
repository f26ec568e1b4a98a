"""Answer many specs, one per line, in parallel: one line of JSON for each, appended as soon as it is finished.

Not here: how lines are read (`batch_lines`), what an output holds already (`batch_output`), how one spec is answered
(`planner.pipeline`).
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from planner.errors import BrokenPlanError, SpecError
from planner.exit_codes import LIMIT, OK, WORST_FIRST
from planner.messages import Message
from planner.pipeline import solve_document
from planner.solving.kept.program import Evaluations, Kept, PointKey
from planner.spec.document import changed
from planner.spec.series import with_series
from planner.studies.batch_lines import EXIT_BY_LINE, FAILED, INVALID_LINE, Line, Settings
from planner.studies.batches.groups import groups, leads_of
from planner.studies.engines import Engine
from planner.studies.engines.calls import Files, files_of, unpacked
from planner.ways_in.named import with_hub_models

Write = Callable[[str], None]
EVALUATIONS = Evaluations()
"""What this process evaluated for lines of one group."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a line; `record` is the line of the output."""

    line: Line
    status: str
    error: str
    seconds: float
    record: str
    used: frozenset[PointKey] = frozenset()
    """Points of the plan of a line that leads others (`planner.studies.batches.groups`)."""

    @property
    def without_plan(self) -> bool:
        """Tell whether the line has no plan: it is infeasible, invalid, or met a bug."""
        return EXIT_BY_LINE[self.status] not in (OK, LIMIT)


Follow = Callable[[int, Answer], None]
"""What is told of each answer: how many there are with it, and itself."""


def exit_code(statuses: Iterable[str]) -> int:
    """Return the worst exit code among the lines."""
    met = {EXIT_BY_LINE[status] for status in statuses}
    return next((code for code in WORST_FIRST if code in met), OK)


def run(
    lines: Sequence[Line], write: Write, *, engine: Engine, settings: Settings, follow: Follow, among: Sequence[Line] | None = None
) -> set[str]:  # fmt: skip
    """Answer the lines on an engine, `write` each record when it is finished and `follow` it, and return the statuses.

    `among`: all lines of the run, where some are answered already.
    """
    statuses: set[str] = set()
    with closing(answers(lines, engine, settings, among)) as finished:  # stops the workers too, when interrupted
        for done, found in enumerate(finished, start=1):
            write(found.record)
            statuses.add(found.status)
            follow(done, found)
    return statuses


def words_of(answer: Answer) -> str:
    """Say how a line was answered, and the first of its errors."""
    reason = f"  {answer.error.splitlines()[0]}" if answer.error else ""
    return f"{answer.line.id}: {answer.status} in {answer.seconds:.2f} s{reason}"


def answer(line: Line, settings: Settings, kept: Kept | None = None) -> Answer:
    """Answer one line, with the evaluations and points `kept` of similar ones. Never raises, whatever the line holds."""
    began = time.perf_counter()
    if line.status:
        return _without_plan(line, line.status, line.error, began)
    try:
        return _solved(line, settings, began, kept)
    except SpecError as error:
        return _without_plan(line, INVALID_LINE, str(error), began)
    except BrokenPlanError as error:
        return _without_plan(line, FAILED, str(error), began)
    except Exception as error:  # a bug in one line must not stop the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        return _without_plan(
            line, FAILED, f"{type(error).__name__}: {error} (line {place.lineno} of {Path(place.filename).name})", began
        )


def _solved(line: Line, settings: Settings, began: float, kept: Kept | None) -> Answer:
    plan = solve_document(
        _asked(line, settings), overlays=settings.overlays, threads=1, kept=kept
    )  # the lines share the processors
    found = _answer(line, plan.status, "", {"plan": plan.document}, began)
    return found if kept is None else replace(found, used=frozenset(kept.used))


def _asked(line: Line, settings: Settings) -> dict[str, Any]:
    """Apply the options to the document of a line, and put in the models and series that it names. Raises SpecError."""
    document = with_hub_models(changed(line.document, settings.assignments, settings.solver), settings.overlays)
    return with_series(document, (*settings.hourly, *line.folders))


def _without_plan(line: Line, status: str, error: str, began: float) -> Answer:
    if line.file:
        error = "\n".join(f"{line.file}: {problem}" for problem in error.splitlines())
    return _answer(line, status, error, {"error": error}, began)


def _answer(line: Line, status: str, error: str, content: Mapping[str, Any], began: float) -> Answer:
    seconds = round(time.perf_counter() - began, 4)
    record = json.dumps(
        {"id": line.id, "status": status, "digest": line.digest, **content, "seconds": seconds}, allow_nan=False
    )
    return Answer(line, status, error, seconds, record + "\n")


@dataclass(frozen=True, slots=True)
class _Item:
    """A line, with the points known of the lines that lead its group; None in a line of no group."""

    line: Line
    known: frozenset[PointKey] | None = None


def answers(
    lines: Sequence[Line], engine: Engine, settings: Settings, among: Sequence[Line] | None = None
) -> Generator[Answer, None, None]:
    """Yield answers as they finish; a line whose workers die again and again is answered by that.

    Lines that differ in numbers alone are answered from one kept program: those that lead first (`planner.studies.batches.groups`),
    chosen `among` all lines of the run and answered again where they are needed and not among `lines`.
    """
    every = lines if among is None else among
    asked, known = {line.number for line in lines}, dict[int, frozenset[PointKey]]()
    families = groups([{str(line.number): ""} if line.status else line.document for line in every])
    needed = [family for family in families if any(every[each].number in asked for each in family)]
    leads = {every[lead].number: family[0] for family in needed for lead in leads_of(family)}
    none: frozenset[PointKey] = frozenset()
    try:
        for found in _finished([_Item(line, none) for line in every if line.number in leads], engine, settings):
            first = leads[found.line.number]
            known[first] = known.get(first, none) | found.used
            if found.line.number in asked:
                yield replace(found, used=none)
        by_number = {every[each].number: known[family[0]] for family in needed for each in family}
        rest = [_Item(line, by_number.get(line.number)) for line in lines if line.number not in leads]
        yield from _finished(rest, engine, settings)
    finally:
        EVALUATIONS.forget()  # those of other processes end with them


def _finished(items: Sequence[_Item], engine: Engine, settings: Settings) -> Generator[Answer, None, None]:
    """Yield answers as they finish."""
    if not items:
        return
    if engine.remote:
        files = files_of(settings.overlays)
        sent = [replace(item, line=_whole(item.line, settings)) for item in items]
        call = partial(_answer_elsewhere, files)
    else:
        sent, call = list(items), partial(_answer_here, settings)
    with closing(engine.map_unordered(call, sent)) as finished:
        for number, found in finished:
            died = Message.of("studies.process_died").text()
            yield found or _without_plan(items[number].line, FAILED, died, time.perf_counter())


def _answer_here(settings: Settings, item: _Item) -> Answer:
    if item.known is None:
        return answer(item.line, settings)
    return answer(item.line, settings, Kept(EVALUATIONS, item.known))


# -- on other machines -------------------------------------------------------------------------------------------------


def _whole(line: Line, settings: Settings) -> Line:
    """Put everything into a line that its answer takes from files and options of this machine, but for the overlays."""
    if line.status:
        return line
    try:
        return replace(line, document=_asked(line, settings), folders=())
    except SpecError as error:
        return replace(line, status=INVALID_LINE, error=str(error))


def _answer_elsewhere(files: Files, item: _Item) -> Answer:
    """Answer a whole line on a machine that has only the overlays' contents."""
    with unpacked(files) as overlays:
        return _answer_here(Settings(overlays=overlays), item)
