"""Refuse overrides that nothing reads, so that a figure that a user states never goes unheard."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.schemas import SCHEMAS
from planner.errors import Issue
from planner.messages import Message
from planner.resolve.ledger import Ledger

# Kinds of which every figure that counts is booked. Others hold alternatives of which only the best is: ways between regions, lines,
# tariffs, curves.
BOOKED = ("chips", "systems", "fabrics", "architectures", "constants", "defaults", "offers", "regions", "climates")
# Constants that plans and cases replace by what they state themselves.
STATED_INSTEAD = {
    "constants/serving.usable_memory/value": Message.of("resolve.describes_runs").text(),
}


def unread(overrides: Iterable[str], ledger: Ledger, subject: str) -> list[Issue]:
    """List a problem for each override ("kind/name/figure") that the resolution of a `subject` (spec, case) has not read.

    A kind of which nothing at all was read is left out: a spec without offers reads no chip, and has another problem.
    """
    found = []
    kinds = {path.partition("/")[0] for path in ledger.citations}
    for path in overrides:
        kind, _, rest = path.partition("/")
        name, _, figure = rest.rpartition("/")
        if kind not in BOOKED or kind not in kinds or figure in SCHEMAS[kind].text:
            continue
        record = ledger.catalog.get(kind, name)
        canonical = f"{kind}/{record.name}/{figure}"
        if canonical in STATED_INSTEAD:
            found.append(Issue(f"overrides.{path}", STATED_INSTEAD[canonical]))
        elif canonical not in ledger.citations and canonical not in ledger.compared:
            message = Message.of("resolve.figure_unread", document=subject, figure=figure, record=record.name).text()
            found.append(Issue(f"overrides.{path}", message))
    return found
