"""Findings of a check, and the comparisons that produce them. The checks: `planner.verify.plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.messages import Argument, Message, Said, with_codes

RELATIVE_TOL = 1e-6  # closed forms on another machine, limits that a solver met to its own tolerance
ROUNDING_TOL = 1e-11  # sums and products of the plan's own numbers

UNREADABLE = (KeyError, TypeError, IndexError, ValueError, AttributeError, ArithmeticError)
"""Errors of reading rows that do not fit together."""


def words_of(error: Exception) -> str:
    """Write an error of reading: its own words, or its kind with what was looked for."""
    if error.args and isinstance(error.args[0], Said):
        return error.args[0]
    said = f"{error.args[0]}" if error.args else ""
    return said if " " in said else f"{type(error).__name__} {said}".strip()


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in the plan, with its place."""

    path: str
    message: str

    def row(self) -> dict[str, Any]:
        """Return place and text, with the code and the arguments beside the text."""
        return with_codes({"path": self.path, "text": self.message}, "text")

    def __str__(self) -> str:
        return Message.of("verify.at", path=self.path, found=self.message).text()


class Report:
    """Collect findings."""

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def say(self, path: str, code: str, /, **arguments: Argument) -> None:
        """Record a finding by the code and the arguments of its message."""
        self.tell(path, Message.of(code, **arguments).text())

    def tell(self, path: str, message: str) -> None:
        """Record a finding that is a text of a message already."""
        self.found.append(Finding(path, message))

    def equal(self, path: str, stated: Any, computed: Any, tolerance: float = ROUNDING_TOL) -> None:
        """Compare nested values: numbers within a relative tolerance, everything else exactly."""
        if isinstance(computed, Mapping) and isinstance(stated, Mapping):
            for key in sorted({*stated, *computed}):
                self.equal(f"{path}.{key}", stated.get(key), computed.get(key), tolerance)
        elif isinstance(computed, list) and isinstance(stated, list) and len(stated) == len(computed):
            for i, (one, other) in enumerate(zip(stated, computed, strict=True)):
                self.equal(f"{path}[{i}]", one, other, tolerance)
        elif isinstance(computed, (int, float)) and not isinstance(computed, bool):
            if not close(stated, computed, tolerance):
                self.say(path, "verify.says", given=repr(stated), found=repr(computed))
        elif stated != computed:
            self.say(path, "verify.says", given=repr(stated), found=repr(computed))

    def at_most(self, path: str, used: float, allowed: float, what: str) -> None:
        """Compare a use with its limit, within `RELATIVE_TOL`."""
        if not used <= allowed + RELATIVE_TOL * max(abs(allowed), abs(used)):
            self.say(path, "verify.exceeds", what=what, used=f"{used:.9g}", allowed=f"{allowed:.9g}")


def close(stated: Any, computed: float, tolerance: float = ROUNDING_TOL) -> bool:
    """Test whether `stated` is a number within a relative tolerance of `computed`; a zero must be a zero."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        return False
    return abs(stated - computed) <= tolerance * abs(computed)
