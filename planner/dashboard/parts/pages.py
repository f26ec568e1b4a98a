"""Name the pages of the dashboard: six parts and the examples in the navigation, further pages of a part below it, and addresses of before."""

from __future__ import annotations

from dataclasses import dataclass

from planner.report.outputs.parts import CHANGE, DECISION, EVIDENCE, OPERATIONS, PHYSICS, REASONS


@dataclass(frozen=True, slots=True)
class PageOf:
    """A page: the module that draws it, and where it stands."""

    module: str
    """Below `planner.dashboard`; loaded when the page is first asked for."""
    icon: str = ""
    part: str = ""
    """The part to which a further page belongs; empty for a page of the navigation."""
    opens: str = ""
    """What the page opens at, for an address of before."""


PAGES = {
    DECISION: PageOf("views.plan", ":material/receipt_long:"),
    CHANGE: PageOf("parts.change", ":material/tune:"),
    REASONS: PageOf("parts.reasons", ":material/help:"),
    OPERATIONS: PageOf("parts.operations", ":material/schedule:"),
    PHYSICS: PageOf("parts.physics", ":material/speed:"),
    EVIDENCE: PageOf("parts.evidence", ":material/menu_book:"),
    "gallery": PageOf("views.gallery", ":material/grid_view:"),
    "new": PageOf("views.new", ":material/add_circle:"),
}
"""The pages of the navigation, by the address of each; that of the first is empty. The last two begin another scenario."""
FURTHER = {
    "tables": PageOf("views.tables", ":material/table_edit:", CHANGE),
    "compare": PageOf("views.compare", ":material/compare_arrows:", CHANGE),
}
"""Pages that a part links to."""
BEFORE = {
    "whatif": PageOf("parts.change"),
    "explore": PageOf("parts.reasons", opens="frontier"),
    "hours": PageOf("parts.operations", opens="hours"),
    "running": PageOf("parts.physics"),
    "catalog": PageOf("parts.evidence", opens="figures"),
}
"""Addresses that pages had before: each opens what it showed then."""
FIRST = DECISION
PRESENT = "presents"  # in the state of the session: whether the first page is shown alone


def address_of(name: str) -> str:
    """Return the address of a page by its name; empty for the first."""
    return "" if name == FIRST else name
