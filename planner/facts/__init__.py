"""Compare what was stated or predicted with known figures: one rule a function, one source a rule.

Rules take plain numbers and records of the catalog and import no model, so that they share no code with what they check. Whoever holds
the figures (the resolver, `estimate`, `calibrate`, `validate`, `verify`) calls them and decides where the sentence stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from planner.errors import Issue
from planner.messages import Message


@dataclass(frozen=True, slots=True, order=True)
class Fact:
    """A statement that is at odds with known figures, or an echo of how it was understood; `path` is its place in the input.

    `source` names where the known figure comes from; empty for an echo. `refuses`: no answer can be right, so none is given.
    """

    path: str
    message: Message
    source: str = ""
    refuses: bool = False

    @property
    def is_echo(self) -> bool:
        """Whether it contradicts nothing, and only tells how an input was understood."""
        return not self.source

    def problem(self) -> Issue:
        """Return a fact that refuses as a problem of the input."""
        return Issue(self.path, Message.of("fact.refused", sentence=self.message.text(), source=self.source).text())

    def row(self) -> dict[str, Any]:
        """Return the fact as a plan or an estimate stores it under `notes`."""
        return {"path": self.path, **self.message.row(), "source": self.source}


def rows(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Return the rows of the facts that do not refuse, sorted by place, each once."""
    return [fact.row() for fact in sorted(set(facts)) if not fact.refuses]
