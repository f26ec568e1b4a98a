"""Resolve architectures: convert catalog records into the layer sizes that the closed forms take."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.records import Record
from catalog.similar import unlikeness
from models.roofline import BYTES_PER_ELEMENT
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.shapes import NEEDED, OPTIONAL, architecture_of
from planner.messages import Message
from planner.resolve.ledger import Ledger


def shape_of(record: Record, ledger: Ledger) -> Architecture:
    """Read the layer sizes of an architecture record. Raises ValueError for a record without a complete shape, in one sentence with the
    nearest network that has one, and for an impossible shape; MissingFigure for a figure that every network needs."""
    if (
        record.text.get("shape") == "incomplete"
    ):  # half a shape would give a wrong answer, and that of another network no better one
        raise ValueError(_unplannable(record, ledger).text())
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


def _unplannable(record: Record, ledger: Ledger) -> Message:
    """Say why a record cannot be planned for, and which near one can."""
    why = record.words("note") or Message.of("network.no_shape").text()
    others = [
        r for r in ledger.catalog.records("architectures") if r.words("shape") != "incomplete" and r.get("layers")
    ]
    near = min(others, key=lambda other: (unlikeness(record, other), other.name), default=None)
    if near is None or record.get("layers") is None:
        return Message.of("network.unplannable", name=record.name, why=why)
    return Message.of("network.unplannable_but", name=record.name, why=why, near=near.name)


def weights_bytes(shape: Architecture, precisions: Iterable[str]) -> float:
    """Return the size of the weights in the widest of the precisions, as they are distributed to the sites [byte]."""
    return parameter_counts(shape).total * max(BYTES_PER_ELEMENT[precision] for precision in precisions)
