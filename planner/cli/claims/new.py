"""Ask on a terminal for one claim, question by question, each answer checked before the next."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from planner.audit.answer import Judged, judge
from planner.audit.judges import WAYS
from planner.audit.quantities import parse
from planner.audit.reading import fact_of, free_of, parse_claims, resolved_quantity
from planner.errors import Issue, SpecError
from planner.escape import terminal
from planner.messages import say
from planner.spec.claims import JUDGES, Claim

MOST_TRIES = 3
"""Answers to one question that may be malformed before the questions end."""
SENSES = ("about", "at least", "at most")
OWN_FORMULA = ("arithmetic", "plan")
WITHOUT_FIGURE = ("catalog", "attribution", "qualitative")


def asked(catalog: Catalog, answer: Callable[[str], str] = input) -> tuple[dict[str, Any], Judged]:
    """Ask for a claim and judge it. Raises SpecError after `MOST_TRIES` malformed answers to a question, EOFError where the input ends."""

    def put(code: str, read: Callable[[str], Any], **arguments: str) -> Any:
        for tries in range(1, MOST_TRIES + 1):
            print(f"{terminal(say(code, **arguments))} ", end="", file=sys.stderr, flush=True)
            try:
                return read(answer("").strip())
            except ValueError as error:
                if tries == MOST_TRIES:
                    raise error if isinstance(error, SpecError) else SpecError([Issue("--new", str(error))]) from None
                print(terminal(str(error)), file=sys.stderr)
        raise AssertionError

    document: dict[str, Any] = {
        "id": put("audit.ask_id", _filled),
        "source": {"title": put("audit.ask_title", _filled), "publisher": put("audit.ask_publisher", _filled)},
        "says": put("audit.ask_says", _filled),
        "judge": put("audit.ask_judge", lambda text: _one_of(text, JUDGES), known=", ".join(JUDGES)),
    }
    way = document["judge"]
    if way not in WITHOUT_FIGURE:
        document["figure"] = put("audit.ask_figure", _figure)
        document["sense"] = put("audit.ask_sense", lambda text: _one_of(text or SENSES[0], SENSES), usual=SENSES[0])
    if way == "catalog":
        document["facts"] = _several(lambda: put("audit.ask_fact", lambda text: fact_of(text) if text else None))
    elif way not in WITHOUT_FIGURE:
        _ask_quantities(document, put, catalog)
    (claim,) = parse_claims([("--new", document)], catalog, Path())
    return document, judge([claim]).judged[0]


def _ask_quantities(document: dict[str, Any], put: Callable[..., Any], catalog: Catalog) -> None:
    """Ask for quantities until none follows, for the formula where the judge has none, and for the free quantity."""
    way = WAYS[document["judge"]]
    quantities: dict[str, Any] = {}
    document["quantities"] = quantities

    def read(text: str) -> Any:
        if not text:
            return None
        name, _, value = (each.strip() for each in text.partition("="))
        resolved_quantity(value, catalog)
        quantities[name] = value
        return name

    def needed() -> str:
        missing = [name for name in way.needs(Claim.model_construct(**document)) if name not in quantities]
        return ", ".join(missing) or "-"

    while put("audit.ask_quantity", read, needed=needed()) is not None:
        pass
    if document["judge"] in OWN_FORMULA:
        document["formula"] = put("audit.ask_formula", _filled)
    if free := put("audit.ask_free", lambda text: free_of(text) if text else None):
        document["free"] = free


def _several(ask: Callable[[], Any]) -> list[Any]:
    found = []
    while (each := ask()) is not None:
        found.append(each)
    return found


def _filled(text: str) -> str:
    if not text:
        raise ValueError(say("audit.not_empty"))
    return text


def _figure(text: str) -> str:
    parse(text)
    return text


def _one_of(text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise ValueError(say("audit.known_words", known=", ".join(known)))
    return text
