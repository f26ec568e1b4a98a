"""Note the systems of the catalog that a plan leaves out for want of a figure or a price, and count them by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from planner.facts import Fact
from planner.messages import Message

NO_FIGURE, NO_PRICE = "offers.no_figure", "offers.no_price"


def without_figure(path: str, system: str, how: str, figure: str) -> Fact:
    """Note a way to obtain a system that lacks a figure; `figure`: its path, under which `overrides` would state it."""
    return Fact(path, Message.of(NO_FIGURE, system=system, how=how.replace("_", " "), figure=figure))


def without_price(path: str, count: int) -> Fact:
    """Note how many systems of the catalog have no price."""
    return Fact(path, Message.of(NO_PRICE, count=count))


def counted(notes: Iterable[Fact]) -> Counter[str]:
    """Count by reason the systems that the notes say are left out."""
    counts: Counter[str] = Counter()
    for message in (note.message for note in notes):
        if message.code in (NO_FIGURE, NO_PRICE):
            counts[Message.of(f"{message.code}_counted").text()] += int(message.arguments.get("count", 1))
    return counts
