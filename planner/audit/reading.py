"""Read a file of claims, JSON or CSV in the same terms. Every faulty claim is named at once, with its place and the expected value."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from catalog.errors import MissingFigure, UnknownName
from catalog.files import data_path
from catalog.lookup import Catalog
from planner.audit.inputs import Inputs, inputs_of, needed, quantity_of
from planner.audit.judges import WAYS
from planner.audit.quantities import shown_unit
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message
from planner.spec.base import problems_of
from planner.spec.claims import Claim, Given
from planner.spec.document import read_document

SHIPPED = data_path("claims")
MOST_CLAIMS = 10_000
COLUMNS = (
    "id", "title", "publisher", "date", "says", "systems", "judge", "figure", "sense", "within", "quantities", "formula",
    "bound", "free", "facts", "command", "note",
)  # fmt: skip
"""Columns of a file in CSV; `quantities` are "name = value; …", `free` is "name = least..most unit", `facts` are "what: claimed | known; …"."""


def read_claims(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Read the claims of a file with the place of each, unchecked. Raises SpecError, OSError.

    A list of claims may stand in place of the object with the key `claims`.
    """
    data = path.read_bytes()
    if path.suffix.lower() == ".csv":
        return _of_csv(data)
    is_list = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return claims_of(read_document(b'{"claims": ' + data.removeprefix(b"\xef\xbb\xbf") + b"}" if is_list else data))


