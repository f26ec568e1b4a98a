"""Links and uploads of the dashboard, drawn from a seed: whatever an address or a file holds, the page says what is wrong with it."""

from __future__ import annotations

import copy
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from planner.dashboard import own_figures, running, sources, units
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work, opened
from planner.estimate.answer import estimate
from tests.fuzz.mutations import KEYS, ODD, as_json, at, bytes_mutated, mutated, places

Query = dict[str, list[str]]
Files = list[tuple[str, bytes]]
NAMES = (
    "a.json",
    "b.csv",
    "x.config.json",
    "B.CSV",
    "",
    "../a.json",
    "ü規模.json",
    "a" * 300 + ".json",
    "\x1b[2J.json",
)
BASES = ("upload", "", "nothing", "../mixed_fleet", "ü", "mixed_fleet.json")


@contextmanager
def _own_store() -> Iterator[None]:
    """Keep works in a folder that goes afterwards."""
    before = os.environ.get(store.FOLDER)
    with tempfile.TemporaryDirectory(prefix="flopwatt-") as folder:
        os.environ[store.FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(store.FOLDER)
            if before is not None:
                os.environ[store.FOLDER] = before


# -- links -------------------------------------------------------------------------------------------------------------


def check_link(rng: random.Random, plan: dict[str, Any]) -> None:
    """Open an address; the scenario that it leads to has an address of its own, which leads there again."""
    with _own_store():
        query = _query(rng, plan["spec"])
        work = opened(query)
        if work.scenario.problems:
            assert all(problem.message for problem in work.scenario.problems)
            return
        document = work.scenario.document()
        assert work.scenario.command() and work.scenario.python()
        units.display(units.from_address(query), sources.rates(document))
        shared = work.share()
        again = opened(shared)
        assert again.scenario.document() == document and again.scenario.key == work.scenario.key, shared
        work.save_as("mine")
        other = opened({**work.scenario.address(), "id": [work.id]})
        assert other.scenario.document() == document and [each.name for each in other.saved] == ["mine"]
        sources.resolved(document)


def _query(rng: random.Random, spec: dict[str, Any]) -> Query:
    """Draw the parameters of an address; some name a work that is kept, as it was written or damaged."""
    base = rng.choice([*sources.examples(), *BASES])
    document = sources.example(base) if base in sources.examples() else spec
    query: Query = {"base": [base]}
    if texts := [_edit(rng, document) for _ in range(rng.choice((0, 1, 1, 2, 5, 60)))]:
        query["set"] = texts
    if rng.random() < 0.4:
        query |= _kept(rng, spec)
    for name in rng.sample(
        ("lang", "currency", "tokens", "power", "id", "edits", "base", "set", ""), rng.randint(0, 3)
    ):
        query[name] = [str(rng.choice(ODD)) for _ in range(rng.choice((0, 1, 1, 2)))]
    return query


def _edit(rng: random.Random, document: dict[str, Any]) -> str:
    """Write an edit of a place of the document, now and then of one that is not there."""
    path = list(rng.choice(list(places(document))[1:]))
    if rng.random() < 0.3:
        path[rng.randrange(len(path))] = rng.choice((*KEYS, 0, 99, -1, 10**30))
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    try:
        value = at(document, tuple(path)) if rng.random() < 0.3 else rng.choice(ODD)
    except (KeyError, IndexError, TypeError):
        value = rng.choice(ODD)
    written = json.dumps(value) if rng.random() < 0.7 else str(value)
    return rng.choice((f"{text}={written}",) * 8 + (text, f"={written}", written))


def _kept(rng: random.Random, spec: dict[str, Any]) -> Query:
    """Keep the work of an upload, damage its file now and then, and return its address."""
    work = Work(Scenario(sources.MAIN))
    work.turn_to(Scenario.of_upload(spec))
    edits = {"name": "x" * rng.choice((1, 3000))}
    work.turn_to(work.scenario.with_edits(edits))
    address = {**work.scenario.address(), "id": [work.id]}
    if rng.random() < 0.3:
        (file,) = store.folder().glob("*.json.gz")
        file.write_bytes(bytes_mutated(rng, file.read_bytes()))
    return address


# -- uploads -----------------------------------------------------------------------------------------------------------


def check_upload(rng: random.Random, plan: dict[str, Any]) -> None:
    """Take files: a spec or a plan with tables, overlays, or a case."""
    kind = rng.choice((_documents, _documents, _overlays, _case))
    with _own_store():
        kind(rng, plan)


def _documents(rng: random.Random, plan: dict[str, Any]) -> None:
    spec = copy.deepcopy(plan["spec"])
    spec["sites"][0] |= {"hourly": {"file": "b.csv", "fill": "linear"}}
    hours = "".join(f"2024-01-{d:02d}T{h:02d},{20 + h},{300 - d}\n" for d in range(1, 4) for h in range(24))
    table = f"timestamp_utc,price_usd_per_mwh,carbon_g_per_kwh\n{hours}".encode()
    held: Any = rng.choice((spec, plan, {**plan, "spec": spec}))
    files: Files = [("a.json", as_json(mutated(rng, held, [spec, plan], rng.choice((1, 1, 2, 4)))))]
    files += [("b.csv", table if rng.random() < 0.5 else bytes_mutated(rng, table))] * rng.choice((0, 1, 1, 2))
    if rng.random() < 0.2:
        files = [(rng.choice(NAMES), content) for _, content in files]
    if rng.random() < 0.1:
        files = files[1:]
    document, found = sources.read_upload(files, spec)
    scenario = Scenario.of_upload(document)
    sources.resolved(document)
    work = Work(Scenario(sources.MAIN))
    work.turn_to(scenario)
    assert opened({"base": ["upload"], "id": [work.id]}).scenario.document() == document
    if found is not None:
        sources.places_of(found)
    sources.rates(document)


@cache
def _some_records() -> list[dict[str, Any]]:
    """Return overlays of a few records of each kind of the catalog."""
    found = []
    for file in sorted((Path(__file__).resolve().parents[2] / "catalog" / "data").glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8")).get(file.stem)
        found.append({file.stem: content[:3] if isinstance(content, list) else content})
    return [overlay for overlay in found if isinstance(next(iter(overlay.values())), list)]


def _overlays(rng: random.Random, plan: dict[str, Any]) -> None:
    records = _some_records()
    files: Files = [
        (rng.choice(NAMES[:3]), as_json(mutated(rng, rng.choice(records), records, rng.choice((1, 1, 2, 4)))))
        for _ in range(rng.choice((1, 1, 2)))
    ]
    scenario = Scenario.of_upload(plan["spec"])
    changed, _ = own_figures.taken(scenario, own_figures.overlay_edits(plan["spec"], files))
    document = changed.document()
    json.dumps(own_figures.own_overlay(document), allow_nan=False)
    assert own_figures.own_rows(document) is not None


def _case(rng: random.Random, plan: dict[str, Any]) -> None:
    cases = [
        *running.example_cases().values(),
        {"workload": plan["spec"]["workloads"][0], "system": "DGX H100", "chips": 8},
    ]
    content = as_json(mutated(rng, rng.choice(cases), cases, rng.choice((1, 1, 2, 4))))
    choice = running.read_case(rng.choice(NAMES), content)
    base = _settings(choice.case)
    if base is not None:
        running.precisions(running.catalog_for(plan["spec"]), base.system, running.is_training(choice.case))
        estimate(running.changed(choice.case, base), ())


def _settings(case: dict[str, Any]) -> running.Settings | None:
    try:
        return running.Settings.of(case)
    except (KeyError, TypeError, ValueError):  # the page then offers no settings
        return None
