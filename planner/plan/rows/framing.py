"""Rows of the question: notes, assumptions, provenance, diagnosis."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.values import Coded, Flag, Number, Text, Whole


class Sentence(TypedDict):
    """State a sentence: a code, its arguments and the English text."""

    code: Text
    arguments: dict[str, Number | Text]
    text: Text


class FactRow(TypedDict):
    """State how the spec was understood, or why there is no plan: a code, its arguments and the English text."""

    path: Text
    code: Text
    arguments: dict[str, Any]
    text: Text
    source: Text


class LeftOut(TypedDict):
    """Count the candidates that a rule which proves nothing left out."""

    reason: Text
    reason_message: NotRequired[Coded]
    count: Whole


class Coverage(TypedDict):
    """Count the operating points that the bound covers, and the candidates that it does not cover, by rule."""

    points: Whole
    left_out: Whole
    reasons: list[LeftOut]


class Conflict(TypedDict):
    """Name a limit that takes part in a conflict."""

    path: Text
    name: Text
    name_message: NotRequired[Coded]
    words: Text
    words_message: NotRequired[Coded]


_RepairWords = TypedDict("_RepairWords", {"from": Any})


class Repair(_RepairWords):
    """State a change of the spec that makes a plan possible."""

    path: Text
    to: Any
    unit: NotRequired[Text | None]
    words: Text
    words_message: NotRequired[Coded]


class Reach(TypedDict):
    """State the most of a demand that any plan serves; `workload` is null for all workloads together."""

    workload: Text | None
    at_most: Number


class Diagnosis(TypedDict):
    """State why a spec has no plan, and the change that repairs it."""

    conflict_of: NotRequired[Text]
    conflict: list[Conflict]
    repair: list[Repair]
    repair_checked: Flag
    reach: NotRequired[list[Reach]]


class Objective(TypedDict):
    """State the objective, and the value reached."""

    sense: Text
    value: Number | None
    unit: Text


class Assumption(TypedDict):
    """State a figure that is not published for exactly this item, with the share of the objective computed from it."""

    path: Text
    value: Number | Text
    unit: Text
    reason: Text
    reason_message: NotRequired[Coded]
    share: Number | None


class Provenance(TypedDict):
    """Cite the source of a catalog figure that the plan uses."""

    path: Text
    value: Number | Text | list[Number]
    unit: Text
    source: list[Text]
    date: Text | None
    confidence: Text
    kind: Text
    low: NotRequired[Number]
    high: NotRequired[Number]
