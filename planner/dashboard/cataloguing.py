"""List the figures of the catalog with their sources, and the accuracy that is stored with the release. No Streamlit here."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from catalog.figures import Figure
from catalog.lookup import shipped_catalog
from catalog.schemas import SCHEMAS
from catalog.units import show
from planner.dashboard import sources
from planner.dashboard.figures import tidy
from planner.messages import commas, of_row
from planner.plan import Plan
from planner.report.locale import Words

Row = dict[str, str]
CLAIMED = " (claimed)"


@cache
def every_figure() -> tuple[Row, ...]:
    """List all figures of the shipped catalog: kind, record, figure, value, range, source, date, confidence, note."""
    catalog = shipped_catalog()
    return tuple(
        _row(kind, record.name, f"{name}{mark}", figure)
        for kind in SCHEMAS
        for record in catalog.records(kind)
        for figures, mark in ((record.figures, ""), (record.claimed, CLAIMED))
        for name, figure in sorted(figures.items())
    )


def _row(kind: str, record: str, name: str, figure: Figure) -> Row:
    catalog = shipped_catalog()
    cited = [catalog.source(each) for each in figure.source]
    dates = [source.date for source in cited if source.date]
    low, high = (_text(bound, figure.unit) for bound in (figure.low, figure.high))
    return {
        "kind": kind,
        "record": record,
        "figure": name,
        "value": tidy(
            figure.printed if isinstance(figure.value, tuple) or not figure.unit else show(figure.value, figure.unit)
        ),
        "range": f"{low} – {high}" if low or high else "",
        "source": "; ".join(source.title for source in cited),
        "date": figure.date or (max(dates) if dates else ""),
        "confidence": figure.confidence,
        "nature": figure.kind,
        "note": figure.note,
    }


def _text(bound: float | None, unit: str) -> str:
    return "" if bound is None else tidy(show(bound, unit))


def kinds() -> dict[str, int]:
    """Count the figures of each kind of record."""
    found = dict.fromkeys(SCHEMAS, 0)
    for row in every_figure():
        found[row["kind"]] += 1
    return {kind: count for kind, count in found.items() if count}


def found_figures(chosen: Collection[str], text: str, used: Collection[str] | None = None) -> list[Row]:
    """Return the figures of some kinds (of all, if none is chosen) whose row holds every word of a text, and that a plan used if asked."""
    words = text.casefold().split()
    return [
        row
        for row in every_figure()
        if (not chosen or row["kind"] in chosen)
        and (used is None or path_of(row) in used)
        and all(word in _searched(row) for word in words)
    ]


def path_of(row: Mapping[str, str]) -> str:
    """Return the path of a figure, as a plan cites it."""
    return f"{row['kind']}/{row['record']}/{row['figure']}"


def _searched(row: Mapping[str, str]) -> str:
    return " ".join((row["record"], row["figure"], row["value"], row["source"], row["note"])).casefold()


def cited(plan: Plan) -> set[str]:
    """Return the paths of the catalog figures that a plan used."""
    return {row["path"] for row in plan.document["provenance"]}


COLUMNS = {
    "kind": "column.kind",
    "record": "column.record",
    "figure": "column.figure",
    "value": "column.value",
    "range": "column.range",
    "source": "column.source",
    "date": "column.date",
    "confidence": "column.confidence",
    "nature": "column.nature",
    "note": "column.note",
}


def figure_table(rows: list[Row], t: Words) -> dict[str, list[str]]:
    """Format figures by column."""
    return {t(key): [row[name] for row in rows] for name, key in COLUMNS.items()}


# -- accuracy ----------------------------------------------------------------------------------------------------------


@cache
def accuracy() -> dict[str, Any]:
    """Read predicted against measured, as `benchmarks/accuracy_points.py` wrote it."""
    document: dict[str, Any] = json.loads((sources.DATA / "accuracy.json").read_text("utf-8"))
    return document


def metrics() -> list[str]:
    """List the metrics that were scored, the one with most observations first."""
    counts: dict[str, int] = {}
    for row in accuracy()["summary"]:
        counts[row["metric"]] = counts.get(row["metric"], 0) + row["n"]
    return sorted(counts, key=lambda metric: -counts[metric])


def points_of(metric: str, chips: Collection[str] = ()) -> list[dict[str, Any]]:
    """List measured and predicted of a metric, of some chips or of all."""
    return [
        {"chip": chip, "measured": measured, "predicted": predicted}
        for name, chip, measured, predicted in accuracy()["points"]
        if name == metric and (not chips or chip in chips)
    ]


def accuracy_table(metric: str, t: Words) -> list[dict[str, Any]]:
    """Format the errors of a metric by chip."""
    return [
        {
            t("column.chip"): row["chip"],
            t("column.observations"): row["n"],
            t("column.median_error"): row["median"],
            t("column.within_a_fifth"): row["within_20"],
            t("column.bias"): row["bias"],
        }
        for row in accuracy()["summary"]
        if row["metric"] == metric
    ]


def change_table(found: Mapping[str, Any], t: Words) -> list[dict[str, Any]]:
    """Format what a calibration moved, the largest change first."""
    return [
        {
            t("column.figure"): t.phrase(row["figure"]),
            t("column.before"): row["before"],
            t("column.after"): row["after"],
            t("column.change"): row["after"] / row["before"] - 1,
            t("column.low"): row["low"],
            t("column.high"): row["high"],
        }
        for row in found["changes"]
    ]


def compared_table(found: Mapping[str, Any], t: Words) -> list[dict[str, Any]]:
    """Format each figure of own runs as measured, and as predicted before and after the calibration."""
    heads = {
        "run": t("column.run"),
        "metric": t("column.metric"),
        "measured": t("column.measured"),
        "before": t("column.before"),
        "after": t("column.after"),
        "unit": t("column.unit"),
        "note": t("column.note"),
    }
    rows = found.get("compared", ())
    used = [name for name in heads if any(row.get(name) is not None for row in rows)]
    return [{heads[name]: row.get(name) for name in used} for row in rows]


def understood(found: Mapping[str, Any], t: Words) -> list[str]:
    """Say how each own run was read, and which points of a plan will use it."""
    runs = [
        t("note_of.plain", path=run["id"], text=commas(_sentence(row, t) for row in run["understood"]))
        for run in found.get("runs", ())
    ]
    return [*runs, *(_sentence(row, t) for row in found.get("used_by", ()))]


def at_odds(found: Mapping[str, Any], t: Words) -> list[str]:
    """Say what in own runs is at odds with known figures, with its place and source."""
    return [
        f"{row['path']}: {_sentence(row, t)}{f' [{source}]' if (source := row['source']) else ''}"
        for row in found.get("notes", ())
    ]


def _sentence(row: Mapping[str, Any], t: Words) -> str:
    message = of_row(row)
    return str(row["text"]) if message is None else message.text(t.language)
