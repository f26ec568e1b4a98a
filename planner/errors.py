"""Define the errors of invalid input, a list of places with problem and remedy, of limits, and of a plan that fails its own verification."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catalog.errors import CatalogError, MissingFigure, UnknownName, Wrong, close_names
from catalog.units import UnitError
from planner.escape import terminal
from planner.messages import Message, Said, named, said_of

MOST_CHARACTERS = 2000
"""Of a printed problem."""
MOST_SHOWN = 50
"""Problems of one input, or findings about one plan, that are printed."""
_NUMBER = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)")
_BARE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem in the user's input: `path` is its place, `message` states the error and the expected value."""

    path: str
    message: str

    def __str__(self) -> str:
        path, message = _cut(self.path, MOST_CHARACTERS // 4), _cut(self.message, MOST_CHARACTERS)
        return _cut(terminal(f"{path}: {message}" if path else message), MOST_CHARACTERS)


class SpecError(ValueError):
    """An invalid spec, or invalid data that it names; `problems` lists every place, sorted by path with numbers by value. The first 50 are printed."""

    def __init__(self, problems: Iterable[Issue]):
        self.problems: list[Issue] = sorted(set(problems), key=_place)
        super().__init__("\n".join(cut_list(map(str, self.problems))))

    def __reduce__(self) -> tuple[type[SpecError], tuple[list[Issue]]]:
        """Return what a copy in another process is built from."""
        return type(self), (self.problems,)


class LimitReached(RuntimeError):
    """A limit of time or memory that ended a search before it found anything; the text says which, and how to allow more."""


class BrokenPlanError(RuntimeError):
    """A plan that fails its own verification, which is a bug of ours; `findings` lists its faults."""

    def __init__(self, findings: Iterable[str]):
        self.findings: list[str] = list(findings)
        super().__init__(Message.of("problem.plan_broken", findings="; ".join(cut_list(self.findings))).text())

    def __reduce__(self) -> tuple[type[BrokenPlanError], tuple[list[str]]]:
        """Return what a copy in another process is built from."""
        return type(self), (self.findings,)


def cut_list(found: Iterable[str]) -> list[str]:
    """Return what a terminal shows of problems or findings: the first 50, each of 2,000 characters at most, and how many more there are.

    >>> cut_list(["a"]), len(cut_list("a" * 60)), cut_list("a" * 60)[-1]
    (['a'], 51, 'and 10 more problems; correct these first')
    """
    texts = list(found)
    shown = [_cut(terminal(text), MOST_CHARACTERS) for text in texts[:MOST_SHOWN]]
    if more := len(texts) - len(shown):
        shown.append(Message.of("problem.one_more" if more == 1 else "problem.more", count=more).text())
    return shown


def _place(issue: Issue) -> tuple[list[str | tuple[int, str]], str, str]:
    """Return the key by which problems are sorted: words as they are, numbers by value, so that line 2 stands before line 10."""
    parts: list[str | tuple[int, str]] = list(_NUMBER.split(issue.path))
    for i in range(1, len(parts), 2):
        digits = str(parts[i]).replace(",", "").lstrip("0")
        parts[i] = len(digits), digits
    return parts, issue.path, issue.message


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def path_text(location: Sequence[str | int]) -> str:
    """Format a location: `("workloads", 0, "slo")` becomes `workloads[0].slo`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def words_of(error: Exception) -> str:
    """Return the text of an error that a sentence for users quotes, as a text that keeps its message where there is one."""
    match error:
        case UnknownName(kind=kind, name=name, close=close):
            return Message.of("catalog.unknown_name", kind=kind, name=name, close=close_words(close)).text()
        case MissingFigure(kind=kind, name=name, figure=figure, path=path, example=example, of=other):
            code = "catalog.missing_figure_of_other" if other else "catalog.missing_figure"
            others = {"other": other} if other else {}
            return Message.of(code, kind=kind, name=name, figure=figure, path=path, example=example, **others).text()
        case UnitError(unit=str(unit), example=example, given=given):
            what, number = Message.of(f"quantity.{unit or 'money'}").text(), given.strip('"')
            if unit == "s" and _BARE.fullmatch(number):
                told = {"what": what, "example": example, "given": given, "number": number}
                return Message.of("spec.time_without_unit", **told).text()
            return Message.of("spec.not_a_quantity", what=what, example=example, given=given).text()
    text = error.args[0] if len(error.args) == 1 else None
    return said_of(text) if isinstance(text, Said | Wrong) else str(error)


def issues_of(error: CatalogError) -> list[Issue]:
    """List the faults of records that the user states."""
    return [Issue(path, said_of(message)) for path, message in error.problems]


def unknown_record(error: UnknownName) -> str:
    """Say that the catalog has no record of a name, and where all are listed."""
    what, close = named("record", error.kind.removesuffix("s")), close_words(error.close)
    return Message.of("catalog.unknown_record", what=what, name=error.name, close=close, kind=error.kind).text()


def close_words(close: Sequence[str]) -> str:
    """List close names as the end of a message; empty if there are none."""
    names = ", ".join(f'"{name}"' for name in close)
    return Message.of("catalog.close_names", names=names).text() if close else ""


def close_matches(name: str, known: Iterable[str]) -> str:
    """List names close to `name` as the end of a message; empty if there are none."""
    return close_words(close_names(name, known))
