"""Limits of time and memory of a search, for the commands that answer without a spec's own `solver` block.

A search asks before each of its parts whether it may go on. Where it may not, it ends with the best that it has found, and its answer
states what was not tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from catalog.units import GIGA
from planner.errors import LimitReached
from planner.messages import Argument, Message
from solvers.memory import resident_bytes

LOOK_EVERY_S = 0.05  # at least between two looks at the memory

T = TypeVar("T")


@dataclass(slots=True)
class SearchLimits:
    """The end of a search: seconds from now by the wall clock, and bytes of the process. Without any, it goes on to its own end."""

    time_limit_s: float = math.inf
    memory_bytes: float = math.inf
    began_s: float = field(default_factory=time.perf_counter)
    _ended_by: str = ""
    _looked_s: float = -math.inf

    @property
    def left_s(self) -> float:
        """Return the time that is left [s]."""
        return self.began_s + self.time_limit_s - time.perf_counter()

    def ended_by(self) -> str:
        """Return "time" or "memory" once one of them is used up, and from then on; "" before."""
        now = time.perf_counter()
        if not self._ended_by and now >= self.began_s + self.time_limit_s:
            self._ended_by = "time"
        elif not self._ended_by and now >= self._looked_s + LOOK_EVERY_S:
            self._looked_s = now
            self._ended_by = "memory" if resident_bytes() > self.memory_bytes else ""
        return self._ended_by

    def within(self, parts: Iterable[T]) -> Iterator[T]:
        """Yield parts until the time or the memory is used up."""
        for part in parts:
            if self.ended_by():
                return
            yield part

    def check(self) -> None:
        """Raise LimitReached where the time or the memory is used up."""
        if self.ended_by():
            raise LimitReached(Message.of("limits.nothing", reason=self.reason().text()).text())

    def left_out(self, what: str, count: int, all_of_them: int, **more: Argument) -> dict[str, Any]:
        """Document what an answer leaves out: which limit ended the search, and how many of `what` (a code of `limits.*`) were not tried.

        `more`: further arguments of that message.
        """
        if not count:
            return {"ended_by": "search", "not_tried": 0, "not_tried_words": ""}
        words = Message.of(f"limits.{what}", count=count, all=all_of_them, reason=self.reason().text(), **more).text()
        return {"ended_by": self.ended_by(), "not_tried": count, "not_tried_words": words}

    def reason(self, by: str = "") -> Message:
        """Say which limit ended the search, or that it was the one named, and how to allow more."""
        if (by or self.ended_by()) == "memory":
            return Message.of("limits.memory", gigabytes=self.memory_bytes / GIGA)
        return Message.of("limits.time", seconds=self.time_limit_s)