def claims_of(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the claims of a document with the place of each, unchecked. Raises SpecError."""
    found = document.get("claims")
    if not isinstance(found, list) or not found or len(document) > 1 or len(found) > MOST_CLAIMS:
        raise SpecError([Issue("claims", Message.of("audit.list_expected", most=MOST_CLAIMS).text())])
    return [(f"claims[{place}]", each if isinstance(each, dict) else {"id": each}) for place, each in enumerate(found)]


def parse_claims(
    found: Sequence[tuple[str, Mapping[str, Any]]], catalog: Catalog, folder: Path
) -> list[tuple[Claim, Inputs]]:
    """Check claims and resolve their quantities. Raises SpecError with every fault of every claim."""
    problems: list[Issue] = []
    claims: list[tuple[Claim, Inputs]] = []
    seen: dict[str, str] = {}
    for place, document in found:
        name = f"{place} ({document['id']})" if isinstance(document.get("id"), str) and document["id"] else place
        try:
            claim = Claim.model_validate(document)
        except ValidationError as error:
            problems += [
                Issue(f"{name}.{each.path}" if each.path else name, each.message) for each in problems_of(error, Claim)
            ]
            continue
        if claim.id in seen:
            problems.append(Issue(name, Message.of("audit.repeated", id=claim.id, first=seen[claim.id]).text()))
        seen.setdefault(claim.id, place)
        if faults := faults_of(claim):
            problems += [Issue(name, each) for each in faults]
            continue
        try:
            claims.append((claim, resolved(claim, catalog, folder)))
        except ValueError as error:
            problems.append(Issue(name, str(error)))
    if problems:
        raise SpecError(problems)
    return claims


def resolved(claim: Claim, catalog: Catalog, folder: Path) -> Inputs:
    """Resolve the inputs of a claim's judge. Raises ValueError."""
    way = WAYS[claim.judge]
    stated = claim if claim.bound or not way.bound else claim.model_copy(update={"bound": way.bound})
    return inputs_of(stated, way.formula(claim), catalog, folder)


def faults_of(claim: Claim) -> list[str]:
    """List what a claim lacks for its judge, as sentences."""
    way = WAYS[claim.judge]
    found = []
    if missing := needed(list(claim.quantities), way.needs(claim)):
        found.append(Message.of("audit.quantities_needed", judge=claim.judge, names=", ".join(missing)).text())
    if claim.judge in ("arithmetic", "plan") and not claim.formula:
        found.append(Message.of("audit.formula_needed", judge=claim.judge).text())
    if claim.judge not in ("catalog", "attribution", "qualitative") and claim.figure is None:
        found.append(Message.of("audit.figure_needed", judge=claim.judge).text())
    if claim.judge == "plan" and not any(each.command or each.plan for each in claim.quantities.values()):
        found.append(Message.of("audit.answer_needed").text())
    if claim.judge == "ladder" and len(claim.quantities) < 2:
        found.append(Message.of("audit.levers_needed").text())
    if claim.judge == "catalog" and not claim.facts:
        found.append(Message.of("audit.facts_needed").text())
    return found


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _of_csv(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    try:
        read = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=None), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError([Issue("", Message.of("audit.not_csv", error=str(error)).text())]) from None
    rows = [(place, row) for place, row in enumerate(read, 1) if any(cell.strip() for cell in row)]
    header = [cell.strip() for cell in rows[0][1]] if rows else []
    if unknown := [name for name in header if name not in COLUMNS]:
        raise SpecError(
            [
                Issue(
                    "row 1",
                    Message.of("audit.unknown_columns", names=", ".join(unknown), known=", ".join(COLUMNS)).text(),
                )
            ]
        )
    if not {"id", "title", "publisher", "says", "judge"} <= set(header) or len(rows) < 2 or len(rows) > MOST_CLAIMS:
        raise SpecError([Issue("row 1", Message.of("audit.columns_expected", known=", ".join(COLUMNS)).text())])
    problems = [
        Issue(f"row {place}", Message.of("audit.cells_expected", expected=len(header), given=len(row)).text())
        for place, row in rows[1:]
        if len(row) != len(header)
    ]
    if problems:
        raise SpecError(problems)
    return [
        (f"row {place}", _document(dict(zip(header, (cell.strip() for cell in row), strict=True))))
        for place, row in rows[1:]
    ]


def _document(row: Mapping[str, str]) -> dict[str, Any]:
    """Turn the cells of a row into the document of a claim; what cannot be read stays a text, which the check refuses."""
    plain = ("id", "says", "judge", "figure", "sense", "formula", "bound", "command", "note")
    found: dict[str, Any] = {name: row[name] for name in plain if row.get(name)}
    found["source"] = {name: row[name] for name in ("title", "publisher", "date") if row.get(name)}
    if text := row.get("within"):
        found["within"] = _number(text)
    if text := row.get("systems"):
        found["systems"] = [each.strip() for each in text.split(";") if each.strip()]
    if text := row.get("quantities"):
        found["quantities"] = _pairs(text, "=")
    if text := row.get("free"):
        found["free"] = free_of(text)
    if text := row.get("facts"):
        found["facts"] = [fact_of(each) for each in text.split(";") if each.strip()]
    return found


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _pairs(text: str, mark: str) -> dict[str, Any] | str:
    """Split "name = value; …" into pairs; a text with a name that occurs twice stays, to be refused."""
    pairs = [each.partition(mark) for each in text.split(";") if each.strip()]
    names = [name.strip() for name, _, _ in pairs]
    if len(set(names)) < len(names):
        return text
    return {name: value.strip() for name, (_, _, value) in zip(names, pairs, strict=True)}


def free_of(text: str) -> dict[str, str]:
    """Read "name = least..most unit" as the block of a free quantity."""
    name, _, span = text.partition("=")
    least, _, rest = span.partition("..")
    unit = shown_unit(rest)
    return {"name": name.strip(), "from": f"{least.strip()} {unit}".strip(), "to": rest.strip()}


def fact_of(text: str) -> dict[str, str]:
    """Read "what: claimed | known" as the block of a property."""
    what, _, rest = text.partition(":")
    claimed, _, known = rest.partition("|")
    return {"what": what.strip(), "claimed": claimed.strip(), "known": known.strip()}


def resolved_quantity(value: str, catalog: Catalog) -> None:
    """Check one quantity of a claim. Raises ValueError with a sentence."""
    try:
        quantity_of(Given(value=value), catalog, Path())
    except (UnknownName, MissingFigure) as error:
        raise ValueError(words_of(error)) from None


def as_file(claims: Sequence[Mapping[str, Any]]) -> str:
    """Write claims as a file in JSON."""
    return json.dumps({"claims": list(claims)}, indent=1, ensure_ascii=False) + "\n"
