"""Find the specs that the page offers: the examples, and the stored plan of the main one. No Streamlit here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from catalog.errors import UnknownName
from catalog.lookup import shipped_catalog
from catalog.units import UnitError, parse
from planner import pipeline
from planner.dashboard.frozen.stored import State, read, verified
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message, named
from planner.packed import EXAMPLES
from planner.plan import Plan, load_plan, parse_plan
from planner.spec.document import read_document
from planner.spec.series import named_series, read_series, series_key

if TYPE_CHECKING:
    from planner.problem.facts import ResolvedSpec

DATA = Path(__file__).parent / "data"
MAIN = "mixed_fleet"
EXCHANGE = "exchange_"  # prefix of the names of defaults
PLANS = EXAMPLES / "plans"
"""Their stored plans; `docs/build_dashboard_plans.py` makes them."""


@cache
def examples() -> dict[str, Path]:
    """List spec files by name, the main example first."""
    found = {MAIN: DATA / f"{MAIN}.json"}
    for path in sorted(EXAMPLES.glob("*.json")):
        found.setdefault(path.stem, path)
    return found


def title_of(name: str) -> str:
    """Return the name of a spec or plan as a text: that of an example is a message, that of a user stays as it is."""
    stem = _stems().get(name)
    return name if stem is None else named("title", stem)


@cache
def _stems() -> dict[str, str]:
    """Map the names that examples state to the names of their files."""
    return {str(example(stem)["name"]): stem for stem in examples()}


@cache
def _text_of(name: str) -> bytes:
    return examples()[name].read_bytes()


def example(name: str) -> dict[str, Any]:
    """Read the spec of an example. Raises SpecError for a name that none has."""
    if name not in examples():
        raise SpecError([Issue("base", Message.of("dashboard.unknown_example", names=", ".join(examples())).text())])
    return read_document(_text_of(name))


def resolved(document: dict[str, Any]) -> ResolvedSpec:
    """Resolve a spec with the catalog. Raises SpecError with all problems at once."""
    return pipeline.resolved(document)


def read_upload(files: Sequence[tuple[str, bytes]], at_hand: Mapping[str, Any]) -> tuple[dict[str, Any], Plan | None]:
    """Read what was uploaded: a spec or a plan, with the CSV files that the spec names; CSV files alone go with the spec `at_hand`.

    Returns the spec, and the plan where one was given. Raises SpecError.
    """
    tables = {name: content for name, content in files if name.lower().endswith(".csv")}
    if twice := sorted(name for name, times in Counter(name for name, _ in files).items() if times > 1):
        raise SpecError([Issue(name, Message.of("dashboard.same_name").text()) for name in twice])
    others = [(name, content) for name, content in files if name not in tables]
    if len(others) > 1:
        names = ", ".join(name for name, _ in others)
        raise SpecError([Issue("", Message.of("dashboard.one_file_expected", names=names).text())])
    document, plan = dict(at_hand), None
    if others:
        document = read_document(others[0][1])
        if "spec" in document and "fleet" in document:
            plan = parse_plan(others[0][1])
            document = dict(plan.document["spec"])
    return with_tables(document, tables), plan


def missing_files(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """List the hourly files that a spec names and does not hold, each with the places that name it."""
    known, found = document.get("series"), dict[str, list[str]]()
    for path, name, zone in named_series(document):
        if not isinstance(known, Mapping) or series_key(name, zone) not in known:
            found.setdefault(name, []).append(path)
    return found


def with_tables(document: dict[str, Any], tables: Mapping[str, bytes]) -> dict[str, Any]:
    """Put hourly series into the spec that names their files. Raises SpecError."""
    named: dict[str, list[tuple[str, str, str]]] = {}
    for path, name, zone in named_series(document):
        named.setdefault(PurePath(name).name, []).append((path, name, zone))
    problems, found = [], {}
    for file, content in tables.items():
        if file not in named:
            words = Message.of("dashboard.file_of_no_site", file=file).text()
            problems.append(Issue(file, words))
            continue
        for path, name, zone in named[file]:
            try:
                found[series_key(name, zone)] = read_series(content, zone)
            except ValueError as error:
                problems.append(Issue(f"{path} ({file})", words_of(error)))
    if problems:
        raise SpecError(problems)
    known = document.get("series")
    return {**document, "series": {**(known if isinstance(known, dict) else {}), **found}} if found else document


def places_of(plan: Plan) -> dict[str, tuple[float, float]]:
    """Look up (latitude, longitude) of a plan's sites [degrees]; those whose region the catalog does not place are left out."""
    catalog, found = shipped_catalog(), {}
    for site in dict.fromkeys(row["site"] for row in plan.document["schedule"]):
        try:
            region = catalog.get("regions", site)
        except UnknownName:  # such as the gateway of an API
            continue
        latitude, longitude = region.get("latitude"), region.get("longitude")
        if latitude is not None and longitude is not None:
            found[site] = (latitude.number, longitude.number)
    return found


@dataclass(frozen=True, slots=True)
class Rate:
    """An exchange rate: units of a currency for one US dollar, and the date of the catalog's mean; no date for one that the spec states."""

    per_usd: float
    date: str | None = None


def rates(document: Mapping[str, Any]) -> dict[str, Rate]:
    """List the exchange rates for amounts of a spec: rates that it states, and rates of the catalog."""
    catalog, found = shipped_catalog(), {"USD": Rate(1.0)}
    for name in catalog.names("defaults"):
        if name.startswith(EXCHANGE):
            figure = catalog.get("defaults", name).figure("value")
            found[name.removeprefix(EXCHANGE).upper()] = Rate(figure.number, figure.date or "")
    stated = document.get("exchange")
    for currency, rate in stated.items() if isinstance(stated, Mapping) else ():
        try:
            found[currency] = Rate(parse(rate["per_usd"], "1"))
        except (UnitError, KeyError, TypeError):
            continue  # the spec's own check tells what is wrong
    return found


@cache
def stored_plan() -> Plan:
    """Load the plan of the main example that ships with the package; tests verify it and solve its spec again."""
    return load_plan(DATA / f"{MAIN}_plan.json")


@cache
def plan_of_example(name: str) -> Plan | None:
    """Load the stored plan of an example, verified anew; None where none is stored, or where it does not hold with the figures of today."""
    if name == MAIN:
        return stored_plan()
    try:
        held = verified(State.of(PLANS / f"{name}.json.gz"))
    except OSError:
        return None
    if held is None or held.findings or canonical(held.plan.document["spec"]) != canonical(example(name)):
        return None
    return held.plan


def plan_to_list(name: str) -> Plan | None:
    """Load the stored plan of an example for a list, not verified: it is once it is opened. None where none is stored."""
    if name == MAIN:
        return stored_plan()
    try:
        return read(State.of(PLANS / f"{name}.json.gz"))
    except OSError:
        return None


def canonical(document: dict[str, Any]) -> str:
    """Write a spec as text that does not depend on the order of its keys."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False)
