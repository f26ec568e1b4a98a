"""Hold the counted parameters of every architecture of the catalog against the published ones, and say which records can be planned for."""

from __future__ import annotations

from typing import Any

from catalog.lookup import Catalog
from catalog.records import Record
from models.formats import WIDE_BYTES
from models.transformer.architecture import Architecture, ParameterCounts, parameter_counts
from models.transformer.checkpoint import checkpoint_bytes
from planner.errors import words_of
from planner.facts.networks import active_agrees, total_agrees
from planner.messages import Message
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger


def counted_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """List every architecture with its counted and published parameters: whether it can be planned for, and why not.

    `usable` is "yes", or "no" where the record's shape is incomplete, or its count is off the published one
    (`planner.facts.networks.total_agrees`, `active_agrees`).
    """
    return [_row(catalog, record) for record in catalog.records("architectures")]


def _row(catalog: Catalog, record: Record) -> dict[str, Any]:
    published = {name: _number(record, name) for name in ("total_parameters", "active_parameters", "checkpoint_bytes")}
    try:
        shape = shape_of(record, Ledger(catalog))
        counts = parameter_counts(shape)
        total: float | None = counts.total + (_number(record, "encoder_parameters") or 0.0)
        active: float | None = counts.active
        why = _disagreement(record, counts, _checkpoint(record, shape))
    except (LookupError, ValueError) as error:
        total, active, why = None, None, words_of(error)
    return {
        "name": record.name,
        "usable": "no" if why else "yes",
        "why": why,
        "total_counted": total,
        "active_counted": active,
        "total_published": published["total_parameters"],
        "active_published": published["active_parameters"],
        "checkpoint_bytes": published["checkpoint_bytes"],
    }


def _checkpoint(record: Record, shape: Architecture) -> float:
    """Count the bytes of a record's weights in the format in which they are published, encoders in 16 bit."""
    outside = _number(record, "encoder_parameters") or 0.0
    return float(checkpoint_bytes(shape, record.words("weights") or "bf16")) + WIDE_BYTES * outside


def _disagreement(record: Record, counts: ParameterCounts, stored: float) -> str:
    """Say which count is off the published one; empty where both agree or nothing is published."""
    outside = _number(record, "encoder_parameters") or 0.0
    total, active = _number(record, "total_parameters"), _number(record, "active_parameters")
    if total is not None and not total_agrees(counts.total + outside, total):
        return Message.of("network.count_is_off", counted=(counts.total + outside) / 1e9, published=total / 1e9).text()
    with_table = counts.active + outside + (counts.embedding if counts.head else 0.0)
    if active is not None and not active_agrees(counts.active - counts.embedding, with_table, active):
        return Message.of("network.active_is_off", counted=counts.active / 1e9, published=active / 1e9).text()
    size = _number(record, "checkpoint_bytes")
    if size is not None and not total_agrees(stored, size):
        return Message.of("network.checkpoint_is_off", counted=stored / 1e9, published=size / 1e9).text()
    return ""


def _number(record: Record, name: str) -> float | None:
    figure = record.get(name)
    return None if figure is None else figure.number
