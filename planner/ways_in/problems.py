"""Collect the problems of a file, by line and column."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.errors import Issue, SpecError
from planner.messages import Message

MOST_PROBLEMS = 1000
"""Problems after which a file is read no further."""


@dataclass(slots=True)
class FileProblems:
    """The problems of one file, called `name`; they end the reading when there are too many. `parts`: what its problems are counted by."""

    name: str
    found: list[Issue] = field(default_factory=list)
    parts: str = "line"

    def add(self, line: int, code: str, column: int = 0, **arguments: str | int | float) -> None:
        """Add a problem at a line, and column where there is one. Raises SpecError with all of them when there are MOST_PROBLEMS."""
        place = f"{self.name} {self.parts} {line:,}" + (f", column {column:,}" if column else "")
        self.found.append(Issue(place, Message.of(code, **arguments).text()))
        if len(self.found) >= MOST_PROBLEMS:
            self.raise_all()

    def refuse(self, code: str, **arguments: str | int | float) -> SpecError:
        """Return the error of a file that cannot be read at all."""
        return SpecError([Issue(self.name, Message.of(code, **arguments).text())])

    def raise_all(self) -> None:
        """Raise SpecError with every problem, if there is any."""
        if self.found:
            raise SpecError(self.found)
