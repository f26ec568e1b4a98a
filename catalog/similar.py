"""Find the record most like another, whose figure an error can suggest. No value of a plan ever comes from here."""

from __future__ import annotations

import math
from collections.abc import Iterable

from catalog.records import Record

LABELS = {"family": 0.6, "vendor": 0.4, "form": 0.5, "country": 0.5, "export_zone": 0.3}
"""Texts of which a difference makes two records less alike, as so much of `unlikeness`."""
PRIOR = 1.5  # counts as the ratio of one more figure, so that records which share few of them are less alike: a factor of 4.5


def most_similar(record: Record, others: Iterable[Record], figure: str) -> Record | None:
    """Find the record that has the figure and is most like `record`; None where no other has it.

    Raises nothing: of equally similar ones the first in order of name is taken.
    """
    able = [other for other in others if other.name != record.name and _is_number(other, figure)]
    return min(able, key=lambda other: (unlikeness(record, other), other.name), default=None)


def unlikeness(one: Record, other: Record) -> float:
    """Measure how unlike two records are: mean |ln(a / b)| over the figures that both state and a prior, and more for another vendor or family.

    >>> unlikeness(Record("chips", "a"), Record("chips", "b"))
    1.5
    """
    shared = [name for name in one.figures if _is_number(one, name) and _is_number(other, name)]
    ratios = [abs(math.log(one.value(name) / other.value(name))) for name in shared]
    labels = sum(weight for key, weight in LABELS.items() if one.words(key) != other.words(key))
    return (PRIOR + sum(ratios)) / (1 + len(ratios)) + labels


def _is_number(record: Record, figure: str) -> bool:
    found = record.get(figure)
    return found is not None and not isinstance(found.value, tuple) and found.value > 0
