"""One error type for everything a user can mend: a list of places with what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catalog.errors import close_names, did_you_mean


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """`path` is the place in the user's input, `message` says what is wrong and what would be right."""

    path: str
    message: str

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
        )  # one line, whatever was quoted


class SpecError(ValueError):
    """The spec (or data it names) is invalid; `problems` holds every place at once, sorted by path."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems: list[Problem] = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


def path_text(location: Sequence[str | int]) -> str:
    """`("workloads", 0, "slo")` as `workloads[0].slo`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def close_matches(name: str, known: Iterable[str]) -> str:
    """Tail of a message that lists names close to `name`, or nothing."""
    return did_you_mean(close_names(name, known))
