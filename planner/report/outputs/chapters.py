"""Register the chapters of sentences of a plan once: the terminal, Markdown, HTML and the dashboard all read this list.

Not here: the tables (`planner.report.outputs.sections`), and how the chapters are set (`planner.report.report`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planner.messages import DEFAULT, said, say, translated
from planner.plan import Plan
from planner.plan.rows.framing import Reach
from planner.report import marginal_values, notes
from planner.report.outputs.parts import DECISION, EVIDENCE, REASONS
from planner.report.why import explanations, looser

Chapters = list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True)
class PlanChapter:
    """Sentences on one subject, as every output shows them."""

    key: str
    """The feature's word."""
    part: str
    """The part of a plan to which it belongs, one of `planner.report.outputs.parts.PARTS`."""
    write: Callable[[Plan, str], Chapters]
    """Writes (heading, sentences) in a language, or as messages; a chapter without sentences is left out."""


def diagnosis_chapters(plan: Plan, language: str = DEFAULT) -> list[tuple[str, list[str]]]:
    """Explain why there is no plan, with the figures that workloads miss alone or the limit that was reached, and the smallest repair."""
    found = plan.document["diagnosis"]
    told = list(notes.sentences(plan, language, section=notes.REASONS))
    reasons = [(notes.WHY, told)] if told else []
    if found is None or (told and not found["conflict"]):
        return reasons
    by_amounts = found.get("conflict_of") == "amounts"
    conflict = [say("diagnosis.limit", words=said(row, "words"), path=row["path"]) for row in found["conflict"]]
    conflict = conflict or [say("diagnosis.no_time_for_limits")]
    alone = len(conflict) == 1 and bool(found["conflict"])
    if by_amounts:
        conflict.append(say("diagnosis.others_kept"))
        alone = False
    parts = [*reasons, (say("heading.limit_in_conflict" if alone else "heading.limits_in_conflict"), conflict)]
    if found.get("reach"):
        parts.append((say("heading.reach"), list(_reach_words(found["reach"]))))
    if found["repair"]:
        checked = "diagnosis.repair_holds" if found["repair_checked"] else "diagnosis.repair_unchecked"
        words = [*(said(row, "words") for row in found["repair"]), say(checked)]
        words += [say("diagnosis.smaller_repair")] if by_amounts else []
        parts.append((say("heading.repair"), words))
    elif found["conflict"]:
        parts.append((say("heading.repair"), [say("diagnosis.no_repair")]))
    return parts


def _reach_words(rows: Sequence[Reach]) -> Iterator[str]:
    """Say how much of the demand of all workloads, or of one beside all of the others', any plan serves.

    >>> list(_reach_words([{"workload": None, "at_most": 0.25}, {"workload": "chat", "at_most": 0.125}]))
    ['at most 25.0% of all demand', 'or all of the other demand and at most 12.5% of chat']
    """
    for row in rows:
        share = f"{row['at_most']:.1%}"
        if row["workload"] is None:
            yield say("diagnosis.reach_of_all", share=share)
        else:
            yield say("diagnosis.reach_of_one", share=share, workload=row["workload"])


CHAPTERS = (
    PlanChapter("diagnosis", DECISION, diagnosis_chapters),
    PlanChapter("notes", EVIDENCE, lambda plan, language: [(notes.HEADING, list(notes.sentences(plan, language)))]),
    PlanChapter("worth", REASONS, lambda plan, language: marginal_values.chapters(plan)),
    PlanChapter("looser", REASONS, lambda plan, language: [(looser.HEADING, looser.sentences(plan))]),
    PlanChapter("why", REASONS, lambda plan, language: explanations.chapters(plan)),
)


def chapters_of(plan: Plan, language: str = DEFAULT, part: str | None = None) -> Chapters:
    """List the chapters in a language, of one part or of all."""
    return [
        (translated(heading, language), [translated(sentence, language) for sentence in sentences])
        for each in CHAPTERS
        if part in (None, each.part)
        for heading, sentences in each.write(plan, language)
        if sentences
    ]
