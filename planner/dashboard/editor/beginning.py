"""Draft a spec from the answers of a visitor and the files that come with them, as `flopwatt init` does. No Streamlit here.

Nothing but these files is read, and no other host is asked: a model that the catalog has no record of needs its config.json.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.lookup import shipped_catalog
from planner.dashboard.file_names import file_name
from planner.errors import Issue, SpecError
from planner.facts import Fact
from planner.library import Given, draft_of
from planner.messages import Message
from planner.ways_in.draft import ARCHITECTURE
from planner.ways_in.hub import PREFIX
from planner.ways_in.named import known_architecture, near_architecture
from planner.ways_in.stated import demand_of
from planner.ways_in.training import BOTH, SERVE, TRAIN

OWNED = "owned"
QUESTIONS = (SERVE, TRAIN, BOTH, OWNED)
"""What a fleet is for; OWNED: what one that stands already can do, which serves."""
MOST_BYTES = 5_000_000
"""Of one file."""
MOST_LETTERS = 200
MODEL = "model"
"""Name of a network whose config.json comes without one, which otherwise takes the name of its folder."""
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
File = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of a visitor, empty where there is none; files with their names."""

    work: str = SERVE
    model: str = ""
    demand: str = ""
    """Such as "20/s" or "500 users"."""
    tokens: str = ""
    deadline: str = ""
    region: str = ""
    config: File | None = None
    trace: File | None = None
    fleet: File | None = None


def drafted(answers: Answers) -> tuple[dict[str, Any], tuple[Fact, ...]]:
    """Return (checked spec, how the files were read); guesses stand under its `assumptions`. Raises SpecError with all problems that are found at once."""
    problems: list[Issue] = []
    demand: dict[str, int | float] = {}
    try:
        demand = demand_of(answers.demand) if answers.demand.strip() and answers.work != TRAIN else {}
    except SpecError as error:
        problems += error.problems
    if answers.work == OWNED and answers.fleet is None:
        problems.append(Issue("--fleet", Message.of("new.fleet_missing").text()))
    for file in (answers.config, answers.trace, answers.fleet):
        if file is not None and len(file[1]) > MOST_BYTES:
            words = Message.of("new.file_too_large", most=f"{MOST_BYTES / 1e6:g} MB").text()
            problems.append(Issue(file_name(file[0]), words))
    model, reason = "", ""
    try:
        model, reason = _model(answers)
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems)
    runs = answers.work in (TRAIN, BOTH)
    with tempfile.TemporaryDirectory() as folder:
        given = Given(
            model=f"{PREFIX}{model}" if model else None,  # with its prefix it is the name of no folder
            config=_written(answers.config, folder, MODEL),
            trace=_written(answers.trace, folder, "trace") if answers.work != TRAIN else None,
            fleet=_written(answers.fleet, folder, OWNED),
            users=int(demand["users"]) if "users" in demand else None,
            rate=demand.get("rate"),
            work=answers.work if runs else SERVE,
            tokens=answers.tokens.strip()[:MOST_LETTERS] or None if runs else None,
            deadline=answers.deadline.strip()[:MOST_LETTERS] or None if runs else None,
            region=answers.region or None,
        )
        try:
            document, notes = draft_of(given, ())
        except SpecError as error:
            raise SpecError(
                [Issue(each.path.replace(f"{folder}/{MODEL}/", ""), each.message) for each in error.problems]
            ) from None
    if reason:
        at = ("workloads[0].architecture", *(("workloads[1].architecture",) if answers.work == BOTH else ()))
        document["assumptions"] = {**document.get("assumptions", {}), **dict.fromkeys(at, reason)}
    return document, notes


def _model(answers: Answers) -> tuple[str, str]:
    """Return (model, why a record only stands for it): a record of the catalog, or the name of the config. Raises SpecError for a model without either."""
    model = answers.model.strip().removeprefix(PREFIX)
    if not model:
        return "", ""
    if len(model) > MOST_LETTERS or ".." in model or not _MODEL.fullmatch(model):
        raise SpecError([Issue("--model", Message.of("new.no_model_name", example=ARCHITECTURE).text())])
    if answers.config is not None:
        return model, ""
    catalog = shipped_catalog()
    if known_architecture(model, catalog)[0]:
        return model, ""
    if near := near_architecture(model, catalog):
        return near, Message.of("ways_in.stands_for", model=model, record=near).text()
    raise SpecError([Issue("--model", Message.of("new.unknown_model", model=model).text())])


def _written(file: File | None, folder: str, kind: str) -> str | None:
    """Write a file into a folder of its own, under a plain name."""
    if file is None:
        return None
    place = Path(folder) / kind / file_name(file[0])
    place.parent.mkdir()
    place.write_bytes(file[1])
    return str(place)
