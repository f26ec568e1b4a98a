"""Write the printed page of the stored plan into README.md (its first blocks) and docs/command-line.md (all of it)."""

from __future__ import annotations

from pathlib import Path

from planner.plan import load_plan
from planner.report.page import one_page

HOME = Path(__file__).resolve().parents[1]
STORED = HOME / "planner" / "dashboard" / "data" / "mixed_fleet_plan.json"
OPENS, CLOSES = "```text\nMixed fleet: ", "\n```\n"
FIRST_BLOCK_LEFT_OUT = "\n\nHow jobs run"  # README.md ends before it
DOCUMENTS = ("README.md", "docs/command-line.md")


def with_page(document: str, text: str) -> str:
    """Return the text of a document with the page of the stored plan in place of the one that it shows."""
    page = one_page(load_plan(STORED)).rstrip("\n")
    shown = page.partition(FIRST_BLOCK_LEFT_OUT)[0] if document == "README.md" else page
    before, opening, rest = text.partition(OPENS)
    _, closing, after = rest.partition(CLOSES)
    if not opening or not closing:
        raise SystemExit(f"{document} has no block that begins with {OPENS!r}")
    return f"{before}```text\n{shown}{closing}{after}"


if __name__ == "__main__":
    for name in DOCUMENTS:
        file = HOME / name
        file.write_text(with_page(name, file.read_text(encoding="utf-8")), encoding="utf-8")
