"""Resolve architectures: convert catalog records into the layer sizes that the closed forms take."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.records import Record
from models.roofline import BYTES_PER_ELEMENT
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.shapes import NEEDED, OPTIONAL, architecture_of
from planner.resolve.ledger import Ledger


def shape_of(record: Record, ledger: Ledger) -> Architecture:
    """Read the layer sizes of an architecture record. Raises MissingFigure for a record without a complete shape, and ValueError for an
    impossible one."""
    if record.text.get("shape") == "incomplete":
        missing = next((name for name in (*NEEDED, *OPTIONAL) if record.get(name) is None), "layers")
        ledger.value("architectures", record.name, missing)  # raises: half a shape would give a wrong answer
    figures = {name: int(ledger.value("architectures", record.name, name)) for name in NEEDED}
    figures |= {
        name: int(value)
        for name in OPTIONAL
        if (value := ledger.optional("architectures", record.name, name)) is not None
    }
    text = record.text
    return architecture_of(
        figures,
        gated=text.get("gated", "true") == "true",
        tied=text.get("tied") == "true",
        mla=text.get("attention") == "mla",
    )


def weights_bytes(shape: Architecture, precisions: Iterable[str]) -> float:
    """Return the size of the weights in the widest of the precisions, as they are distributed to the sites [byte]."""
    return parameter_counts(shape).total * max(BYTES_PER_ELEMENT[precision] for precision in precisions)
