"""Rows for `flopwatt catalog list` and `flopwatt catalog show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError, UnknownName
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.schemas import SCHEMAS
from catalog.units import show
from planner.errors import Problem, SpecError, close_matches


def _load(overlays: Sequence[Path]) -> Catalog:
    try:
        return Catalog.load(overlays)
    except CatalogError as error:
        raise SpecError(Problem(path, message) for path, message in error.problems) from None


def list_rows(overlays: Sequence[Path], kind: str | None) -> list[dict[str, Any]]:
    """Kinds with their counts, or the records of one kind. Raises SpecError for an unknown kind."""
    catalog = _load(overlays)
    if kind is None:
        return [
            {"kind": name, "records": len(catalog.names(name)), "holds": schema.words}
            for name, schema in SCHEMAS.items()
        ]
    if kind not in SCHEMAS:
        raise SpecError([Problem("catalog list", f'unknown kind "{kind}"{close_matches(kind, SCHEMAS)}')])
    return [
        {
            "name": record.name,
            "figures": len(record.figures),
            "announced only": "yes" if record.brief_only else "",
            "aliases": ", ".join(record.aliases),
        }
        for record in catalog.records(kind)
    ]


def show_record(overlays: Sequence[Path], name: str) -> tuple[str, list[dict[str, Any]]]:
    """(heading, a row per figure) of the record that bears the name. Raises SpecError when none or several do."""
    catalog = _load(overlays)
    kind, slash, rest = name.partition("/")
    kinds, wanted = ([kind], rest) if slash and kind in SCHEMAS else (list(SCHEMAS), name)
    found = []
    for candidate in kinds:
        try:
            found.append(catalog.get(candidate, wanted))
        except UnknownName:
            continue
    if not found:
        labels = [label for k in kinds for r in catalog.records(k) for label in (r.name, *r.aliases)]
        raise SpecError(
            [
                Problem(
                    "catalog show",
                    f'no record "{wanted}"{close_matches(wanted, labels)}; `flopwatt catalog list KIND` lists them',
                )
            ]
        )
    if len(found) > 1:
        several = ", ".join(f'"{record.kind}/{record.name}"' for record in found)
        raise SpecError(
            [Problem("catalog show", f"several records bear that name: {several}; name one of them in full")]
        )
    record = found[0]
    rows = [_row(catalog, figure, record.figures[figure]) for figure in sorted(record.figures)]
    rows += [_row(catalog, f"{figure} (claimed)", record.claimed[figure]) for figure in sorted(record.claimed)]
    return _heading(record), rows


def _heading(record: Record) -> str:
    lines = [f"{record.kind}/{record.name}" + ("  (announced only: nobody sells it)" if record.brief_only else "")]
    lines += [f"  {key}: {value}" for key, value in record.text.items() if not isinstance(value, tuple)]
    return "\n".join(lines)


def _row(catalog: Catalog, name: str, figure) -> dict[str, Any]:
    series = isinstance(figure.value, tuple)
    return {
        "figure": name,
        "value": figure.printed if series or not figure.unit else show(figure.value, figure.unit),
        "low": show(figure.low, figure.unit) if figure.low is not None else "",
        "high": show(figure.high, figure.unit) if figure.high is not None else "",
        "kind": figure.kind,
        "confidence": figure.confidence,
        "date": figure.date or "",
        "source": "; ".join(_title(catalog, source) for source in figure.source),
        "note": figure.note,
    }


def _title(catalog: Catalog, source: str) -> str:
    try:
        return f"{source}: {catalog.source(source).title}"
    except UnknownName:
        return source
