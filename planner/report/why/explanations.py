"""Explain a plan in sentences: why these sites, systems, lines and hours.

Each sentence states figures of the plan, and the limit or price that they follow from; all are read from the plan document.
Not here: the tables (`planner.report.report`).
"""

from __future__ import annotations

from planner.plan import Plan
from planner.report import electricity, hours, jobs, lines, quality
from planner.report.plan_index import PlanIndex
from planner.report.why import sites, systems

WAITING = "Which jobs wait"


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """List (heading, sentences) of each topic of the plan; none without an answer."""
    if not plan.has_answer:
        return []
    index = PlanIndex(plan)
    found = (
        (WAITING, jobs.waiting(plan)),
        ("Why this architecture", quality.sentences(plan)),
        ("Why these sites", sites.sentences(index)),
        ("Why these systems", systems.sentences(index)),
        ("Why these lines", lines.sentences(index)),
        ("Why these hours", (*electricity.dispatch_sentences(index), *jobs.sentences(index), *hours.sentences(index), *electricity.sentences(index))),
    )  # fmt: skip
    return [(heading, listed) for heading, sentences in found if (listed := list(sentences))]
