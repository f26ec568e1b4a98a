"""What a price of electricity contains: energy, delivery, demand and levies, each part included, separate or unknown.

A record states the contents of a figure in a text beside it, such as "energy included, delivery separate, demand separate, levies
separate"; a figure without a statement is of energy, and the rest is unknown. Sums over these parts: `planner.resolve.money.contents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.errors import Wrong
from catalog.records import Record

PARTS = ("energy", "delivery", "demand", "levies")
INCLUDED, SEPARATE, UNKNOWN = STATES = ("included", "separate", "unknown")
PRICES = {
    "regions": ("electricity_price", "price_profile", "electricity_delivery", "electricity_industrial"),
    "tariffs": ("",),
    "defaults": ("",),
}
"""Figures with a statement of contents, by kind of record; "" where a record states it for all of its prices."""
NOT_STATED = {"energy": INCLUDED, "delivery": UNKNOWN, "demand": UNKNOWN, "levies": UNKNOWN}
CHARGE = {"energy": SEPARATE, "delivery": INCLUDED, "demand": UNKNOWN, "levies": UNKNOWN}
"""Contents of a delivery charge without a statement."""
WHOLE = dict.fromkeys(PARTS, INCLUDED)


def contents_key(figure: str) -> str:
    """Return the key of the text that states the contents of a figure.

    >>> contents_key("price_profile"), contents_key("")
    ('price_profile_contents', 'contents')
    """
    return f"{figure}_contents" if figure else "contents"


def contents_of(record: Record, figure: str = "") -> dict[str, str]:
    """Return the state of each part in a figure of a record."""
    text = record.words(contents_key(figure))
    return read_contents(text) if text else dict(CHARGE if figure == "electricity_delivery" else NOT_STATED)


def read_contents(text: str) -> dict[str, str]:
    """Read the state of each part from a text. Raises ValueError for one that does not state every part once.

    >>> read_contents("energy included, delivery separate, demand separate, levies unknown")["delivery"]
    'separate'
    """
    rows = [row.split() for row in text.split(",")]
    if [row[0] for row in rows if len(row) == 2 and row[1] in STATES] != list(PARTS):
        raise ValueError(Wrong("catalog.expected_contents", example=written(NOT_STATED), given=text))
    return {row[0]: row[1] for row in rows}


def written(contents: Mapping[str, str]) -> str:
    """Write the state of each part.

    >>> written(NOT_STATED)
    'energy included, delivery unknown, demand unknown, levies unknown'
    """
    return ", ".join(f"{part} {contents[part]}" for part in PARTS)


def malformed_contents(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for each statement of contents that cannot be read."""
    for figure in PRICES.get(record.kind, ()):
        key = contents_key(figure)
        if text := record.words(key):
            try:
                read_contents(text)
            except ValueError as error:
                yield key, error.args[0]
