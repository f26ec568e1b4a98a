"""Explain a plan in sentences: why these sites, systems, lines and hours.

Each sentence states figures of the plan, and the limit or price that they follow from; all are read from the plan document.
Not here: the tables (`planner.report.report`).
"""

from __future__ import annotations

from planner.messages import say
from planner.plan import Plan
from planner.report import electricity, hours, jobs, lines, quality
from planner.report.plan_index import PlanIndex
from planner.report.why import sites, systems

WAITING = say("waiting.heading")


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """List (heading, sentences) of each topic of the plan; none without an answer."""
    if not plan.has_answer:
        return []
    index = PlanIndex(plan)
    when = (
        *electricity.dispatch_sentences(index),
        *jobs.sentences(index),
        *hours.sentences(index),
        *electricity.sentences(index),
    )
    found = (
        (WAITING, jobs.waiting(plan)),
        (say("heading.why_architecture"), quality.sentences(plan)),
        (say("heading.why_sites"), sites.sentences(index)),
        (say("heading.why_systems"), systems.sentences(index)),
        (say("heading.why_lines"), lines.sentences(index)),
        (say("heading.why_hours"), when),
    )
    return [(heading, listed) for heading, sentences in found if (listed := list(sentences))]
