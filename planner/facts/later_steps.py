"""Say that a later step of the search was undone: its plan did not pass the check that every plan passes."""

from __future__ import annotations

from planner.facts import Fact
from planner.messages import Message

CONFIDENCE, SIMPLEST = "confidence", "simplest"
SECTION_OF = {
    f"steps.{CONFIDENCE}_left_out": "confidence_gain",
    f"steps.{SIMPLEST}_left_out": "simplicity",
}  # that such a plan lacks
PATH = "simplicity"


def undone(step: str) -> Fact:
    """Return the note on a step that was undone."""
    return Fact(PATH, Message.of(f"steps.{step}_left_out"))
