"""Ask on a terminal what a spec needs most, in five questions with an answer each that Enter takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import SpecError
from planner.escape import terminal
from planner.messages import Message
from planner.ways_in.draft import ARCHITECTURE, INPUT, OUTPUT, RATE, REGION, SYSTEMS
from planner.ways_in.stated import demand_of, lengths_of, systems_of

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.library import Given

MOST_TRIES = 3
"""Answers to one question that may be malformed before the questions end."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question by the code of its words, what Enter stands for, and how an answer becomes options of `init`.

    `read` raises SpecError for an answer that it does not understand.
    """

    code: str
    usual: str
    read: Callable[[str, Catalog], dict[str, str | int | float]]


def _demand(text: str, catalog: Catalog) -> dict[str, str | int | float]:
    return {**demand_of(text)}


def _model(text: str, catalog: Catalog) -> dict[str, str | int | float]:
    return {"model": text}


def _lengths(text: str, catalog: Catalog) -> dict[str, str | int | float]:
    lengths_of(text)
    return {"lengths": text}


def _region(text: str, catalog: Catalog) -> dict[str, str | int | float]:
    from catalog.errors import UnknownName
    from planner.errors import Issue, unknown_record
    from planner.ways_in.accelerators import region_called

    if found := region_called(text, catalog):
        return {"region": found}
    try:
        return {"region": catalog.get("regions", text).name}
    except UnknownName as error:
        raise SpecError([Issue("--region", unknown_record(error))]) from None


def _systems(text: str, catalog: Catalog) -> dict[str, str | int | float]:
    systems_of(text, catalog)
    return {"systems": text}


QUESTIONS = (
    Question("ways_in.ask_model", ARCHITECTURE, _model),
    Question("ways_in.ask_demand", f"{RATE:g}/s", _demand),
    Question("ways_in.ask_lengths", f"{INPUT}, {OUTPUT}", _lengths),
    Question("ways_in.ask_region", REGION, _region),
    Question("ways_in.ask_systems", ", ".join(SYSTEMS), _systems),
)


def asked(catalog: Catalog, answer: Callable[[str], str] = input) -> Given:
    """Ask every question on standard error; an empty answer leaves the guess of `init`, marked as one.

    Raises SpecError after `MOST_TRIES` malformed answers to a question, EOFError where the input ends.
    """
    from planner.library import Given

    found: dict[str, str | int | float] = {}
    for question in QUESTIONS:
        words = Message.of(question.code, usual=question.usual).text()
        for tries in range(1, MOST_TRIES + 1):
            print(f"{words} ", end="", file=sys.stderr, flush=True)
            text = answer("").strip()
            try:
                found |= question.read(text, catalog) if text else {}
                break
            except SpecError as error:
                if tries == MOST_TRIES:
                    raise
                print(terminal(str(error)), file=sys.stderr)
    return Given(**found) if found else Given(rate=RATE)  # type: ignore[arg-type]
