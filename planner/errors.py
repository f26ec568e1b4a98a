"""Define the errors of invalid input, a list of places with problem and remedy, and of a plan that fails its own verification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catalog.errors import close_names, did_you_mean
from planner.escape import terminal


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem in the user's input: `path` is its place, `message` states the error and the expected value."""

    path: str
    message: str

    def __str__(self) -> str:
        return terminal(f"{self.path}: {self.message}" if self.path else self.message)


class SpecError(ValueError):
    """An invalid spec, or invalid data that it names; `problems` lists every place, sorted by path."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems: list[Problem] = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


class BrokenPlanError(RuntimeError):
    """A plan that fails its own verification, which is a bug of ours; `findings` lists what is wrong with it."""

    def __init__(self, findings: Iterable[str]):
        self.findings: list[str] = list(findings)
        super().__init__("the plan fails its own verification: " + "; ".join(self.findings))


def path_text(location: Sequence[str | int]) -> str:
    """Format a location: `("workloads", 0, "slo")` becomes `workloads[0].slo`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def close_matches(name: str, known: Iterable[str]) -> str:
    """List names close to `name` as the end of a message; empty if there are none."""
    return did_you_mean(close_names(name, known))
