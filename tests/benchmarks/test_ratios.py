"""The table of ratios of the examples: a row of each, read from its stored plan."""

from __future__ import annotations

from benchmarks.ratios import HEADS, reasons_of, stored, table
from planner.dashboard import sources
from planner.report.why.ratios import ratios


def test_every_example_has_a_row_with_the_ratios_of_its_stored_plan(root):
    plans = list(stored())
    assert {name for name, _ in plans} == set(sources.examples())
    written = {line.split(" | ")[0] for line in table(plans).splitlines() if line.startswith("| ")}
    page = (root / "docs/ratios.md").read_text(encoding="utf-8")
    assert written == {f"| {name}" for name in ("example", *sources.examples())}
    rows = [line for line in page.splitlines() if line.split(" | ")[0] in written]
    assert len(rows) == len(written) and all(row.count("|") == len(HEADS) + 2 for row in rows), (
        "write it anew: python -m benchmarks.ratios --stored"
    )


def test_a_reason_that_several_plans_share_stands_once():
    plans = [pair for pair in stored() if pair[0] in ("classes", "media")]
    told = "\n".join(reasons_of(plans))
    for name, plan in plans:
        for row in ratios(plan):
            assert not row["reason"] or (told.count(row["reason"]) == 1 and name in told)
