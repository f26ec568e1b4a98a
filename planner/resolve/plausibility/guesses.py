"""Book the guesses of a spec or a case among the assumptions of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from planner.facts import Fact
from planner.messages import Message
from planner.problem.provenance import Assumption
from planner.resolve.ledger import Ledger
from planner.spec.document import path_parts
from planner.spec.model import PlanSpec
from planner.spec.stack.case import Case

_NOTHING = object()


def book_guesses(stated: PlanSpec | Case, ledger: Ledger) -> Iterator[Fact]:
    """Book each guess with its reason and the value that the spec or case has at its path; yield a note on a path where it has none.

    An assumption that is booked at the path already keeps its value and the costs that depend on it, and gets the reason of the guess.
    """
    for path, reason in stated.assumptions.items():
        value = _value_at(stated, path)
        if value is _NOTHING:
            yield Fact(f"assumptions.{path}", Message.of("ways_in.guess_of_nothing"))
            continue
        told = Message.of("ways_in.guess", reason=reason).text()
        booked = ledger.assumptions.get(path)
        ledger.assumptions[path] = (
            Assumption(path, _shown(value), "", told) if booked is None else replace(booked, reason=told)
        )


def _value_at(spec: BaseModel, path: str) -> Any:
    """Return the value at a path of the spec; _NOTHING where there is none."""
    place: Any = spec
    for part in path_parts(path):
        block = place if isinstance(place, BaseModel) else None
        try:
            place = (
                {name: getattr(block, name) for name in type(block).model_fields}[str(part)] if block else place[part]
            )
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return place


def _shown(value: Any) -> float | str:
    """Return a number or a text as it is, a list of texts joined, and no value for a block."""
    if isinstance(value, bool | BaseModel | dict) or value is None:
        return str(value).lower() if isinstance(value, bool) else ""
    if isinstance(value, int | float | str):
        return value
    return ", ".join(str(each) for each in value)
