"""State of the dashboard's page between reruns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.dashboard import answers, editing
from planner.plan import Plan

GROUPS = ("workloads", "sites", "offers", "limits", "solver")


@dataclass(slots=True)
class Question:
    """A valid spec as chosen: its fields are edited, the document is not."""

    key: str
    document: dict[str, Any]
    fields: list[editing.Field]


@dataclass(slots=True)
class Shown:
    """A plan on the page, with its files, findings and changes."""

    plan: Plan
    files: tuple[answers.Download, ...]
    findings: tuple[str, ...] = ()
    changes: list[dict[str, str]] = field(default_factory=list)
    stored: bool = False
