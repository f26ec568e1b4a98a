"""Name the six parts of a plan, by what a reader wants of it: every section and every chapter of a report belongs to exactly one.

Not here: the tables (`planner.report.outputs.sections`), the chapters (`planner.report.outputs.chapters`), and the pages of the dashboard.
"""

from __future__ import annotations

DECISION, CHANGE, REASONS, OPERATIONS, PHYSICS, EVIDENCE = PARTS = (
    "decision",
    "change",
    "reasons",
    "operations",
    "physics",
    "evidence",
)
"""Decision: what to buy, where and when. Change: what other figures do. Reasons: why the plan is so, and what else would do.
Operations: how it runs. Physics: why it runs as fast as it does. Evidence: what the figures rest on."""
