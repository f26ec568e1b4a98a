"""Resolve architectures: convert catalog records into the layer sizes that the closed forms take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from catalog.records import Record
from catalog.schemas import NARROW_FORMATS, WEIGHT_PARTS
from catalog.similar import unlikeness
from models.formats import OWN_KINDS, Checkpoint, Checkpoints
from models.transformer.architecture import Architecture
from models.transformer.checkpoint import checkpoint_bytes
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
    shape = architecture_of(
        figures,
        gated=text.get("gated", "true") == "true",
        tied=text.get("tied") == "true",
        mla=text.get("attention") == "mla",
    )
    return replace(shape, checkpoints=checkpoints_of(record, shape))


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
    return max(float(checkpoint_bytes(shape, precision)) for precision in precisions)


def checkpoints_of(record: Record, shape: Architecture) -> Checkpoints:
    """List the checkpoints of an architecture by the format that asks for them.

    A record states parts that stay in 16 bit as `{format}_wide`, and elements that share a scale as `{format}_group`. Raises ValueError for
    parts that are none. Formats of which it says nothing are left out: `models.formats.checkpoint_of` has the rule for them.
    """
    found = {name: each for name in NARROW_FORMATS if (each := _checkpoint(record, shape, name)) is not None}
    for asked, kinds in OWN_KINDS.items():
        own = next((kind for kind in kinds if record.words("weights") == kind or kind in found), None)
        if own is not None and asked not in found:
            found[asked] = found.get(own) or Checkpoint(own)
    return tuple(sorted(found.items()))


def _checkpoint(record: Record, shape: Architecture, name: str) -> Checkpoint | None:
    """Read the checkpoint in one format; None where the record says nothing of it."""
    wide, cache = record.words(f"{name}_wide"), record.words(f"{name}_cache") or ""
    group = record.get(f"{name}_group")
    if not (wide or group or cache or record.words("weights") == name):
        return None
    shares = _shares(f"{name}_wide", wide or "")
    dense = (shape.ffn_layers - shape.moe_layers) * 1.0 * shape.ffn
    shared = shape.moe_layers * 1.0 * shape.shared_width
    blocks = dense * shares["dense"] + shared * shares["shared"]
    return Checkpoint(
        name, attention=shares["attention"], ffn=blocks / (dense + shared) if dense + shared else 0.0,
        experts=shares["experts"], router=shares["router"], tables=shares["head"],
        group=int(group.number) if group else 0, cache=cache,
    )  # fmt: skip


def _shares(field: str, words: str) -> dict[str, float]:
    """Read parts with the share of their layers, such as "attention, dense 2/126"; raises ValueError for a part that is none."""
    found = dict.fromkeys(WEIGHT_PARTS, 0.0)
    for item in filter(None, (item.strip() for item in words.split(","))):
        part, _, share = item.partition(" ")
        try:
            known, found[part] = part in found, float(Fraction(share or "1"))
        except (ValueError, ZeroDivisionError):
            known = False
        if not known or not 0.0 <= found[part] <= 1.0:
            parts = ", ".join(WEIGHT_PARTS)
            raise ValueError(Message.of("formats.wide_parts", field=field, item=item, parts=parts).text())
    return found
