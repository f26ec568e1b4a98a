"""Turn published rates of whole systems into observations of the serving model: they enter a fit, its folds and its intervals as rows do."""

from __future__ import annotations

from dataclasses import replace

from catalog.lookup import Catalog
from catalog.records import Record
from planner.calibration.fit import Measurements
from planner.calibration.measurements import FILES, Row
from planner.calibration.serving_cases import MeasuredAnchor
from planner.messages import Message
from planner.resolve.stack.anchors import best_case, is_predictable

PLACE = "anchors/"  # start of the place of an anchor in the words of an error


def anchor_cases(catalog: Catalog) -> tuple[tuple[MeasuredAnchor, ...], tuple[tuple[str, str], ...]]:
    """Return the anchors as cases of the serving model, and (name, reason) of those that it cannot answer.

    The layout is that of the highest rate by the catalog's constants. Rates of decode and of prompts are both throughput, of all chips.
    """
    constants, found, left_out = catalog.constants("serving"), [], []
    for anchor in catalog.records("anchors"):
        best = best_case(catalog, anchor, constants) if is_predictable(anchor) else None
        if best is None:
            why = Message.of("row.no_room" if is_predictable(anchor) else "row.anchor_incomplete").text()
            left_out.append((anchor.name, why))
            continue
        chips = anchor.value("chips")
        found.append(
            MeasuredAnchor(
                _row(anchor), best[0], anchor.words("architecture"), anchor.words("chip"), chips,
                {"throughput": anchor.value("rate") * chips}, (),
            )
        )  # fmt: skip
    return tuple(found), tuple(left_out)


def _row(anchor: Record) -> Row:
    """Write an anchor as a row, whose source is that of its rate."""
    source = ", ".join(anchor.figure("rate").source)
    cells = {
        "id": f"{source.replace('-', ' ')}-{anchor.name}", "source": source, "grade": anchor.words("grade"), "chip": anchor.words("chip"),
        "model": anchor.words("architecture"), "mode": f"{anchor.words('phase')}_only", "engine": anchor.words("engine") or "",
        "weight_dtype": anchor.words("precision") or "",
    }  # fmt: skip
    numbers = {"n_chips": anchor.value("chips"), "isl": anchor.value("input_tokens"), "is_max_throughput": 1.0}
    return Row(0, {**dict.fromkeys(FILES["serving"].text, ""), **cells}, numbers, PLACE + anchor.name)


def is_anchor(row: Row) -> bool:
    """Tell whether a row is an anchor of the catalog."""
    return row.place.startswith(PLACE)


def with_anchors(measurements: Measurements, catalog: Catalog) -> Measurements:
    """Add the catalog's anchors to the rows of a file of serving, those without a prediction to the refused; a file of training stays."""
    if measurements.target.name != "serving":
        return measurements
    cases, left_out = anchor_cases(catalog)
    refused = [
        (Row(0, {**dict.fromkeys(FILES["serving"].text, ""), "id": name}, {}, PLACE + name), why)
        for name, why in left_out
    ]
    return replace(
        measurements, cases=(*measurements.cases, *cases), rows=measurements.rows + len(cases) + len(refused),
        refused=(*measurements.refused, *refused),
    )  # fmt: skip
